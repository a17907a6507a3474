"""A process that stays for months: its clock, its garbage, a watchdog that ends it when its loop stands still."""

import asyncio
import faulthandler
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType

STUCK = 70
"""Exit code (EX_SOFTWARE)."""
TICKS = 10
"""Looks within the time that a loop may stand still."""
ALONE = 2
"""Times that time, on a processor: after so much the kernel ends a process in which not even the watchdog could look,
as code that never releases the interpreter (a regular expression, for one) blocks all other threads."""


class Watchdog:
    """Use as an async context manager on the loop that is watched; `limit_s` 0 watches nothing.

    Looks are counted, not seconds, and what the kernel counts is time on a processor: a process that was stopped and
    goes on has not stood still. For the main thread's loop, once in a process.
    """

    def __init__(self, limit_s: float) -> None:
        self._alone_s = limit_s * ALONE
        self._tick_s = limit_s / TICKS
        self._beats = 0
        self._ended = threading.Event()
        self._heart: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    async def __aenter__(self) -> "Watchdog":
        if self._tick_s > 0:
            # Ends the process as the signal by itself would, after the stacks of all threads.
            faulthandler.register(signal.SIGVTALRM, file=sys.__stderr__ or 2, chain=True)
            self._heart = asyncio.create_task(self._beat(), name="watchdog-heart")
            self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.gather(self._heart, return_exceptions=True)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            faulthandler.unregister(signal.SIGVTALRM)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def _beat(self) -> None:
        while True:
            self._beats += 1
            signal.setitimer(signal.ITIMER_VIRTUAL, self._alone_s)
            await asyncio.sleep(self._tick_s / 2)

    def _watch(self) -> None:
        seen, missed = self._beats, 0
        while not self._ended.wait(self._tick_s):
            missed = missed + 1 if self._beats == seen else 0
            seen = self._beats
            if missed >= TICKS:
                self._bark()

    def _bark(self) -> None:
        with suppress(OSError, ValueError):  # stderr may be closed
            faulthandler.dump_traceback(sys.stderr)
        end_at_once(f"the event loop has stood still for {self._tick_s * TICKS:.0f} s")


def end_at_once(why: str) -> None:
    """Ends this process with a last log line and exit code 70: it must do nothing more, or cannot."""
    line = {"timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"), "level": "error"}
    told = json.dumps({**line, "message": f"{why}: the process ends itself", "event": "process_ended"})
    with suppress(OSError):  # stdout may be closed
        os.write(1, f"{told}\n".encode())
    os._exit(STUCK)


NEW_OBJECTS = 5_000
"""New objects after which Python looks for garbage among them. By default 700: fewer than one syntax tree has, so that
each tree was looked through several times while it was built, and again for as long as it is kept."""


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Garbage is looked for less often, and not among what is there at the beginning: modules, mostly.

    A look at all of it stops every thread for a fifth of a second, and each look at syntax trees took longer than to
    parse.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class SystemClock:
    """`ports.Clock` on the machine's time."""

    def now(self) -> datetime:
        """Aware UTC."""
        return datetime.now(UTC)
