"""A process that stays for months: its clock, its garbage, its end when it must do nothing more."""

import gc
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

REPLACED, FULL = 70, 75
"""Exit codes (EX_SOFTWARE, EX_TEMPFAIL): another process has taken our place; there is no room on a disk."""


def end_at_once(why: str, code: int = REPLACED) -> None:
    """Ends this process with a last log line: it must do nothing more, or cannot."""
    line = {"timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"), "level": "error"}
    told = json.dumps({**line, "message": f"{why}: the process ends itself", "event": "process_ended"})
    with suppress(OSError):  # stdout may be closed
        os.write(1, f"{told}\n".encode())
    os._exit(code)


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
