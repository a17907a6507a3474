"""The tables that SQL texts leave behind: CREATE, ALTER, DROP and renames, statement by statement, by sqlglot."""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.code.sql.tokens import Token, statements, table_items
from orchestrator.core.contract import Table

if TYPE_CHECKING:
    from sqlglot import exp

MAX_STATEMENTS = 2000
"""Table statements read of one text."""
MAX_STATEMENT_CHARS = 40_000
MAX_COLUMN_CHARS = 100

_DIALECTS = ("", "postgres", "sqlite", "mysql", "tsql")
"""Tried in this order until one knows the statement; a dialect whose words the statement uses goes first, because
another one may know them too and say them in its own way."""
_SPOKEN = {
    "mysql": re.compile(r"`|\bAUTO_INCREMENT\b|\bENGINE\s*=|\bUNSIGNED\b", re.IGNORECASE),
    "sqlite": re.compile(r"\bAUTOINCREMENT\b|\bWITHOUT\s+ROWID\b", re.IGNORECASE),
    "tsql": re.compile(r"\[\w+\]\s*[.(\[\w]|\bIDENTITY\s*\(|\bNVARCHAR\b", re.IGNORECASE),
}
_PASSING = (["TEMP"], ["TEMPORARY"], ["UNLOGGED"])
_COMMENT = re.compile(r"--[^\n]*+|/\*.*?\*/", re.DOTALL)
_DOWN = re.compile(
    r"^[ \t]*--[ \t]*(?:\+goose[ \t]+down|migrate:down|\+migrate[ \t]+down)\b", re.IGNORECASE | re.MULTILINE
)
"""Where a migration's way back begins: what stands behind it undoes what stands before."""
_BACKWARDS = re.compile(r"(^|[./_-])(down|rollback|revert)([./_-]|$)", re.IGNORECASE)


class _Statement(NamedTuple):
    """One statement on a table as it was understood."""

    tree: "exp.Expression"
    dialect: str
    items: tuple[str, ...]
    """What CREATE TABLE lists, as written but for comments: sqlglot says types in words of its own."""


class _Known(NamedTuple):
    """A table on the way."""

    name: str
    columns: dict[str, str]
    file: str


def read_tables(texts: Iterable[tuple[str, str]]) -> tuple[Table, ...]:
    """The tables that stand after running (path, SQL) in this order. Never raises; what no dialect knows is left out.

    Temporary tables and a migration's way back (`*.down.sql`, `-- +goose Down`) do not count.
    """
    known: dict[str, _Known] = {}
    for path, text in texts:
        if _BACKWARDS.search(path):
            continue
        down = _DOWN.search(text)
        for statement in _parsed(text[: down.start()] if down else text):
            _apply(known, statement, path)
    return tuple(Table(name=t.name, columns=tuple(t.columns.values()), file=t.file) for t in known.values())


def _parsed(text: str) -> Iterator[_Statement]:
    read = 0
    for statement in statements(text):
        first, *others = statement.words
        changes = first in {"CREATE", "ALTER", "DROP"} and "TABLE" in others[: 2 if others[:1] in _PASSING else 1]
        source = text[statement.tokens[0].start : statement.tokens[-1].end]
        if read < MAX_STATEMENTS and changes and len(source) <= MAX_STATEMENT_CHARS:
            read += 1
            yield from _parse(source, tuple(_written(text, item) for item in table_items(statement.tokens)))


def _written(text: str, item: Sequence[Token]) -> str:
    return " ".join(_COMMENT.sub(" ", text[item[0].start : item[-1].end]).split())


@cache
def quiet_sqlglot() -> None:
    """Keeps what sqlglot cannot read out of the log: the result says it."""
    logger = logging.getLogger("sqlglot")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def _parse(statement: str, items: tuple[str, ...]) -> Iterator[_Statement]:
    # Imported here: only a scan that meets SQL pays for it.
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    quiet_sqlglot()
    spoken = [dialect for dialect, words in _SPOKEN.items() if words.search(statement)]
    for dialect in dict.fromkeys((*spoken, *_DIALECTS)):
        try:
            found = sqlglot.parse_one(statement, dialect=dialect)
        except (SqlglotError, RecursionError):  # sqlglot cannot parse it: no table is known
            continue
        if isinstance(found, exp.Create | exp.Alter | exp.Drop) and found.args.get("kind") == "TABLE":
            yield _Statement(found, dialect, items)
            return


def _apply(known: dict[str, _Known], said: _Statement, path: str) -> None:
    from sqlglot import exp

    statement = said.tree
    table = statement.find(exp.Table)
    name = table.name if table is not None else ""
    if not name:
        return
    if isinstance(statement, exp.Create):
        lasting = isinstance(statement.this, exp.Schema) and not statement.find(exp.TemporaryProperty)
        if lasting and (name.lower() not in known or not statement.args.get("exists")):
            columns = _columns(statement.this.expressions, said.dialect, said.items)
            known[name.lower()] = _Known(name=name, columns=columns, file=path)
    elif isinstance(statement, exp.Drop):
        for dropped in statement.find_all(exp.Table):
            known.pop(dropped.name.lower(), None)
    elif name.lower() in known:
        for action in statement.args.get("actions") or ():
            _alter(known, name.lower(), action, said.dialect)


def _columns(items: Sequence["exp.Expression"], dialect: str, written: Sequence[str] = ()) -> dict[str, str]:
    """Lower-case name (or the text of a table constraint) → the text shown: as `written` when that has as many parts,
    or as sqlglot writes it."""
    from sqlglot import exp

    texts = written if len(written) == len(items) else [item.sql(dialect=dialect) for item in items]
    columns = {}
    for item, text in zip(items, texts, strict=True):
        short = " ".join(text.split())[:MAX_COLUMN_CHARS]
        named = isinstance(item, exp.ColumnDef | exp.Identifier)
        columns[item.name.lower() if named else short] = short
    return columns


def _alter(known: dict[str, _Known], key: str, action: "exp.Expression", dialect: str) -> None:
    from sqlglot import exp

    if key not in known:
        return
    columns = known[key].columns
    if isinstance(action, exp.ColumnDef):
        columns.update(_columns([action], dialect))
    elif isinstance(action, exp.AddConstraint):
        columns.update(_columns(action.expressions, dialect))
    elif isinstance(action, exp.Drop) and action.args.get("kind") == "COLUMN":
        for dropped in action.find_all(exp.Identifier):
            columns.pop(dropped.name.lower(), None)
    elif isinstance(action, exp.RenameColumn):
        _rename_column(columns, action.this.name, action.args["to"].name)
    elif isinstance(action, exp.AlterRename):
        table = known.pop(key)
        known[action.this.name.lower()] = table._replace(name=action.this.name)


def _rename_column(columns: dict[str, str], old: str, new: str) -> None:
    """In place, the order kept."""
    items = list(columns.items())
    columns.clear()
    for name, text in items:
        if name == old.lower():
            rest = text.partition(" ")[2]
            columns[new.lower()] = f"{new} {rest}".strip()
        else:
            columns[name] = text
