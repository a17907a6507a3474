"""The tests of a story on the tree without the story's change: what passes there too shows nothing about it."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.finding import Severity
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import TestCase, TestReport, TestSuite
from orchestrator.story.fail_before import reason_to_ask, unnoticed
from tests.simulated import report
from tests.story.test_story import A, Stand, codes, provider
from tests.support import suite, suite_text

NAMES = ("test_new", "test_old", "test_kept")
SUITE = TestSuite(
    test_file="tests/test_a.py",
    test_content="",
    test_cases=tuple(TestCase(name=name, criterion=name.removeprefix("test_")) for name in NAMES),
    expected_names=NAMES,
)


FAILED, PASSED, NOT_JUDGED = "failed", "passed", "not judged"


@pytest.mark.parametrize(
    ("before", "hollow", "why"),
    [
        (FAILED, "", ()),
        (FAILED, PASSED, ()),  # it noticed the change: nothing may be what it brought
        (PASSED, "", ("test.passes_before",)),
        (PASSED, FAILED, ("test.passes_before",)),
        (NOT_JUDGED, FAILED, ()),
        (NOT_JUDGED, PASSED, ("test.passes_hollow",)),
        (NOT_JUDGED, NOT_JUDGED, ()),
        ("", "", ()),
    ],
)
def test_a_criterion_is_unnoticed_when_none_of_its_tests_shows_anything(
    before: str, hollow: str, why: tuple[str, ...]
) -> None:
    rows = unnoticed(("new", "untested"), SUITE, report(passed=NAMES), {"test_new": before}, {"test_new": hollow})
    untested = ("untested", ("test.uncovered",))
    assert [(one.row.criterion, one.why) for one in rows] == [*([("new", why)] if why else []), untested]


def test_one_test_that_shows_something_is_enough_and_skipped_ones_show_nothing() -> None:
    cases = tuple(TestCase(name=name, criterion="all") for name in NAMES)
    suite = SUITE.model_copy(update={"test_cases": cases})
    before = {"test_new": PASSED, "test_old": NOT_JUDGED}
    after = report(passed=NAMES)
    skipped = after.cases[2].model_copy(update={"result": "skipped"})
    after = after.model_copy(update={"cases": (*after.cases[:2], skipped)})
    assert unnoticed(("all",), suite, after, before, {"test_old": FAILED}) == ()
    rows = unnoticed(("all",), suite, after, before, {"test_old": PASSED})
    assert rows[0].why == ("test.passes_before", "test.passes_hollow", "test.skipped")
    assert "- all: test_new, test_old, test_kept pass without the story's change as well, or " in reason_to_ask(rows)


def stand_with(folder: Path, *befores: TestReport, **runs: Any) -> Stand:
    """A story with one criterion that its one test stands for."""
    stand = Stand(folder, befores=befores, **runs)
    stand.criteria = (CRITERION,)
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, {"us_1.py": "def value():\n    return 1\n"})
    stand.team.suite(A, LOADABLE if befores else suite_text(A))
    return stand


LOADABLE = "def test_us_1():\n    from us_1 import value\n\n    assert value() == 1\n"
"""A suite that can be loaded without the story's change."""


FIX = {"file": "us_1.py", "function": "value", "issue": "wrong", "fix": "mend"}
CRITERION = "it works"  # what the scripted tester says of its tests
PASSES = report(passed=["test_us_1"])
FAILS = report(failed=["test_us_1"])


async def test_a_criterion_without_such_a_test_is_asked_for_once(tmp_path: Path) -> None:
    stand = stand_with(tmp_path, PASSES, FAILS)
    stronger = LOADABLE + "\n\n# stronger\n"
    stand.team.suite(A, stronger)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1", "suite 2"]
    shown = stand.step.prompts[-1].text
    assert f"{CRITERION}: test_us_1" in shown
    assert stand.workspace.result["tests/test_us_1.py"] == stronger
    assert "test.passes_before" not in codes(outcome)


@pytest.mark.parametrize(
    ("unchanged", "suites"),
    [("nth(-1) returns 2 as before", 1), ("without nth nothing changes", 1), ("nth(-1) returns 2", 2)],
)
async def test_what_stays_as_it_was_is_not_asked_for_beside_what_is_new(
    tmp_path: Path, unchanged: str, suites: int
) -> None:
    names = ("test_new", "test_kept")
    runs = [report(passed=["test_kept"], failed=["test_new"])] * 2
    stand = Stand(tmp_path, stories=[report(passed=names)] * 2, befores=runs)
    stand.criteria = (CRITERION, unchanged)
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, {"us_1.py": "def value():\n    return 1\n"})
    cases = [{"name": "test_new", "criterion": CRITERION}, {"name": "test_kept", "criterion": unchanged}]
    text = "".join(f"{LOADABLE}\n\n".replace("test_us_1", name) for name in names)
    for version in range(2):
        stand.team.say("jordan", A, "suite", {**suite(A, f"{text}N = {version}\n"), "test_cases": cases})
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert len([call for call in stand.asked if call.startswith("suite")]) == suites
    assert ("test.passes_before" in codes(outcome)) == (suites > 1)


async def test_a_criterion_whose_tests_pass_with_empty_functions_is_asked_for_once(tmp_path: Path) -> None:
    """The module is new, so its tests fail without the change whatever they assert."""
    stand = stand_with(tmp_path, hollows=[PASSES, FAILS])
    stronger = suite_text(A) + "\n\n# stronger\n"
    stand.team.suite(A, stronger)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1", "suite 2"]
    assert f"{CRITERION}: test_us_1 pass with functions that return nothing" in stand.step.prompts[-1].text
    assert (outcome.before, outcome.hollow) == ({"test_us_1": "not judged"}, {"test_us_1": "failed"})
    assert "test.passes_hollow" not in codes(outcome)


async def test_an_honest_none_is_advice(tmp_path: Path) -> None:
    stand = stand_with(tmp_path, hollows=[PASSES, PASSES])
    stand.team.suite(A, suite_text(A) + "\n\n# it is still nothing\n")
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    (finding,) = [finding for finding in outcome.findings if finding.code == "test.passes_hollow"]
    assert finding.severity is Severity.MINOR


RUNS = [report(passed=["test_us_1"]), report(failed=["test_us_1"])]


async def test_one_that_does_not_pass_is_a_red_run(tmp_path: Path) -> None:
    stand = stand_with(tmp_path, PASSES, FAILS, stories=RUNS)
    stand.team.suite(A, LOADABLE + "\n\n# stronger\n")
    stand.team.say("jordan", A, "analysis", {"failure_analysis": [FIX]})
    stand.team.deliver(A, 1, {"us_1.py": "def value():\n    return 2\n"})
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.asked[3:] == ["suite 2", "analysis 1", "delivery 2"]
    assert outcome.before == {"test_us_1": "failed"}


async def test_one_that_does_not_pass_in_the_last_attempt_is_put_back(tmp_path: Path) -> None:
    stand = stand_with(tmp_path, PASSES, stories=RUNS)
    wrong = LOADABLE + "\n\n# wrong\n"
    stand.team.suite(A, wrong)
    outcome = await stand.run(await provider(stand.team, tmp_path), test={"max_attempts": 1})
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.workspace.result["tests/test_us_1.py"] == LOADABLE
    assert "test.passes_before" in codes(outcome)
    assert outcome.before == {"test_us_1": "passed"}
