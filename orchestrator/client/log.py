"""The event log of a daemon, read over HTTP: from any point on, without loss or duplicates."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from orchestrator.client.http import DaemonAway, DaemonClient
from orchestrator.domain.events import Event
from orchestrator.errors import ConfigError
from orchestrator.wiring.logs import LogQuery, Pause, Tell

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
"""Between two tries to reach a daemon that is away."""
LASTING_S = 60.0
"""A connection that held for so long was a good one: the next try after it comes soon."""
_FIELDS = ("timestamp", "level", "message", "event", "sprint", "story", "task", "persona")


class RemoteLog:
    """The event log of a daemon, filtered there."""

    def __init__(self, client: DaemonClient, query: LogQuery, *, after: int = 0, pause: Pause = time.sleep) -> None:
        self.seen = after
        self._client, self._query, self._pause = client, query, pause
        self._opened_at: float | None = None
        self._lost = False

    def recorded(self) -> Iterator[tuple[int, Event]]:
        """(number, event) of what is wanted behind `seen`, up to now. Raises ConfigError."""
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
