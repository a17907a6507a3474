"""Where plans and test runs go: a table."""

import pytest

from orchestrator.domain.findings import critical, major, minor
from orchestrator.sprint.routing import PlanRoute, TestRoute, route_plan, route_test

WRONG = [major("x.y", "wrong")]


@pytest.mark.parametrize(
    ("findings", "iteration", "route"),
    [
        ([], 1, PlanRoute.APPROVED),
        ([minor("x.y", "small")], 3, PlanRoute.APPROVED),
        (WRONG, 1, PlanRoute.REVISE),
        (WRONG, 2, PlanRoute.REVISE),
        (WRONG, 3, PlanRoute.ESCALATE),
        ([critical("x.y", "bad")], 3, PlanRoute.ESCALATE),
    ],
)
def test_plans(findings: list[object], iteration: int, route: PlanRoute) -> None:
    assert route_plan(findings, iteration, 3) is route  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("green", "attempt", "route"),
    [(True, 1, "merge"), (True, 3, "merge"), (False, 1, "mend"), (False, 2, "mend"), (False, 3, "give_up")],
)
def test_runs(green: bool, attempt: int, route: str) -> None:
    assert route_test(green, attempt, 3) is TestRoute(route)
