"""The human gate: what a person is asked, what can be answered, and the one answer that counts."""

from datetime import datetime
from enum import StrEnum

from orchestrator.domain.base import Value
from orchestrator.domain.breakdown import ArchitecturalConflict, Breakdown
from orchestrator.domain.findings import Finding

GATE_OPENED, GATE_ANSWERED, GATE_SETTLED = "gate_opened", "gate_answered", "gate_settled"
"""Events: a story asks (data.gate: its Gate), somebody answers (data.answer: the GateAnswer), the story goes on."""
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
