"""A full disk is waited for, whatever it made of the work; nothing else is."""

import asyncio
import errno

import pytest

from orchestrator.core.errors import ContractViolation, WorkspaceError
from orchestrator.engine.turns import with_room


class Disk:
    """`full` at each look; what is asked of it goes wrong in its own way each time."""

    def __init__(self, *outcomes: object, full: str = "") -> None:
        self.outcomes, self.looks = list(outcomes), iter(full)
        self.told: list[str] = []

    async def work(self) -> object:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def tell(self, what: str) -> None:
        self.told.append(what)

    async def is_full(self) -> bool:
        return next(self.looks, "") == "f"


async def test_neither_an_error_nor_a_result_counts_while_the_disk_is_full() -> None:
    disk = Disk(WorkspaceError("git read-tree: unable to write"), "red", "green", full="f-ff-")
    assert await with_room(disk.work, disk.tell, disk.is_full) == "green"
    assert (disk.told, disk.outcomes) == (["git read-tree: unable to write"], [])


async def test_room_that_is_made_before_the_work_ends_does_not_make_its_result_count() -> None:
    disk, was_full = Disk("red", "green", full="-f--f"), asyncio.Event()

    async def work() -> object:
        await was_full.wait()
        was_full.clear()
        return await disk.work()

    async def is_full() -> bool:
        if await disk.is_full():
            was_full.set()
            return True
        return False

    assert await with_room(work, disk.tell, is_full) == "green"


async def test_what_says_so_itself_is_believed() -> None:
    disk = Disk(OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EDQUOT, "Disk quota exceeded"), "kept")
    assert await with_room(disk.work, disk.tell) == "kept"
    assert disk.told == ["[Errno 28] No space left on device"]


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "no"), ContractViolation("no"), RuntimeError("no")])
async def test_other_errors_are_raised_at_once(error: Exception) -> None:
    disk = Disk(error)
    with pytest.raises(type(error)):
        await with_room(disk.work, disk.tell, disk.is_full)
    assert disk.told == []


async def test_after_the_patience_what_came_counts() -> None:
    disk = Disk("red", full="ff")
    assert await with_room(disk.work, disk.tell, disk.is_full, patience_s=0) == "red"
    with pytest.raises(OSError, match="No space"):
        await with_room(Disk(OSError(errno.ENOSPC, "No space")).work, disk.tell, patience_s=0)
