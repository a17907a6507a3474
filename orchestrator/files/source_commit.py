"""Which commit this program was made from. Only the standard library: `--version` and the build of the wheel use it."""

import os
import subprocess
from pathlib import Path

RECORD = "commit.txt"
"""Written into wheels and source archives when they are built (hatch_build.py); a checkout asks git."""
UNKNOWN = "unknown"
_PACKAGE = Path(__file__).parent.parent


def source_commit() -> str:
    """Returns the commit of the program that runs, with ` with local changes` behind it if there were any."""
    try:
        return (_PACKAGE / "_packaged" / RECORD).read_text(encoding="utf-8").strip()
    except OSError:  # no wheel
        return read_commit(_PACKAGE.parent)


def read_commit(root: Path) -> str:
    """Returns the same for a folder of sources: a checkout, or an unpacked source archive."""
    if not (root / ".git").exists():  # git would find a repository further up, which is another project's
        record = root / RECORD
        return record.read_text(encoding="utf-8").strip() if record.is_file() else UNKNOWN
    # A hook of git runs with GIT_DIR set, which names another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    describe = ["describe", "--always", "--abbrev=12", "--exclude=*", "--dirty= with local changes"]
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *describe], env=environment, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):  # no commit, or no git
        return UNKNOWN
    return done.stdout.strip()
