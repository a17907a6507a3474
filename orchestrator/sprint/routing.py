"""Routing: pure functions of what was judged and what remains of the budget (spec 3)."""

from collections.abc import Sequence
from enum import StrEnum

from orchestrator.domain.findings import Finding, blocking


class PlanRoute(StrEnum):
    """Where a judged plan goes."""

    APPROVED = "approved"
    REVISE = "revise"
    ESCALATE = "escalate"


def route_plan(findings: Sequence[Finding], iteration: int, max_iterations: int) -> PlanRoute:
    """`iteration` is 1 for the first plan judged; the last invalid plan of the budget escalates."""
    if not blocking(findings):
        return PlanRoute.APPROVED
    return PlanRoute.REVISE if iteration < max_iterations else PlanRoute.ESCALATE


class TestRoute(StrEnum):
    """Where a story goes after a run of its suite."""

    __test__ = False

    MERGE = "merge"
    MEND = "mend"
    GIVE_UP = "give_up"


def route_test(green: bool, attempt: int, max_attempts: int) -> TestRoute:
    """`attempt` is 1 for the first run."""
    if green:
        return TestRoute.MERGE
    return TestRoute.MEND if attempt < max_attempts else TestRoute.GIVE_UP
