"""What signals mean to a daemon that has not begun yet, and what ends a command that a daemon has begun.

Imports nothing of weight: it comes before all that does.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from types import FrameType

ORPHAN_S = 10.0
"""Seconds that a command gets to end by itself once its daemon is gone."""
_INTERRUPTED = 130


def nothing_begun() -> None:
    """SIGTERM and SIGINT end the process at once, exit 0, and SIGHUP does nothing, until the daemon takes them over.

    For `serve` alone, whose platform takes any other exit code for a crash.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _end(_number: int, _frame: FrameType | None) -> None:
    # No exception: one that is raised within an import may be caught there.
    os._exit(0)


def ends_with_stdin(asked: bool) -> None:
    """Where `asked`, the process is told to end when its stdin does, and ended when it does not for a while.

    For a command that a daemon has begun, which holds the other end while it lives.
    """
    if asked:
        threading.Thread(target=_end_with_stdin, name="owner", daemon=True).start()


def _end_with_stdin() -> None:
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_S)
    os._exit(_INTERRUPTED)
