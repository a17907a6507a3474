"""A story's attempts: what comes back, what is flaky, what breaks older tests, what lies in files of no task."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.command import Verdict
from orchestrator.core.delivery import CommitNote, FileChange
from orchestrator.core.event import Level
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import CaseResult, ReportedCase, RunProblem, TestReport
from orchestrator.story.context import failure_text
from tests.memory_workspace import MemoryWorkspace
from tests.simulated import SimulatedRunner
from tests.story.test_story import OTHER, RED, A, Stand, codes, good, provider
from tests.support import suite, suite_text


def mended(stand: Stand, *values: int, fix: str = "us_1.py", told: str = "return 1") -> None:
    """A plan with one file, delivered with these values, one after the other."""
    stand.team.plan(A, ["us_1.py"])
    for value in values:
        stand.team.deliver(A, 1, good(value=value))
        stand.team.analyse(A, (fix, told))
    stand.team.suite(A, suite_text(A))


def of(name: str, result: CaseResult, file: str = "tests/test_us_1.py") -> ReportedCase:
    return ReportedCase(name=name, id=f"{file.removesuffix('.py').replace('/', '.')}::{name}", file=file, result=result)


async def told(stand: Stand, folder: Path, **policies: Any) -> tuple[Any, list[str]]:
    outcome = await stand.run(await provider(stand.team, folder), **policies)
    return outcome, [event.data["verdict"] for event in stand.sink.named("failure_repeated")]


async def test_the_same_failure_changes_the_way_once_and_ends_the_attempts_then(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[RED] * 9)
    mended(stand, *range(2, 8))
    outcome, repeated = await told(stand, tmp_path, test={"max_attempts": 6}, stronger=["alex"])
    assert (outcome.status, outcome.attempts) == (StoryStatus.NEEDS_ATTENTION, 3)
    assert repeated == [Verdict.OTHER_WAY, Verdict.GIVE_UP]
    assert codes(outcome) >= {"test.failed", "test.same_failure"}
    (finding,) = [one for one in outcome.findings if one.code == "test.same_failure"]
    assert "3 times" in finding.message
    assert finding.message == "the same failure 3 times: suite::test_us_1"
    first, second, third = [one for one in stand.step.prompts if one.key.purpose == "delivery"]
    assert [one.name for one in (first, second, third)] == [*["developer/delivery_plan"] * 2, "developer/delivery"]
    assert [one.stronger for one in (first, second, third)] == [False, False, True]
    assert ["The same failure came back" in one.text for one in (first, second, third)] == [False, False, True]
    assert "us_1.py: assert 2 == 1" in third.text
    assert '## Earlier attempts\n\n<data of="history">\n### Attempt 1' in third.text
    assert "Earlier attempts" not in second.text
    analyses = [one for one in stand.step.prompts if one.key.purpose == "analysis"]
    assert ["### Attempt 1" in one.text for one in analyses] == [False, True]
    assert stand.sink.named("failure_repeated")[1].data["budget_left"] == 0


FAILED = TestReport(cases=(of("test_us_1", CaseResult.FAILED), of("test_b", CaseResult.PASSED)), exit_code=1)
PASSED = TestReport(cases=(of("test_us_1", CaseResult.PASSED),), exit_code=0)


async def test_a_test_that_passes_when_its_run_is_repeated_is_flaky_and_told(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[FAILED, PASSED])
    mended(stand, 2)
    outcome, _ = await told(stand, tmp_path)
    assert (outcome.status, outcome.attempts) == (StoryStatus.DONE, 1)
    (finding,) = [one for one in outcome.findings if one.code == "test.flaky"]
    assert "tests.test_us_1::test_us_1" in finding.message
    assert outcome.tests.passed == 2
    (event,) = stand.sink.named("tests_finished")
    assert event.data["flaky"] == ["tests.test_us_1::test_us_1"]
    assert "2 passed, 1 of them flaky, 0 failed" in event.message
    assert event.level is Level.WARN
    assert stand.runner.alone[:2] == [(), ()], "the same run"


@pytest.mark.parametrize(
    ("first", "second", "runs"),
    [
        (FAILED, FAILED, 3),
        (FAILED, TestReport(problem=RunProblem.TIMEOUT), 3),
        (TestReport(problem=RunProblem.NO_REPORT, cases=FAILED.cases), PASSED, 1),
        (TestReport(problem=RunProblem.MISSING_NAMES, cases=FAILED.cases), PASSED, 1),
        (RED, PASSED, 1),
    ],
    ids=["red again", "no second result", "no report", "names missing", "no file known"],
)
async def test_what_is_not_flaky(tmp_path: Path, first: TestReport, second: TestReport, runs: int) -> None:
    stand = Stand(tmp_path, stories=[first, second])
    mended(stand, 2)
    outcome, _ = await told(stand, tmp_path, test={"max_attempts": 1})
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert "test.flaky" not in codes(outcome)
    assert len(stand.runner.ran) == runs


OLD = "tests/test_old.py"
BROKEN = TestReport(
    cases=(of("test_us_1", CaseResult.PASSED), of("test_old", CaseResult.FAILED, OLD)), output="us_1.py broke it"
)
BASE = TestReport(cases=(of("test_old", CaseResult.PASSED, OLD),))
BAD = of("test_bad", CaseResult.FAILED, OLD)
WHOLE = TestReport(cases=(of("test_us_1", CaseResult.PASSED), of("test_old", CaseResult.PASSED, OLD)))


async def test_a_story_that_breaks_older_tests_hears_of_it_and_mends_it_before_the_merge(tmp_path: Path) -> None:
    wholes = [BROKEN, BASE, *[BROKEN] * 5, WHOLE, BASE]
    stand = Stand(tmp_path, base={OLD: "def test_old(): ..."}, wholes=wholes)
    mended(stand, 2, 1)
    outcome, _ = await told(stand, tmp_path)
    assert (outcome.status, outcome.attempts) == (StoryStatus.DONE, 2), outcome.findings
    (event,) = stand.sink.named("older_tests_failed")
    assert (event.data["verdict"], event.data["attempt"], event.data["budget_left"]) == ("mend", 1, 2)
    assert event.data["findings"][0]["code"] == "test.regression"
    (analysis,) = [one for one in stand.step.prompts if one.key.purpose == "analysis"]
    assert "## Older tests that fail now" in analysis.text
    assert "def test_old(): ..." in analysis.text


OLD_TEXT = "def test_old():\n    assert SIZE < 3000\n"
NEW_TEXT = OLD_TEXT.replace("3000", "3200")
LIMIT = {"file": OLD, "reason": "it expects less than 3000 bytes; the story adds to them, it has to expect 3200"}


AS_JSON = json.dumps({**suite(A, suite_text(A)), "changed_tests": [{"path": OLD, "content": NEW_TEXT}]})
AS_PLAN = f"""# Raise the limit

