"""The tables that SQL texts leave behind: CREATE, ALTER, DROP and renames, statement by statement, in any dialect."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from orchestrator.code.sql.tokens import Statement, Token, list_items, statements, table_items, table_name, words
from orchestrator.core.contract import Table

MAX_STATEMENTS = 2000
"""Table statements read of one text."""
MAX_STATEMENT_CHARS = 40_000
MAX_COLUMN_CHARS = 100
_COMMENT = re.compile(r"--[^\n]*+|/\*.*?\*/", re.DOTALL)
_DOWN = re.compile(
    r"^[ \t]*--[ \t]*(?:\+goose[ \t]+down|migrate:down|\+migrate[ \t]+down)\b", re.IGNORECASE | re.MULTILINE
)
"""Where a migration's way back begins: what stands behind it undoes what stands before."""
_BACKWARDS = re.compile(r"(^|[./_-])(down|rollback|revert)([./_-]|$)", re.IGNORECASE)
_CONSTRAINTS = words("CONSTRAINT PRIMARY FOREIGN UNIQUE CHECK EXCLUDE LIKE INDEX KEY FULLTEXT SPATIAL PERIOD")
_FILLERS = words("COLUMN IF NOT EXISTS ONLY")


class _Known(NamedTuple):
    """A table on the way."""

    name: str
    columns: dict[str, str]
    """Lower-case name (or the text of a table constraint) → the text shown."""
    file: str


def read_tables(texts: Iterable[tuple[str, str]]) -> tuple[Table, ...]:
    """Returns the tables that stand after running (path, SQL) in this order. Never raises.

    Temporary tables and a migration's way back (`*.down.sql`, `-- +goose Down`) do not count, nor does what is broken.
    """
    known: dict[str, _Known] = {}
    for path, text in texts:
        if _BACKWARDS.search(path):
            continue
        down = _DOWN.search(text)
        read = 0
        for statement in statements(text[: down.start()] if down else text):
            if not statement.body and statement.words[0] in {"CREATE", "ALTER", "DROP"} and "TABLE" in statement.words:
                read += 1
                if read <= MAX_STATEMENTS and _text(text, statement.tokens, MAX_STATEMENT_CHARS + 1):
                    _apply(known, statement, text, path)
    return tuple(Table(name=t.name, columns=tuple(t.columns.values()), file=t.file) for t in known.values())


def _text(text: str, tokens: Sequence[Token], most: int = MAX_COLUMN_CHARS) -> str:
    """Returns what was written, without comments and on one line; "" for what is as long as `most` for a statement."""
    length = tokens[-1].end - tokens[0].start
    if most > MAX_COLUMN_CHARS and length >= most:
        return ""
    return " ".join(_COMMENT.sub(" ", text[tokens[0].start : tokens[-1].end]).split())[:most]


def _plain(token: Token) -> str:
    return token.text.strip('"`[]')


def _apply(known: dict[str, _Known], statement: Statement, text: str, path: str) -> None:
    tokens = statement.tokens
    if statement.words[0] == "CREATE":
        name, items = table_name(tokens), table_items(tokens)
        closed = sum((token.key == "(") - (token.key == ")") for token in tokens) == 0
        lasting = not {"TEMP", "TEMPORARY"} & {*statement.words[:4]}
        if name is not None and items and closed and lasting:
            plain = _plain(tokens[name])
            if plain.lower() not in known or "EXISTS" not in statement.words:
                columns = dict(_column(text, item) for item in items)
                known[plain.lower()] = _Known(name=plain, columns=columns, file=path)
        return
    rest = [
        token for token in tokens[statement.words.index("TABLE") + 1 :] if token.key not in {"IF", "EXISTS", "ONLY"}
    ]
    if statement.words[0] == "DROP":
        for item in list_items(rest):
            at = _name_end(item)
            known.pop(_plain(item[at]).lower(), None)
        return
    at = _name_end(rest) if rest else 0
    if rest and (table := known.get(_plain(rest[at]).lower())) is not None:
        for action in list_items(rest[at + 1 :]):
            _alter(known, table, action, text)


def _name_end(tokens: Sequence[Token]) -> int:
    """Returns where the last part of `schema.table` stands."""
    return 2 if len(tokens) > 2 and tokens[1].key == "." else 0


def _column(text: str, item: Sequence[Token]) -> tuple[str, str]:
    short = _text(text, item)
    return short if item[0].key in _CONSTRAINTS and len(item) > 2 else _plain(item[0]).lower(), short


def _alter(known: dict[str, _Known], table: _Known, action: Sequence[Token], text: str) -> None:
    """Carries out one ADD, DROP or RENAME; any other action changes no column."""
    verb, rest = action[0].key, [token for token in action[1:] if token.key not in _FILLERS]
    columns = table.columns
    keys = [token.key for token in rest]
    if verb == "ADD" and rest:
        columns.update([_column(text, action[action.index(rest[0]) :])])
    elif verb == "DROP" and rest and keys[0] not in _CONSTRAINTS:
        columns.pop(_plain(rest[0]).lower(), None)
    elif verb == "RENAME" and keys[:1] == ["TO"] and len(rest) > 1:
        del known[table.name.lower()]
        known[_plain(rest[1]).lower()] = table._replace(name=_plain(rest[1]))
    elif verb == "RENAME" and keys[1:2] == ["TO"] and len(rest) > 2:
        new = _plain(rest[2])
        items = list(columns.items())
        columns.clear()
        for name, shown in items:  # the order stays
            renamed = name == _plain(rest[0]).lower()
            columns[new.lower() if renamed else name] = f"{new} {shown.partition(' ')[2]}".strip() if renamed else shown
