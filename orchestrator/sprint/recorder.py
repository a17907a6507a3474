"""What is written down of a story when it begins and when it ends: the log, and the backlog's cells."""

from datetime import datetime
from typing import Any

from orchestrator.core.event import Event, Level
from orchestrator.core.finding import blocking
from orchestrator.core.history import FINISHED, STARTED
from orchestrator.core.ports import Clock, EventSink
from orchestrator.core.sprint import StoryOutcome, StoryStatus
from orchestrator.core.story import Story
from orchestrator.sprint.slots import closed_cells, story_cells
from orchestrator.sprint.state import CellWriter, Standing


class Books:
    """The log and the cells of one sprint."""

    def __init__(self, standing: Standing, sink: EventSink, clock: Clock, cells: CellWriter) -> None:
        self._standing, self._sink, self._clock, self._cells = standing, sink, clock, cells

    async def started(self, story: Story) -> None:
        """The story begins, or its work goes on: the time that was recorded first counts."""
        time = await self._emit(
            story.id,
            STARTED,
            f"{story.id} starts: {story.title}",
            data={"criteria": list(story.acceptance_criteria)},
            known=self._standing.began.get(story.id),
        )
        self._standing.began[story.id] = time
        await self._put(story.id, StoryStatus.EXECUTING, STARTED, Execution_Started_At=time)

    async def ended(self, outcome: StoryOutcome) -> None:
        """The story has its outcome. Raises IllegalTransition when it had one."""
        self._standing.ended(outcome)
        good = outcome.status is StoryStatus.DONE
        telling = blocking(outcome.findings) or outcome.findings
        why = "" if good or not telling else f": {telling[-1].message}"
        time = await self._emit(
            outcome.id,
            FINISHED,
            f"{outcome.id} is {outcome.status}{why}",
            level=Level.INFO if good else Level.ERROR,
            data={"outcome": outcome.model_dump(mode="json"), "status": outcome.status},
        )
        await self._put(outcome.id, outcome.status, FINISHED, Execution_Completed_At=time)
        if good:
            times = {"Execution_Started_At": self._standing.began.get(outcome.id, time), "Execution_Completed_At": time}
            await self._cells.put(closed_cells(self._standing.record, outcome.id, times))

    async def _emit(
        self,
        story_id: str,
        name: str,
        message: str,
        *,
        level: Level = Level.INFO,
        data: dict[str, Any] | None = None,
        known: datetime | None = None,
    ) -> datetime:
        """Record a once-only fact of the story; the time that counts is the one recorded first."""
        event = Event(
            id=f"{self._standing.record.workflow_id(story_id)}:{name}",
            time=known or self._clock.now(),
            level=level,
            name=name,
            message=message,
            sprint=self._standing.record.sprint,
            story=story_id,
            data=data or {},
        )
        await self._sink.emit(event)
        return event.time

    async def _put(self, story_id: str, status: StoryStatus, event: str, **times: datetime) -> None:
        await self._cells.put([story_cells(self._standing.record, story_id, status, event, times)])
