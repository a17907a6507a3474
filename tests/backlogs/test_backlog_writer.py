import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.backlogs.csv import CsvBacklog
from orchestrator.backlogs.rows import ReadingRules
from orchestrator.backlogs.writer import BacklogWriter, coalesced
from orchestrator.core.story import BacklogContent, CellUpdate
from tests.backlogs.backlog_samples import SIMPLE


class SlowBacklog:
    """Remembers writes, waits until released, answers with prepared warnings."""

    def __init__(self, warnings: Sequence[str | None] = (), fault: Exception | None = None) -> None:
        self.writes: list[list[CellUpdate]] = []
        self.released = threading.Event()
        self.running = 0
        self._warnings = list(warnings)
        self._fault = fault

    def read(self) -> BacklogContent:
        return BacklogContent(source="", stories=())

    def write(self, updates: Sequence[CellUpdate]) -> str | None:
        self.running += 1
        assert self.running == 1, "one writer only"
        self.writes.append(list(updates))
        assert self.released.wait(10)
        self.running -= 1
        if self._fault:
            raise self._fault
        return self._warnings.pop(0) if self._warnings else None


def cells(story_id: str, **values: str) -> CellUpdate:
    return CellUpdate(story_id=story_id, cells=values)


async def test_many_stories_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_bytes(SIMPLE)
    warnings: list[str] = []
    async with BacklogWriter(CsvBacklog(path, tmp_path / "s.json", ReadingRules()), warnings.append) as writer:

        async def story(story_id: str) -> None:
            for status in ("executing", "completed"):
                await writer.put([cells(story_id, Execution_Status=status)])
                await asyncio.sleep(0)
            await writer.put([cells(story_id, Last_Event=f"merged {story_id}")])

        await asyncio.gather(*(story(story_id) for story_id in ("A-1", "A-2", "A-3")))
    assert path.read_bytes() == (
        b"Story_ID,Title,Dependencies,Sprint_ID,Execution_Status,Last_Event\n"
        b"A-1,One,,,completed,merged A-1\nA-2,Two,A-1,,completed,merged A-2\nA-3,Three,,,completed,merged A-3\n"
    )
    assert warnings == []


async def test_put_returns_at_once_and_waiting_updates_are_joined() -> None:
    backlog = SlowBacklog()
    async with BacklogWriter(backlog, print) as writer:
        await writer.put([cells("A", x="1")])
        while not backlog.writes:
            await asyncio.sleep(0.001)
        await writer.put([cells("B", x="1"), cells("A", x="2")])
        await writer.put([cells("B", y="3")])
        backlog.released.set()
        await writer.flush()
        assert backlog.writes == [[cells("A", x="1")], [cells("B", x="1", y="3"), cells("A", x="2")]]
    with pytest.raises(RuntimeError, match="not running"):
        await writer.put([cells("A", x="3")])


async def test_a_cancelled_sprint_leaves_its_cells_behind() -> None:
    backlog = SlowBacklog()

    async def sprint() -> None:
        async with BacklogWriter(backlog, print) as writer:
            await writer.put([cells("A", x="1")])
            await asyncio.sleep(60)

    task = asyncio.create_task(sprint())
    while not backlog.writes:
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    backlog.released.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backlog.running == 0


async def test_a_defect_of_the_backlog_is_raised_and_blocks_nobody() -> None:
    backlog = SlowBacklog(fault=ZeroDivisionError("defect"))
    backlog.released.set()

    async def sprint() -> None:
        async with BacklogWriter(backlog, print) as writer:
            await writer.put([cells("A", x="1")])
            await writer.flush()
            with pytest.raises(RuntimeError):
                await writer.put([cells("A", x="1")])

    with pytest.raises(ZeroDivisionError):
        await sprint()


def test_later_cells_win() -> None:
    joined = coalesced([cells("A", x="1", y="1"), cells("B", x="2"), cells("A", x="3")])
    assert joined == [cells("A", x="3", y="1"), cells("B", x="2")]
