"""How the stories of a sprint stand while it is driven."""

import asyncio
from collections.abc import Mapping, Sequence

from orchestrator.domain.outcome import StoryOutcome
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.status import StoryStatus, step_to
from orchestrator.sprint.history import StoryHistory


class Standing:
    """Made from the log, and kept as it grows."""

    def __init__(self, record: SprintRecord, histories: Mapping[str, StoryHistory]) -> None:
        self.record = record
        self.status = {story: history.status for story, history in histories.items()}
        self.began = {story: history.started for story, history in histories.items() if history.started}
        self.blocked_by = {story: h.outcome.blocked_by for story, h in histories.items() if h.outcome}
        self.running: dict[asyncio.Task[StoryOutcome], str] = {}
        self.cleared = False
        """Whether the whole sprint was reset: it is as if it had not been."""

    @property
    def not_begun(self) -> list[str]:
        """In the order of the sprint."""
        return [story for story in self.record.story_ids if self.status[story] is StoryStatus.PENDING]

    @property
    def done(self) -> frozenset[str]:
        """Stories that are done."""
        return frozenset(story for story, status in self.status.items() if status is StoryStatus.DONE)

    def ended(self, outcome: StoryOutcome) -> None:
        """The story has its outcome."""
        self.status[outcome.id] = step_to(self.status[outcome.id], outcome.status)
        self.blocked_by[outcome.id] = outcome.blocked_by

    def begin_anew(self, stories: Sequence[str]) -> None:
        """As if they had not been run."""
        for story in stories:
            self.status[story] = StoryStatus.PENDING
            self.began.pop(story, None)
            self.blocked_by.pop(story, None)
