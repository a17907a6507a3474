"""Where plans, test runs and reviewed tasks go: tables."""

import pytest

from orchestrator.core.breakdown import PlanValidationResult
from orchestrator.core.delivery import Review, Reviewed, Verdict
from orchestrator.core.finding import Finding, critical, major, minor
from orchestrator.story.routing import (
    PlanRoute,
    ReviewRoute,
    TestRoute,
    all_approve,
    route_plan,
    route_red,
    route_review,
)

WRONG = [major("x.y", "wrong")]


@pytest.mark.parametrize(
    ("findings", "revision_count", "route"),
    [
        ([], 0, PlanRoute.VALID),
        ([minor("x.y", "small")], 3, PlanRoute.VALID),
        (WRONG, 1, PlanRoute.REVISE),
        (WRONG, 2, PlanRoute.REVISE),
        (WRONG, 3, PlanRoute.ESCALATE),
        ([critical("x.y", "bad")], 3, PlanRoute.ESCALATE),
    ],
)
def test_plans(findings: list[Finding], revision_count: int, route: PlanRoute) -> None:
    assert route_plan(PlanValidationResult.of(findings).valid, revision_count, 3) is route


@pytest.mark.parametrize(
    ("findings", "severity"),
    [
        ([], "none"),
        ([minor("x.y", "small"), minor("x.z", "small")], "none"),
        (WRONG, "major"),
        ([*WRONG, minor("x.y", "small")], "major"),
        ([*WRONG, *WRONG], "critical"),
        ([critical("x.y", "bad")], "critical"),
    ],
)
def test_how_much_is_wrong_with_a_plan(findings: list[Finding], severity: str) -> None:
    result = PlanValidationResult.of(findings)
    assert result.severity == severity
    assert result.valid is (severity == "none")
    assert all(note.severity == "minor" for note in result.notes)
    assert sorted(map(str, result.findings)) == sorted(map(str, findings))


@pytest.mark.parametrize(
    ("attempt", "repeats", "route"),
    [(1, 0, "mend"), (2, 0, "mend"), (3, 0, "give_up"), (1, 1, "mend"), (1, 2, "give_up")],
)
def test_red_runs(attempt: int, repeats: int, route: str) -> None:
    assert route_red(attempt, 3, repeats) is TestRoute(route)


@pytest.mark.parametrize(
    ("approved", "iteration", "route"),
    [
        (True, 1, "approved"),
        (True, 5, "approved"),
        (True, 6, "approved"),
        (False, 1, "developer"),
        (False, 4, "developer"),
        (False, 5, "unapproved"),
        (False, 6, "unapproved"),
        (True, 0, "developer"),
        (False, 0, "developer"),
    ],
)
def test_reviewed_tasks(approved: bool, iteration: int, route: str) -> None:
    assert route_review(approved, iteration, 5) is ReviewRoute(route)


def test_all_reviewers_must_approve_and_one_must_have_spoken() -> None:
    yes = Reviewed(by="reviewer", review=Review(verdict=Verdict.YES))
    no = Reviewed(by="other", review=Review(verdict=Verdict.NO))
    assert all_approve([yes, yes])
    assert not all_approve([yes, no])
    assert not all_approve([])
    assert not all_approve([yes.model_copy(update={"unseen": ("a.py",)})])
    assert not all_approve([yes.model_copy(update={"findings": (major("review.x", "bad"),)})])
    assert all_approve([yes.model_copy(update={"findings": (minor("review.x", "small"),)})])
