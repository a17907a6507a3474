"""`python -m orchestrator`, and what the installed console script calls."""

import sys

from orchestrator.cli.startup import nothing_begun

INTERRUPTED = 130


def main() -> None:
    """The command line. What it consists of takes a second to import, and a signal may come within it."""
    if sys.argv[1:2] == ["serve"]:
        nothing_begun()
    try:
        from orchestrator.cli.main import main as program
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    program()


if __name__ == "__main__":
    main()
