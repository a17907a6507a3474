"""`python -m tests.board [ARGS]`: the tests of the board in a browser, or a sentence that says why there are none."""

import os
import subprocess
import sys

from tests.board.browser import find_chromium

MISSING = (
    "The board was not tested: no Chromium is on this machine. Install one (Debian: apt-get install chromium), "
    "or name its program in the variable CHROMIUM."
)


def main() -> int:
    if find_chromium() is None:
        print(MISSING, file=sys.stderr)
        return 1 if os.environ.get("CI") else 0  # who waits for a machine's answer must not take this for "tested"
    given = sys.argv[1:]
    files = [] if any(word.startswith("tests") for word in given) else ["tests/board"]
    words = ["-m", "board", "--dist", "loadfile", "-n", "auto", *files, *given]
    return subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
