"""Tests that are written again: the story's own suite for a reason, and older tests that the plan lists."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import RunProblem, TestReport
from orchestrator.reports.markdown import rewritten_tests
from orchestrator.reports.report import rewritten
from tests.story.test_story import RED, A, Stand, codes, good, provider
from tests.support import suite, suite_text

OLD = "tests/test_old.py"
BEFORE = "from old import old\n\n\ndef test_old():\n    assert old() == 1\n\n\ndef test_kept():\n    assert old() > 0\n"
AFTER = BEFORE.replace("== 1", "== 2")
LISTED = [{"file": OLD, "reason": "the story makes it two"}]
BASE = {OLD: BEFORE, "old.py": "def old():\n    return 1\n"}


def fault(reason: str = "test_us_1 wants 2, the criterion says 1", *fixes: str) -> dict[str, Any]:
    told = [{"file": file, "issue": "i", "fix": "f"} for file in fixes]
    return {"failure_analysis": told, "suite_fault": {"reason": reason}}


def planned(stand: Stand, **fields: Any) -> None:
    stand.team.plan(A, ["us_1.py"], **fields)
    for _ in range(3):
        stand.team.deliver(A, 1, good())


async def test_a_wrong_suite_is_written_anew_once_and_both_versions_are_kept(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[RED])
    planned(stand)
    stand.team.suite(A, suite_text(A, 2))
    stand.team.say("jordan", A, "analysis", fault())
    stand.team.suite(A, suite_text(A, 1))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert (outcome.status, outcome.attempts) == (StoryStatus.DONE, 2), outcome.findings
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1", "analysis 1", "suite 2"]
    assert stand.workspace.result["tests/test_us_1.py"] == suite_text(A, 1)
    shown = stand.step.prompts[-1].text
    assert "## Your suite so far, and why it is asked for again" in shown
    assert "the criterion says 1" in shown
    assert suite_text(A, 2) in shown
    (changed,) = rewritten(stand.sink.events)
    assert (changed.file, changed.before, changed.after) == (
        "tests/test_us_1.py", suite_text(A, 2), suite_text(A, 1),
    )  # fmt: skip
    told = rewritten_tests([changed])
    assert "-    assert value() == 2\n+    assert value() == 1" in told
    assert "the criterion says 1" in told


async def test_it_is_never_written_a_third_time_nor_without_a_reason(tmp_path: Path) -> None:
    other = TestReport(problem=RunProblem.TIMEOUT)
    stand = Stand(tmp_path, stories=[RED, other, RED])
    planned(stand)
    for value in (2, 3, 4):
        stand.team.suite(A, suite_text(A, value))
        stand.team.say("jordan", A, "analysis", fault("wrong again", "us_1.py"))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert [one for one in stand.asked if one.startswith("suite")] == ["suite 1", "suite 2"]
    again = [one.message for one in outcome.findings if one.code == "test.suite_fault"]
    assert again == ["the tester calls tests/test_us_1.py wrong again, and it is written again only once: wrong again"]
    assert [one for one in stand.asked if one.startswith("delivery")] == ["delivery 1", "delivery 2", "delivery 3"]
    stand = Stand(tmp_path, stories=[RED])
    planned(stand)
    stand.team.suite(A, suite_text(A))
    stand.team.say("jordan", A, "analysis", fault(""))
    stand.team.analyse(A, ("us_1.py", "return 1"))
    assert (await stand.run(await provider(stand.team, tmp_path))).status is StoryStatus.DONE
    assert stand.asked[3:] == ["analysis 1", "analysis 2", "delivery 2"], "no reason is no answer"


@pytest.mark.parametrize("again", ["the same", "none"])
async def test_without_a_better_one_the_old_suite_stays_and_that_is_said(tmp_path: Path, again: str) -> None:
    stand = Stand(tmp_path, stories=[RED])
    planned(stand)
    stand.team.suite(A, suite_text(A))
    stand.team.say("jordan", A, "analysis", fault())
    for _ in range(3):
        stand.team.suite(A, suite_text(A) if again == "the same" else "VALUE = 1\n")
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert "test.suite_fault" in codes(outcome)
    assert stand.sink.named("suite_replaced") == []
    assert stand.asked[-1] == "delivery 2", "the same tests of the same code would fail again"


@pytest.mark.parametrize("file", ["tests/test_us_1.py", OLD])
async def test_older_tests_that_a_wrong_suite_was_added_to_stay(tmp_path: Path, file: str) -> None:
    """The new one comes in a file of its own, or in the same file."""
    stand = Stand(tmp_path, stories=[RED], base=BASE)
    planned(stand)
    wrong = f"from us_1 import value\n{BEFORE}\n\ndef test_us_1():\n    assert value() == 2\n"
    stand.team.suite(A, wrong, OLD)
    stand.team.say("jordan", A, "analysis", fault())
    stand.team.suite(A, suite_text(A) if file != OLD else wrong.replace("value() == 2", "value() == 1"), file)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert (outcome.status, stand.asked[-1]) == (StoryStatus.DONE, "suite 2"), outcome.findings
    assert BEFORE in stand.workspace.result[OLD]
    assert "value() == 2" not in stand.workspace.result[OLD]


def plan_of(*files: tuple[str, str]) -> str:
    made = "\n---\n".join(
        f"\n### `CREATE`\n\n- **File Path:** [{path}](/{path})\n- **Overwrite:** true\n\n```python\n{text}```\n"
        for path, text in files
    )
    cases = "## Test Cases\n\n- `test_us_1`: it works\n"
    return f"# Tests\n\n## Rationale\n\nBoth.\n\n{cases}\n## Action Plan\n{made}"


@pytest.mark.parametrize("form", ["json", "plan"])
async def test_a_listed_older_test_is_rewritten_by_the_tester_and_shown(tmp_path: Path, form: str) -> None:
    stand = Stand(tmp_path, base=BASE)
    planned(stand, tests_to_change=LISTED)
    own = suite_text(A)
    as_json = {**suite(A, own), "changed_tests": [{"path": OLD, "content": AFTER}]}
    answer = as_json if form == "json" else plan_of(("tests/test_us_1.py", own), (OLD, AFTER))
    stand.team.say("jordan", A, "suite", answer)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.workspace.result[OLD] == AFTER
    asked = stand.step.prompts[2].text
    assert f"{OLD}: the story makes it two" in asked
    assert BEFORE in asked
    assert stand.runner.ran[0] == ("tests/test_us_1.py", OLD)
    (told,) = stand.sink.named("older_test_rewritten")
    assert told.message == f"the tester rewrote {OLD} (2 tests): the story makes it two"
    (changed,) = rewritten(stand.sink.events)
    assert (changed.file, changed.reason) == (OLD, "the story makes it two")
    assert "-    assert old() == 1\n+    assert old() == 2" in rewritten_tests([changed])


REFUSED = {
    "another test": ([{"path": "tests/test_other.py", "content": AFTER}], "suite.changed_test"),
    "code": ([{"path": "old.py", "content": "def old():\n    return 2\n"}], "suite.changed_test"),
    "a conftest": ([{"path": "conftest.py", "content": "x = 1\n"}], "suite.changed_test"),
    "nothing": ([{"path": OLD, "content": " "}], "suite.changed_test"),
    "no entry": (["tests/test_old.py"], "suite.changed_test"),
    "broken": ([{"path": OLD, "content": "def test_old(:\n"}], "suite.syntax"),
    "without tests": ([{"path": OLD, "content": "OLD = 1\n"}], "suite.no_tests"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_may_not_be_changed_goes_back(tmp_path: Path, name: str) -> None:
    changed, code = REFUSED[name]
    files = {**BASE, "tests/test_other.py": BEFORE}
    stand = Stand(tmp_path, base=files)
    planned(stand, tests_to_change=[*LISTED, {"file": "old.py", "reason": "x"}, {"file": "conftest.py", "reason": "x"}])
    stand.team.say("jordan", A, "suite", {**suite(A, suite_text(A)), "changed_tests": changed})
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    (sent_back,) = stand.sink.named("answer_sent_back")
    assert sent_back.data["findings"][0]["code"].startswith(code)
    assert {path: stand.workspace.result[path] for path in files} == files


async def test_without_a_list_no_older_test_is_touched(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base=BASE)
    planned(stand)
    stand.team.say("jordan", A, "suite", plan_of(("tests/test_us_1.py", suite_text(A)), (OLD, AFTER)))
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.workspace.result[OLD] == BEFORE
    assert "suite.shape" in [one["code"] for one in stand.sink.named("answer_sent_back")[0].data["findings"]]
