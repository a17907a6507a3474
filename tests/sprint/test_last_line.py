"""The line that ends a story: its cause, what it cost, and what helps (values in, values out)."""

import pytest

from orchestrator.core.finding import Finding, decisive, major, minor
from orchestrator.core.sprint import StoryOutcome, StoryStatus
from orchestrator.core.suite import RunProblem, TestReport
from orchestrator.sprint.budgets import Spending
from orchestrator.story.context import cause_of, red_finding, summary
from tests.reports.test_history import turn
from tests.simulated import report
from tests.sprint.test_supervisor import Play

NO_HTTPX = """\
tests/test_us_1.py:3: in <module>
    from fastapi.testclient import TestClient
E   ModuleNotFoundError: No module named 'httpx'

The above exception was the direct cause of the following exception:

E   RuntimeError: The starlette.testclient module requires the httpx package.
"""
ENVIRONMENT = major(
    "environment.no_program", "this machine has no program `git`", fix="install it, then `reset` the story"
)
RED = major("test.failed", "after 3 attempts: 1 passed, 2 failed", fix="see `show`")
UNAPPROVED = major("review.unapproved", "T-A-01 was not approved in 5 reviews")
ENDS: list[tuple[list[Finding], Finding | None]] = [
    ([], None),
    ([minor("a.b", "advice")], minor("a.b", "advice")),
    ([RED, UNAPPROVED], RED),
    ([RED, ENVIRONMENT, UNAPPROVED], ENVIRONMENT),
    ([UNAPPROVED], UNAPPROVED),
]


@pytest.mark.parametrize(("findings", "first"), ENDS)
def test_the_cause_goes_before_what_follows_from_it(findings: list[Finding], first: Finding | None) -> None:
    assert decisive(findings) == first


def test_a_red_run_names_what_was_raised_and_few_tests() -> None:
    names = tuple(f"test_of_a_long_name_{number}" for number in range(11))
    lost = TestReport(problem=RunProblem.MISSING_NAMES, missing_names=names, output=NO_HTTPX)
    assert summary(lost) == (
        "expected tests did not run: test_of_a_long_name_0, test_of_a_long_name_1, test_of_a_long_name_2 and 8 more"
    )
    assert cause_of(lost) == "ModuleNotFoundError: No module named 'httpx'"
    assert red_finding(lost, 2).message.endswith(f"and 8 more; {cause_of(lost)}")
    three = report(failed=["a", "b", "c"], message="E   AssertionError: assert 2 == 1\nus_1.py:2: AssertionError")
    assert cause_of(three) == "AssertionError: assert 2 == 1 (3 tests)"
    bare = report(
        failed=["a"], message="    def test_a():\n>       assert f() == 2\nE       assert 4 == 2\nE        +  where 4"
    )
    assert cause_of(bare) == "assert 4 == 2"
    for said in ("TypeError [ERR_X]: boom", "Error: Cannot find module './cart'"):
        node = TestReport(problem=RunProblem.MISSING_NAMES, output=f"{said}\n    at a.js:1\n")
        assert cause_of(node) == said
    assert cause_of(TestReport(problem=RunProblem.NO_TESTS, output="nothing to say")) == ""


async def test_the_line_names_cause_cost_and_what_helps() -> None:
    sprint = Play({"A": ()}, {"A": StoryOutcome(id="A", status=StoryStatus.FAILED, findings=(RED, ENVIRONMENT))})
    spending = Spending([turn("SP-001/A:1"), turn("SP-001/A:2", cost=0.25)])
    sprint.spent = spending.of
    await sprint.run()
    (line,) = [event.message for event in sprint.sink.events if event.name == "story_finished"]
    assert line == (
        "A is failed: this machine has no program `git`; it cost 2 calls and 0.75 USD; "
        "install it, then `reset` the story"
    )
    assert spending.of("B") == ""
