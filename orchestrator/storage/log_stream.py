"""What `serve` prints its log with: JSON lines for the platform that collects them, written by a thread of its own.

Whoever tells an event only puts it into a buffer: neither a slow reader, nor a stuck one, nor a full disk holds the
engine.

Which log lines are printed, when, and which are held back: decided without a clock, a thread or a stream of its own.

Lines wait in order, at most `ROOM` of them. Where there is no room, the lightest line goes: debug before info, a
warning or an error last. A place in the order is kept for what was held back, and told when its turn comes.
"""

import errno
import os
import select
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from orchestrator.core.event import Event, Level, json_line
from orchestrator.core.secrets import secrets_of
from orchestrator.core.value import counted
from orchestrator.settings.model import LogSettings

ROOM = 2000
"""Lines that wait: a few seconds of a burst, and no more memory than that."""
WINDOW_S = 1.0


@dataclass
class HeldBack:
    """What is missing at this place of the log: level → lines."""

    lines: Counter[Level] = field(default_factory=Counter)


class LineBuffer:
    """Lines on their way to a stream that takes at most `per_s` of them in any second."""

    def __init__(self, per_s: int, *, room: int = ROOM) -> None:
        self.per_s = per_s
        self._room = room
        self._waiting: deque[Event | HeldBack] = deque()
        self._levels: Counter[Level] = Counter()
        self._gap: HeldBack | None = None
        self._printed: deque[float] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: Event) -> None:
        """Take in a line, or hold back it or a lighter one."""
        if sum(self._levels.values()) >= self._room:
            lightest = min((level for level, count in self._levels.items() if count), key=lambda level: level.rank)
            if lightest.rank >= event.level.rank:
                self.hold_back({event.level: 1})
                return
            self._drop_last(lightest)
            self.hold_back({lightest: 1})
        self._waiting.append(event)
        self._levels[event.level] += 1

    def hold_back(self, lines: Mapping[Level, int]) -> None:
        """Count lines that will not be printed; they are told in one line, at the place where they are missing."""
        if self._gap is None:
            self._gap = HeldBack()
            self._waiting.append(self._gap)
        self._gap.lines.update(lines)

    def wait_s(self, now: float) -> float | None:
        """Seconds until the next line may be printed; None when none waits."""
        if not self._waiting:
            return None
        while self._printed and self._printed[0] <= now - WINDOW_S:
            self._printed.popleft()
        # After the limit was lowered more lines than it allows may lie within the window.
        over = len(self._printed) - self.per_s
        return self._printed[over] + WINDOW_S - now if over >= 0 else 0.0

    def another_within(self, seconds: float, now: float) -> bool:
        """Whether a second line may be printed so soon when the next one is printed now."""
        over = len(self._printed) + 1 - self.per_s
        return over < 0 or (*self._printed, now)[over] + WINDOW_S - now < seconds

    def take(self) -> Event | HeldBack:
        """The next line; what is held back from now on belongs to another gap than the one that was taken."""
        line = self._waiting.popleft()
        if isinstance(line, HeldBack):
            self._gap = None
        else:
            self._levels[line.level] -= 1
        return line

    def printed(self, now: float) -> None:
        """A line has left."""
        self._printed.append(now)

    def hold_back_all(self) -> None:
        """What waits is not printed any more; one line tells it."""
        lines = +self._levels
        for line in self._waiting:
            lines += line.lines if isinstance(line, HeldBack) else Counter()
        self.clear()
        if lines:
            self.hold_back(lines)

    def clear(self) -> None:
        """Nothing waits any more."""
        self._waiting.clear()
        self._levels.clear()
        self._gap = None

    def _drop_last(self, level: Level) -> None:
        """The newest line of a level: what was there first is told first, and the gap stays at the end."""
        for at in range(len(self._waiting) - 1, -1, -1):
            line = self._waiting[at]
            if isinstance(line, Event) and line.level is level:
                del self._waiting[at]
                self._levels[level] -= 1
                return


HELD_BACK = "log_held_back"
"""Name of the line that tells how many are missing at its place."""
PLATFORM_IDS = ("DEPLOYMENT_ID", "REPLICA_ID", "SERVICE_NAME", "ENVIRONMENT_NAME", "GIT_COMMIT_SHA")
"""Variables RAILWAY_… that each line ends with, in lower case."""
_CHUNK = select.PIPE_BUF
"""Bytes that a pipe takes without blocking once it can be written to."""
_LOOK_S = 0.2
"""How often a thread that nobody reads from looks whether it shall end."""
_RETRY_S = 1.0
"""Pause after a line that could not be written, to a full disk for example."""
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO, errno.ECONNRESET, errno.ESHUTDOWN})
"""Errors after which nobody reads any more."""


