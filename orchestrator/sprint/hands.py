"""What a sprint's supervisor works through."""

from collections.abc import Sequence
from typing import Any, Protocol

from orchestrator.domain.control import Order
from orchestrator.domain.outcome import StoryOutcome
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.story import CellUpdate


class StoryRunner(Protocol):
    """Runs or joins one story's workflow."""

    async def run_story(self, workflow_id: str, payload: dict[str, Any]) -> StoryOutcome:
        """The outcome, also when the workflow had ended before."""
        ...

    async def cut_story(self, workflow_id: str) -> None:
        """Cut what it does, a call in flight too; `end_story` or `resume_story` then says what becomes of it."""
        ...

    async def end_story(self, workflow_id: str) -> None:
        """End it for good, whatever it does."""
        ...

    async def resume_story(self, workflow_id: str) -> None:
        """Let it go on where it was cut; one that has ended stays as it is."""
        ...


class Renewer(Protocol):
    """Makes stories as if they had not been run, outside of what the supervisor itself knows."""

    async def renew(self, stories: Sequence[str], order: Order) -> SprintRecord:
        """Their branches are gone, the log says so, the record has a new generation for each: that record."""
        ...

    async def clear(self, order: Order) -> None:
        """So for the whole sprint."""
        ...

    async def merged(self, story: str) -> str | None:
        """The commit that brought the story's work into the result, as it is run now."""
        ...

    async def renewed_by(self, order: Order) -> bool:
        """Whether the order was carried out by a process that could not say so any more."""
        ...


class CellWriter(Protocol):
    """Takes cell changes for the one writer of the backlog file."""

    async def put(self, updates: Sequence[CellUpdate]) -> None:
        """Queue the changes."""
        ...
