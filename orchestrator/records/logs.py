"""Reads the event log of the state folder for `logs`, once or continuously."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime

from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event, Level
from orchestrator.core.value import Value
from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import Environment
from orchestrator.storage.event_reader import EventReader

POLL_S = 0.3  # fast enough for a person who watches
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
        self._log: EventReader | None = None

    def recorded(self) -> Iterator[tuple[int, Event]]:
        """Yields (number, event) of what is wanted after `seen`, up to now. Raises ConfigError if it cannot be read."""
        self._log = log = self._log or self._reader.log()
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
        is_away = False
        while True:
            self._pause(POLL_S)
            try:
                yield from self.recorded()
            except ConfigError as error:
                if not is_away:
                    tell(f"{error.message}; trying again from event {self.seen}")
                is_away = True
                self.close()
                continue
            if is_away:
                tell("the event log can be read again")
            is_away = False

    def close(self) -> None:
        """Closes the database."""
        if self._log is not None:
            self._log.close()
        self._log = None
