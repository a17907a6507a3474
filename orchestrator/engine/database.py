"""The engine's database, opened as dbos would open it, but as something that comes back.

dbos waits, for as long as it takes, for a database whose connection is lost, and knows that by what the driver says.
What it does not know, such as a socket that is not there while the server restarts, or a disk that is full, would be
the end of a story; here it is told to dbos as a lost connection.

The engine's rows of what has ended, looked at and removed without launching it.

The engine's tables, made without launching it.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer
from dbos._serialization import DBOSDefaultSerializer

from orchestrator.core.errors import ConfigError
from orchestrator.engine.large_results import delete_parts, keep_parts, make_parts_table, read_parts

T = TypeVar("T")

# dbos works in up to 64 threads.
_POOL: dict[str, Any] = {"pool_size": 20, "max_overflow": 60, "pool_pre_ping": True}
"""As many as threads may wait: none waits for another's connection while the server is away."""
_SQLITE_POOL: dict[str, Any] = {"pool_size": 4, "max_overflow": 0}
"""Threads queue for these: SQLite has one writer at a time, and who finds it busy sleeps longer with each try."""
_CONNECTING: dict[str, Any] = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 30000,
}  # fmt: skip
"""A server whose machine is gone says nothing any more: libpq's own patience is two hours."""
_PASSING = ("08", "25006", "25P03", "53", "57P", "58030")
"""Beginnings of Postgres' codes: connection, standby after a failover, resources, shutdown, input and output."""
_SQLITE_PASSING = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
})  # fmt: skip
IDLE_MS = 10_000
"""How long a stalled process may hold its locks."""


_PAUSE_S = 0.5  # between two attempts to connect


class DatabaseGone(Exception):
    """The engine ends while its database is away."""


class _WalConnection(sqlite3.Connection):
    """WAL with synchronous NORMAL: safe against kill -9; a power cut may cost the last steps, which then repeat."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute("PRAGMA journal_mode=WAL")
        self.execute("PRAGMA synchronous=NORMAL")
        if sqlite3.sqlite_version_info < (3, 42):
            # From Python 3.12 on dbos asks for unixepoch('subsec'), which is NULL in the SQLite of Debian 12.
            self.create_function("unixepoch", 1, lambda _: round(time.time(), 3))


class EngineDatabase:
    """One database of one engine. Nothing is connected at first; `close` when the engine has ended.

    While the server is unavailable, retries to connect until it is back or no one needs it: dbos's own wait between two
    attempts cannot be interrupted, and takes up to a minute and a half.
    """

    def __init__(self, url: str) -> None:
        self._ending = threading.Event()
        self._gone = False
        parsed = sa.make_url(url)
        if parsed.get_backend_name() == "sqlite":
            self.engine = sa.create_engine(parsed, connect_args={"factory": _WalConnection}, **_SQLITE_POOL)
            sa.event.listen(self.engine, "connect", _as_dbos_does)
        else:
            own = {name: value for name, value in _CONNECTING.items() if name not in parsed.query}
            # A statement that is prepared on one connection is not there on the next one of a pooler.
            own["prepare_threshold"] = None
            self.engine = sa.create_engine(parsed.set(drivername="postgresql+psycopg"), connect_args=own, **_POOL)
            sa.event.listen(self.engine, "connect", _not_idle_for_ever)
            sa.event.listen(self.engine, "do_connect", self._connect)
        sa.event.listen(self.engine, "handle_error", self._comes_back)

    def end(self) -> None:
        """Stops all waiting for an unavailable database."""
        self._ending.set()

    def close(self) -> None:
        """Let go of it."""
        self.engine.dispose()

    def take_over_all(self, prefix: str, version: str, executor_id: str, besides: Collection[str]) -> list[str]:
        """Takes over the unfinished workflows whose ids begin with `prefix` from other engines, those `besides`
        excepted; returns their ids. Blocks, also while the server is unavailable; raises DatabaseGone.
        """
        if self.engine.dialect.name == "sqlite":  # one folder, one engine
            return []
        where = (
            "starts_with(workflow_uuid, :what) AND application_version <> :version AND workflow_uuid <> ALL(:besides)"
        )
        values = {"what": prefix, "version": version, "me": executor_id, "besides": [*besides]}
        return self._taken_over(where, values)

    def take_over_one(self, workflow_id: str, version: str, executor_id: str) -> bool:
        """Takes over an unfinished workflow from another engine, or leaves it to the next one when `executor_id` is "";
        returns whether there was one. Blocks and raises as `take_over_all` does.
        """
        where = "workflow_uuid = :what AND application_version <> :version"
        return bool(self._taken_over(where, {"what": workflow_id, "version": version, "me": executor_id}))

    def _taken_over(self, where: str, values: dict[str, Any]) -> list[str]:
        table = "workflow_status" if self.engine.dialect.name == "sqlite" else "dbos.workflow_status"
        # Without its owner's mark, what that one still writes for the workflow is refused.
        change = f"UPDATE {table} SET application_version = :version, executor_id = :me, owner_xid = NULL"
        query = f"{change} WHERE {where} AND status IN ('PENDING', 'ENQUEUED') RETURNING workflow_uuid"

        def take() -> list[str]:
            with self.engine.begin() as connection:
                return [*connection.execute(sa.text(query), values).scalars()]

        return self._patiently(take)

    def prepare(self) -> None:
        """Makes what the engine's tables need beside them. Blocks.

        Raises ConfigError for rows that this engine did not write: dbos reads each row as the row itself says.
        """
        # For rows that show up only later, by a trigger of the file or by other users of the server.
        vars(DBOSDefaultSerializer).update(deserialize=_read_no_pickle)
        self._patiently(lambda: _expect_own_rows(self.engine))
        make_parts_table(self.engine)

    def keep(self, sprint: str, text: bytes) -> str:
        """Returns the names of the parts of `text`, which the sprint has from now on. Blocks and raises as
        `take_over_all` does.
        """
        return self._patiently(lambda: keep_parts(self.engine, sprint, text))

    def read(self, sprint: str, names: str) -> bytes:
        """Returns the text whose parts have these names. Blocks and raises as `take_over_all` does."""
        return self._patiently(lambda: read_parts(self.engine, sprint, names))

    def _patiently(self, work: Callable[[], T]) -> T:
        """Repeats `work` while the database is away, as dbos does."""
        while True:
            try:
                return work()
            except sa.exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                if self._ending.wait(_PAUSE_S):
                    raise DatabaseGone from error

    def _connect(self, dialect: Any, _record: Any, words: Any, options: Any) -> Any:
        while not self._gone:
            try:
                return dialect.connect(*words, **options)
            except psycopg.OperationalError:
                # Once given up it stays so: what has failed must not be recorded as the end of a story after all.
                self._gone = self._ending.wait(_PAUSE_S)
        raise DatabaseGone

    def _comes_back(self, context: sa.engine.ExceptionContext) -> None:
        if _passes(context.original_exception) and not self._ending.is_set():
            context.is_disconnect = True


_OURS = DBOSPortableJSONSerializer().name()


def _expect_own_rows(engine: sa.Engine) -> None:
    schema = None if engine.dialect.name == "sqlite" else "dbos"
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        for table in inspector.get_table_names(schema):
            if "serialization" not in {column["name"] for column in inspector.get_columns(table, schema)}:
                continue
            rows = sa.table(table, sa.column("serialization"), schema=schema)
            other = sa.select(rows.c.serialization).where(rows.c.serialization != _OURS).limit(1)
            if (said := connection.execute(other).scalar()) is not None:
                raise ConfigError(
                    f"the engine's database {engine.url.database} has rows in {table} that are written as "
                    f"{str(said)[:40]!r}, which this program never writes and which may run code when they are read: "
                    "delete the state folder, or name another one by ORCHESTRATOR_HOME"
                )


def _read_no_pickle(_: str) -> Any:
    raise TypeError("a pickled value was found, and none is ever read: reading it could run code")


def _as_dbos_does(connection: Any, _record: Any) -> None:
    connection.isolation_level = "IMMEDIATE"
    connection.execute("PRAGMA busy_timeout=30000")
    connection.execute("PRAGMA foreign_keys=ON")


def _not_idle_for_ever(connection: Any, _record: Any) -> None:
    connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_MS}")
    connection.commit()  # else the pool's rollback would take it back


def _passes(error: BaseException) -> bool:
    """Returns whether the database cannot be reached, or written, at the moment."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_PASSING
    if not isinstance(error, psycopg.Error):
        return False
    # Without a code it did not come from a server: none could be reached.
    return (
        isinstance(error, psycopg.OperationalError) if error.sqlstate is None else error.sqlstate.startswith(_PASSING)
    )


