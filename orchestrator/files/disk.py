"""Disk space: how much files take, and how much is left."""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MOST_ENTRIES = 500_000  # bounds the walk of a hostile tree


def disk_use(*places: Path, most: int | None = None) -> int:
    """Returns the bytes that everything at and below these places takes, in whole blocks; a file with two names counts
    once.

    With `most`, counting ends beyond so many bytes, and too many files to count are more than that. No link is
    followed; what vanishes meanwhile or cannot be looked into counts as nothing. Blocks.
    """
    seen: set[tuple[int, int]] = set()
    held = 0
    for number, entry in enumerate(entry for place in places for entry in _below(place)):
        held += _taken(entry, seen)
        if most is not None and (held > most or number > _MOST_ENTRIES):
            return max(held, most + 1)
    return held


def _below(place: Path) -> Iterator[str]:
    """Yields all paths below a folder without recursion: commands may leave trees thousands of folders deep."""
    waiting = [str(place)]
    while waiting:
        folder = waiting.pop()
        yield folder
        with suppress(OSError), os.scandir(folder) as entries:  # deleted during the walk
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry.path


def _taken(path: str, seen: set[tuple[int, int]]) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    if found.st_nlink > 1:
        if (found.st_dev, found.st_ino) in seen:
            return 0
        seen.add((found.st_dev, found.st_ino))
    return found.st_blocks * 512


_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|\bos error (?:28|122)\b")
"""The system's words for ENOSPC and EDQUOT, which programs print."""


FULL_MB = 8
"""With less a disk counts as full, a small one with less than a twentieth: it is unknown what would still fit."""


def is_full(*places: Path) -> bool:
    """Returns whether one of these folders is on a disk where nothing can be written any more. Blocks."""
    disks = [shutil.disk_usage(place) for place in places]
    return any(disk.free < min(FULL_MB * 2**20, disk.total // 20) for disk in disks)


def raise_if_full(output: str, *places: Path) -> None:
    """Raises OSError with the place that has the least room when a program says in its output that there was none.

    Blocks.
    """
    if _NO_ROOM.search(output):
        place = min(places, key=lambda one: shutil.disk_usage(one).free)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
