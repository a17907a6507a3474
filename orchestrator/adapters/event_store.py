"""The append-only event log in SQL: a SQLite file of the state folder, or the Postgres of DATABASE_URL (DESIGN 5.3)."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.domain.control import CONTROL_MARK
from orchestrator.domain.events import Event
from orchestrator.domain.gate import GATE_ANSWERED
from orchestrator.domain.redaction import redacted
from orchestrator.errors import ConfigError

_METADATA = sa.MetaData()
EVENTS = sa.Table(
    "orchestrator_events",
    _METADATA,
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("sprint", sa.Text, nullable=False, index=True),
    sa.Column("story", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
)


def _marked(mark: str) -> sa.ColumnElement[bool]:
    # The pattern stands in the statement itself: an index over a part of the rows serves no bound parameter.
    return EVENTS.c.id.like(sa.bindparam("pattern", f"%{mark}%", literal_execute=True))


_ORDERS = _marked(CONTROL_MARK)
_CONTROLS = sa.Index("orchestrator_controls", EVENTS.c.seq, sqlite_where=_ORDERS, postgresql_where=_ORDERS)
"""Only the orders of people: a holder of a sprint looks for new ones all the time, in a log that may be long."""
_READ_CHUNK = 2000
_WAL_ATTEMPTS = 20
_VERBATIM = frozenset({GATE_ANSWERED})
"""Events that the work goes on with."""


def sqlite_url(path: Path) -> str:
    """The database URL of a SQLite file."""
    return f"sqlite:///{path}"


@contextmanager
def usable() -> Iterator[None]:
    """Raises ConfigError for a database that cannot be reached or is none; its address, with a password, stays out."""
    try:
        yield
    except (sa.exc.ArgumentError, ImportError) as error:
        raise ConfigError(f"DATABASE_URL names no database that can be used here: {error}") from error
    except sa.exc.DatabaseError as error:
        reason = str(error.orig).split("\n", 1)[0]
        raise ConfigError(f"the event log cannot be used: {reason}; see DATABASE_URL or the state folder") from error


def _connect(url: str, *, writes: bool) -> sa.Engine:
    with usable():
        parsed = sa.make_url(url)
        if parsed.drivername in {"postgres", "postgresql"}:
            # The driver that the engine brings; SQLAlchemy's default would be another package.
            parsed = parsed.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(parsed)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _writer_pragmas if writes else _reader_pragmas)
    return engine


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
            # The first change of a file to WAL waits for nobody: somebody else has just opened it.
            if attempt + 1 == _WAL_ATTEMPTS:
                raise
            time.sleep(0.01 * (attempt + 1))
    connection.execute("PRAGMA synchronous=NORMAL")


def _event(body: str) -> Event:
    # json.loads, because a model's text may hold half a surrogate pair, which pydantic's parser refuses.
    return Event.model_validate(json.loads(body))


class EventReader:
    """Reads the log; blocks, so async callers use a thread. Raises ConfigError when its database cannot be used."""

    def __init__(self, url: str) -> None:
        self._engine = _connect(url, writes=False)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def sprints(self) -> frozenset[str]:
        """Every sprint the log knows."""
        if not self._exists():
            return frozenset()
        with usable(), self._engine.connect() as connection:
            return frozenset(connection.execute(sa.select(EVENTS.c.sprint).distinct()).scalars())

    def head(self) -> int:
        """Sequence number of the last event; 0 while there is none."""
        if not self._exists():
            return 0
        with usable(), self._engine.connect() as connection:
            return connection.execute(sa.select(sa.func.max(EVENTS.c.seq))).scalar() or 0

    def read(self, sprint: str | None = None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """(sequence number, event) pairs behind `after`, in order; nothing when the log does not exist yet."""
        if not self._exists():
            return
        while True:
            query = sa.select(EVENTS.c.seq, EVENTS.c.body).where(EVENTS.c.seq > after)
            if sprint is not None:
                query = query.where(EVENTS.c.sprint == sprint)
            with usable(), self._engine.connect() as connection:
                rows = connection.execute(query.order_by(EVENTS.c.seq).limit(_READ_CHUNK)).all()
            for seq, body in rows:
                after = seq
                yield seq, _event(body)
            if len(rows) < _READ_CHUNK:
                return

    def of_sprint(self, sprint: str) -> list[Event]:
        """The events that are about the sprint itself and none of its stories, in order."""
        if not self._exists():
            return []
        query = sa.select(EVENTS.c.body).where(EVENTS.c.sprint == sprint, EVENTS.c.story.is_(None))
        with usable(), self._engine.connect() as connection:
            return [_event(body) for body in connection.execute(query.order_by(EVENTS.c.seq)).scalars()]

    def _exists(self) -> bool:
        with usable():
            return sa.inspect(self._engine).has_table(EVENTS.name)


class _Item(NamedTuple):
    """An event on its way to the writer."""

    event: Event
    body: str
    done: asyncio.Future[bool]


class EventStore:
    """`ports.EventSink`: one writer task commits what has queued up as one transaction.

    Entering raises ConfigError when the database cannot be used. `on_event` sees every new event once it is stored;
    when it raises (a closed pipe) it is not called again. What looks like a secret, and each of `secrets`, is neither
    stored nor shown; only what a person answered is kept word for word, since the work goes on with it.
    """

    def __init__(
        self, url: str, *, on_event: Callable[[Event], None] | None = None, secrets: Sequence[str] = ()
    ) -> None:
        self._url, self._secrets = url, tuple(secrets)
        self._on_event = on_event
        self._queue: asyncio.Queue[_Item | None] = asyncio.Queue()
        self._writer: asyncio.Task[None] | None = None
        self._engine: sa.Engine | None = None

    async def __aenter__(self) -> "EventStore":
        self._engine = await asyncio.to_thread(self._open)
        self._writer = asyncio.create_task(self._write_all(), name="event-writer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.put_nowait(None)
        if self._writer is not None:
            await self._writer
        if self._engine is not None:
            await asyncio.to_thread(self._engine.dispose)

    async def emit(self, event: Event) -> bool:
        """Store durably; True when it was new. Raises ValueError for data that is no JSON."""
        told = event.model_dump(mode="json")
        if event.name not in _VERBATIM:
            texts = {name: told[name] for name in ("message", "data")}
            if (plain := redacted(texts, self._secrets)) != texts:
                event, told = event.model_copy(update=plain), {**told, **plain}
        item = _Item(event, json.dumps(told), asyncio.get_running_loop().create_future())
        self._queue.put_nowait(item)
        return await item.done

    async def find(self, ids: Sequence[str]) -> Mapping[str, Event]:
        """See the port. Raises ConfigError when the database cannot be used."""
        return await asyncio.to_thread(self._find, ids)

    async def since(self, after_seq: int, *, mark: str) -> list[tuple[int, Event]]:
        """(sequence number, event) of those behind `after_seq` whose id contains `mark`, in order.

        With `CONTROL_MARK` it costs as little in a long log as in a short one. Raises ConfigError when the database
        cannot be used.
        """
        return await asyncio.to_thread(self._since, after_seq, mark)

    def hide(self, secrets: Iterable[str]) -> None:
        """From now on these are neither stored nor shown, either."""
        self._secrets = tuple(sorted({*self._secrets, *secrets}, key=len, reverse=True))

    def _since(self, after_seq: int, mark: str) -> list[tuple[int, Event]]:
        assert self._engine is not None
        query = sa.select(EVENTS.c.seq, EVENTS.c.id, EVENTS.c.body).where(EVENTS.c.seq > after_seq, _marked(mark))
        with usable(), self._engine.connect() as connection:
            rows = connection.execute(query.order_by(EVENTS.c.seq)).all()
        return [(seq, _event(body)) for seq, name, body in rows if mark in name]

    def _find(self, ids: Sequence[str]) -> dict[str, Event]:
        assert self._engine is not None
        found: dict[str, Event] = {}
        with usable(), self._engine.connect() as connection:
            for start in range(0, len(ids), _READ_CHUNK):
                query = sa.select(EVENTS.c.id, EVENTS.c.body).where(EVENTS.c.id.in_(ids[start : start + _READ_CHUNK]))
                found |= {name: _event(body) for name, body in connection.execute(query)}
        return found

    def _open(self) -> sa.Engine:
        engine = _connect(self._url, writes=True)
        with usable():
            _METADATA.create_all(engine)
            with engine.begin() as connection:  # a log of an older version has no such index yet
                connection.execute(sa.schema.CreateIndex(_CONTROLS, if_not_exists=True))
        return engine

    async def _write_all(self) -> None:
        ending = False
        while not ending:
            batch = [await self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get_nowait())
            ending = None in batch
            items = [item for item in batch if item is not None]
            if items:
                await self._write_batch(items)

    async def _write_batch(self, items: Sequence[_Item]) -> None:
        try:
            fresh = await asyncio.to_thread(self._insert, items)
        except (sa.exc.SQLAlchemyError, OSError, RuntimeError) as error:
            for item in items:
                if not item.done.cancelled():
                    item.done.set_exception(error)
            return
        for item, new in zip(items, fresh, strict=True):
            if new:
                self._show(item.event)
            if not item.done.cancelled():
                item.done.set_result(new)

    def _show(self, event: Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:  # noqa: BLE001 - the event sink: a closed pipe ends the printing, never the record
            self._on_event = None

    def _insert(self, items: Sequence[_Item]) -> list[bool]:
        assert self._engine is not None
        dialect = postgresql if self._engine.dialect.name == "postgresql" else sqlite
        fresh = []
        with self._engine.begin() as connection:
            for item in items:
                event = item.event
                row = {"id": event.id, "sprint": event.sprint, "story": event.story, "body": item.body}
                result = connection.execute(dialect.insert(EVENTS).values(row).on_conflict_do_nothing())
                fresh.append(result.rowcount == 1)
        return fresh
