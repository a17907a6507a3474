"""Where plans and test runs go: a table."""

import pytest

from orchestrator.core.breakdown import PlanValidationResult
from orchestrator.core.finding import Finding, critical, major, minor
from orchestrator.story.routing import PlanRoute, TestRoute, route_plan, route_test

WRONG = [major("x.y", "wrong")]


@pytest.mark.parametrize(
    ("findings", "revision_count", "route"),
    [
        (None, 0, PlanRoute.APPROVED),
        ([], 0, PlanRoute.APPROVED),
        ([minor("x.y", "small")], 3, PlanRoute.APPROVED),
        (WRONG, 1, PlanRoute.REVISE),
        (WRONG, 2, PlanRoute.REVISE),
        (WRONG, 3, PlanRoute.ESCALATE),
        ([critical("x.y", "bad")], 3, PlanRoute.ESCALATE),
    ],
)
def test_plans(findings: list[Finding] | None, revision_count: int, route: PlanRoute) -> None:
    result = None if findings is None else PlanValidationResult.of(findings)
    assert route_plan(result, revision_count, 3) is route


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
    ("green", "attempt", "route"),
    [(True, 1, "merge"), (True, 3, "merge"), (False, 1, "mend"), (False, 2, "mend"), (False, 3, "give_up")],
)
def test_runs(green: bool, attempt: int, route: str) -> None:
    assert route_test(green, attempt, 3) is TestRoute(route)