class LogStream:
    """Prints events to a file descriptor, in order, at most `log.lines_per_s` in any second; `event` never waits.

    Lines that find no room, as they come too fast or nobody reads them, are counted and told in a line of their own
    (`log_held_back`); debug lines go first, warnings and errors last. When the reader has gone, `closed` turns true and
    nothing is printed from then on.
    """

    def __init__(self, fd: int, log: LogSettings, variables: Mapping[str, str]) -> None:
        self._fd, self._log = fd, log
        self._secrets = secrets_of(variables)
        ids = {name.lower(): variables.get(f"RAILWAY_{name}", "").strip()[:200] for name in PLATFORM_IDS}
        self._ids = {name: value for name, value in ids.items() if value}
        self._buffer = LineBuffer(log.lines_per_s)
        self._changed = threading.Condition()
        self._deadline: float | None = None
        """When the thread ends at the latest; None while nobody has said so."""
        self._cut_line = False
        """Whether the last line was written in part."""
        self.closed = False
        self._thread = threading.Thread(target=self._print_all, name="log-lines", daemon=True)
        self._thread.start()

    def event(self, event: Event) -> None:
        """Have an event printed if its level is wanted; from any thread."""
        if event.level.rank < Level(self._log.level).rank:
            return
        with self._changed:
            if not self.closed and self._deadline is None:
                self._buffer.put(event)
                self._changed.notify()

    def configure(self, log: LogSettings) -> None:
        """Go on with another level, cap or limit."""
        with self._changed:
            self._log = log
            self._buffer.per_s = log.lines_per_s
            self._changed.notify()

    def close(self, timeout_s: float) -> None:
        """Print what waits, for so long at most, then print nothing more. Blocks; a second call does nothing."""
        with self._changed:
            if self._deadline is None:
                self._deadline = time.monotonic() + timeout_s
            self._changed.notify()
        self._thread.join(timeout_s + 2 * _LOOK_S)

    def _print_all(self) -> None:
        while (line := self._next()) is not None:
            told = _gap(line) if isinstance(line, HeldBack) else line
            text = json_line(told, self._log.text_cap, more=self._ids, known=self._secrets)
            left = self._write(f"{text}\n".encode())
            with self._changed:
                if left:
                    self._buffer.printed(time.monotonic())
                elif self.closed:
                    self._buffer.clear()
                    return
                else:
                    self._buffer.hold_back(line.lines if isinstance(line, HeldBack) else {line.level: 1})
                    self._changed.wait(self._at_most(_RETRY_S))

    def _next(self) -> Event | HeldBack | None:
        """The next line as soon as one may be printed; None at the end."""
        with self._changed:
            while True:
                self._tell_the_rest()
                wait = self._buffer.wait_s(time.monotonic())
                if self._over() or (wait is None and self._deadline is not None):
                    return None
                if wait == 0.0:
                    return self._buffer.take()
                self._changed.wait(self._at_most(wait))

    def _tell_the_rest(self) -> None:
        """Near the deadline: the last line that can be printed counts those that cannot."""
        now = time.monotonic()
        left = self._deadline - now if self._deadline is not None else None
        if left is None or len(self._buffer) < 2:
            return
        if left <= _LOOK_S or not (self._buffer.wait_s(now) or self._buffer.another_within(left, now)):
            self._buffer.hold_back_all()

    def _at_most(self, wait: float | None) -> float | None:
        """A time to wait, in looks once it is to end."""
        if self._deadline is None:
            return wait
        return _LOOK_S / 4 if wait is None else min(wait, _LOOK_S / 4)

    def _over(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _write(self, line: bytes) -> bool:
        """Write it whole; False when that cannot be done, now or (`closed`) ever."""
        rest = memoryview(b"\n" + line if self._cut_line else line)
        size = len(rest)
        try:
            while rest:
                if self._over():
                    break
                if select.select([], [self._fd], [], _LOOK_S)[1]:
                    rest = rest[self._written(rest) :]
        except (OSError, ValueError) as error:
            self.closed = isinstance(error, ValueError) or error.errno in _GONE
        if len(rest) < size:
            self._cut_line = bool(rest)
        return not rest

    def _written(self, rest: memoryview) -> int:
        try:
            return os.write(self._fd, rest[:_CHUNK])
        except BlockingIOError:  # somebody who has the same descriptor made it so, and was faster
            return 0


def _gap(gap: HeldBack) -> Event:
    total = sum(gap.lines.values())
    return Event(
        id="",
        time=datetime.now(UTC),
        level=Level.WARN,
        name=HELD_BACK,
        message=f"{counted(total, 'line is', 'lines are')} missing here: they came too fast, or were not read",
        sprint="",
        data={"held_back": total, "by_level": {level.value: gap.lines[level] for level in Level if gap.lines[level]}},
    )
