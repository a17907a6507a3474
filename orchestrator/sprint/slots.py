"""Limits concurrent stories, and computes updates of the backlog's cells."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime

from orchestrator.core.history import FINISHED, StoryHistory
from orchestrator.core.sprint import SprintRecord, StoryStatus
from orchestrator.core.story import CellUpdate


class Slots:
    """`concurrency.stories` slots, assigned by workflow id; a story returning from a wait takes precedence."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._held: set[str] = set()
        self._away: set[str] = set()
        self._returning: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._watching: list[asyncio.Event] = []

    @contextmanager
    def watched(self) -> Iterator[asyncio.Event]:
        """Yields an event that is set whenever a slot is freed or a story starts to wait; the reader clears it."""
        changed = asyncio.Event()
        self._watching.append(changed)
        try:
            yield changed
        finally:
            self._watching.remove(changed)

    @property
    def at_work(self) -> int:
        """Number of stories with a slot."""
        return len(self._held)

    @property
    def free(self) -> bool:
        """Returns whether a further story may start."""
        return len(self._held) < self._at_once and not self._returning

    @property
    def waiting(self) -> frozenset[str]:
        """Stories that wait for a person."""
        return frozenset(self._away)

    def __contains__(self, workflow_id: str) -> bool:
        """Returns whether the story runs or waits; includes one that the engine resumed by itself after a wait."""
        return (
            workflow_id in self._held
            or workflow_id in self._away
            or any(workflow_id == other for other, _ in self._returning)
        )

    def take(self, workflow_id: str) -> None:
        """Takes a slot for a starting story, but none for one that the engine resumed and that waits already."""
        if workflow_id not in self:
            self._held.add(workflow_id)

    def release(self, workflow_id: str) -> None:
        """Frees the slot of an ended story."""
        self._held.discard(workflow_id)
        self._away.discard(workflow_id)
        self._hand_out()

    @asynccontextmanager
    async def given_back(self, workflow_id: str) -> AsyncIterator[None]:
        """Gives the slot back inside the block; leaving waits for one, unless the work is being cancelled."""
        self._held.discard(workflow_id)
        self._away.add(workflow_id)
        self._hand_out()
        try:
            yield
        except asyncio.CancelledError:
            self._away.discard(workflow_id)
            raise
        await self._return(workflow_id)

    async def _return(self, workflow_id: str) -> None:
        self._away.discard(workflow_id)
        turn = asyncio.get_running_loop().create_future()
        self._returning.append((workflow_id, turn))
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            self._returning = deque(entry for entry in self._returning if entry[1] is not turn)
            self._held.discard(workflow_id)
            self._hand_out()
            raise

    def _hand_out(self) -> None:
        while self._returning and len(self._held) < self._at_once:
            workflow_id, turn = self._returning.popleft()
            if not turn.done():
                self._held.add(workflow_id)
                turn.set_result(None)
        for changed in self._watching:
            changed.set()


RUN_COLUMNS = ("Execution_Status", "Execution_Started_At", "Execution_Completed_At", "Last_Event", "Last_Updated")
"""Columns that a run writes, besides the sprint's name."""


def story_cells(
    record: SprintRecord, story_id: str, status: StoryStatus, event: str, times: Mapping[str, datetime]
) -> CellUpdate:
    """Returns sprint, status, last event and its time; `times` maps columns to recorded times of events."""
    stamps = {column: stamp(time) for column, time in times.items()}
    cells = {"Sprint_ID": record.sprint, "Execution_Status": status.cell, "Last_Event": event, **stamps}
    return CellUpdate(story_id=story_id, cells={**cells, "Last_Updated": stamp(max(times.values()))})


def closed_cells(record: SprintRecord, story_id: str, times: Mapping[str, datetime]) -> list[CellUpdate]:
    """Returns updates that mark the rows closed with `story_id` as done at its times."""
    done = story_cells(record, story_id, StoryStatus.DONE, f"closed_by {story_id}", times)
    return [CellUpdate(story_id=row, cells=done.cells) for row in record.closes.get(story_id, ())]


def known_cells(record: SprintRecord, histories: Mapping[str, StoryHistory]) -> list[CellUpdate]:
    """Returns updates for everything in the log, so that a crash between an event and its cells loses nothing."""
    updates = []
    for story_id, history in histories.items():
        if history.outcome is not None and history.finished is not None:
            times = {"Execution_Started_At": history.started} if history.started else {}
            times["Execution_Completed_At"] = history.finished
            updates.append(story_cells(record, story_id, history.outcome.status, FINISHED, times))
            if history.outcome.status is StoryStatus.DONE:
                updates += closed_cells(record, story_id, times)
        elif history.started is None:
            updates.append(CellUpdate(story_id=story_id, cells={"Sprint_ID": record.sprint}))
    return updates


def cleared_cells(
    record: SprintRecord, stories: Sequence[str], done: Collection[str], *, whole: bool
) -> list[CellUpdate]:
    """Returns updates that empty the cells of restarted stories, and of the rows closed with `done` ones.

    With `whole` also empties the sprint's name.
    """
    columns = (*RUN_COLUMNS, "Sprint_ID") if whole else RUN_COLUMNS
    rows = (*stories, *(row for story in stories if story in done for row in record.closes.get(story, ())))
    return [CellUpdate(story_id=row, cells=dict.fromkeys(columns, "")) for row in rows]


def stamp(time: datetime) -> str:
    """Returns UTC ISO 8601 with seconds, as written into cells."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
