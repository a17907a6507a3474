"""`python -m orchestrator`, and what the installed console script calls."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main() -> None:
    """Runs the command line. Its modules take a second to import, and a signal may come within it."""
    if sys.argv[1:2] == ["serve"]:
        # Until the daemon takes them over: exit 0, as its platform takes any other exit code for a crash.
        signal.signal(signal.SIGTERM, _end)
        signal.signal(signal.SIGINT, _end)
    try:
        from orchestrator.cli.main import main as program
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    program()


def _end(_number: int, _frame: FrameType | None) -> None:
    # No exception: one that is raised within an import may be caught there.
    os._exit(0)


if __name__ == "__main__":
    main()
