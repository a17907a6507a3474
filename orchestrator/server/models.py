"""Models of the HTTP interface besides the domain's values: request bodies and response objects."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from orchestrator.core.calls.spending import BudgetState
from orchestrator.core.command import Choice
from orchestrator.core.finding import Finding
from orchestrator.core.sprint import SprintReport, StoryReport
from orchestrator.core.value import Value

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Command = Literal["run", "serve"]


class Health(Value):
    """The process lives."""

    status: Literal["ok"]


class Readiness(Value):
    """Readiness of the daemon."""

    ready: bool
    components: dict[str, str]
    """Component → "" while it is fine, else why it is not; without a token only that it is not."""
    waiting: dict[str, str] = {}
    """Sprint that is paused or cannot be worked on now → why; without a token it is not there."""


class Waiting(Value):
    """A story that waits for a person."""

    story: str
    gate: int
    kind: str
    reason: str
    since: str | None
    deadline: str | None
    choices: tuple[Choice, ...]


class SprintShown(SprintReport):
    """A sprint as `status --json` prints it: the object of report.json, who works on it, who waits for a person."""

    backlog: str
    begun_by: Command
    """Command that resumes it when no process runs it."""
    running_pid: int | None
    running_on: str
    """The process of another machine that works on it; "" when none does."""
    waiting: tuple[Waiting, ...]
    paused: str
    """Why none of its stories may start; "" when they may."""
    budgets: tuple[BudgetState, ...]
    """What is spent in calls, tokens and money, and of which budget."""
    held: dict[str, str]
    """Story → the order that holds it."""
    needs: dict[str, tuple[str, ...]]
    """Pending story → the stories that have to be done before it."""
    running_since: datetime | None
    """When the process that works on it began to; null while none does."""
    last: dict[str, str]
    """Story → its latest event."""
    last_at: dict[str, datetime | None]
    """Story → when that was."""


class Noted(Value):
    """One fact of a story's history."""

    time: datetime
    event: str
    message: str


class StoryShown(StoryReport):
    """A story as `show --json` prints it."""

    sprint: str
    conflict: dict[str, Any] | None
    replan: dict[str, Any] | None
    question: dict[str, Any] | None
    """The open question, with the commands that answer it."""
    answers: tuple[dict[str, Any], ...]
    plan: dict[str, Any] | None
    written: dict[str, Any] | None
    """The plan as the architect wrote it, where `plan` is its mended form."""
    found: tuple[Finding, ...]
    """What was found in the plan as it was written."""
    mended: tuple[Finding, ...]
    """What its mended form changes."""
    texts: dict[str, str]
    """What the story asked for when it began, besides title and criteria: the backlog's field → its text."""
    plan_file: str | None
    contract: dict[str, Any] | None
    refused: tuple[Finding, ...]
    """Violations that the contract refused."""
    diff_stat: str
    test_output: str
    history: tuple[Noted, ...]
    timeline: tuple[dict[str, Any], ...]


class AnswerGiven(Value):
    """The valid answer, and whether it is the one just given."""

    sprint: str
    story: str
    gate: int
    counts: bool
    choice: Choice
    by: str
    comment: str
    answered_at: datetime
    running_pid: int | None
    running_on: str
    begun_by: Command
    message: str
    """The same in one sentence."""


class Replanned(Value):
    """Restarted stories."""

    sprint: str
    stories: tuple[str, ...]
    begun_by: Command
    warning: str | None
