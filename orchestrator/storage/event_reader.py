"""Reads the event log, while others write it: the SQLite file of the state folder, or the Postgres of DATABASE_URL."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from orchestrator.core.errors import EventLogAway
from orchestrator.core.event import Event
from orchestrator.core.history import Logged, event_of
from orchestrator.storage.event_file import SQLITE, EventFile, Rows

HIGHEST = 2**63 - 1  # what a database takes as a sequence number
READ_CHUNK = 500  # bounds memory while others read
_PAUSE_S = 0.25  # between two attempts to read


@contextmanager
def _interrupt_deferred() -> Iterator[None]:
    """Ctrl-C waits for the end of the block: one that hits the pool while it closes a connection prints a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    caught: list[int] = []
    # A mask of this thread would not do: the signal reaches the main thread by way of any other one.
    before = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if caught:
            signal.raise_signal(signal.SIGINT)


class EventReader:
    """Reads the log; blocks, so async callers use a thread. Raises ConfigError when its database cannot be used.

    `patience_s` is how long one look waits for a database that is away, for those who follow the log.
    """

    def __init__(self, url: str, *, patience_s: float = 0.0) -> None:
        # A `?` begins options, which SQLAlchemy knows.
        is_file = url.startswith(SQLITE) and "?" not in url
        self._log = EventFile(url.removeprefix(SQLITE)) if is_file else _Database(url)
        self._patience_s = patience_s
        self._there = False

    def close(self) -> None:
        """Close the connections to the database."""
        with _interrupt_deferred():
            self._log.close()

    def sprints(self) -> frozenset[str]:
        """Returns every sprint the log knows."""
        return frozenset(name for (name,) in self._look("SELECT DISTINCT sprint FROM orchestrator_events"))

    def head(self) -> int:
        """Sequence number of the last event; 0 while there is none."""
        return next((head or 0 for (head,) in self._look("SELECT max(seq) FROM orchestrator_events")), 0)

    def heads(self) -> dict[str, int]:
        """Sprint → the sequence number of its last event."""
        found = self._look("SELECT sprint, max(seq) FROM orchestrator_events GROUP BY sprint")
        return {sprint: seq for sprint, seq in found}

    def read(
        self, sprint: str | None = None, after: int = 0, *, story: str | None = None
    ) -> Iterator[tuple[int, Event]]:
        """(sequence number, event) pairs behind `after`, in order; nothing when the log does not exist yet.

        Who has read up to a number misses nothing by going on behind it, however many write.
        """
        return ((seq, event_of(logged.body)) for seq, logged in self.stored(sprint, after, story=story))

    def stored(
        self, sprint: str | None = None, after: int = 0, *, story: str | None = None
    ) -> Iterator[tuple[int, Logged]]:
        """Yields the same with the events as they are stored."""
        wanted = [
            "seq > :after",
            *(["sprint = :sprint"] if sprint is not None else []),
            *(["story = :story"] if story is not None else []),
        ]
        where = " AND ".join(wanted)
        query = f"SELECT seq, id, story, body FROM orchestrator_events WHERE {where} ORDER BY seq LIMIT {READ_CHUNK}"
        while True:
            rows = self._look(query, after=after, sprint=sprint, story=story)
            for after, *logged in rows:
                yield after, Logged(*logged)
            if len(rows) < READ_CHUNK:
                return

    def backwards(self, sprint: str | None = None, before: int = HIGHEST) -> Iterator[tuple[int, Event]]:
        """Yields (sequence number, event) of what lies before a number, the newest first."""
        where = "seq < :before" if sprint is None else "seq < :before AND sprint = :sprint"
        query = f"SELECT seq, body FROM orchestrator_events WHERE {where} ORDER BY seq DESC LIMIT {READ_CHUNK}"
        while True:
            rows = self._look(query, before=before, sprint=sprint)
            for before, body in rows:
                yield before, event_of(body)
            if len(rows) < READ_CHUNK:
                return

    def start_of_last(self, count: int, sprint: str | None, wants: Callable[[Event], bool]) -> int:
        """Returns the number behind which the last `count` events lie that are wanted; 0 where there are fewer."""
        for seq, event in self.backwards(sprint):
            count -= wants(event)
            if not count:
                return seq - 1
        return 0

    def of_sprint(self, sprint: str) -> list[Event]:
        """Returns the events that are about the sprint itself and none of its stories, in order."""
        query = "SELECT body FROM orchestrator_events WHERE sprint = :sprint AND story IS NULL ORDER BY seq"
        return [event_of(body) for (body,) in self._look(query, sprint=sprint)]

    def _look(self, query: str, **given: Any) -> Rows:
        """Returns what the query finds; nothing when there is no log yet."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                with _interrupt_deferred():
                    self._there = self._there or self._log.has_table()
                    return self._log.find(query, given) if self._there else ()
            except EventLogAway:
                if time.monotonic() >= until:
                    raise
            time.sleep(_PAUSE_S)


class _Database:
    """Any other database."""

    def __init__(self, url: str) -> None:
        from orchestrator.storage.event_table import connected

        self._engine = connected(url, writes=False)
        self.close: Callable[[], None] = self._engine.dispose

    def has_table(self) -> bool:
        import sqlalchemy as sa

        from orchestrator.storage.event_table import EVENTS, usable

        with usable(), self._engine.connect() as connection:
            return bool(sa.inspect(connection).has_table(EVENTS.name))

    def find(self, query: str, given: dict[str, Any]) -> Rows:
        import sqlalchemy as sa

        from orchestrator.storage.event_table import usable

        with usable(), self._engine.connect() as connection:
            return connection.execute(sa.text(query), given).all()
