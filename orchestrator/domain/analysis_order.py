"""Analyses that a daemon is asked for, and how each stands."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from orchestrator.domain.analysis import ImprovementPlan
from orchestrator.domain.base import Value

MOST_PRD = 1_000_000
"""Characters."""
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
_File = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}\.md$")]
_Name = Annotated[str, Field(max_length=200)]


class AnalysisAsked(Value):
    """What an analysis of the daemon's repository is to be; what is left out is as the daemon's settings say."""

    profile: _Name | None = None
    """Of `analysis.profiles`."""
    stages: Annotated[tuple[_Name, ...], Field(max_length=200)] = ()
    """Prompts by their ids, in place of a profile."""
    triage: bool | None = None
    """Whether a model picks the prompts."""
    prd: Annotated[str, Field(max_length=MOST_PRD)] | None = None
    """The requirements themselves; else `project.vision` where the daemon is."""
    prompts: Annotated[dict[_File, str], Field(max_length=200)] = {}
    """Prompts of one's own: file name → Markdown."""
    backlog: Literal["csv", "yaml"] | None = None
    """Whether the tasks are written as a backlog too, and as what."""
    analysis: Id | None = None
    """Its id, else the next free one; with that of one that has ended before it was done, that one goes on."""


class AnalysisStatus(StrEnum):
    """How an analysis stands."""

    RUNNING = "running"
    DONE = "done"
    PARTIAL = "partial"
    """It has its plan; a stage failed, was cut off or answered in prose, or there is no task."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    OPEN = "open"
    """A command's, at which nobody works now."""


class AnalysisState(Value):
    """One analysis of a state folder."""

    analysis: str
    status: AnalysisStatus
    why: str = ""
    """Why it failed."""
    begun_by: Literal["serve", "analyse"]
    repo: str
    begun_at: datetime
    ended_at: datetime | None = None
    folder: str = ""
    """Where its files are, on the daemon's machine; "" for a command's."""
    files: tuple[str, ...] = ()
    """Their names there."""


class AnalysisShown(AnalysisState):
    """The same with what it has come to."""

    stages: dict[str, str] = {}
    """Stage → how it ended, as far as they have."""
    plan: ImprovementPlan | None = None
    """plan.json."""
    markdown: str = ""
    """mvp_improvement_plan.md."""
    backlog: str = ""
    """The backlog that was asked for, as a text."""
    too_long: tuple[str, ...] = ()
    """Files that are too long to be told here."""
