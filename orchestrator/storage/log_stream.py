"""The log of a process that runs for months: JSON lines on a stream, written by a thread of its own."""

import errno
import os
import select
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from datetime import UTC, datetime

from orchestrator.core.event import Event, Level, json_line
from orchestrator.core.secrets import secrets_of
from orchestrator.core.value import counted
from orchestrator.settings.model import LogSettings

ROOM = 2000
"""Lines that wait: a few seconds of a burst, and no more memory than that."""
RESERVED = ROOM // 10
"""Places that warnings and errors alone may take."""
HELD_BACK = "log_held_back"
"""Name of the line that tells how many are missing at its place."""
PLATFORM_IDS = ("DEPLOYMENT_ID", "REPLICA_ID", "SERVICE_NAME", "ENVIRONMENT_NAME", "GIT_COMMIT_SHA")
"""Variables RAILWAY_… that each line ends with, in lower case."""
WINDOW_S = 1.0
_CHUNK = select.PIPE_BUF
"""Bytes that a pipe takes without blocking once it can be written to."""
_LOOK_S = 0.2
"""How often the thread checks for the end while the reader does not read."""
_RETRY_S = 1.0
"""Pause after a line that could not be written, to a full disk for example."""
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO, errno.ECONNRESET, errno.ESHUTDOWN})
"""Errors after which the reader has gone for good."""


class LogStream:
    """Prints events to a file descriptor, in order, at most `log.lines_per_s` in any second; `event` never waits.

    A line that finds no place among the waiting ones is counted, and one line (`log_held_back`) reports the count where
    it is missing. When the reader has gone, `closed` turns true and nothing is printed from then on.
    """

    def __init__(self, fd: int, log: LogSettings, variables: Mapping[str, str]) -> None:
        self._fd, self._log = fd, log
        self._secrets = secrets_of(variables)
        ids = {name.lower(): variables.get(f"RAILWAY_{name}", "").strip()[:200] for name in PLATFORM_IDS}
        self._ids = {name: value for name, value in ids.items() if value}
        self._waiting: deque[Event] = deque()
        self._missing: Counter[Level] = Counter()
        """Lines held back since the last one that waits."""
        self._printed: deque[float] = deque()
        self._changed = threading.Condition()
        self._deadline: float | None = None
        """When the thread ends at the latest; None until `close`."""
        self._cut_line = False
        """True when the last line was written only in part."""
        self.closed = False
        self._thread = threading.Thread(target=self._print_all, name="log-lines", daemon=True)
        self._thread.start()

    def event(self, event: Event) -> None:
        """Has an event printed if its level is wanted; from any thread."""
        if event.level.rank < Level(self._log.level).rank:
            return
        with self._changed:
            if self.closed or self._deadline is not None:
                return
            room = ROOM if event.level.rank >= Level.WARN.rank else ROOM - RESERVED
            if len(self._waiting) >= room:
                self._missing[event.level] += 1
                return
            self._report_missing()
            self._waiting.append(event)
            self._changed.notify()

    def configure(self, log: LogSettings) -> None:
        """Goes by another level, cap or limit from now on."""
        with self._changed:
            self._log = log
            self._changed.notify()

    def close(self, timeout_s: float) -> None:
        """Prints what waits, for so long at most, then nothing more. Blocks; a second call does nothing."""
        with self._changed:
            if self._deadline is None:
                self._deadline = time.monotonic() + timeout_s
            self._changed.notify()
        self._thread.join(timeout_s + 2 * _LOOK_S)

    def _report_missing(self) -> None:
        if self._missing:
            self._waiting.append(_held_back(self._missing))
            self._missing = Counter()

    def _print_all(self) -> None:
        while (event := self._next()) is not None:
            line = json_line(event, self._log.text_cap, more=self._ids, known=self._secrets)
            if self._write(f"{line}\n".encode()):
                self._printed.append(time.monotonic())
                continue
            with self._changed:
                if self.closed:
                    self._waiting.clear()
                    return
                self._hold_back(event)
                self._changed.wait(_RETRY_S if self._deadline is None else _LOOK_S)

    def _next(self) -> Event | None:
        """Returns the next line as soon as one may be printed; None at the end."""
        with self._changed:
            while True:
                now = time.monotonic()
                left = None if self._deadline is None else self._deadline - now
                if left is not None and left <= _LOOK_S:  # the last line counts those that are not printed any more
                    while self._waiting:
                        self._hold_back(self._waiting.popleft())
                if left is not None or not self._waiting:
                    self._report_missing()
                if left is not None and (left <= 0 or not self._waiting):
                    return None
                while self._printed and self._printed[0] <= now - WINDOW_S:
                    self._printed.popleft()
                over = len(self._printed) - self._log.lines_per_s
                wait = self._printed[over] + WINDOW_S - now if over >= 0 else 0.0
                if self._waiting and (wait <= 0 or (left is not None and left <= _LOOK_S)):
                    return self._waiting.popleft()
                self._changed.wait(None if not self._waiting else wait if left is None else min(wait, left, _LOOK_S))

    def _hold_back(self, event: Event) -> None:
        if event.name == HELD_BACK:
            self._missing.update({Level(name): count for name, count in event.data["by_level"].items()})
        else:
            self._missing[event.level] += 1

    def _write(self, line: bytes) -> bool:
        """Writes it whole; returns False when that cannot be done, now or (`closed`) ever."""
        rest = memoryview(b"\n" + line if self._cut_line else line)
        size = len(rest)
        try:
            while rest and (self._deadline is None or time.monotonic() < self._deadline):
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
        except BlockingIOError:  # another process with the same descriptor made it so, and was faster
            return 0


def _held_back(lines: Counter[Level]) -> Event:
    total = sum(lines.values())
    return Event(
        id="",
        time=datetime.now(UTC),
        level=Level.WARN,
        name=HELD_BACK,
        message=f"{counted(total, 'line is', 'lines are')} missing here: they came too fast, or were not read",
        sprint="",
        data={"held_back": total, "by_level": {level.value: lines[level] for level in Level if lines[level]}},
    )
