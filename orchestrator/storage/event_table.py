"""The event log's table on either database: its address, its connections, and what its errors mean."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from orchestrator.core.command import CONTROL_MARK
from orchestrator.core.errors import ConfigError, EventLogAway
from orchestrator.storage.event_file import SQLITE_AWAY

EVENTS = sa.Table(
    "orchestrator_events",
    sa.MetaData(),
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("sprint", sa.Text, nullable=False, index=True),
    sa.Column("story", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_autoincrement=True,  # also where the newest were removed, no number is given again
)


def marked(mark: str) -> sa.ColumnElement[bool]:
    """Returns a condition: the id contains `mark`, in any case of its letters on SQLite."""
    # The pattern stands in the statement itself: an index over a part of the rows serves no bound parameter.
    return EVENTS.c.id.like(sa.bindparam("pattern", f"%{mark}%", literal_execute=True))


# A holder of a sprint looks for new orders of people all the time, in a log that may be long.
_ORDERS = marked(CONTROL_MARK)
sa.Index("orchestrator_controls", EVENTS.c.seq, sqlite_where=_ORDERS, postgresql_where=_ORDERS)
# "orchest" in ASCII: any constant that no other program uses.
LOG_LOCK = 0x6F726368657374
"""Who makes or writes the log on Postgres holds this advisory lock until the commit: numbers become visible in order,
and none below the highest one that can be seen will ever appear."""
# With the pauses below, about two seconds.
_WAL_ATTEMPTS = 20
_CONNECTING = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 30000,
}  # fmt: skip
"""A server whose machine is gone says nothing any more: libpq's own patience is two hours."""
_AWAY = ("08", "53", "57P", "25006", "25P03", "40001", "40P01", "55P03")
"""Beginnings of Postgres error codes that pass by themselves: connection, resources, shutdown, failover, deadlock."""
Guard = Callable[[sa.Connection, str], None]
"""(connection, sprint): raises within a transaction that must not write for the sprint any more."""


def is_away(error: BaseException) -> bool:
    """Returns whether the database cannot be reached, or written, at the moment: the same may succeed later."""
    if isinstance(error, sa.exc.TimeoutError):
        return True
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in SQLITE_AWAY
    state = getattr(error.orig, "sqlstate", None)
    if state is None:  # it did not come from a server: none could be reached
        return error.connection_invalidated or isinstance(error, sa.exc.OperationalError)
    return error.connection_invalidated or state.startswith(_AWAY)


def reason_of(error: BaseException) -> str:
    """Returns what the driver said, in one line."""
    said = str(getattr(error, "orig", None) or error).strip()
    return said.split("\n", 1)[0]


@contextmanager
def usable() -> Iterator[None]:
    """Raises ConfigError for a database that is none, EventLogAway for one that cannot be reached at the moment.

    The address of the database, with its password, stays out of what is said.
    """
    try:
        yield
    except (sa.exc.ArgumentError, ImportError) as error:
        raise ConfigError(f"DATABASE_URL names no database that can be used here: {error}") from error
    except (sa.exc.DatabaseError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        kind = EventLogAway if is_away(error) else ConfigError
        reason = reason_of(error)
        raise kind(f"the event log cannot be used: {reason}; see DATABASE_URL or the state folder") from error


def connected(url: str, *, writes: bool, pooled: bool = True) -> sa.Engine:
    """Returns an engine for the database; nothing is connected yet. Raises ConfigError for what is no address.

    One that is not `pooled` keeps no connection open between two uses, and needs no `dispose`.
    """
    pool = {} if pooled else {"poolclass": sa.pool.NullPool}
    with usable():
        parsed = _parsed(url)
        if not _is_postgres(parsed):
            engine = sa.create_engine(parsed, **pool)
        else:
            # The driver that the engine brings; SQLAlchemy's default would be another package.
            parsed = parsed.set(drivername="postgresql+psycopg")
            own = {name: value for name, value in _CONNECTING.items() if name not in parsed.query}
            # A statement that is prepared on one connection is not there on the next one of a pooler.
            engine = sa.create_engine(
                parsed, pool_pre_ping=True, connect_args={**own, "prepare_threshold": None}, **pool
            )
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _writer_pragmas if writes else _reader_pragmas)
    return engine


def is_postgres(url: str) -> bool:
    """Returns whether the address is one of a Postgres. Raises ConfigError for what is no address."""
    with usable():
        return _is_postgres(_parsed(url))


def _is_postgres(parsed: sa.URL) -> bool:
    return parsed.drivername.partition("+")[0] in {"postgres", "postgresql"}


def _parsed(url: str) -> sa.URL:
    try:
        return sa.make_url(url)
    except ValueError as error:  # what stands in the port's place may be a part of the password
        told = "its port is no number; / : @ in a password are written as %2F %3A %40"
        raise ConfigError(f"DATABASE_URL is no address that can be used here: {told}") from error


def prepare(engine: sa.Engine) -> None:
    """Makes the table with its indexes, also when others make it at the same moment."""
    with engine.begin() as connection:
        lock(connection)
        connection.execute(sa.schema.CreateTable(EVENTS, if_not_exists=True))
        there = {index["name"] for index in sa.inspect(connection).get_indexes(EVENTS.name)}
        for index in sorted(EVENTS.indexes, key=lambda index: str(index.name)):
            if index.name not in there:  # all of them, or what a log of an older version lacks
                connection.execute(sa.schema.CreateIndex(index, if_not_exists=True))


NOT_IDLE = sa.func.set_config("idle_in_transaction_session_timeout", "10000", True)
"""In a statement: a process that stands still with a lock of the transaction is cut off, for others wait for it."""


def lock(connection: sa.Connection) -> None:
    """Hold the log until the end of the transaction; on SQLite the first write does."""
    if connection.dialect.name == "postgresql":
        hold(connection, LOG_LOCK)


def hold(connection: sa.Connection, number: int | sa.ColumnElement[int]) -> None:
    """Waits until no other transaction of Postgres holds this lock, and holds it until the end of ours."""
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number), NOT_IDLE))


def _reader_pragmas(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA busy_timeout=30000")


def _writer_pragmas(connection: Any, _record: Any) -> None:
    """WAL lets others read while a run writes; NORMAL is safe against kill -9, not against power loss."""
    connection.execute("PRAGMA busy_timeout=30000")
    for attempt in range(_WAL_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError:
            # SQLite does not wait for locks on the first change of a file to WAL: another process has just opened it.
            if attempt + 1 == _WAL_ATTEMPTS:
                raise
            time.sleep(0.01 * (attempt + 1))
    connection.execute("PRAGMA synchronous=NORMAL")
