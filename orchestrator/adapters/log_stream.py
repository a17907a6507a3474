"""What `serve` prints its log with: JSON lines for the platform that collects them, written by a thread of its own.

Whoever tells an event only puts it into a buffer: neither a slow reader, nor a stuck one, nor a full disk holds the
engine.
"""

import errno
import os
import select
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from orchestrator.adapters.line_buffer import HeldBack, LineBuffer
from orchestrator.domain.events import Event, Level
from orchestrator.domain.log_line import json_line
from orchestrator.domain.redaction import secrets_of
from orchestrator.domain.words import counted
from orchestrator.settings.model import LogSettings

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
