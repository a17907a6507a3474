"""What people send to a sprint (commands, answers to gates), and the words in which every decision is recorded."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown
from orchestrator.core.finding import Finding
from orchestrator.core.value import Value

CONTROL_GIVEN, CONTROL_SETTLED = "control_given", "control_settled"
"""Names of the events: that an order was given, and what became of it."""
CONTROL_MARK = ":control:"
"""In the id of every order's event: `<sprint>:control:<order id>`."""


def _whole(value: Any) -> Any:
    # JSON knows one kind of numbers: 1.0 is a whole one.
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)


BRIEF = 200
"""Letters of an order's comment that a message shows."""


class Verb(StrEnum):
    """What can be ordered."""

    PAUSE = "pause"
    """Nothing new begins, what is at work ends its turn; nothing that was paid for is lost."""
    RESUME = "resume"
    CANCEL = "cancel"
    """At once, a call in flight is cut: the story ends as cancelled, its branch is kept."""
    RETRY = "retry"
    """A story that ended without being done is run again, and what it had blocked; of a sprint, all such stories."""
    REPLAN = "replan"
    """As `retry` of a story, which the architect plans from the start with the comment."""
    RESET = "reset"
    """As if it had not been run."""


class Order(Value):
    """One order."""

    id: str
    """Unique: giving the same order again has no effect."""
    verb: Verb
    story: str | None = None
    """None: the whole sprint."""
    by: str
    comment: str = ""

    @property
    def brief(self) -> str:
        """As much of the comment as a message shows."""
        return " ".join(self.comment.split())[:BRIEF]


class Settled(Value):
    """What became of an order."""

    order: str
    """Its id; "" when it was applied directly because no process was running, and of an answer."""
    done: bool
    """False: it was refused, and `message` says why."""
    message: str
    stories: tuple[str, ...] = ()
    """Whom it concerned."""


GATE_OPENED, GATE_ANSWERED, GATE_SETTLED = "gate_opened", "gate_answered", "gate_settled"
"""Events: a story asks (data.gate: its Gate), a person answers (data.answer: the GateAnswer), the story continues."""
NOBODY = "nobody"
"""Who answers when the time to answer ran out."""


class GateKind(StrEnum):
    """What a person is asked about."""

    PLAN = "plan"
    CONFLICT = "conflict"
    MERGE = "merge"


class Choice(StrEnum):
    """What a person can answer."""

    APPROVE = "approve"
    """Build the plan as it is; override the conflict; merge without the tests that vanished."""
    REJECT = "reject"
    """One more revision, or one more try to merge, with the comment as its feedback."""
    EDIT = "edit"
    """Build the plan that comes with the answer."""
    REPLAN = "replan"
    """Plan from the start."""
    CANCEL = "cancel"
    """Give the story up; a merge is left where it is, on the story's branch."""
    TIME_OUT = "time_out"
    """Nobody answered in time; no person chooses it."""


DONE_AS = {
    Choice.APPROVE: "approved",
    Choice.REJECT: "rejected",
    Choice.EDIT: "edited and approved",
    Choice.REPLAN: "to be planned from the start",
    Choice.CANCEL: "given up",
    Choice.TIME_OUT: "not answered in time",
}


class Gate(Value):
    """One question to a person, with all that is needed to answer it."""

    kind: GateKind
    number: int = 0
    """1-based among the story's gates; filled in when it opens."""
    reason: str
    """One line: why a person is asked."""
    choices: tuple[Choice, ...]
    """What may be answered."""
    barred: str = ""
    """Why `approve` is not among the choices, when it is not."""
    valid: bool
    """Whether the plan satisfies the checks; a merge that is asked about does not."""
    issues: tuple[Finding, ...] = ()
    """Why it is invalid."""
    notes: tuple[Finding, ...] = ()
    """Minor findings."""
    mended: tuple[Finding, ...] = ()
    """What was changed in the architect's last plan to make `plan` of it."""
    plan: Breakdown
    plan_file: str = ""
    """The file that a person's plan came from; empty for the architect's."""
    iteration: int
    """Plans judged so far; for a merge, how often it was tried."""
    branch: str = ""
    """For a merge: the branch that the story's work is on."""
    opened_at: datetime | None = None
    deadline: datetime | None = None
    """When the question is settled without an answer; None: never."""

    @property
    def conflict(self) -> ArchitecturalConflict:
        """The conflict that is asked about; not detected for a plan."""
        return self.plan.architectural_conflict


class GateAnswer(Value):
    """What was answered; the first one recorded for a gate counts."""

    number: int
    """Of the gate that it answers."""
    choice: Choice
    comment: str = ""
    plan: Breakdown | None = None
    """The edited plan, with `edit` only."""
    by: str
    """Who answered; NOBODY when the time ran out."""


def answer_id(workflow_id: str, number: int) -> str:
    """Id of the event that answers a gate: it can be stored once only, so one of two people wins."""
    return f"{workflow_id}:gate-{number}"


KEYS = ("stage", "verdict", "findings", "attempt", "budget_left")
"""What the data of an event about a decision holds besides its own facts."""


