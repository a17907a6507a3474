"""Content-addressed folders: built once per digest, shared by all callers, and pruned when unused.

A folder is built beside its final place and renamed into it, so that a folder in place is complete even after a kill.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from orchestrator.core.event import acquired, activity
from orchestrator.files.atomic_file import leftovers, let_go, make_folder, named
from orchestrator.sandbox.command_runner import remove_tree

T = TypeVar("T")
_MADE = "made.json"
_BEGUN = ".begun-"
UNUSED_S = 30 * 24 * 3600
"""A folder that was not used for this long is removed when another one is made."""


def is_used(kept: Path) -> bool:
    """Returns whether the folder exists; if so, marks it as used now."""
    try:
        os.utime(kept / _MADE)
    except OSError:  # not made yet, or just removed
        return False
    return True


def begin(folder: Path) -> Path:
    """Returns a new scratch folder beside the kept ones; removes unfinished and unused folders."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in leftovers(folder, _BEGUN):
        remove_tree(left)
    for made in folder.glob(f"*/{_MADE}"):
        with suppress(OSError):  # another process was first
            if time.time() - made.stat().st_mtime > UNUSED_S:
                # Renamed first: no caller gets a half-removed folder.
                remove_tree(made.parent.rename(folder / named(_BEGUN)))
    return make_folder(_BEGUN, folder)


def put(scratch: Path, kept: Path) -> None:
    """Moves a finished folder into place, where `is_used` finds it; if one is there already, that one stays."""
    (scratch / _MADE).touch()
    try:
        scratch.rename(kept)
    except OSError:
        if not is_used(kept):  # else another process was first
            raise
    else:
        let_go(scratch)


class KeptFolders:
    """Makes and keeps folders in `folder`/<digest of the request>.

    An incomplete folder is used by this object only: what was missing may be available to the next one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._own = secrets.token_hex(4)
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(
        self,
        digest: str,
        build: Callable[[Path, Path], Awaitable[T | None]],
        incomplete: Callable[[Path], object],
        *,
        what: str,
    ) -> Path | T:
        """Returns the folder, or the failure that `build` reports; `build` gets a scratch folder and its final place.

        `what` says for people what `build` does, such as `installing 3 packages`. Calls `incomplete` in a thread. When
        two processes make the same folder, the first one's is used.
        """
        place, own = self.folder / digest, self.folder / f"{digest}.{self._own}"
        lock = self._locks.setdefault(digest, asyncio.Lock())
        async with acquired(lock, f"waiting for another one that is {what}"):
            for found in (place, own):
                if await asyncio.to_thread(is_used, found):
                    return found
            scratch = await asyncio.to_thread(begin, self.folder)
            try:
                async with activity(what):
                    failed = await build(scratch, place)
                if failed is not None:
                    return failed
                place = own if await asyncio.to_thread(incomplete, scratch) else place
                await asyncio.to_thread(put, scratch, place)
            finally:
                await asyncio.to_thread(remove_tree, scratch)
        return place
