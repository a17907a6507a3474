"""The event log and the engine's tables in Postgres as they are at one moment; written out and read in by COPY.

Copies several SQLite files as of one moment, while others continue to write.

Giving room in a SQLite file back to the disk, while others read and write it.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from orchestrator.core.errors import ConfigError

SCHEMA = "dbos"
EVENTS = "orchestrator_events"
_VERSIONS = "dbos_migrations"
_FIRST = "workflow_status"
"""Others refer to its rows."""
Table = tuple[str, str]
"""Schema and name."""


def _address(url: str) -> str:
    """As the driver alone knows it."""
    scheme, separator, rest = url.partition("://")
    return f"postgresql://{rest}" if separator and scheme.startswith("postgres") else url


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        reason = str(error).split("\n", 1)[0]
        raise ConfigError(f"the database of DATABASE_URL cannot be used: {reason}") from error


class PostgresMoment:
    """The database as seen by one read-only, repeatable-read transaction. Blocks. Raises ConfigError."""

    def __init__(self, url: str) -> None:
        self._url = _address(url)
        self._connection: psycopg.Connection | None = None
        self._tables: list[Table] = []

    def begin(self) -> None:
        """From now on this moment is what is seen."""
        with _usable():
            connection = psycopg.connect(self._url)
            self._connection = connection
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            self._tables = _tables(connection)

    def end(self) -> None:
        """Let go of it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def copy(self, folder: Path) -> list[Path]:
        """Write each table below `folder`: `<schema>.<table>.json` with its columns, `….copy` with its rows."""
        connection = self._begun
        made = []
        with _usable():
            for table in self._tables:
                stem = folder / ".".join(table)
                columns = _columns(connection, table)
                stem.with_name(f"{stem.name}.json").write_text(json.dumps(columns))
                rows = stem.with_name(f"{stem.name}.copy")
                names = sql.SQL(", ").join(map(sql.Identifier, columns))
                query = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.Identifier(*table), names)
                with rows.open("wb") as file, connection.cursor().copy(query) as copy:
                    for data in copy:
                        file.write(data)
                made += [stem.with_name(f"{stem.name}.json"), rows]
        return made

    def pairs(self, _name: str, query: str) -> dict[str, int]:
        """Rows of two columns that a query of the engine's tables gives; none when there is no such table."""
        with _usable():
            if (SCHEMA, _FIRST) not in self._tables:
                return {}
            with self._begun.transaction(force_rollback=True):  # only here the engine's tables need no schema
                self._begun.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(SCHEMA)))
                return dict(self._begun.execute(query.encode()).fetchall())

    @property
    def _begun(self) -> psycopg.Connection:
        assert self._connection is not None
        return self._connection


def read_in(url: str, folder: Path) -> None:
    """Fill the tables, which exist, from the files of `PostgresMoment.copy`: all or nothing. Blocks.

    A database that holds exactly these events is one that was filled before, and stays. Raises ConfigError when it
    holds others, or tables of another shape.
    """
    with _usable(), psycopg.connect(_address(url)) as connection:
        given = {_table(path): path for path in folder.glob("*.copy")}
        there = _tables(connection)
        if not {*given} <= {*there}:
            raise ConfigError("the database has other tables than the backup: restore it with the version that made it")
        if _filled(connection, there, given):
            return
        order = sorted(given.items(), key=lambda one: (one[0][1] != _FIRST, one[0]))
        for table, path in order:
            columns = json.loads(path.with_suffix(".json").read_text())
            names = sql.SQL(", ").join(map(sql.Identifier, columns))
            place = sql.Identifier(*table)
            connection.execute(sql.SQL("DELETE FROM {}").format(place))
            query = sql.SQL("COPY {} ({}) FROM STDIN").format(place, names)
            with path.open("rb") as file, connection.cursor().copy(query) as copy:
                while data := file.read(1 << 20):
                    copy.write(data)
        for table, _ in order:
            _number_on(connection, table)


def _table(path: Path) -> Table:
    schema, _, name = path.stem.partition(".")
    return schema, name


