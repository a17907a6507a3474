"""One story from its text to an outcome, with the real personas and checks, a scripted team, and no process."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app.team import story_body, story_payload
from orchestrator.core.calls.exchange import StoryBrief
from orchestrator.core.command import Gate, GateAnswer
from orchestrator.core.delivery import DiffEntry
from orchestrator.core.sprint import BroughtPlan, StoryOutcome, StoryStatus, TaskStatus
from orchestrator.core.story import Story, topological
from orchestrator.core.suite import CaseResult, ReportedCase, RunProblem, TestReport
from orchestrator.providers.scripted import ScriptedProvider, load_script
from orchestrator.settings import Policies
from orchestrator.story.older_tests import OlderTests
from tests.memory_workspace import MemoryWorkspace
from tests.prompts.packaged import packaged_library
from tests.simulated import MemorySink, SimulatedRunner, SimulatedStep, report
from tests.support import Team, suite_text

A = "US-1"
LIBRARY = packaged_library()
RED = report(failed=["test_us_1"], message="us_1.py: assert 2 == 1")
OTHER = report(failed=["test_us_1"], message="us_1.py: assert 7 == 1")


class Moving(MemoryWorkspace):
    """No two commits are the same to tests, as if the result branch always moved: the whole suite runs on each."""

    async def content_of(self, commit: str) -> str:
        """See the port."""
        return commit


class Stand:
    """A story's whole surroundings; `run` may be called for several stories of one workspace.

    Nobody reviews unless the policies say so: most tests are about the other loops.
    """

    def __init__(self, folder: Path, *, base: dict[str, str] | None = None, **runs: Any) -> None:
        self.team, self.folder = Team(), folder
        self.workspace = (Moving if "wholes" in runs else MemoryWorkspace)(base_files=base or {})
        self.runner = SimulatedRunner(**runs)
        self.sink = MemorySink()
        self.at_base: TestReport | None = None
        self.step: SimulatedStep
        self.make_step = SimulatedStep
        self.person: Callable[[Gate], GateAnswer] | None = None
        self.given: BroughtPlan | None = None

        self.criteria: tuple[str, ...] = ()
        self.foundation = False

    async def run(self, replies: ScriptedProvider, story: str = A, **policies: Any) -> StoryOutcome:
        self.step = self.make_step(replies, self.sink, sprint="sprint", story=story, person=self.person)
        told = Story(id=story, title="A value", acceptance_criteria=self.criteria, foundation=self.foundation)
        brief = StoryBrief(story=told, sprint="sprint", plan=self.given)
        older = OlderTests()
        older.base = self.at_base
        body = story_body(LIBRARY, self.workspace, self.runner, older=older)
        unread = {"review": {"enabled": False}}
        return await body(self.step, story_payload(brief, Policies.model_validate(unread | policies)))

    @property
    def asked(self) -> list[str]:
        return [f"{prompt.key.purpose} {prompt.turn}" for prompt in self.step.prompts]


def statuses(outcome: StoryOutcome) -> dict[str, TaskStatus]:
    return {done.id: done.status for done in outcome.tasks}


def codes(outcome: StoryOutcome) -> set[str]:
    return {finding.code for finding in outcome.findings}


def good(module: str = "us_1", value: int = 1) -> dict[str, str]:
    return {f"{module}.py": f"def value():\n    return {value}\n"}


async def good_provider(folder: Path) -> ScriptedProvider:
    team = Team()
    team.good(A)
    return await provider(team, folder)


async def provider(team: Team, folder: Path) -> ScriptedProvider:
    return ScriptedProvider(await asyncio.to_thread(load_script, team.write(folder / "team.jsonl")))


async def test_a_story_without_trouble_is_merged(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    outcome = await stand.run(await good_provider(tmp_path))
    assert outcome.status is StoryStatus.DONE
    assert outcome.attempts == 1
    assert statuses(outcome) == {"T-US-1-01": TaskStatus.DONE}
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1"]
    assert set(stand.workspace.result) == {"us_1.py", "tests/test_us_1.py"}
    assert outcome.branch == "orchestrator/sprint/US-1"
    assert outcome.commit
    assert stand.runner.ran == [("tests/test_us_1.py",), None]


async def test_answers_that_never_become_valid_fail_the_story(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    for _ in range(9):
        stand.team.say("mike", A, "breakdown", "I will think about it")
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.FAILED
    assert all(finding.severity.blocks for finding in outcome.findings)
    assert stand.asked == ["breakdown 1", "repair 1", "breakdown 2", "breakdown 3"]


@pytest.mark.parametrize(
    ("kept", "exit_code", "status"),
    [
        (("test_old", "test_us_1"), 1, StoryStatus.DONE),
        (("test_us_1",), 1, StoryStatus.NEEDS_ATTENTION),  # an older test is lost
        (("test_old", "test_us_1"), 139, StoryStatus.NEEDS_ATTENTION),  # it ends in another way than before
    ],
)
async def test_a_runner_that_breaks_off_at_the_base_as_well_refuses_no_merge(
    tmp_path: Path, kept: tuple[str, ...], exit_code: int, status: StoryStatus
) -> None:
    """Seen with vitest, which ends with 1 for an error beside the tests."""
    off = {"problem": RunProblem.NO_REPORT, "exit_code": 1}
    old = ReportedCase(name="test_old", id="old::test_old", file="tests/test_old.py", result=CaseResult.PASSED)
    before = TestReport(cases=(old,), **off)
    cases = tuple(case for case in (old, *report(passed=["test_us_1"]).cases) if case.name in kept)
    merged = TestReport(cases=cases, **{**off, "exit_code": exit_code})
    again = [before] if exit_code == 1 else [merged, merged]
    stand = Stand(tmp_path, base={"tests/test_old.py": "..."}, wholes=[merged, before, *again])
    assert (await stand.run(await good_provider(tmp_path))).status is status


async def test_an_older_test_that_no_longer_runs_is_told_and_not_merged_unless_the_plan_lists_its_file(
    tmp_path: Path,
) -> None:
    old = ReportedCase(name="test_old", id="old::test_old[a]", file="tests/test_old.py", result=CaseResult.PASSED)
    before = TestReport(cases=(*report(passed=["test_all"]).cases, old), exit_code=0)
    skipped = TestReport(
        cases=(*report(passed=["test_all", "test_us_1"]).cases, old.model_copy(update={"result": CaseResult.SKIPPED})),
        exit_code=0,
    )
    after = report(passed=["test_all", "test_us_1"])
    for merged, listed, status in (
        (after, False, StoryStatus.NEEDS_ATTENTION),
        (skipped, False, StoryStatus.NEEDS_ATTENTION),
        (after, True, StoryStatus.DONE),
    ):
        stand = Stand(tmp_path, base={"tests/test_old.py": "..."}, wholes=[merged, before])
        changes = [{"file": "tests/test_old.py", "reason": "what it shows is gone"}] if listed else []
        stand.team.plan(A, ["us_1.py"], tests_to_change=changes)
        stand.team.deliver(A, 1, good())
        stand.team.suite(A, suite_text(A))
        outcome = await stand.run(await provider(stand.team, tmp_path))
        assert outcome.status is status
        found = [finding for finding in outcome.findings if finding.code == "merge.vanished_tests"]
        assert ["old::test_old" in finding.message for finding in found] == [True] * (not listed)


async def test_a_suite_that_could_not_run_before_leaves_a_word_and_the_merge_goes_on(tmp_path: Path) -> None:
    hung = TestReport(problem=RunProblem.TIMEOUT, output="it hangs")
    stand = Stand(tmp_path, base={"tests/test_old.py": "..."}, wholes=[report(passed=["test_us_1"]), hung])
    outcome = await stand.run(await good_provider(tmp_path))
    assert outcome.status is StoryStatus.DONE
    (finding,) = [finding for finding in outcome.findings if finding.code == "merge.older_tests_unknown"]
    assert "it hangs" in finding.message


async def test_no_suite_within_the_budget_fails(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    for _ in range(3):
        stand.team.suite(A, "VALUE = 1\n")
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.FAILED
    assert "suite.no_tests" in codes(outcome)
    assert statuses(outcome) == {"T-US-1-01": TaskStatus.DONE}


class Tampered(MemoryWorkspace):
    """Somebody makes a link while nobody looks; or git fails at the end."""

    async def diff(self, story_id: str) -> tuple[DiffEntry, ...]:
        link = DiffEntry(path="out", status="A", old_mode="000000", new_mode="120000")
        return (*await super().diff(story_id), link)


async def test_the_final_diff_is_judged_as_it_is(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.workspace = Tampered()
    outcome = await stand.run(await good_provider(tmp_path))
    assert outcome.status is StoryStatus.FAILED
    assert (outcome.attempts, outcome.tests.passed) == (1, 1)
    assert any(code.startswith("contract.") for code in codes(outcome))
    assert stand.workspace.result == {}


async def test_a_task_stays_done_when_a_repair_of_it_is_refused(tmp_path: Path) -> None:
    """Its files are on the branch as they were."""
    stand = Stand(tmp_path, stories=[RED, RED])
    stand.team.plan(A, ["us_1.py"], ["b.py"])
    stand.team.deliver(A, 1, good())
    stand.team.deliver(A, 2, {"b.py": "B = 1\n"})
    for _ in range(3):
        stand.team.deliver(A, 2, {"b.py": "B = (\n"})
    stand.team.deliver(A, 1, good(value=2))
    stand.team.suite(A, suite_text(A))
    stand.team.analyse(A, ("b.py", "B = 2"))
    stand.team.analyse(A, ("us_1.py", "return 2"))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE
    assert statuses(outcome) == {"T-US-1-01": TaskStatus.DONE, "T-US-1-02": TaskStatus.DONE}
    assert outcome.changed == {"b.py": "A", "tests/test_us_1.py": "A", "us_1.py": "A"}


async def test_a_later_request_for_a_task_says_why_its_last_delivery_was_not_taken(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[RED, OTHER])
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good(value=2))
    for _ in range(3):
        stand.team.deliver(A, 1, {"us_1.py": "def value(:\n"})
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    for _ in range(2):
        stand.team.analyse(A, ("us_1.py", "return 1"))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE
    last = [one for one in stand.step.prompts if one.key.purpose == "delivery"][-1].text
    told = last.split("## Why your last delivery for this task was not taken", 1)[1]
    assert "us_1.py" in told


def test_tasks_keep_their_order_but_for_what_they_wait_for() -> None:
    """In waves C, which waits for nothing, came before B."""
    assert topological("ABC", {"B": "A"}) == ("A", "B", "C")
    assert topological("ABCD", {"A": "C", "D": "D"}) == ("C", "A", "B", "D")
