"""Jordan: suites that satisfy the checks, analyses that can be used."""

import json
from typing import Any

import pytest

from orchestrator.core.action_plan import ActionPlan, Create, Edit, Pair
from orchestrator.core.breakdown import Breakdown, TestToChange
from orchestrator.core.calls.exchange import FailureBrief, OlderTest, PastAttempt, SuiteBrief
from orchestrator.core.finding import Finding
from orchestrator.core.suite import FailureInstruction, TestSuite
from orchestrator.personas.jordan import Jordan
from tests.answers.action_plan_text import render_plan
from tests.personas.desks import STORY, SURFACE, Bench, bench, brief
from tests.simulated import report
from tests.support import breakdown, suite

CONTENT = "from a import A\n\n\ndef test_a():\n    assert A == 1\n"
WANTED = [{"criterion": "A price is shown", "test": "ask for it"}, {"criterion": "In euros", "test": "look at it"}]


def says(value: Any, purpose: str = "suite") -> dict[str, Any]:
    return {"persona": "jordan", "purpose": purpose, "text": value if isinstance(value, str) else json.dumps(value)}


def a_brief(**fields: Any) -> SuiteBrief:
    plan = Breakdown.model_validate(breakdown(STORY, ["a.py"], **fields))
    return SuiteBrief(breakdown=plan, surface=SURFACE, files={"a.py": "A = 1\n"})


async def agrees(_: TestSuite) -> list[Finding]:
    return []


async def test_a_suite_is_accepted_with_its_names_and_sees_the_real_files() -> None:
    at = bench(says(suite(STORY, CONTENT)))
    written = await Jordan(at.desk, brief()).suite(a_brief(), agrees)
    assert written.suite is not None
    assert written.suite.expected_names == ("test_a",)
    assert "### a.py" in at.step.prompts[0].text
    assert "smoke" in at.step.prompts[0].text


async def test_acceptance_tests_are_numbered_with_what_they_show() -> None:
    at = bench(*[says(suite(STORY, CONTENT))] * 3)
    await Jordan(at.desk, brief()).suite(a_brief(acceptance_tests=WANTED), agrees)
    assert "2. In euros\n   Test: look at it" in at.step.prompts[0].text


async def analysed(at: Bench) -> Any:
    instruction = FailureInstruction(file="a.py", issue="i", fix="make it 7")
    told = FailureBrief(
        surface=SURFACE,
        suite=TestSuite(test_file="tests/test_a.py", test_content=CONTENT, expected_names=("test_a",)),
        report=report(failed=["test_a"], message="assert 0 == 1"),
        files={"a.py": "A = 0\n"},
        task_files={"T-US-1-01": ("a.py",)},
        history=(PastAttempt(report=report(failed=["test_z"]), instructions=(instruction,)),),
        tests_to_change=(TestToChange(file="tests/test_old.py", reason="A is 7 now"),),
    )
    return await Jordan(at.desk, brief()).analyse(told)


async def test_the_analysis_knows_which_older_tests_the_plan_changes() -> None:
    at = bench(says({"failure_analysis": [{"file": "a.py", "issue": "A is 0", "fix": "make it 1"}]}, "analysis"))
    await analysed(at)
    assert "changes on purpose\n\n- tests/test_old.py: A is 7 now" in at.step.prompts[0].text


async def test_an_analysis_that_is_none_is_empty_and_says_why() -> None:
    at = bench(says("who knows", "analysis"), says([], "analysis"), says({"x": 1}, "analysis"))
    result = await analysed(at)
    assert result.instructions == ()
    assert result.findings
    assert [one for one in at.asked if "analysis" in one] == ["analysis 1", "analysis 2", "analysis 3"]


OLDER = "from a import A\n\n\ndef test_old():\n    assert A == 0\n"


@pytest.mark.parametrize(
    ("path", "find", "changed"),
    [
        ("tests/test_old.py", "    assert A == 0\n", OLDER.replace("0", "1")),
        ("tests/test_old.py", "    assert A == 7\n", None),  # not there
        ("tests/test_other.py", "    assert A == 0\n", None),  # not given
    ],
)
async def test_an_older_test_is_changed_by_an_edit(path: str, find: str, changed: str | None) -> None:
    plan = ActionPlan(
        title="Tests",
        rationale="One.",
        lists={"test cases": ("`test_a`: A price is shown",)},
        actions=(
            Create(path="tests/test_us_1.py", content=CONTENT),
            Edit(path=path, pairs=(Pair(find=find, replace=find.replace("0", "1")),)),
        ),
    )
    at = bench(says(render_plan(plan)), says(render_plan(plan)), says(render_plan(plan)))
    older = (OlderTest(path="tests/test_old.py", text=OLDER, reason="A is 1 now"),)
    written = await Jordan(at.desk, brief()).suite(a_brief().model_copy(update={"older": older}), agrees)
    if changed is None:
        assert written.suite is None
    else:
        assert written.suite is not None
        assert [(one.path, one.content) for one in written.suite.changed] == [("tests/test_old.py", changed)]
    assert "one `EDIT` more" in at.step.prompts[0].text
