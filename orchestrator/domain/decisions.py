"""What every event about a decision tells in the same words: which loop, what it decided, why, and what is left."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from orchestrator.domain.findings import Finding

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
    """Decisions for which no other enum has a word (PlanRoute, Choice and TaskStatus have theirs)."""

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
    """Both sides of a merge were brought together."""
    NOT_RESOLVED = "not_resolved"
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