class Loop(StrEnum):
    """Where something is decided, and whose budget counts."""

    TRANSPORT = "transport"
    """One request that is sent again after an error: `provider.max_attempts`."""
    ANSWER = "answer"
    """One answer that is asked for again with its findings: the replies that its purpose allows."""
    PLAN = "plan"
    """Plans judged: `plan.max_iterations`."""
    GATE = "gate"
    """A person is asked; the plans are counted."""
    BUILD = "build"
    """A task; it is asked for again as often as the tests may still be red."""
    REVIEW = "review"
    """Reviews of one task, over the whole story: `review.max_iterations`."""
    AMENDMENT = "amendment"
    """The one request per story to extend its contract."""
    TEST = "test"
    """Runs of the suite that decide: `test.max_attempts`."""
    MERGE = "merge"
    """The whole diff, then the merge; what the developer may still be asked about it counts."""


class Verdict(StrEnum):
    """Decisions for which no other enum has a word (Choice and TaskStatus have theirs)."""

    VALID = "valid"
    """A plan satisfies the checks."""
    REVISE = "revise"
    ESCALATE = "escalate"
    """The plan's revisions are used up."""
    ACCEPTED = "accepted"
    SENT_BACK = "sent_back"
    GIVE_UP = "give_up"
    """The budget is used up, or asking again would change nothing."""
    SHOWN = "shown"
    """What the answer asked to see goes into the next request."""
    HEALED = "healed"
    """Read after repairs that needed no guess."""
    CUT_OFF = "cut_off"
    """Its whole parts are kept."""
    UNREADABLE = "unreadable"
    REPAIRED = "repaired"
    NOT_REPAIRED = "not_repaired"
    COMPLETED = "completed"
    LEFT_SHORT = "left_short"
    """What was missing was asked for and did not come."""
    RETRIED = "retried"
    APPROVED = "approved"
    UNAPPROVED = "unapproved"
    """The reviews are used up: it goes on, and a person looks at the end."""
    MENDED = "mended"
    CONFLICT = "conflict"
    ASKED = "asked"
    PASSED = "passed"
    ALLOWED = "allowed"
    """A command failed that may."""
    FAILED = "failed"
    GRANTED = "granted"
    REFUSED = "refused"
    GREEN = "green"
    MEND = "mend"
    OTHER_WAY = "other_way"
    """The same failure came back: the next attempt goes about it differently."""
    ANALYSED = "analysed"
    NOT_ANALYSED = "not_analysed"
    """No usable analysis came: the output itself is handed on."""
    MERGED = "merged"
    RESOLVED = "resolved"
    """Both sides of a merge were resolved."""
    RED = "red"
    VANISHED = "vanished"
    """Tests that ran before do not run on the merged tree."""


def decided(
    loop: Loop, verdict: StrEnum, *, findings: Iterable[Finding] = (), attempt: int, budget_left: int
) -> dict[str, Any]:
    """The KEYS of an event's data: `findings` decided, `attempt` counts from 1, `budget_left` more are allowed."""
    return {
        "stage": loop,
        "verdict": verdict,
        "findings": [finding.model_dump(mode="json") for finding in findings],
        "attempt": attempt,
        "budget_left": max(0, budget_left),
    }


MOST_DAYS = 100_000  # above any use; keeps dates in range
MOST_CHARS = 10_000
"""Of a comment: it becomes a part of the architect's prompt."""
MARKDOWN = (".md", ".markdown")
"""Ends of files that hold a task plan as `run --plan` takes it."""
Comment = Annotated[str, Field(max_length=MOST_CHARS)]
Who = Annotated[str, Field(max_length=80)]
PersonsChoice = Literal[Choice.APPROVE, Choice.REJECT, Choice.EDIT, Choice.REPLAN, Choice.CANCEL]


class OrderBody(Value):
    """An order to a sprint or a story."""

    verb: Verb
    comment: Comment = ""
    by: Who = ""
    """Who gives it; else it counts as given over HTTP."""


class AnswerBody(Value):
    """A person's answer to a story's question."""

    choice: PersonsChoice
    comment: Comment = ""
    gate: Annotated[int, Field(ge=0, le=2**31), WHOLE] | None = None
    """Only if this question of the story still stands."""
    plan: str | dict[str, Any] | None = None
    """With `edit`: the plan, as an object, or as a text in YAML or JSON."""
    file: Annotated[str, Field(max_length=400)] = ""
    """With `edit`: name of the file that the text came from; a task plan in Markdown is known by it."""
    force: bool = False
    """With `edit`: also with major findings, if it can be carried out."""
    by: Who = ""


class ReplanBody(Value):
    """The comment for the architect on a story that is to be planned again."""

    comment: Comment = ""
    gate: Annotated[int, Field(ge=0, le=2**31), WHOLE] | None = None
    by: Who = ""


class PruneBody(Value):
    """How to look at the past; what is left out is as the daemon's settings say."""

    dry_run: bool = False
    """Say what would go and how much it frees."""
    days: Annotated[float, Field(gt=0, le=MOST_DAYS)] | None = None
    """In place of `retention.days`; null: never by age."""
