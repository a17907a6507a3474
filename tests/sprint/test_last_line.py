"""The line that ends a story: its cause, what it cost, and what helps (values in, values out)."""

from orchestrator.core.suite import RunProblem, TestReport
from orchestrator.story.context import cause_of, red_finding, summary
from tests.simulated import report

NO_HTTPX = """\
tests/test_us_1.py:3: in <module>
    from fastapi.testclient import TestClient
E   ModuleNotFoundError: No module named 'httpx'

The above exception was the direct cause of the following exception:

E   RuntimeError: The starlette.testclient module requires the httpx package.
"""


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
