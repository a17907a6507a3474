"""Disk space: how much files take, and how much is left."""

import asyncio
import errno
import os
import re
import shutil
import time
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


def short_of_disk(place: Path, least_mb: int) -> str:
    """Returns why nothing more is to be written at `place`; "" while it may be."""
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return "the disk where the state folder is takes nothing: it is read-only"
    free = shutil.disk_usage(place).free // 2**20
    return f"{free} MB are free where the state folder is, serve.min_disk_mb is {least_mb}" if free < least_mb else ""


FULL_MB = 8
"""With less a disk counts as full, a small one with less than a twentieth: it is unknown what would still fit."""


def is_full(*places: Path) -> bool:
    """Returns whether one of these folders is on a disk where nothing can be written any more. Blocks."""
    disks = [shutil.disk_usage(place) for place in places]
    return any(disk.free < min(FULL_MB * 2**20, disk.total // 20) for disk in disks)


FASTEST = 50 * 2**30
"""Bytes that nothing writes within a second."""
LOOK_S = 0.1
"""Seconds for which a look holds at most: room can be reserved without being written."""


class DiskWatch:
    """Knows whether there is room, with a look as often as a disk could have been filled since the last."""

    def __init__(self, *places: Path) -> None:
        self._places = places
        self._roomy_until = 0.0

    async def is_full(self) -> bool:
        """Returns whether one of the folders is on a disk where nothing can be written any more."""
        return time.monotonic() >= self._roomy_until and await asyncio.to_thread(self._look)

    def _look(self) -> bool:
        began = time.monotonic()
        if is_full(*self._places):
            return True
        spare = min(shutil.disk_usage(place).free for place in self._places) - FULL_MB * 2**20
        self._roomy_until = began + min(LOOK_S, spare / FASTEST)
        return False


def raise_if_full(output: str, *places: Path) -> None:
    """Raises OSError with the place that has the least room when a program says in its output that there was none.

    Blocks.
    """
    if _NO_ROOM.search(output):
        place = min(places, key=lambda one: shutil.disk_usage(one).free)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
