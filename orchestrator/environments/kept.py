"""Folders that are made once for all who ask for the same, and kept as long as somebody asks.

One is made beside its place and put there whole, so one that is there is finished, whatever was killed meanwhile.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from orchestrator.files.atomic_file import leftovers, named
from orchestrator.sandbox.command_runner import remove_tree

T = TypeVar("T")
_MADE = "made.json"
_BEGUN = ".begun-"
UNUSED_S = 30 * 24 * 3600
"""One that nobody asked for this long is removed when another one is made."""
MOST_BYTES = 5 * 1024**3
"""Of all together; when another one is made, those go that were not asked for longest."""
_IN_USE_S = 24 * 3600
"""One that was asked for within this time stays, however large they all are: a suite may run with it."""


def is_used(kept: Path) -> bool:
    """Returns whether it is there; if so, somebody wants it now."""
    try:
        os.utime(kept / _MADE)
    except OSError:
        return False
    return True


def begin(folder: Path) -> Path:
    """Returns a new folder beside those that are kept; what was left half-made, and what nobody needs, is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in leftovers(folder, _BEGUN):
        remove_tree(left)
    for kept, used in _unused(folder):
        with suppress(OSError):  # another process was first
            if (kept / _MADE).stat().st_mtime == used:  # nobody asked for it meanwhile
                remove_tree(kept.rename(_temporary(folder)))  # renamed: nobody takes what is half removed
    begun = _temporary(folder)
    begun.mkdir()
    return begun


def put(begun: Path, kept: Path) -> None:
    """Move what is finished into its place, where `is_used` finds it; of two that are the same the first one counts."""
    size = sum(path.lstat().st_size for path in begun.rglob("*"))  # counted once, here, and not at each look
    (begun / _MADE).write_text(str(size), encoding="utf-8")
    try:
        begun.rename(kept)
    except OSError:
        if not is_used(kept):  # else another process was first
            raise


def _temporary(folder: Path) -> Path:
    return folder / f"{named(_BEGUN)}{time.monotonic_ns()}"


def _unused(folder: Path) -> list[tuple[Path, float]]:
    """Those that nobody asked for long enough, and of the others as many as are too many; each with when it was."""
    found = []
    for made in folder.glob(f"*/{_MADE}"):
        with suppress(OSError, ValueError):  # another process removes it, or is older and wrote no size
            found.append((made.stat().st_mtime, int(made.read_text(encoding="utf-8") or 0), made.parent))
    now, total, unused = time.time(), 0, []
    for used, size, kept in sorted(found, reverse=True):
        total += size
        if now - used > UNUSED_S or (total > MOST_BYTES and now - used > _IN_USE_S):
            unused.append((kept, used))
    return unused


class KeptFolders:
    """Makes and keeps folders in `folder`/<digest of what is asked for>.

    One that is incomplete is for this object alone: what was missing may be there for the next one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._own = secrets.token_hex(4)
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(
        self, digest: str, build: Callable[[Path, Path], Awaitable[T | None]], incomplete: Callable[[Path], object]
    ) -> Path | T:
        """Returns the folder, or what `build`, given a begun one and its later place, says of its failure.

        Whether a made one is `incomplete` is looked at in a thread. Of two processes that make the same, the first
        one's counts.
        """
        place, own = self.folder / digest, self.folder / f"{digest}.{self._own}"
        async with self._locks.setdefault(digest, asyncio.Lock()):
            for found in (place, own):
                if await asyncio.to_thread(is_used, found):
                    return found
            begun = await asyncio.to_thread(begin, self.folder)
            try:
                failed = await build(begun, place)
                if failed is not None:
                    return failed
                place = own if await asyncio.to_thread(incomplete, begun) else place
                await asyncio.to_thread(put, begun, place)
            finally:
                await asyncio.to_thread(remove_tree, begun)
        return place
