"""`python -m shelf`."""

import sys

from shelf.cli import main

if __name__ == "__main__":
    sys.exit(main())
