"""What the daemon says of itself."""

from datetime import datetime
from typing import Literal

from orchestrator.core.calls.spending import BudgetState
from orchestrator.core.finding import Finding
from orchestrator.core.value import Value


class BacklogState(Value):
    """One backlog that is watched."""

    name: str
    path: str
    read_at: datetime | None
    """When its content was last taken over; None while it never could be."""
    stories: int
    """Rows of the content that counts."""
    waiting: tuple[str, ...]
    """Stories that no sprint has taken yet."""
    refused: str
    """Why the content that stands there now is not the one that counts; "" when it is."""
    problems: tuple[Finding, ...] = ()
    """What is wrong with the refused content."""


class SprintState(Value):
    """One sprint that the daemon works on."""

    sprint: str
    backlog: str
    phase: Literal["running", "paused", "ended"]
    reason: str
    """Why it is paused; "" otherwise."""
    budgets: tuple[BudgetState, ...] = ()
    """Its budgets that are set, with what is spent; of one that is at work."""


class DaemonState(Value):
    """The daemon at this moment."""

    version: str
    pid: int
    started_at: datetime
    phase: Literal["starting", "ready", "stopping"]
    executor_id: str
    backlogs: tuple[BacklogState, ...]
    sprints: tuple[SprintState, ...]
    calls_in_flight: int
    stories_at_work: int
    stories_waiting: int
    """For a person."""
    stories_queued: int
    """Selected, not started."""
    budgets: tuple[BudgetState, ...] = ()
    """Those of the day that are set, with what all sprints and analyses have spent since midnight UTC."""


class Submitted(Value):
    """A backlog that was handed in and is watched from now on."""

    name: str
    path: str
    stories: int
    replaced: bool
    """Whether another content of this name was there."""
    warnings: tuple[Finding, ...] = ()
