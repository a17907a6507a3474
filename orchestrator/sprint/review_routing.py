"""Where a task goes after its review: pure functions of what was said and what remains of the budget."""

from collections.abc import Sequence
from enum import StrEnum

from orchestrator.domain.base import Value
from orchestrator.domain.review import Reviewed


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
