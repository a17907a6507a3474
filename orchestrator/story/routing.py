"""Where plans, tasks and runs of tests go: pure functions of what was judged and what remains of the budget."""

from collections.abc import Sequence
from enum import StrEnum

from orchestrator.core.breakdown import PlanValidationResult
from orchestrator.core.delivery import Reviewed
from orchestrator.core.value import Value


class PlanRoute(StrEnum):
    """Where a judged plan goes."""

    APPROVED = "approved"
    REVISE = "revise"
    ESCALATE = "escalate"


def route_plan(result: PlanValidationResult | None, revision_count: int, max_iterations: int) -> PlanRoute:
    """`revision_count` counts the invalid plans so far, this one included: the last of the budget escalates."""
    if result is None or result.valid:
        return PlanRoute.APPROVED
    return PlanRoute.REVISE if revision_count < max_iterations else PlanRoute.ESCALATE


class TestRoute(StrEnum):
    """Where a story goes after a run of its suite."""

    __test__ = False

    MERGE = "merge"
    MEND = "mend"
    GIVE_UP = "give_up"


SAME_FAILURES = 2
"""Times that a failure may come back in a story: after the first another way is tried, the second ends it (C7)."""


def route_test(green: bool, attempt: int, max_attempts: int, repeats: int = 0) -> TestRoute:
    """`attempt` is 1 for the first run; `repeats` counts the runs that failed as an earlier one had."""
    if green:
        return TestRoute.MERGE
    if repeats >= SAME_FAILURES:
        return TestRoute.GIVE_UP
    return TestRoute.MEND if attempt < max_attempts else TestRoute.GIVE_UP


class ReviewRoute(StrEnum):
    """Where a reviewed task goes."""

    NEXT_TASK = "next_task"
    TESTS = "tests"
    DEVELOPER = "developer"


class ReviewStep(Value):
    """What follows a review."""

    route: ReviewRoute
    unapproved: bool = False
    """The task goes on without approval, because its reviews are used up: told as a warning; its story waits for a
    person at the end."""


def all_approve(reviews: Sequence[Reviewed]) -> bool:
    """Whether every reviewer approves; no review at all is no approval."""
    return bool(reviews) and all(review.approved for review in reviews)


def route_review(approved: bool, iteration: int, max_iterations: int, *, is_last: bool) -> ReviewStep:
    """`iteration` counts the reviews done of this task, the current one included; `is_last`: of the story's tasks.

    A task that no review was done of is not approved, whatever is said. One stuck task never holds up the others.
    """
    onward = ReviewRoute.TESTS if is_last else ReviewRoute.NEXT_TASK
    if approved and iteration > 0:
        return ReviewStep(route=onward)
    if iteration < max_iterations:
        return ReviewStep(route=ReviewRoute.DEVELOPER)
    return ReviewStep(route=onward, unapproved=True)
