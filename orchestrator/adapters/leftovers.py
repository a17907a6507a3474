"""Temporary files and folders that name the process which made them, so that a later one knows what a kill has left."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from orchestrator.adapters.sandbox.uids import is_slot


def named(prefix: str) -> str:
    """The beginning of a temporary name of ours; `leftovers` finds it by the same `prefix` when we have died."""
    return f"{prefix}{os.getpid()}-"


def leftovers(folder: Path, prefix: str) -> Iterator[Path]:
    """Entries of `folder` that begin with `named(prefix)` of a process that has ended, as far as they are ours."""
    pattern = re.compile(re.escape(prefix) + r"(\d+)-")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = pattern.match(entry.name)
            if found is not None and not is_alive(int(found[1])) and _is_ours(entry):
                yield Path(entry.path)


def is_alive(pid: int) -> bool:
    """Whether a process of this id runs; one that has ended and was not collected does not."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_ours(entry: "os.DirEntry[str]") -> bool:
    """A folder that was lent to a command's user, when the process that lent it died, is ours as well."""
    try:
        owner = entry.stat(follow_symlinks=False).st_uid
    except OSError:
        return False
    return owner == os.getuid() or (os.getuid() == 0 and is_slot(owner))


def _is_zombie(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] == ["Z"]
