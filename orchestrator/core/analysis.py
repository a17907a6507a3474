"""An analysis of a repository: what is requested, its stages, its improvement plan, and its state."""

import hashlib
from datetime import datetime
from enum import StrEnum

from orchestrator.core.finding import Finding
from orchestrator.core.sprint import Tokens
from orchestrator.core.value import Value


class TaskPriority(StrEnum):
    """How soon a task should be done; there are exactly these four."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for critical, 3 for low."""
        return list(TaskPriority).index(self)


class ImprovementTask(Value):
    """One task of an improvement plan."""

    title: str
    """One line, never empty."""
    description: str = ""
    priority: TaskPriority = TaskPriority.MEDIUM
    priority_stated: str = ""
    """The word that stood where one of the four belongs; "" when one of them did, or nothing."""
    file: str = ""
    """A safe relative path, or "" when none was named."""
    stage: str
    """Id of the stage that came up with it first."""
    also: tuple[str, ...] = ()
    """Further stages that named the same title."""
    acceptance_criteria: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    """Titles of tasks it waits for."""
    number: int = 0
    """From 1, in the order of the plan; 0 before all stages are combined."""


class StagePrompt(Value):
    """One prompt of the library: what one stage of an analysis is asked."""

    id: str
    goal: str = ""
    """For people: what the stage is about."""
    category: str = ""
    history: bool = False
    """True when it needs the findings of earlier stages."""
    text: str
    file: str = ""
    """Where it was read."""

    @property
    def version(self) -> str:
        """Hash of its text (16 hexadecimal digits), for records."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def name(self) -> str:
        """How the stage is called in a plan."""
        return self.goal or self.id


class StageStatus(StrEnum):
    """How one stage ended."""

    ANSWERED = "answered"
    PROSE = "prose"
    """No value could be read in any answer: its text is the summary, and it gives no task."""
    FAILED = "failed"
    NOT_BEGUN = "not_begun"


class StageReading(Value):
    """What stands in one answer."""

    summary: str = ""
    recommendations: tuple[str, ...] = ()
    tasks: tuple[ImprovementTask, ...] = ()


class _Stage(Value):
    """What a stage's result and its part of the plan share."""

    id: str
    goal: str = ""
    status: StageStatus
    summary: str = ""
    recommendations: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """How the stage is called in a plan."""
        return self.goal or self.id


class StageResult(_Stage):
    """How one stage ended and what it gave."""

    tasks: tuple[ImprovementTask, ...] = ()
    stop: bool = False
    """Whether what failed concerns every stage (a refused key)."""

    @property
    def failed(self) -> bool:
        """Whether it counts for stopping the analysis."""
        return self.status is StageStatus.FAILED


class StageReport(_Stage):
    """One stage in an improvement plan."""

    tasks: int = 0
    """Tasks it gave, duplicates included."""


class LeftOut(Value):
    """A file that is not in the prompts, or not whole."""

    path: str
    size: int
    """Bytes."""
    why: str


class Packed(Value):
    """A repository as the prompts hold it."""

    text: str
    paths: tuple[str, ...] = ()
    """Every file that was seen, ignored ones apart."""
    shown: tuple[str, ...] = ()
    """Files that stand in it whole."""
    cut: tuple[LeftOut, ...] = ()
    """Files of which the beginning stands in it."""
    left_out: tuple[LeftOut, ...] = ()
    masked: tuple[str, ...] = ()
    """Files in which something that looks like a secret was taken out."""
    tokens: int = 0
    """About so many."""


class AnalysisRecord(Value):
    """An analysis as it was frozen at its first start; only what stands behind `asked` changes later."""

    analysis: str
    repo: str
    """Absolute path."""
    prd_file: str = ""
    prd: str = ""
    profile: str
    prompts: tuple[StagePrompt, ...]
    """The stages in order."""
    asked: str = ""
    """The request as one text; the same command with the same text resumes it."""
    generations: dict[str, int] = {}
    """Stage → how often it was started; absent means once."""
    mock: bool = False
    """Whether stand-ins answer in place of a model."""
    finished: bool = False
    """Whether every stage answered and the plan was written."""
    started_at: datetime

    def workflow_id(self, stage: str) -> str:
        """`<analysis>/<stage>`, with `@N` behind it when it was restarted."""
        generation = self.generations.get(stage, 1)
        return f"{self.analysis}/{stage}" + (f"@{generation}" if generation > 1 else "")


class Codebase(Value):
    """What of the repository the stages were shown."""

    files: int
    shown: int
    cut: tuple[LeftOut, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    masked: tuple[str, ...] = ()
    tokens: int = 0


class ImprovementPlan(Value):
    """plan.json: everything an analysis gave, the tasks by priority and in the order of the stages."""

    analysis: str
    generated: datetime
    mock: bool = False
    """Whether no model was asked: summaries and tasks are stand-ins."""
    profile: str
    repo: str
    prd_file: str = ""
    prd_summary: str = ""
    """How the PRD begins, in its own words."""
    stages: tuple[StageReport, ...] = ()
    tasks: tuple[ImprovementTask, ...] = ()
    findings: tuple[Finding, ...] = ()
    """About the analysis as a whole; those about one stage stand with it."""
    codebase: Codebase
    calls: int = 0
    tokens: Tokens = Tokens()
    cost_usd: float | None = 0.0
    """None when the price of a call is unknown."""
