"""Reads the event log of the state folder for `logs`, once or continuously."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event, Level
from orchestrator.core.value import Value
from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import Environment
from orchestrator.storage.event_reader import EventReader

POLL_S = 0.3  # fast enough for a person who watches
LONGEST_POLL_S = 5.0
"""Seconds between two attempts to read an unavailable database."""
Tell = Callable[[str], None]
Pause = Callable[[float], None]


class LogQuery(Value):
    """Selection of events; None selects all."""

    sprint: str | None = None
    story: str | None = None
    task: str | None = None
    persona: str | None = None
    level: Level = Level.INFO
    """This one and what weighs more."""
    since: datetime | None = None
    tail: int | None = None
    """Only so many of the last ones, where none were seen before."""

    def wants(self, event: Event) -> bool:
        """Returns whether an event of the sprint is one of them."""
        return (
            self.story in {None, event.story}
            and self.task in {None, event.task}
            and self.persona in {None, event.persona}
            and event.level.rank >= self.level.rank
            and (self.since is None or event.time >= self.since)
        )

    def words(self) -> dict[str, str]:
        """Returns the same for a daemon."""
        return {name: str(value) for name, value in self.model_dump(mode="json").items() if value is not None}


class LocalLog:
    """The event log of this state folder, or of DATABASE_URL."""

    def __init__(self, environment: Environment, query: LogQuery, *, after: int = 0, pause: Pause = time.sleep) -> None:
        self.seen = after
        """Number of the last event that was looked at."""
        self._reader, self._pause = Reader(environment), pause
        self._query, self._tail = query, query.tail
        # A file may be replaced by another one; a connection to a server is kept.
        self._keeps = environment.database_url is not None
        self._log: EventReader | None = None

    def recorded(self) -> Iterator[tuple[int, Event]]:
        """Yields (number, event) of what is wanted after `seen`, up to now. Raises ConfigError if it cannot be read."""
        with self._reading() as log:
            if log is not None and self._tail is not None:
                start = log.start_of_last(self._tail, self._query.sprint, self._query.wants)
                self.seen = max(self.seen, start)
            self._tail = None  # of what was there at the first look
            for seq, event in log.read(self._query.sprint, self.seen) if log else ():
                self.seen = seq
                if self._query.wants(event):
                    yield seq, event

    def to_come(self, tell: Tell) -> Iterator[tuple[int, Event]]:
        """Yields the same forever; waits for a database that is away, and reports that."""
        wait = POLL_S
        while True:
            self._pause(wait)
            try:
                yield from self.recorded()
                self._follow_another(tell)
            except ConfigError as error:
                if wait == POLL_S:
                    tell(f"{error.message}; trying again from event {self.seen}")
                wait = min(wait * 2, LONGEST_POLL_S)
                continue
            if wait != POLL_S:
                tell("the event log can be read again")
            wait = POLL_S

    def close(self) -> None:
        """Closes the database."""
        if self._log is not None:
            self._log.close()

    def _follow_another(self, tell: Tell) -> None:
        """Follows what comes in another log: one that ends before `seen` is another folder's."""
        with self._reading() as log:
            head = log.head() if log else 0
        if head < self.seen:
            tell(f"the event log ends at event {head} now, before {self.seen}: what is recorded from now on follows")
            self.seen = head

    @contextmanager
    def _reading(self) -> Iterator[EventReader | None]:
        log = self._log or self._reader.log()
        self._log = log if self._keeps else None
        try:
            yield log
        finally:
            if log is not None and not self._keeps:
                log.close()