def _filled(connection: psycopg.Connection, there: list[Table], given: dict[Table, Path]) -> bool:
    """Returns whether these very events are in already. Raises ConfigError for others."""
    events = next((table for table in there if table[1] == EVENTS), None)
    held: set[bytes] = set()
    if events is not None:
        numbers = sql.SQL("SELECT seq::text FROM {}").format(sql.Identifier(*events))
        held = {str(seq).encode() for (seq,) in connection.execute(numbers)}
    if not held and _count(connection, (SCHEMA, _FIRST)) == 0:
        return False
    if events in given:
        with given[events].open("rb") as file:
            if held == {line.split(b"\t", 1)[0] for line in file}:  # their number is the first column
                return True
    raise ConfigError("the database of DATABASE_URL holds sprints already; a backup is restored into an empty one only")


def _count(connection: psycopg.Connection, table: Table) -> int:
    found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(*table))).fetchone()
    return int(found[0]) if found else 0


def _tables(connection: psycopg.Connection) -> list[Table]:
    """Returns the engine's tables but the one of its versions, and the event log's."""
    query = (
        "SELECT schemaname, tablename FROM pg_tables WHERE (schemaname = %s AND tablename <> %s) "
        "OR (tablename = %s AND schemaname = current_schema()) ORDER BY 1, 2"
    )
    return [(str(one[0]), str(one[1])) for one in connection.execute(query, (SCHEMA, _VERSIONS, EVENTS))]


def _columns(connection: psycopg.Connection, table: Table) -> list[str]:
    query = (
        "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
        "AND is_generated = 'NEVER' ORDER BY ordinal_position"
    )
    return [str(name) for (name,) in connection.execute(query, table)]


def _number_on(connection: psycopg.Connection, table: Table) -> None:
    """Advances sequences beyond the given numbers."""
    for column in _columns(connection, table):
        name = ".".join(f'"{part}"' for part in table)
        (sequence,) = connection.execute("SELECT pg_get_serial_sequence(%s, %s)", (name, column)).fetchone() or (None,)
        if sequence is not None:
            last = sql.SQL("SELECT setval(%s, (SELECT coalesce(max({}), 0) FROM {}) + 1, false)")
            connection.execute(last.format(sql.Identifier(column), sql.Identifier(*table)), (sequence,))


class SqliteMoment:
    """The files by name; those that are not there yet are left out. Blocks. Raises ConfigError
    for what is no database, sqlite3.Error when there is no room for a copy."""

    def __init__(self, databases: Mapping[str, Path]) -> None:
        self._databases = databases
        self._open: dict[str, sqlite3.Connection] = {}

    def begin(self) -> None:
        """From now on this moment is what is seen, in the order of the names: of a later one never less."""
        for name, path in self._databases.items():
            if path.exists():
                self._open[name] = _held(path)

    def end(self) -> None:
        """Let go of it."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def copy(self, folder: Path) -> list[Path]:
        """Write each file below `folder` under its name."""
        made = []
        for name, connection in self._open.items():
            target = folder / name
            with closing(sqlite3.connect(target)) as copied:
                connection.backup(copied)
            made.append(target)
        return made

    def pairs(self, name: str, query: str) -> dict[str, int]:
        """Rows of two columns that a query of one of the files gives; none when it has no such table."""
        try:
            return dict(self._open[name].execute(query).fetchall()) if name in self._open else {}
        except sqlite3.OperationalError:  # the table does not exist yet
            return {}


def _held(path: Path) -> sqlite3.Connection:
    """Returns a connection with a transaction that reads."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return connection


_INCREMENTAL = 2  # SQLite's value of PRAGMA auto_vacuum
_PAGES = 500
"""Pages released at a time, so that no one waits for long."""
_WORTH = 8
"""Files are shrunk from this part of free pages on (one in eight): new rows take the free ones first anyway."""


def shrink(path: Path, *, always: bool = False) -> int:
    """Returns the bytes released; 0 when there are none, or another process held the file for too long. Blocks.

    The first time the file is written again, with a note that free pages can be given back one by one; later calls do
    that in small portions.
    """
    if not path.is_file():
        return 0
    before = _size(path)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        try:
            free, pages = _number(connection, "freelist_count"), _number(connection, "page_count")
            if not free or (free * _WORTH < pages and not always):
                return 0
            if _number(connection, "auto_vacuum") == _INCREMENTAL:
                _give_back(connection, free)
            else:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError:
            return 0
    return max(0, before - _size(path))


def _give_back(connection: sqlite3.Connection, free: int) -> None:
    for _ in range(0, free, _PAGES):
        # As a script: a single statement would end after its first page.
        connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")


def _number(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _size(path: Path) -> int:
    beside = path.with_name(f"{path.name}-wal")
    return os.path.getsize(path) + (os.path.getsize(beside) if beside.exists() else 0)
