"""What is surely wrong in SQL, told so that it can be mended, and what SQLite's own parser says of a statement.

The rules hold where sqlglot forgives: brackets, commas, reserved words, CHECK. SQLite is asked in memory: nothing is
run, and no table is needed.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from orchestrator.code.sql.tokens import COLUMN_WORDS, TYPES, Statement, Token, quoted_as, reserved_in, words

NAMES = frozenset({"word", "quoted"})
_MAKING = frozenset(
    {"CREATE", "OR", "REPLACE", "GLOBAL", "LOCAL", "TEMP", "TEMPORARY", "UNLOGGED", "FOREIGN", "EXTERNAL", "TABLE"}
)
_CANNOT_END = words(
    """, = < > + || ( . <= >= <> != WHERE AND OR INTO BY HAVING JOIN LIKE BETWEEN CREATE INSERT ALTER DROP WITH NOT
    REFERENCES UNION EXCEPT INTERSECT WHEN THEN ELSE FROM SET"""
)
_NO_COMMA_BEFORE = frozenset({"FROM", "WHERE", ")", ",", "HAVING"})
_OPENINGS = frozenset(
    (first, second)
    for first, seconds in {"CREATE": "TABLE INDEX UNIQUE", "INSERT": "INTO", "ALTER": "TABLE", "DROP": "TABLE"}.items()
    for second in seconds.split()
)
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM", "("})


class Problem(NamedTuple):
    """One thing that is wrong with a statement."""

    at: Token
    message: str
    fix: str
    major: bool = True
    certain: bool = False
    """Whether it stays wrong although a database takes it as grammar: it does not mean what was meant."""
    cut: bool = False
    """Whether only the end is missing, which a program may put there."""


def problems(statement: Statement, dialects: Sequence[str]) -> Iterator[Problem]:
    """What is wrong by the rules that hold in all of `dialects`. A trigger's or function's body is not looked at."""
    if statement.body:
        return
    yield from _brackets(statement)
    yield from _commas(statement.tokens)
    yield from _cut_short(statement)
    yield from _joined(statement.tokens)
    yield from _reserved_table(statement.tokens, dialects)
    if statement.words[:1] in {("INSERT",), ("REPLACE",)}:
        yield from _inserted(statement.tokens, dialects)


def table_items(tokens: Sequence[Token]) -> list[list[Token]]:
    """What CREATE TABLE lists between its brackets, parted by its commas; [] for anything else."""
    at = _table_name_at(tokens)
    if at is None:
        return []
    while at < len(tokens) and (tokens[at].kind in {*NAMES, "hole"} or tokens[at].key == "."):
        at += 1
    if at >= len(tokens) or tokens[at].key != "(" or (at + 1 < len(tokens) and tokens[at + 1].key in _QUERIES):
        return []
    return list_at(tokens, at)


def list_at(tokens: Sequence[Token], at: int) -> list[list[Token]]:
    """The parts between the bracket at `at` and its closing one (or the end), at its own commas."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[at:]:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.key, 0)
        if depth == 0:
            break
        if depth == 1 and token.key == ",":
            parts.append([])
        elif token is not tokens[at]:
            parts[-1].append(token)
    return parts


def _table_name_at(tokens: Sequence[Token]) -> int | None:
    """Where the name stands that CREATE TABLE gives."""
    keys = [token.key for token in tokens[:12]]
    if keys[:1] != ["CREATE"] or "TABLE" not in keys:
        return None
    at = keys.index("TABLE")
    if not set(keys[:at]) <= _MAKING:
        return None
    return at + 4 if keys[at + 1 : at + 4] == ["IF", "NOT", "EXISTS"] else at + 1


def _brackets(statement: Statement) -> Iterator[Problem]:
    waiting: list[Token] = []
    for token in statement.tokens:
        if token.open:
            message = f"{token.text[:30]!r} is a text or name whose closing quote is missing"
            yield Problem(token, message, "Close the quote; write a quote inside a text twice.", cut=True)
        elif token.key == "(":
            waiting.append(token)
        elif token.key == ")" and not waiting:
            yield Problem(token, "`)` closes no bracket", "Take it out, or open the bracket that it closes.")
            return
        elif token.key == ")":
            waiting.pop()
    if waiting:
        message = "`(` is never closed"
        yield Problem(waiting[-1], message, "Write the whole statement, each `(` with its `)`.", cut=True)


def _commas(tokens: Sequence[Token]) -> Iterator[Problem]:
    for one, behind in pairwise(tokens):
        if one.key == "," and behind.key in _NO_COMMA_BEFORE:
            yield Problem(one, f"a comma stands before `{behind.text}`", "Take the comma out.")
        elif one.key == "(" and behind.key == ",":
            yield Problem(behind, "a comma stands right behind `(`", "Take the comma out.")


def _cut_short(statement: Statement) -> Iterator[Problem]:
    tokens = statement.tokens
    last, before = tokens[-1], tokens[-2].key if len(tokens) > 1 else ""
    # `LIKE t.*`, `AS from`, `"x".set`: what stands behind AS or a point is a name, whatever the word
    if len(tokens) > 1 and last.key in _CANNOT_END and before not in {"AS", "."} and not last.open:
        message = f"the statement ends with `{last.text}`: the rest is missing"
        yield Problem(last, message, "Write the statement to its end.", cut=True)


def _joined(tokens: Sequence[Token]) -> Iterator[Problem]:
    """A second statement that begins where the first has no `;`, and CREATE TABLE without its bracket."""
    if (tokens[0].key, tokens[1].key if len(tokens) > 1 else "") not in _OPENINGS:
        return
    depth = 0
    for before, one, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += {"(": 1, ")": -1}.get(before.key, 0)
        if depth == 0 and (one.key, behind.key) in _OPENINGS and before.key not in {"AS", "."}:
            message = f"`{one.text} {behind.text}` begins while the statement before it has no `;`"
            yield Problem(one, message, f"Put a `;` before `{one.text} {behind.text}`.")
            return
    at = _table_name_at(tokens)
    if at is not None and [token.kind for token in tokens[at : at + 3]] == ["word"] * 3 and tokens[at + 2].key in TYPES:
        yield Problem(tokens[at + 1], f"`(` is missing before `{tokens[at + 1].text}`", "Put the columns in brackets.")


def _reserved_table(tokens: Sequence[Token], dialects: Sequence[str]) -> Iterator[Problem]:
    keys = [token.key for token in tokens[:8]]
    at = _table_name_at(tokens)
    if at is None and keys[:1] == ["INSERT"] and "INTO" in keys[:4]:
        at = keys.index("INTO") + 1
    if at is None or at + 1 >= len(tokens) or tokens[at + 1].key not in {"(", "VALUES"}:
        return
    if tokens[at].kind == "word" and reserved_in(tokens[at].key, dialects):
        yield reserved(tokens[at], "table", dialects)


def reserved(token: Token, what: str, dialects: Sequence[str]) -> Problem:
    """The finding on a name that is a word of the language."""
    message = f"`{token.text}` is a reserved word of SQL and cannot be a {what}'s name without quotes"
    fix = f"Write {quoted_as(token.text, dialects)} wherever the {what} is named, or name it otherwise."
    return Problem(token, message, fix)


def _inserted(tokens: Sequence[Token], dialects: Sequence[str]) -> Iterator[Problem]:
    """The columns of INSERT INTO t (…), and whether each row has as many values."""
    at = next((index for index, token in enumerate(tokens[:12]) if token.key == "("), None)
    keys = [token.key for token in tokens[: at or 0]]
    if at is None or "INTO" not in keys or at + 1 >= len(tokens) or tokens[at + 1].key in _QUERIES or "VALUES" in keys:
        return
    parts = list_at(tokens, at)
    for part in parts:
        if part and part[0].kind == "word" and len(part) == 1 and reserved_in(part[0].key, dialects):
            yield reserved(part[0], "column", dialects)
        elif len(part) == 2 and all(token.kind in NAMES for token in part):
            message = f"a comma is missing between `{part[0].text}` and `{part[1].text}`"
            yield Problem(part[1], message, f"Write `{part[0].text}, {part[1].text}`.")
    behind = at + sum(len(part) for part in parts) + len(parts) + 1
    if all(len(part) == 1 and part[0].kind in NAMES for part in parts) and behind < len(tokens):
        yield from _rows(tokens, behind, len(parts))


def _rows(tokens: Sequence[Token], at: int, columns: int) -> Iterator[Problem]:
    if tokens[at].key != "VALUES" or at + 1 >= len(tokens) or tokens[at + 1].key != "(":
        return
    values = list_at(tokens, at + 1)
    vague = any(token.kind == "hole" or (token.key == "?" and len(values) == 1) for token in values[-1])
    if len(values) != columns and values[-1] and not vague:
        message = f"{len(values)} values are given for {columns} columns"
        yield Problem(
            tokens[at + 1], message, "Give a value for each column that is named, in their order.", certain=True
        )


_CONSTRAINTS = words(
    """CONSTRAINT PRIMARY FOREIGN UNIQUE CHECK EXCLUDE LIKE INDEX KEY FULLTEXT SPATIAL PERIOD PARTITION INHERITS
    PROJECTION WATERMARK"""
)
_ENDS_A_COLUMN = words(
    """) NULL KEY UNIQUE AUTOINCREMENT AUTO_INCREMENT TRUE FALSE CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME CASCADE
    RESTRICT ACTION STORED VIRTUAL DEFERRED IMMEDIATE ] UNSIGNED ZEROFILL"""
)
_ENDS_BEHIND = frozenset({"REFERENCES", "COLLATE"})


def table_problems(statement: Statement, dialects: Sequence[str]) -> Iterator[Problem]:
    """Reserved words as columns, commas that are missing, CHECK without brackets."""
    if statement.body:
        return
    tokens = statement.tokens
    for item in table_items(tokens):
        if item:
            yield from _named(item, dialects)
            yield from _missing_comma(item)
            yield from _checks(item)
    if statement.words[:2] == ("ALTER", "TABLE") and statement.words[2:5] != ("IF", "EXISTS", "CHECK"):
        at = next((index for index, token in enumerate(tokens) if token.key == "ADD"), None)
        if at is not None and "NOCHECK" not in statement.words and tokens[at - 1].key not in {"CHECK", "WITH"}:
            yield from _checks(tokens[at + 1 :], added=True)


def _named(item: Sequence[Token], dialects: Sequence[str]) -> Iterator[Problem]:
    first = item[0]
    behind = item[1] if len(item) > 1 else None
    if first.kind != "word" or behind is None or behind.kind not in {"word", "quoted"}:
        return
    typed = behind.key in TYPES and (len(item) < 3 or item[2].key != "(" or behind.key not in {"DATE", "YEAR", "TIME"})
    if first.key in _CONSTRAINTS and not (typed and _is_column(item)):
        return
    if reserved_in(first.key, dialects):
        yield reserved(first, "column", dialects)


def _is_column(item: Sequence[Token]) -> bool:
    """`index INTEGER NOT NULL` is a column; `INDEX date (a)` and `LIKE text INCLUDING ALL` are none."""
    rest = [token.key for token in item[2:4]]
    sized = rest[:1] == ["("] and len(item) > 3 and item[3].kind == "number"
    return (rest[:1] != ["("] and rest[:1] not in (["USING"], ["INCLUDING"], ["EXCLUDING"])) or sized


def _missing_comma(item: Sequence[Token]) -> Iterator[Problem]:
    depth = 0
    for index, token in enumerate(item):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth or index == 0 or token.key == ")":
            continue
        if _begins_constraint(item, index):
            # SQLite lets commas between constraints of the table be left out: it has the last word
            yield _between(item, token, f"{token.text} …")._replace(certain=False)
            return
        if _begins_column(item, index):
            yield _between(item, token, token.text)
            return


def _begins_constraint(item: Sequence[Token], index: int) -> bool:
    keys = [token.key for token in item[index : index + 3]]
    opens = keys[:2] == ["UNIQUE", "("] or keys in (["FOREIGN", "KEY", "("], ["PRIMARY", "KEY", "("])
    return opens and not (index <= 2 and item[0].key == "CONSTRAINT")


def _begins_column(item: Sequence[Token], index: int) -> bool:
    """A name before a type, behind something with which a column's definition may end."""
    token, before = item[index], item[index - 1]
    behind = item[index + 1] if index + 1 < len(item) else None
    if behind is None or behind.kind != "word" or behind.key not in TYPES or index < 2:
        return False
    if token.kind not in NAMES or (token.kind == "word" and token.key in COLUMN_WORDS | TYPES):
        return False
    if before.kind in {"string", "number", "dollar"}:
        return True
    if item[index - 2].key in _ENDS_BEHIND:
        return before.kind in NAMES
    return before.key in _ENDS_A_COLUMN or (before.kind == "word" and before.key in TYPES)


def _between(item: Sequence[Token], at: Token, second: str) -> Problem:
    first = " ".join(token.text for token in item[:2])[:40]
    # SQLite reads `a TEXT b TEXT` as one column of a long type: it takes it, and the second column is lost.
    fix = f"Put a comma before `{second}`."
    return Problem(at, f"a comma is missing between `{first}` and `{second}`", fix, certain=True)


def _checks(item: Sequence[Token], *, added: bool = False) -> Iterator[Problem]:
    for index, token in enumerate(item):
        behind = item[index + 1] if index + 1 < len(item) else None
        if token.kind != "word" or token.key != "CHECK" or (behind is not None and behind.key in {"(", "NOT"}):
            continue
        if index == 0 and not added and behind is not None and behind.key in TYPES:
            continue  # a column of that name: told as a reserved word
        if behind is not None and behind.kind == "hole":
            continue
        if behind is None or (index > 0 and item[index - 1].key in {".", "WITH", "CONSTRAINT"}):
            continue
        yield Problem(token, "CHECK stands without brackets", "Write `CHECK (…)` with the condition in brackets.")


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
_COLUMN = "no column of anybody"
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

    A query is refused by the authorizer once it is parsed, so that none is planned: planning can take for ever.
    """

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.set_authorizer(_authorized)
        self._made: set[str] = set()

    def close(self) -> None:
        """Let go of the memory."""
        self._connection.close()

    def says(self, text: str, statement: Statement) -> Said | None:
        """Its word on a statement of `text`; None when it has none, because another SQLite may know better."""
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
        """The token it stumbled over: the first of those with this text up to which it already stumbles."""
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
    """`sql` with placeholders of drivers as `?`, blanks behind, so that every place stays."""
    if "%" not in sql:
        return sql
    parts, at = [], 0
    for token in tokens:
        if token.kind == "param" and token.text[0] == "%" and start <= token.start and token.end <= start + len(sql):
            parts += [sql[at : token.start - start], "?".ljust(len(token.text))]
            at = token.end - start
    return "".join((*parts, sql[at:]))