_CHUNK = 500  # ids per statement: SQLite limits variables


@contextmanager
def _client(url: str) -> Iterator[DBOSClient]:
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        engine = sa.create_engine(parsed, connect_args={"factory": _WalConnection})
    else:
        # A statement that is prepared on one connection is not there on the next one of a pooler.
        parsed = parsed.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(parsed, pool_pre_ping=True, connect_args={"prepare_threshold": None})
    client = DBOSClient(
        system_database_url=url, system_database_engine=engine, serializer=DBOSPortableJSONSerializer(),
        retry_connection_errors=False,
    )  # fmt: skip
    try:
        yield client
    finally:
        client.destroy()
        engine.dispose()


def workflows_of(client: DBOSClient, run: str) -> list[str]:
    """Returns ids of the workflows of one sprint or analysis."""
    prefix = f"{run}/"
    found = client.list_workflows(workflow_id_prefix=prefix, load_input=False, load_output=False)
    return [status.workflow_id for status in found if status.workflow_id.startswith(prefix)]


def forget_workflows(url: str, run: str) -> int:
    """Delete every workflow of a sprint or an analysis with all that is recorded of it; how many they were. Blocks.

    Only for workflows that no process runs. The database must exist.
    """
    with _client(url) as client:
        ids = workflows_of(client, run)
        for start in range(0, len(ids), _CHUNK):
            client.delete_workflows(ids[start : start + _CHUNK])
    with _opened(url) as engine:
        delete_parts(engine, run)
    return len(ids)


def make_tables(url: str) -> None:
    """Make or update them in the database at `url`. Blocks."""
    DBOS.migrate(url)
    with _opened(url) as engine:
        make_parts_table(engine)


@contextmanager
def _opened(url: str) -> Iterator[sa.Engine]:
    database = EngineDatabase(url)
    try:
        yield database.engine
    finally:
        database.close()
