"""Where a reviewed task goes: a table."""

import pytest

from orchestrator.core.delivery import Review, Reviewed, Verdict
from orchestrator.core.finding import major, minor
from orchestrator.story.routing import ReviewRoute, ReviewStep, all_approve, route_review


@pytest.mark.parametrize(
    ("approved", "iteration", "is_last", "route", "unapproved"),
    [
        (True, 1, False, "next_task", False),
        (True, 1, True, "tests", False),
        (True, 5, False, "next_task", False),
        (True, 5, True, "tests", False),
        (True, 6, True, "tests", False),
        (False, 1, False, "developer", False),
        (False, 1, True, "developer", False),
        (False, 4, False, "developer", False),
        (False, 5, False, "next_task", True),
        (False, 5, True, "tests", True),
        (False, 6, False, "next_task", True),
        (True, 0, False, "developer", False),
        (False, 0, True, "developer", False),
    ],
)
def test_after_a_review(approved: bool, iteration: int, is_last: bool, route: str, unapproved: bool) -> None:
    step = route_review(approved, iteration, 5, is_last=is_last)
    assert step == ReviewStep(route=ReviewRoute(route), unapproved=unapproved)


def test_every_loop_of_reviews_ends_and_goes_on() -> None:
    for most in range(1, 7):
        for is_last in (False, True):
            routes = [route_review(False, done, most, is_last=is_last).route for done in range(1, most + 1)]
            assert routes[:-1] == [ReviewRoute.DEVELOPER] * (most - 1)
            assert routes[-1] is not ReviewRoute.DEVELOPER


def test_all_reviewers_must_approve_and_one_must_have_spoken() -> None:
    yes = Reviewed(by="reviewer", review=Review(verdict=Verdict.YES))
    no = Reviewed(by="other", review=Review(verdict=Verdict.NO))
    assert all_approve([yes, yes])
    assert not all_approve([yes, no])
    assert not all_approve([])
    assert not all_approve([yes.model_copy(update={"unseen": ("a.py",)})])
    assert not all_approve([yes.model_copy(update={"findings": (major("review.x", "bad"),)})])
    assert all_approve([yes.model_copy(update={"findings": (minor("review.x", "small"),)})])
