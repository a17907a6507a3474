"""Routes plans, tasks and test runs: pure functions of judgements and remaining budgets."""

from collections.abc import Sequence
from enum import StrEnum

from orchestrator.core.delivery import Reviewed


class PlanRoute(StrEnum):
    """Next step of a judged plan."""

    VALID = "valid"
    """It satisfies the checks; an older log says `approved`, although nobody had approved it."""
    REVISE = "revise"
    ESCALATE = "escalate"


def route_plan(valid: bool, revision_count: int, max_iterations: int) -> PlanRoute:
    """Routes a plan. `revision_count` counts invalid plans, this one included: the last of the budget escalates."""
    if valid:
        return PlanRoute.VALID
    return PlanRoute.REVISE if revision_count < max_iterations else PlanRoute.ESCALATE


class TestRoute(StrEnum):
    """Next step of a story after a red run of its suite."""

    __test__ = False

    MEND = "mend"
    GIVE_UP = "give_up"


SAME_FAILURES = 2
"""How often a failure may recur in a story: after the first time another way is tried, the second ends it (C7)."""


def route_red(attempt: int, max_attempts: int, repeats: int = 0) -> TestRoute:
    """Routes a red run. `attempt` is 1 for the first run; `repeats` counts the runs that failed like an earlier one."""
    return TestRoute.MEND if attempt < max_attempts and repeats < SAME_FAILURES else TestRoute.GIVE_UP


class ReviewRoute(StrEnum):
    """Next step of a reviewed task."""

    APPROVED = "approved"
    DEVELOPER = "developer"
    UNAPPROVED = "unapproved"
    """Continues without approval because its reviews are used up; its story waits for a person at the end."""


def all_approve(reviews: Sequence[Reviewed]) -> bool:
    """Returns whether every reviewer approves; False without a review."""
    return bool(reviews) and all(review.approved for review in reviews)


def route_review(approved: bool, iteration: int, max_iterations: int) -> ReviewRoute:
    """Routes a reviewed task. `iteration` counts its reviews, the current one included.

    A task without a review is never approved. One stuck task never holds up the others.
    """
    if approved and iteration > 0:
        return ReviewRoute.APPROVED
    return ReviewRoute.DEVELOPER if iteration < max_iterations else ReviewRoute.UNAPPROVED
