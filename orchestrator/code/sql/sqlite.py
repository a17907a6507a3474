"""SQLite's own parser as the judge of a statement: asked in memory, nothing is run, and no table is needed."""

import re
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.code.sql.tokens import Statement, Token

_NEAR = re.compile(r'^near "(?P<word>.*)": syntax error$', re.DOTALL)
_CUT = "incomplete input"
_SURE = re.compile(
    r"^(?:duplicate column name|table .* has more than one primary key|default value of column .* is not constant"
    r"|all VALUES must have the same number of terms|unrecognized token|unknown column .* in foreign key definition"
    r"|number of columns in foreign key|PRIMARY KEY missing on table|missing datatype for|unknown datatype for"
    r"|foreign key on .* should reference only one column|SELECTs to the left and right of)",
    re.IGNORECASE,
)
"""Errors of a statement alone, whatever tables there are."""
_NEWER = (
    ((3, 35), re.compile(r"\bRETURNING\b|\bMATERIALIZED\b|\bDROP\s+COLUMN\b", re.I)),
    ((3, 37), re.compile(r"\bSTRICT\b", re.I)),
    ((3, 38), re.compile(r"->")),
    ((3, 39), re.compile(r"\b(?:RIGHT|FULL)\b|\bDISTINCT\s+FROM\b", re.I)),
    ((3, 44), re.compile(r"\b(?!OVER\b)[A-Z_]\w*\s*\((?!\s*(?:SELECT|PARTITION)\b)[^()]*\bORDER\s+BY\b", re.I)),
    ((3, 46), re.compile(r"\d_\d")),
    ((3, 53), re.compile(r"\bALTER\s+TABLE\b.*\b(?:CONSTRAINT|ALTER|SET|CHECK)\b", re.I | re.S)),
)
"""Since when SQLite knows what: an older one here says nothing about it."""
_BY_BUILD = re.compile(r"^\s*(?:UPDATE|DELETE)\b.*\b(?:ORDER|LIMIT)\b", re.I | re.S)
"""Depends on how SQLite was built."""
_COLUMN = "a column that no statement names"
_DENIED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})


class Said(NamedTuple):
    """The parser's word: `why` is empty when it takes the statement."""

    why: str = ""
    at: Token | None = None
    """Where it stopped, when it says."""
    cut: bool = False
    """Whether the statement only lacks its end."""


class SqliteGrammar:
    """One connection to an empty database in memory. Statements are prepared to be explained, never carried out.

    A query is refused by the authorizer once it is parsed, so that none is planned: planning can take forever.
    """

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.set_authorizer(_authorized)
        self._made: set[str] = set()

    def close(self) -> None:
        """Frees the memory."""
        self._connection.close()

    def check(self, text: str, statement: Statement) -> Said | None:
        """Returns what SQLite says of a statement of `text`; None when another version or build may know better."""
        tokens = statement.tokens
        explained = 0 if tokens[0].key != "EXPLAIN" else 3 if statement.words[1:3] == ("QUERY", "PLAN") else 1
        if len(tokens) <= explained:
            return Said()
        start = tokens[explained].start
        self._table_for(tokens)
        whole = _plain(text[start : tokens[-1].end], tokens, start)
        why = self._refusal(whole)
        unsure = bool(_BY_BUILD.match(whole)) or any(
            sqlite3.sqlite_version_info < since and words.search(whole) for since, words in _NEWER
        )
        if not why:
            return Said()
        near = _NEAR.match(why)
        if near is None:
            sure = why == _CUT or _SURE.match(why)
            return (None if unsure else Said(why, None, why == _CUT)) if sure else Said()
        return None if unsure else Said(why, self._place(text, start, tokens, near["word"]))

    def _place(self, text: str, start: int, tokens: Sequence[Token], word: str) -> Token | None:
        """Returns the token it stumbled over: the first of those with this text up to which it already stumbles."""
        candidates = [token for token in tokens if _plain_token(token) == word]
        low, high = 0, len(candidates) - 1
        while low < high:
            middle = (low + high) // 2
            found = _NEAR.match(self._refusal(_plain(text[start : candidates[middle].end], tokens, start)))
            low, high = (low, middle) if found else (middle + 1, high)
        return candidates[low] if candidates else None

    def _table_for(self, tokens: Sequence[Token]) -> None:
        """A table of the name that ALTER TABLE or CREATE TRIGGER works on: without it neither is parsed whole."""
        keys = [token.key for token in tokens[:40]]
        if keys[:2] == ["ALTER", "TABLE"]:
            at = 2
        elif "TRIGGER" in keys[:3] and "ON" in keys:
            at = keys.index("ON") + 1
        else:
            return
        name = tokens[at].text.strip('"`[]') if at < len(tokens) else ""
        if name and name.lower() not in self._made and re.fullmatch(r"[\w$ ]+", name):
            self._made.add(name.lower())
            kind = "VIEW" if "INSTEAD" in keys else "TABLE"
            body = "AS SELECT 1" if kind == "VIEW" else f'("{_COLUMN}")'
            self._run(f'CREATE {kind} IF NOT EXISTS "{name}" {body}')

    def _refusal(self, sql: str) -> str:
        return self._run(f"EXPLAIN {sql}")

    def _run(self, sql: str) -> str:
        try:
            self._connection.execute(sql)
        except sqlite3.ProgrammingError:
            return ""  # it asks for values, so it was understood
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            return str(error) or "?"
        return ""


def _authorized(action: int, *_of: object) -> int:
    return sqlite3.SQLITE_DENY if action in _DENIED else sqlite3.SQLITE_OK


def _plain_token(token: Token) -> str:
    """As SQLite sees it: another driver's placeholder is a `?` to it."""
    return "?" if token.kind == "param" and token.text[0] == "%" else token.text


def _plain(sql: str, tokens: Sequence[Token], start: int) -> str:
    """Returns `sql` with placeholders of drivers as `?`, blanks behind, so that every place stays."""
    if "%" not in sql:
        return sql
    parts, at = [], 0
    for token in tokens:
        if token.kind == "param" and token.text[0] == "%" and start <= token.start and token.end <= start + len(sql):
            parts += [sql[at : token.start - start], "?".ljust(len(token.text))]
            at = token.end - start
    return "".join((*parts, sql[at:]))
