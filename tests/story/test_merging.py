"""Stories that do not go together: the developer is asked once with both sides, then a person; without a process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.command import Choice, GateAnswer, GateKind
from orchestrator.core.sprint import StoryOutcome, StoryStatus
from orchestrator.core.suite import CaseResult, ReportedCase, TestReport
from tests.simulated import report
from tests.story.test_gate import People
from tests.story.test_story import Stand, codes, provider
from tests.support import delivery, module_of, suite_text

ZERO = "def zero():\n    return 0\n"
ONE = f"{ZERO}\n\ndef one():\n    return 1\n"
TWO = f"{ZERO}\n\ndef two():\n    return 2\n"
BOTH = f"{ONE}\n\ndef two():\n    return 2\n"
BASE = {"shared.py": ZERO, "other.py": "X = 1\n", "tests/test_old.py": "def test_old():\n    assert True\n"}
RED = report(failed=["test_together"], message="shared.py: two is not what it was")
FINE = report(passed=["test_together"])


def suite_of(story: str) -> str:
    return f"import shared\n\n\ndef test_{file_of(story)[11:-3]}():\n    assert shared.__name__ == 'shared'\n"


def file_of(story: str) -> str:
    return f"tests/test_{story.lower().replace('-', '_')}.py"


class Pair(Stand):
    """US-1 is merged while US-2, which has changed the same file, is at work."""

    def __init__(self, folder: Path, *people: Any, one: str = ONE, two: str = TWO, **runs: Any) -> None:
        super().__init__(folder, base=BASE, **runs)
        self.people = People(*people)
        self.person = self.people
        for story, text in (("US-1", one), ("US-2", two)):
            self.team.plan(story, ["shared.py"] if story == "US-1" else ["shared.py", "mine.py"])
            mine = {"mine.py": "from shared import two\n"} if story == "US-2" else {}
            self.team.deliver(story, 1, {"shared.py": text, **mine})
            self.team.suite(story, suite_of(story), file_of(story))

    def merge(self, files: Mapping[str, str] | str, **more: Any) -> None:
        answer = files if isinstance(files, str) else delivery("US-2", 1, files)
        self.team.say("alex", "US-2", "merge", answer, task=1, **more)

    async def ends(self, mode: str = "auto", **gate: Any) -> StoryOutcome:
        replies = await provider(self.team, self.folder)
        await self.workspace.open("US-2")
        first = await self.run(replies)
        assert first.status is StoryStatus.DONE, first.findings
        self.sink.events.clear()
        return await self.run(replies, "US-2", gate={"mode": mode, **gate})

    @property
    def merges(self) -> list[str]:
        """The prompts about the merge."""
        return [prompt.text for prompt in self.step.prompts if prompt.key.purpose == "merge"]

    @property
    def told(self) -> list[tuple[str, str, int, int]]:
        """Event, verdict, attempt, budget left of what became of the merge, in order."""
        return [
            (event.name, event.data["verdict"], event.data["attempt"], event.data["budget_left"])
            for event in self.sink.events
            if event.data.get("stage") == "merge" and event.name != "diff_checked"
        ]


async def test_a_conflict_is_resolved_once_tested_again_and_merged(tmp_path: Path) -> None:
    stand = Pair(tmp_path)
    stand.merge({"shared.py": BOTH})
    outcome = await stand.ends()
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.workspace.result["shared.py"] == BOTH
    assert stand.workspace.result["mine.py"] == "from shared import two\n"
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1", "merge 1"]
    own = ("tests/test_us_2.py",)
    told = "its own suite and the older tests before, its own after, then the whole one, and which tests ran before it"
    assert stand.runner.ran[-5:] == [own, None, own, None, None], told
    assert stand.told == [
        ("merge_refused", "conflict", 1, 1), ("merge_resolved", "resolved", 1, 0), ("story_merged", "merged", 2, 0),
    ]  # fmt: skip
    (resolved,) = stand.sink.named("merge_resolved")
    assert (resolved.data["files"], resolved.data["by"], resolved.task) == (["shared.py"], "alex", "T-US-2-01")
    assert resolved.message == "alex brought shared.py together with what US-1 changed; tested again"
    assert "shared.py" in resolved.data["contract"]["baseline_files"]
    assert outcome.attempts == 1
    assert {entry.path for entry in await stand.workspace.diff("US-2")} == {
        "shared.py", "mine.py", "tests/test_us_2.py",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ({"shared.py": ONE}, "delivery.lost_export", "`two`"),
        ({"shared.py": TWO}, "delivery.lost_export", "`one`"),
        ({"shared.py": f"<<<<<<< merged meanwhile\n{ONE}=======\n{TWO}>>>>>>> your story\n"}, "merge.marker", "marker"),
        ({"shared.py": f"{BOTH}=======\n"}, "merge.marker", "marker"),
        ({"mine.py": "from shared import two, one\n"}, "delivery.missing_file", "shared.py"),
        ({"shared.py": BOTH, "other.py": "X = 2\n"}, "contract.other_task", "other.py"),
        ({"shared.py": BOTH, "new.py": "X = 2\n"}, "contract.file", "new.py"),
        ({"shared.py": BOTH, "tests/test_old.py": "def test_old(): pass\n"}, "contract.test_file", "test_old"),
        ({"shared.py": BOTH, "tests/test_us_2.py": "def test_us_2(): pass\n"}, "contract.test_file", "test_us_2"),
        ({"shared.py": f"import requests\n\n\n{BOTH}"}, "contract.import", "requests"),
        ({"shared.py": BOTH + "def broken(:\n"}, "delivery.syntax", ""),
        ({"shared.py": ""}, "delivery.shrunk", "content"),
        ({"shared.py": "# rest of the code unchanged\n"}, "answer.", ""),
        ({}, "delivery.no_files", "no file"),
        ("I would keep both functions.", "answer.", ""),
        ("", "answer.", ""),
        ('{"story_id": "US-2", "files": [{"path": "shared.py", "content": "def ze', "answer.truncated", ""),
    ],
)
async def test_an_answer_that_loses_a_side_or_leaves_the_contract_changes_nothing(
    tmp_path: Path, answer: Mapping[str, str] | str, code: str, said: str
) -> None:
    stand = Pair(tmp_path)
    stand.merge(answer)
    outcome = await stand.ends()
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert {"merge.conflict", "merge.unresolved"} <= codes(outcome)
    (event,) = stand.sink.named("merge_unresolved")
    assert [one for one in event.data["findings"] if one["code"].startswith(code) and said in one["message"]], event
    assert stand.merges != []
    assert stand.asked.count("merge 1") == 1
    assert stand.asked[-1] == "merge 1", "one request, no repair, no second reply"
    assert stand.workspace.result["shared.py"] == ONE
    assert (await stand.workspace.read("US-2", ["shared.py"]))["shared.py"] == TWO


def plan(*actions: str) -> str:
    return "\n\n---\n\n".join([f"# Both\n\n## Rationale\n\nTogether.\n\n## Action Plan\n\n{actions[0]}", *actions[1:]])


async def test_a_red_tree_is_shown_with_the_output_and_both_diffs(tmp_path: Path) -> None:
    stand = Pair(tmp_path, one=ZERO.replace("0", "1"), two=ZERO, wholes=[*[FINE] * 4, RED, FINE, FINE, FINE])
    stand.merge({"mine.py": "from shared import zero as two\n"})
    outcome = await stand.ends()
    assert outcome.status is StoryStatus.DONE, outcome.findings
    (prompt,) = stand.merges
    assert "two is not what it was" in prompt
    assert "+    return 1" in prompt.partition("## What was changed meanwhile")[2]
    assert "+from shared import two" in prompt.partition("## What your story changed")[2]
    assert "## Files in conflict" not in prompt
    assert [told[:2] for told in stand.told] == [
        ("merge_refused", "red"), ("merge_resolved", "resolved"), ("story_merged", "merged"),
    ]  # fmt: skip
    assert stand.workspace.result["mine.py"] == "from shared import zero as two\n"


async def test_a_resolution_with_red_tests_is_not_merged_and_nobody_is_asked_again(tmp_path: Path) -> None:
    for runs in (
        {"stories": [report(passed=["test_us_1"]), report(passed=["test_us_2"]), report(failed=["test_us_2"])]},
        {"wholes": [*[FINE] * 4, RED, FINE]},
    ):
        stand = Pair(tmp_path, **runs)
        stand.merge({"shared.py": BOTH})
        outcome = await stand.ends()
        assert outcome.status is StoryStatus.NEEDS_ATTENTION
        assert "merge.red" in codes(outcome)
        assert stand.workspace.result["shared.py"] == ONE
        assert stand.asked.count("merge 1") == 1
        assert "merge 2" not in stand.asked
        assert (await stand.workspace.read("US-2", ["shared.py"]))["shared.py"] == BOTH, "what exists is kept"


async def test_a_conflict_in_a_test_file_is_nobodys_but_a_persons(tmp_path: Path) -> None:
    for mode, people in (("auto", ()), ("escalations", (Choice.CANCEL,))):
        stand = Stand(tmp_path, base=BASE)
        stand.people = People(*people)
        stand.person = stand.people
        for story in ("US-1", "US-2"):
            stand.team.plan(story, [f"{story}.py".lower().replace("-", "_")])
            stand.team.deliver(story, 1, {f"{story}.py".lower().replace("-", "_"): "def value():\n    return 1\n"})
            # Tests of one name cannot be joined.
            same_test = suite_text(story).replace(f"test_{module_of(story)}", "test_value")
            stand.team.suite(story, same_test, "tests/test_both.py")
        replies = await provider(stand.team, tmp_path)
        await stand.workspace.open("US-2")
        await stand.run(replies)
        outcome = await stand.run(replies, "US-2", gate={"mode": mode})
        assert outcome.status is StoryStatus.NEEDS_ATTENTION
        assert {"merge.conflict", "merge.not_asked"} <= codes(outcome)
        assert "merge 1" not in stand.asked
        assert [gate.choices for gate in stand.people.asked] == [(Choice.CANCEL,)] * (mode != "auto")


async def test_without_an_answer_the_story_is_finished_and_waits(tmp_path: Path) -> None:
    outcome = await (stand := Pair(tmp_path)).ends()
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert {"merge.conflict", "script.missing"} <= codes(outcome)
    assert "persona=alex story=US-2 task=T-US-2-01 purpose=merge" in str(outcome.findings)
    assert stand.asked[-1] == "merge 1"


def said(choice: Choice, comment: str = "") -> GateAnswer:
    return GateAnswer(number=1, choice=choice, comment=comment, by="anna")


async def test_a_person_wants_it_tried_once_more_with_a_comment(tmp_path: Path) -> None:
    stand = Pair(tmp_path, said(Choice.REJECT, "keep both functions"), Choice.CANCEL)
    stand.merge({"shared.py": TWO})
    stand.merge({"shared.py": BOTH})
    outcome = await stand.ends("escalations")
    assert outcome.status is StoryStatus.DONE, outcome.findings
    (gate,) = stand.people.asked
    assert (gate.kind, gate.choices, gate.iteration) == (GateKind.MERGE, (Choice.REJECT, Choice.CANCEL), 1)
    assert (gate.branch, gate.valid) == ("orchestrator/sprint/US-2", False)
    assert "shared.py" in gate.reason
    assert gate.issues[0].code == "merge.conflict"
    first, second = stand.merges
    assert "keep both functions" not in first
    assert "anna turned it down: keep both functions" in second
    assert "lost `one`, which one of the two sides has" in second, "and why the first answer was refused"
    assert [told[0] for told in stand.told] == [
        "merge_refused", "merge_unresolved", "merge_refused", "merge_resolved", "story_merged",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "policy", "code"),
    [
        ([Choice.CANCEL], {}, "gate.unmerged"),
        ([Choice.TIME_OUT], {}, "gate.unanswered"),
        ([Choice.TIME_OUT], {"on_timeout": "approve"}, "gate.unanswered"),
        ([Choice.TIME_OUT], {"on_timeout": "cancel"}, "gate.unanswered"),
        ([said(Choice.APPROVE), said(Choice.EDIT), said(Choice.REPLAN), Choice.CANCEL], {}, "gate.unmerged"),
    ],
)
async def test_a_conflict_is_never_waved_through(
    tmp_path: Path, answers: list[Choice | GateAnswer], policy: dict[str, Any], code: str
) -> None:
    stand = Pair(tmp_path, *answers)
    stand.merge("no")
    outcome = await stand.ends("escalations", **policy)
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert {"merge.conflict", code} <= codes(outcome)
    assert stand.workspace.result["shared.py"] == ONE


async def test_a_person_may_let_tests_go_and_nothing_else(tmp_path: Path) -> None:
    old = ReportedCase(name="test_old", id="old::test_old", file="tests/test_old.py", result=CaseResult.PASSED)
    before = TestReport(cases=(*FINE.cases, old), exit_code=0)
    stand = Stand(tmp_path, base=BASE, wholes=[FINE, FINE, before, FINE, FINE, before])
    stand.people = People(Choice.APPROVE, Choice.CANCEL)
    stand.person = stand.people
    stand.team.good("US-1")
    outcome = await stand.run(await provider(stand.team, tmp_path), gate={"mode": "escalations"})
    (gate,) = stand.people.asked
    assert gate.choices == (Choice.APPROVE, Choice.REJECT, Choice.CANCEL)
    assert "old::test_old" in gate.issues[0].message
    assert outcome.status is StoryStatus.DONE, outcome.findings
    (let_go,) = [finding for finding in outcome.findings if finding.code == "merge.tests_let_go"]
    assert let_go.message == "anna let tests go that ran before: old::test_old"
