"""A mirror as it is at one moment: its refs then, and whatever objects it has by the time they are copied."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from orchestrator.adapters.mirror import Mirror

_HEAD = "# pack-refs with: sorted \n"


@asynccontextmanager
async def undisturbed(mirrors: list[Path]) -> AsyncIterator[None]:
    """Until the end of the context nobody removes objects of these mirrors."""
    fds = await asyncio.to_thread(lambda: [_shared(path) for path in mirrors])
    try:
        yield
    finally:
        for fd in fds:
            os.close(fd)


def _shared(path: Path) -> int:
    fd = os.open(path.with_name(f"{path.name}.flock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


async def refs_text(path: Path) -> str:
    """All its refs, as a file `packed-refs` tells them. Raises WorkspaceError."""
    listed = await Mirror(path).git("for-each-ref", "--format=%(objectname) %(refname)")
    return _HEAD + (f"{listed.text}\n" if listed.text else "")


def object_files(path: Path) -> Iterator[Path]:
    """Files that belong into a copy besides refs and objects' own lock files: configuration, objects, whole packs.

    Objects are only ever added while the mirror is `undisturbed`, so reading them after the refs misses none. Blocks.
    """
    for name in ("HEAD", "config", "shallow", "info/attributes"):
        if (path / name).is_file():
            yield path / name
    for folder, _, names in os.walk(path / "objects"):
        packs = {name.rpartition(".")[0] for name in names if name.endswith(".pack")}
        for name in names:
            stem, dot, kind = name.rpartition(".")
            half = name.startswith(("tmp_", ".tmp")) or kind == "lock"
            if not half and (f"{dot}{kind}" != ".idx" or stem in packs):
                yield Path(folder, name)
