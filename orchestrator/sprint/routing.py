"""Routing: pure functions of what was judged and what remains of the budget."""

from enum import StrEnum

from orchestrator.domain.plan_result import PlanValidationResult


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
