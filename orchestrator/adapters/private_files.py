"""Modes of the state folder and its files: for their owner alone, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from orchestrator.adapters.sandbox.uids import is_private
from orchestrator.errors import ConfigError

_TREES = ("analyses", "backlogs", "daemon", "edits", "replies", "reports", "sidecars")
"""Where files of ours lie. The rest is guarded by the folder's own mode: suites see the modes of worktrees and
environments, and commands read mirrors."""


def private(path: str, flags: int) -> int:
    """An `opener` for `open`: a file that it creates is its owner's alone."""
    return os.open(path, flags, 0o600)


def create_private(database: str | None) -> None:
    """Make the file of an SQLite database, if there is none, before anything has it open. Blocks.

    SQLite would give it what the umask leaves; files beside it (`-wal`, `-shm`) get the modes of this one. A file that
    is there is not opened: closing it would take this process's locks on it away, and with them the log that others
    write to (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    if database:
        with suppress(OSError):  # it is there; or SQLite itself tells why it cannot be opened
            os.close(os.open(database, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


_OURS = frozenset({".gitignore", "engine.sqlite", "events.sqlite", "sprints", "daemon", "sidecars", "mask.key"})
_NOBODYS = frozenset({"lost+found"})


def narrow(home: Path) -> str | None:
    """Close the state folder and its files to others; the warning to show when something was open, else None.

    Raises ConfigError when the folder cannot be closed, or when it is open and holds what others put there.
    """
    if is_private(home.stat()):
        opened = [path.name for path in home.iterdir() if _is_narrowed(path)]
        return f"{', '.join(opened)} in {home} could be opened by other users; now only by you" if opened else None
    mode = stat.S_IMODE(home.stat().st_mode)
    names = {path.name for path in home.iterdir()} - _NOBODYS
    if names and not names & _OURS:
        raise ConfigError(
            f"{home} is no state folder, and not empty: other users may need what lies there, so it is not closed to "
            "them; name an empty or a new folder with ORCHESTRATOR_HOME"
        )
    with suppress(OSError):
        home.chmod(mode & ~0o077)
    if not is_private(home.stat()):
        raise ConfigError(
            f"the state folder {home} is open to other users (mode {mode:04o}), and its mode cannot be changed: "
            "name a folder of your own with ORCHESTRATOR_HOME"
        )
    # After the folder: now nobody else can put something in a file's place.
    for path in _files(home):
        _is_narrowed(path)
    return f"the state folder {home} was open to other users (mode {mode:04o}); now only to you"


def _files(home: Path) -> Iterator[Path]:
    yield from home.iterdir()
    yield from (home / "sprints").glob("*/*")
    for tree in _TREES:
        for folder, _, names in os.walk(home / tree):
            yield from (Path(folder, name) for name in names)


def _is_narrowed(path: Path) -> bool:
    """Whether it was a file that others could open, and is no more."""
    with suppress(OSError):  # gone meanwhile, or another user's: the folder is closed
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
            path.chmod(stat.S_IMODE(found.st_mode) & ~0o077)
            return True
    return False
