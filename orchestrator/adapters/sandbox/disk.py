"""Watches what a command writes: many files, none of them too large, fill a disk as well."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

_LOOK_EVERY_S = 1.0
_COUNT_EVERY = 5
_MOST_ENTRIES = 500_000


class DiskWatch:
    """Sets `stop` when the folders hold more than `most` bytes together, or too many files to count.

    It looks every second at what is left of the disk, which is cheap, and counts when much of that went, else every
    few seconds.
    """

    def __init__(self, folders: Sequence[Path], most: int, stop: asyncio.Event) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._most = most
        self._stop = stop
        self.told = ""
        """Why the command was ended; empty when it was not, by this watch."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watches while the block runs."""
        task = asyncio.create_task(self._watch(), name="disk watch")
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        free, round_ = None, 0
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            round_ += 1
            left = await asyncio.to_thread(_free, self._folders)
            went = 0 if free is None else free - left
            if free is not None and went < self._most // 8 and round_ % _COUNT_EVERY:
                continue
            free = left
            held = await asyncio.to_thread(bytes_below, self._folders, self._most)
            if held > self._most:
                self.told = f"ended with {held // 2**20} MB in its folders; commands.disk_mb is {self._most // 2**20}"
                self._stop.set()
                return


def bytes_below(folders: Sequence[Path], most: int) -> int:
    """What the folders hold on the disk; counting ends beyond `most`. No link is followed. Blocks."""
    held, seen = 0, 0
    waiting = [str(folder) for folder in folders]
    while waiting and held <= most:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    held += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                seen += 1
                if seen > _MOST_ENTRIES:
                    return most + 1
    return held


def _free(folders: Sequence[Path]) -> int:
    left = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found = os.statvfs(folder)
            left.append(found.f_bavail * found.f_frsize)
    return min(left, default=0)
