"""Where plans, tasks and runs of tests go: pure functions of what was judged and what remains of the budget."""

from collections.abc import Sequence
from enum import StrEnum

from orchestrator.core.delivery import Reviewed


class PlanRoute(StrEnum):
    """Where a judged plan goes."""

    APPROVED = "approved"
    REVISE = "revise"
    ESCALATE = "escalate"


def route_plan(valid: bool, revision_count: int, max_iterations: int) -> PlanRoute:
    """`revision_count` counts the invalid plans so far, this one included: the last of the budget escalates."""
    if valid:
        return PlanRoute.APPROVED
    return PlanRoute.REVISE if revision_count < max_iterations else PlanRoute.ESCALATE


class TestRoute(StrEnum):
    """Where a story goes after a red run of its suite."""

    __test__ = False

    MEND = "mend"
    GIVE_UP = "give_up"


SAME_FAILURES = 2
"""Times that a failure may come back in a story: after the first another way is tried, the second ends it (C7)."""


def route_red(attempt: int, max_attempts: int, repeats: int = 0) -> TestRoute:
    """`attempt` is 1 for the first run; `repeats` counts the runs that failed as an earlier one had."""
    return TestRoute.MEND if attempt < max_attempts and repeats < SAME_FAILURES else TestRoute.GIVE_UP


class ReviewRoute(StrEnum):
    """Where a reviewed task goes."""

    APPROVED = "approved"
    DEVELOPER = "developer"
    UNAPPROVED = "unapproved"
    """On without approval, because its reviews are used up; its story waits for a person at the end."""


def all_approve(reviews: Sequence[Reviewed]) -> bool:
    """Returns whether every reviewer approves; no review at all is no approval."""
    return bool(reviews) and all(review.approved for review in reviews)


def route_review(approved: bool, iteration: int, max_iterations: int) -> ReviewRoute:
    """`iteration` counts the reviews done of this task, the current one included.

    A task that no review was done of is not approved, whatever is said. One stuck task never holds up the others.
    """
    if approved and iteration > 0:
        return ReviewRoute.APPROVED
    return ReviewRoute.DEVELOPER if iteration < max_iterations else ReviewRoute.UNAPPROVED
