"""What signals mean to a daemon that has not begun yet.

Imports nothing of weight: it comes before all that does."""

import os
import signal
from types import FrameType


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
