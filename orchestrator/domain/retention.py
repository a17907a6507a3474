"""What was pruned: the mark in the record of a sprint or an analysis, and what a look at the past came to."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field, computed_field

from orchestrator.domain.base import Value
from orchestrator.domain.status import StoryStatus

SPRINT_PRUNED, ANALYSIS_PRUNED = "sprint_pruned", "analysis_pruned"
"""The events that remain of a log that was pruned."""


class Pruning(Value):
    """That everything but record, report and result branch of a sprint, or of an analysis, was removed."""

    at: datetime
    """When it was begun; from then on only record and report count."""
    done: bool = False
    """False while something may be left to remove: the next look goes on with it."""
    statuses: dict[str, StoryStatus] = Field(default_factory=dict)
    """How each story had ended, should the report be lost; empty for an analysis."""


class Why(StrEnum):
    """Why something goes."""

    AGE = "age"
    SIZE = "size"
    CUT_SHORT = "cut_short"
    """An earlier pruning of it was killed."""
    TREES = "trees"
    """It stays; only worktrees and environments go, which nobody needs once it is finished."""


class Gone(Value):
    """One sprint or analysis of which something went, or would go."""

    name: str
    kind: str
    """sprint or analysis."""
    why: Why
    ended: datetime | None
    freed_bytes: int
    """About so many: its files, events and engine rows."""


class Pruned(Value):
    """What one look came to."""

    dry_run: bool
    gone: tuple[Gone, ...]
    skipped: tuple[str, ...] = ()
    """What would have gone, but somebody was at work on it."""
    size_bytes: int | None = None
    """Of the state folder in the end (of a dry run: as it is), where `retention.max_mb` asks for it."""
    over: bool = False
    """Whether that is more than `retention.max_mb`, though nothing else is finished."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def freed_bytes(self) -> int:
        """About so many in all."""
        return sum(one.freed_bytes for one in self.gone)
