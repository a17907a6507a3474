"""What `logs` reads: the event log of the state folder, or a daemon's over HTTP; once, or as long as somebody looks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from orchestrator.adapters.event_store import EventReader
from orchestrator.domain.base import Value
from orchestrator.domain.events import Event, Level
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment
from orchestrator.wiring.read import Reader

if TYPE_CHECKING:
    from orchestrator.adapters.daemon_client import DaemonClient

POLL_S = 0.3
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
"""Between two tries to reach a daemon that is away."""
LONGEST_POLL_S = 5.0
"""Between two tries to read a database that is away."""
LASTING_S = 60.0
"""A connection that held for so long was a good one: the next try after it comes soon."""

_FIELDS = ("timestamp", "level", "message", "event", "sprint", "story", "task", "persona")
Tell = Callable[[str], None]
Pause = Callable[[float], None]


class LogQuery(Value):
    """Which events are wanted; None: whatever it is."""

    sprint: str | None = None
    story: str | None = None
    task: str | None = None
    persona: str | None = None
    level: Level = Level.INFO
    """This one and what weighs more."""
    since: datetime | None = None

    def wants(self, event: Event) -> bool:
        """Whether an event of the sprint is one of them."""
        return (
            self.story in {None, event.story}
            and self.task in {None, event.task}
            and self.persona in {None, event.persona}
            and event.level.rank >= self.level.rank
            and (self.since is None or event.time >= self.since)
        )

    def words(self) -> dict[str, str]:
        """The same for a daemon."""
        return {name: str(value) for name, value in self.model_dump(mode="json").items() if value is not None}


class LocalLog:
    """The event log of this state folder, or of DATABASE_URL."""

    def __init__(self, environment: Environment, query: LogQuery, *, after: int = 0, pause: Pause = time.sleep) -> None:
        self.seen = after
        """Number of the last event that was looked at."""
        self._reader, self._pause = Reader(environment), pause
        self._query = query
        # A file may be replaced by another one; a connection to a server is kept.
        self._keeps = environment.database_url is not None
        self._log: EventReader | None = None

    def recorded(self) -> Iterator[tuple[int, Event]]:
        """(number, event) of what is wanted behind `seen`, up to now. Raises ConfigError when it cannot be read."""
        with self._reading() as log:
            for seq, event in log.read(self._query.sprint, self.seen) if log else ():
                self.seen = seq
                if self._query.wants(event):
                    yield seq, event

    def to_come(self, tell: Tell) -> Iterator[tuple[int, Event]]:
        """The same for ever; a database that is away is waited for, which is told."""
        wait = POLL_S
        while True:
            self._pause(wait)
            try:
                yield from self.recorded()
                self._begin_anew(tell)
            except ConfigError as error:
                if wait == POLL_S:
                    tell(f"{error.message}; trying again from event {self.seen}")
                wait = min(wait * 2, LONGEST_POLL_S)
                continue
            if wait != POLL_S:
                tell("the event log can be read again")
            wait = POLL_S

    def close(self) -> None:
        """Let go of the database."""
        if self._log is not None:
            self._log.close()

    def _begin_anew(self, tell: Tell) -> None:
        """A log that ends before what was seen is another one: a restored backup, or a folder made anew."""
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


class RemoteLog:
    """The event log of a daemon, filtered there."""

    def __init__(self, client: "DaemonClient", query: LogQuery, *, after: int = 0, pause: Pause = time.sleep) -> None:
        self.seen = after
        self._client, self._query, self._pause = client, query, pause
        self._opened_at: float | None = None
        self._lost = False

    def recorded(self) -> Iterator[tuple[int, Event]]:
        """(number, event) of what is wanted behind `seen`, up to now. Raises ConfigError."""
        from orchestrator.adapters.daemon_client import DaemonAway

        begun = self.seen
        try:
            yield from self._behind(follow=False, opened=lambda: None)
        except DaemonAway as error:
            goes_on = f"; --after {self.seen} goes on from there" if self.seen > begun else ""
            raise ConfigError(f"{error.message}{goes_on}") from error

    def followed(self, tell: Tell) -> Iterator[tuple[int, Event]]:
        """The same for ever; a daemon that goes away once it was there is waited for, which is told.

        Raises ConfigError when it cannot be reached at first, or says something that trying again does not change.
        """
        from orchestrator.adapters.daemon_client import DaemonAway

        wait = FIRST_PAUSE_S
        while True:
            try:
                yield from self._behind(follow=True, opened=lambda: self._opened(tell))
                ended = f"the daemon at {self._client.url} has ended its stream of events"
            except DaemonAway as error:
                if self._opened_at is None:
                    raise
                ended = error.message
            if not self._lost:
                tell(f"{ended}; trying again from event {self.seen}")
            if self._lasted:
                wait = FIRST_PAUSE_S
            self._lost = True
            self._pause(wait)
            wait = min(wait * 2, LONGEST_PAUSE_S)

    def while_there(self, tell: Tell) -> Iterator[tuple[int, Event]]:
        """The same until the daemon goes away, which is told. Raises ConfigError as `followed`."""
        from orchestrator.adapters.daemon_client import DaemonAway

        try:
            yield from self._behind(follow=True, opened=lambda: self._opened(tell))
        except DaemonAway:
            if self._opened_at is None:
                raise
        tell(f"the daemon at {self._client.url} has ended; its state folder tells what follows event {self.seen}")

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _opened(self, tell: Tell) -> None:
        if self._lost:
            tell(f"the daemon at {self._client.url} is there again")
        self._lost, self._opened_at = False, time.monotonic()

    @property
    def _lasted(self) -> bool:
        """Whether the connection that has just ended was a good one."""
        return not self._lost and self._opened_at is not None and time.monotonic() - self._opened_at > LASTING_S

    def _behind(self, *, follow: bool, opened: Callable[[], None]) -> Iterator[tuple[int, Event]]:
        for seq, line in self._client.events(self._query.words(), self.seen, follow=follow, opened=opened):
            if seq > self.seen:  # never twice, whatever the other side makes of where we are
                event = self._event(seq, line)
                self.seen = seq
                yield seq, event

    def _event(self, seq: int, line: dict[str, Any]) -> Event:
        known = {"timestamp": "time", "event": "name"}
        told = {known.get(name, name): line.get(name) for name in _FIELDS}
        data = {name: value for name, value in line.items() if name not in _FIELDS and name != "seq"}
        try:
            return Event.model_validate({**told, "id": str(seq), "sprint": told["sprint"] or "", "data": data})
        except ValidationError as error:
            raise ConfigError(f"{self._client.url} does not answer as a daemon: event {seq} is no log line") from error
