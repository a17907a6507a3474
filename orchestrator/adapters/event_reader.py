"""Reading the event log, also while somebody writes it."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from orchestrator.adapters.event_table import EVENTS, connected, event_of, usable
from orchestrator.domain.events import Event
from orchestrator.errors import EventLogAway

READ_CHUNK = 500
_PAUSE_S = 0.25


class EventReader:
    """Reads the log; blocks, so async callers use a thread. Raises ConfigError when its database cannot be used.

    `patience_s` is how long one look waits for a database that is away, for those who follow the log.
    """

    def __init__(self, url: str, *, patience_s: float = 0.0) -> None:
        self._engine = connected(url, writes=False)
        self._patience_s = patience_s
        self._there = False

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def sprints(self) -> frozenset[str]:
        """Every sprint the log knows."""
        return frozenset(row.sprint for row in self._look(sa.select(EVENTS.c.sprint).distinct()))

    def head(self) -> int:
        """Sequence number of the last event; 0 while there is none."""
        rows = self._look(sa.select(sa.func.max(EVENTS.c.seq).label("head")))
        return next((row.head or 0 for row in rows), 0)

    def read(self, sprint: str | None = None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """(sequence number, event) pairs behind `after`, in order; nothing when the log does not exist yet.

        Who has read up to a number misses nothing by going on behind it, however many write.
        """
        while True:
            rows = self._rows(sprint, after)
            for row in rows:
                after = row.seq
                yield after, event_of(row.body)
            if len(rows) < READ_CHUNK:
                return

    def of_sprint(self, sprint: str) -> list[Event]:
        """The events that are about the sprint itself and none of its stories, in order."""
        query = sa.select(EVENTS.c.body).where(EVENTS.c.sprint == sprint, EVENTS.c.story.is_(None))
        return [event_of(row.body) for row in self._look(query.order_by(EVENTS.c.seq))]

    def _rows(self, sprint: str | None, after: int) -> Sequence[sa.Row[Any]]:
        query = sa.select(EVENTS.c.seq, EVENTS.c.body).where(EVENTS.c.seq > after)
        if sprint is not None:
            query = query.where(EVENTS.c.sprint == sprint)
        return self._look(query.order_by(EVENTS.c.seq).limit(READ_CHUNK))

    def _look(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """What the query finds; nothing when there is no log yet."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                with usable(), self._engine.connect() as connection:
                    self._there = self._there or sa.inspect(connection).has_table(EVENTS.name)
                    return connection.execute(query).all() if self._there else ()
            except EventLogAway:
                if time.monotonic() >= until:
                    raise
            time.sleep(_PAUSE_S)
