"""What a mirror no longer needs: branches of pruned sprints, and the objects that nothing leads to any more."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from orchestrator.adapters.mirror import Mirror, remove_locks
from orchestrator.adapters.sprint_refs import SprintRefs


async def drop_branches(path: Path, sprint: str, stories: Collection[str], lock_fds: Sequence[int]) -> None:
    """Delete branch and recorded base of these stories of one sprint; missing ones are fine. Raises WorkspaceError."""
    if not await asyncio.to_thread((path / "config").exists):
        return
    mirror = Mirror(path, lock_fds=lock_fds)
    refs = SprintRefs(mirror, sprint)
    names = [refs.ref(kind, story) for story in stories for kind in ("base", "heads")]
    present = await mirror.refs(*names) if names else {}
    if present:
        await mirror.update(*(f"delete {name}" for name in present))


async def tidy(path: Path, *, drop_unreachable: bool) -> bool:
    """Pack the mirror's objects; False, and nothing done, while anybody works with it. Raises WorkspaceError.

    `drop_unreachable` is for a mirror without an unfinished sprint: a merge that waits for a person may know a tree by
    its hash alone.
    """
    if not await asyncio.to_thread((path / "config").exists):
        return False
    async with _alone(path) as fd:
        if fd is None:
            return False
        await asyncio.to_thread(remove_locks, path)
        mirror = Mirror(path, lock_fds=(fd,))
        await mirror.git("repack", "-a", "-d", "-q", *(() if drop_unreachable else ("-k",)))
        await mirror.git("prune-packed", "-q")
        if drop_unreachable:
            await mirror.git("prune", "--expire=now")
    return True


@asynccontextmanager
async def _alone(path: Path) -> AsyncIterator[int | None]:
    """The descriptor with which nobody else uses the mirror, for as long as git has it too; None: somebody does."""
    fd = os.open(path.with_name(f"{path.name}.flock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        taken = False
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = True
        yield fd if taken else None
    finally:
        os.close(fd)
