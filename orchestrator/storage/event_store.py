"""The append-only event log in SQL: a SQLite file of the state folder, or the Postgres of DATABASE_URL.

The log waits for its database: events during a restart, or while the disk is full, are written afterwards.

The one exception to append-only: pruning a sprint deletes its events except the last one.
"""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from orchestrator.core.command import GATE_ANSWERED
from orchestrator.core.errors import EventLogAway
from orchestrator.core.event import Event
from orchestrator.core.history import body_of, event_of
from orchestrator.core.secrets import redacted
from orchestrator.storage.event_reader import READ_CHUNK
from orchestrator.storage.event_table import (
    EVENTS,
    Guard,
    connected,
    is_away,
    lock,
    marked,
    prepare,
    reason_of,
    usable,
)

_VERBATIM = frozenset({GATE_ANSWERED})
"""Events stored without masking, because a story continues with their data."""
PATIENCE_S = 60.0
"""Default time that an event waits for an unavailable database."""
FOREVER = math.inf
"""The patience of a process that runs stories: an outage must end none of them, and the engine waits as long."""
ENDING_S = 10.0
"""The same once the store is to end."""
# As text: SQLAlchemy builds an insert of its own that may meet a conflict each time, which takes longer than to do it.
_INSERT = sa.text(
    f"INSERT INTO {EVENTS.name} (id, sprint, story, body) VALUES (:id, :sprint, :story, :body) ON CONFLICT DO NOTHING"
)
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Between two trials; the last one again and again."""


@dataclass
class _Item:
    """An event on its way to the writer."""

    event: Event
    done: asyncio.Future[bool]
    body: str = ""
    """As it is stored, once it has been masked."""


class EventStore:
    """`ports.EventSink`: one writer task commits what has queued up as one transaction.

    Entering raises ConfigError when the database cannot be used. `on_event` sees every new event once it is stored;
    when it raises (a closed pipe) it is not called again. What looks like a secret, and each of `secrets`, is neither
    stored nor shown; only a person's answer is kept verbatim, because the story continues with it. `tell` gets a
    sentence when the database becomes unavailable, and when it is back.
    """

    def __init__(
        self,
        url: str,
        *,
        on_event: Callable[[Event], None] | None = None,
        secrets: Sequence[str] = (),
        tell: Callable[[str], None] = lambda _: None,
        patience_s: float = PATIENCE_S,
        guard: Guard | None = None,
    ) -> None:
        """`guard` raises within a transaction that must not write for a sprint any more."""
        self._guard = guard
        self._url, self._secrets = url, tuple(secrets)
        self._on_event, self._tell = on_event, tell
        self._patience_s = patience_s
        self._queue: asyncio.Queue[_Item | None] = asyncio.Queue()
        self._ending = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._engine: sa.Engine | None = None
        self.waits = ""
        """Why the log cannot be written now; "" when it can."""

    async def __aenter__(self) -> "EventStore":
        self._engine = await asyncio.to_thread(self._open)
        self._writer = asyncio.create_task(self._write_all(), name="event-writer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._patience_s = min(self._patience_s, ENDING_S)
        self._ending.set()
        self._queue.put_nowait(None)
        if self._writer is not None:
            await self._writer
        if self._engine is not None:
            await asyncio.to_thread(self._engine.dispose)

    async def emit(self, event: Event) -> bool:
        """Store durably; True when it was new. Waits for a database that is away.

        Raises ValueError for data that is no JSON, EventLogAway when the database stayed away too long.
        """
        item = _Item(event, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(item)
        return await item.done

    async def find(self, ids: Sequence[str]) -> Mapping[str, Event]:
        """See the port. Raises ConfigError when the database cannot be used."""
        return await asyncio.to_thread(self._find, ids)

    def _find(self, ids: Sequence[str]) -> dict[str, Event]:
        found: dict[str, Event] = {}
        for start in range(0, len(ids), READ_CHUNK):
            query = sa.select(EVENTS.c.id, EVENTS.c.body).where(EVENTS.c.id.in_(ids[start : start + READ_CHUNK]))
            found |= {name: event_of(body) for name, body in self._rows(query)}
        return found

    async def since(self, after_seq: int, *, mark: str) -> list[tuple[int, Event]]:
        """(sequence number, event) of those behind `after_seq` whose id contains `mark`, in order.

        With `CONTROL_MARK` it costs as little in a long log as in a short one. Raises ConfigError when the database
        cannot be used.
        """
        query = sa.select(EVENTS.c.seq, EVENTS.c.body).where(EVENTS.c.seq > after_seq, marked(mark))
        found = await asyncio.to_thread(self._events, query)
        return [(seq, event) for seq, event in found if mark in event.id]

    async def named(self, names: Collection[str], after: int, *, day: date | None = None) -> list[tuple[int, Event]]:
        """(sequence number, event) of the events of these names behind `after`, in order; with `day` of that alone,
        in UTC. Raises ConfigError when the database cannot be used."""
        # Fewer rows are read so; a text that looks like it is sorted out below.
        wanted = sa.or_(*(EVENTS.c.body.contains(f'"name": "{name}"', autoescape=True) for name in names))
        query = sa.select(EVENTS.c.seq, EVENTS.c.body).where(EVENTS.c.seq > after, wanted)
        if day is not None:
            query = query.where(EVENTS.c.body.contains(f'"time": "{day}T', autoescape=True))
        found = await asyncio.to_thread(self._events, query)
        return [(seq, event) for seq, event in found if event.name in names]

    async def head(self) -> int:
        """Returns the sequence number of the last event. Raises ConfigError when the database cannot be used."""
        [(seq,)] = await asyncio.to_thread(self._rows, sa.select(sa.func.max(EVENTS.c.seq)))
        return seq or 0

    def _events(self, query: sa.Select[tuple[int, str]]) -> list[tuple[int, Event]]:
        return [(seq, event_of(body)) for seq, body in self._rows(query.order_by(EVENTS.c.seq))]

    def _rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        assert self._engine is not None
        with usable(), self._engine.connect() as connection:
            return connection.execute(query).all()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The secrets that are neither stored nor shown."""
        return self._secrets

    def hide(self, secrets: Iterable[str]) -> None:
        """From now on these are neither stored nor shown, either."""
        self._secrets = tuple(sorted({*self._secrets, *secrets}, key=len, reverse=True))

    def _open(self) -> sa.Engine:
        engine = connected(self._url, writes=True)
        with usable():
            prepare(engine)
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
            fresh = await self._written(items)
        except (sa.exc.SQLAlchemyError, OSError, RuntimeError, ValueError, EventLogAway) as error:
            if len(items) > 1 and not isinstance(error, EventLogAway):
                for item in items:  # one of them is at fault
                    await self._write_batch([item])
                return
            for item in items:
                if not item.done.cancelled():
                    item.done.set_exception(error)
            return
        for item, new in zip(items, fresh, strict=True):
            if new:
                self._show(item.event)
            if not item.done.cancelled():
                item.done.set_result(new)

    async def _written(self, items: Sequence[_Item]) -> list[bool]:
        """Store them, as soon as the database lets us; which of them were new."""
        began, trial, claimed = time.monotonic(), 0, set[int]()
        while True:
            try:
                fresh = await asyncio.to_thread(self._insert, items, claimed)
            except sa.exc.SQLAlchemyError as error:
                if not is_away(error):
                    raise
                self.waits = reason = reason_of(error)
                if time.monotonic() - began >= self._patience_s:
                    raise EventLogAway(f"the event log could not be written: {reason}") from error
                if trial == 0:
                    self._tell(f"the event log waits for its database: {reason}")
                await self._pause(_PAUSES_S[min(trial, len(_PAUSES_S) - 1)])
                trial += 1
            else:
                self.waits = ""
                if trial:
                    self._tell("the event log is written again")
                return fresh

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):  # the time is up
            await asyncio.wait_for(self._ending.wait(), seconds)
        if self._ending.is_set():
            await asyncio.sleep(_PAUSES_S[0])

    def _show(self, event: Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:  # noqa: BLE001 - the event sink: a closed pipe ends the printing, never the record
            self._on_event = None

    def _insert(self, items: Sequence[_Item], claimed: set[int]) -> list[bool]:
        """One transaction; which of the items were new.

        `claimed` are those that an earlier trial may have stored before the connection broke: only then is a row that
        is there already, word for word, our own.
        """
        assert self._engine is not None
        for item in items:
            if not item.body:
                self._mask(item)
        fresh = []
        with self._engine.begin() as connection:
            lock(connection)
            if self._guard is not None:
                for sprint in {item.event.sprint for item in items}:
                    self._guard(connection, sprint)
            for number, item in enumerate(items):
                event = item.event
                row = {"id": event.id, "sprint": event.sprint, "story": event.story, "body": item.body}
                new = connection.execute(_INSERT, row).rowcount == 1
                if not new and number in claimed:
                    same = sa.select(EVENTS.c.seq).where(EVENTS.c.id == event.id, EVENTS.c.body == item.body)
                    new = connection.execute(same).first() is not None
                if new:
                    claimed.add(number)
                fresh.append(new)
        return fresh

    def _mask(self, item: _Item) -> None:
        told = item.event.model_dump(mode="json")
        if item.event.name not in _VERBATIM:
            texts = {name: told[name] for name in ("message", "data")}
            if (plain := redacted(texts, self._secrets)) != texts:
                item.event, told = item.event.model_copy(update=plain), {**told, **plain}
        item.body = body_of(told)


def delete_events(url: str, sprint: str) -> None:
    """Deletes the events of a sprint or an analysis. Blocks. Raises ConfigError when the database cannot be used.

    No sequence number is given again.
    """
    engine = connected(url, writes=True)
    try:
        with usable(), engine.begin() as connection:
            if sa.inspect(connection).has_table(EVENTS.name):
                connection.execute(sa.delete(EVENTS).where(EVENTS.c.sprint == sprint))
    finally:
        engine.dispose()