## Rationale

The story adds to it.

## Action Plan

### `EDIT`

- **File Path:** [{OLD}](/{OLD})

#### FIND:

```
3000
```

#### REPLACE:

```
3200
```
"""
AS_FILES = f"`{OLD}`\n\n```python\n{NEW_TEXT}```\n"


@pytest.mark.parametrize(
    ("files", "answer"),
    [([OLD], AS_JSON), ([OLD], AS_PLAN), ([OLD], AS_FILES), ([], "")],
    ids=["json", "plan", "files", "refused"],
)
async def test_an_older_test_that_expects_what_the_story_changes_is_changed_where_the_architect_says_so(
    tmp_path: Path, files: list[str], answer: str
) -> None:
    wholes = [BROKEN, BASE, *[BROKEN] * 5, *([WHOLE, BASE] if files else [BROKEN] * 6)]
    stand = Stand(tmp_path, base={OLD: OLD_TEXT}, wholes=wholes)
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    for _ in range(2):
        stand.team.say("jordan", A, "analysis", {"failure_analysis": [], "tests_to_change": [LIMIT]})
        stand.team.deliver(A, 1, good())
    stand.team.say("mike", A, "amendment", {"files": files, "dependencies": {}, "reason": "the limit is no promise"})
    stand.team.say("jordan", A, "suite", answer)
    outcome, _ = await told(stand, tmp_path, test={"max_attempts": 2})
    assert (outcome.status is StoryStatus.DONE) == bool(files), outcome.findings
    assert "amendment 1" in stand.asked
    assert "less than 3000 bytes" in next(one.text for one in stand.step.prompts if one.key.purpose == "amendment")
    assert stand.workspace.result.get(OLD) == (NEW_TEXT if files else OLD_TEXT)
    if files:
        assert stand.asked == ["breakdown 1", "delivery 1", "suite 1", "analysis 1", "amendment 1", "suite 2"]
        assert stand.workspace.result["tests/test_us_1.py"] == suite_text(A)
        assert "it stays as you wrote it" in stand.step.prompts[-1].text
        assert outcome.tests.cases[0].criterion == "it works"
        (event,) = stand.sink.named("older_test_rewritten")
        assert event.data["reason"] == LIMIT["reason"]
        assert "older_tests_granted" in [event.name for event in stand.sink.events]
    else:
        assert stand.sink.named("amendment_refused")[0].data["asked"] == {"files": [OLD]}


async def test_older_tests_that_stay_broken_need_a_person_and_what_was_bad_before_counts_for_nobody(
    tmp_path: Path,
) -> None:
    stand = Stand(tmp_path, base={OLD: "..."}, wholes=[BROKEN, BASE, *[BROKEN] * 5])
    mended(stand, 2)
    outcome, _ = await told(stand, tmp_path, test={"max_attempts": 1})
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    (finding,) = [one for one in outcome.findings if one.code == "test.regression"]
    assert "tests.test_old::test_old" in finding.message
    assert outcome.tests.passed == 1, "the story's own suite is green"
    bad, base = TestReport(cases=(*WHOLE.cases, BAD)), TestReport(cases=(*BASE.cases, BAD))
    stand = Stand(tmp_path, base={OLD: "..."}, wholes=[bad, base, bad, base, base])
    mended(stand, 2)
    outcome, _ = await told(stand, tmp_path)
    assert (outcome.status, outcome.attempts) == (StoryStatus.DONE, 1), outcome.findings


async def granted(stand: Stand, folder: Path, files: list[str]) -> Any:
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good(value=2))
    stand.team.suite(A, suite_text(A))
    stand.team.analyse(A, ("helper.py", "hold 1"))
    stand.team.analyse(A, ("helper.py", "hold 1 and nothing else"))
    stand.team.say("mike", A, "amendment", {"files": files, "dependencies": {}, "reason": "it holds the value"})
    stand.team.deliver(A, 1, {**good(), "helper.py": "VALUE = 1\n"} if files else good())
    return await stand.run(await provider(stand.team, folder))


@pytest.mark.parametrize("base", [{}, {"helper.py": "VALUE = 2\n"}], ids=["new", "there already"])
async def test_a_fix_for_a_file_of_no_task_is_asked_for_and_given_to_one(tmp_path: Path, base: dict[str, str]) -> None:
    stand = Stand(tmp_path, base=base, stories=[RED])
    outcome = await granted(stand, tmp_path, ["helper.py"])
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.workspace.result["helper.py"] == "VALUE = 1\n"
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1", "analysis 1", "amendment 1", "delivery 2"]
    asked, again = stand.step.prompts[-2:]
    assert "the cause is in helper.py" in asked.text
    assert "hold 1" in again.text
    (event,) = stand.sink.named("contract_amended")
    assert event.data["contract"]["task_files"] == {"T-US-1-01": ["helper.py", "us_1.py"]}
    assert "analysis.outside_tasks" not in codes(outcome)


async def test_what_is_not_granted_stays_outside_and_is_asked_once(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[RED, OTHER])
    outcome = await granted(stand, tmp_path, [])
    assert outcome.status in {StoryStatus.DONE, StoryStatus.FAILED}
    assert stand.asked.count("amendment 1") == 1
    assert "amendment 2" not in stand.asked
    assert "analysis.outside_tasks" in codes(outcome)
    assert len(stand.sink.named("amendment_refused")) == 1


@pytest.mark.parametrize("file", ["tests/test_us_1.py", "conftest.py", "../x.py", "logo.png"])
async def test_what_no_amendment_may_name_is_only_noted(tmp_path: Path, file: str) -> None:
    stand = Stand(tmp_path, stories=[RED])
    mended(stand, 2, 1, fix=file)
    outcome, _ = await told(stand, tmp_path)
    assert outcome.status is StoryStatus.DONE
    assert "analysis.outside_tasks" in codes(outcome)
    assert "amendment 1" not in stand.asked


class Rewrites(SimulatedRunner):
    """A run that fails and gets another text of the tests into the branch."""

    workspace: MemoryWorkspace

    async def run(self, root: Path, **how: Any) -> TestReport:
        """See the port."""
        note = CommitNote(subject="x", sprint="sprint", story=A, step="elsewhere")
        weaker = FileChange(path="tests/test_us_1.py", content="def test_us_1():\n    assert 1\n")
        await self.workspace.commit(A, [weaker], note)
        return RED


async def test_a_suite_that_is_not_what_the_tester_wrote_shows_nothing(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.runner = runner = Rewrites()
    runner.workspace = stand.workspace
    mended(stand, 2, 1)
    outcome, _ = await told(stand, tmp_path, test={"max_attempts": 2})
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert "test.tampered" in codes(outcome)
    assert [event.data["problem"] for event in stand.sink.named("tests_finished")] == [None, "tampered"]


def test_what_several_tests_say_is_told_once_and_whole() -> None:
    cases = [
        of(name, CaseResult.FAILED).model_copy(update={"message": said})
        for name, said in (
            ("test_a", "no module x"),
            ("test_b", "y" * 5900),
            ("test_c", "no module x"),
            ("test_d", "z" * 200),
        )
    ]
    text = failure_text(TestReport(cases=tuple(cases)))
    first, second, third = text.split("\n")
    assert first == "tests.test_us_1::test_a, tests.test_us_1::test_c: no module x"
    assert second.endswith("y" * 5900)
    assert third == "and 1 other failure"
