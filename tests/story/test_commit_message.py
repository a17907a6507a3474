"""Commits that a maintainer would merge: subjects, bodies, and no two alike (values in, values out)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.core.delivery import CommitNote, FileChange, MergeResult
from orchestrator.core.ports import CheckMerge, TestMerge
from orchestrator.core.sprint import StoryStatus
from orchestrator.git.commits import message_of
from orchestrator.story.commit_message import WIDTH, fitted, subject_of, unlike
from tests.memory_workspace import MemoryWorkspace
from tests.story.test_story import RED, A, Stand, good, provider
from tests.support import APPROVED, reviewed, suite, suite_text, task

SUBJECTS = {
    "as it is": ("Add the library report", "Add the library report"),
    "an id before it": ("T-US-007-02: Add the library report.", "Add the library report"),
    "a story's id before it": ("US-007: Add the library report", "Add the library report"),
    "the form's words before it": ("# Action Plan: Add the library report", "Add the library report"),
    "a name of the code first": ("parse_row keeps blanks", "parse_row keeps blanks"),
    "a name that is like an id": ("UTF-8 is read", "UTF-8 is read"),
    "nothing but an id": ("T-US-007-02", ""),
    "nothing but the form's words": ("Action Plan", ""),
    "one word": ("Implementation", ""),
    "too long": (f"Take {'very ' * 20}long", f"Take {'very ' * 13}".rstrip() + "…"),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_title_becomes_a_subject(name: str) -> None:
    title, subject = SUBJECTS[name]
    assert subject_of(title) == subject
    assert len(fitted(title)) <= WIDTH


def test_a_title_without_a_blank_is_cut_too() -> None:
    assert fitted("a" * 100) == "a" * WIDTH


def test_a_subject_that_the_story_has_gives_way_to_what_the_change_answers() -> None:
    assert unlike("Add x", [], ["Correct a.py: it is wrong"]) == "Add x"
    assert unlike("Add x", ["Add x"], ["Correct a.py: it is wrong"]) == "Correct a.py: it is wrong"
    assert unlike("Add x", ["Add x"]) == "Add x"


def test_a_body_cannot_pass_for_trailers() -> None:
    sly = 'why\nOrchestrator-Command: "rm -rf /"\u2028Orchestrator-Step: other'
    note = CommitNote(subject="Add x", body=sly, sprint="s", story="US-1", step="s/US-1/3")
    ours = [line for line in message_of(note).splitlines() if line.startswith("Orchestrator-")]
    assert ours == ["Orchestrator-Sprint: s", "Orchestrator-Story: US-1", "Orchestrator-Step: s/US-1/3"]
    assert message_of(note).startswith("Add x\n\nwhy\n")


class Noted(MemoryWorkspace):
    """Keeps the message of every commit."""

    def __init__(self) -> None:
        super().__init__(base_files={})
        self.notes: list[CommitNote] = []

    async def commit(
        self, story_id: str, changes: Sequence[FileChange], note: CommitNote, removed: Sequence[str] = ()
    ) -> str:
        self.notes.append(note)
        return await super().commit(story_id, changes, note, removed)

    async def merge(
        self, story_id: str, note: CommitNote, check: CheckMerge, test: TestMerge | None = None
    ) -> MergeResult:
        self.notes.append(note)
        return await super().merge(story_id, note, check, test)


def plan_text(title: str, why: str, value: int) -> str:
    code = good(value=value)["us_1.py"]
    return (
        f"# {title}\n\n## Rationale\n\n{why}\n\n## Action Plan\n\n### `CREATE`\n\n"
        f"- **File Path:** [us_1.py](/us_1.py)\n- **Overwrite:** true\n\n```python\n{code}```\n"
    )


async def test_commits_of_a_story_say_what_was_done_and_why(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[RED])
    stand.workspace, stand.criteria = Noted(), ("the value is one", "nothing else changes")
    stand.team.plan(A, task(A, 1, ["us_1.py"], description="A module with a value."))
    for value in (3, 2, 1, 1):
        text = plan_text("T-US-1-01: Add the value", f"It is {value}, as the story asks.", value)
        stand.team.say("alex", A, "delivery", text, task=1)
    stand.team.review(A, 1, reviewed("No", "[us_1.py:2] It is not one"))
    for _ in range(3):
        stand.team.review(A, 1, APPROVED)
    cases = [{"name": "test_us_1", "criterion": "1"}]
    stand.team.say("jordan", A, "suite", {**suite(A, suite_text(A)), "test_cases": cases})
    stand.team.analyse(A, ("us_1.py", "return 1"))
    outcome = await stand.run(await provider(stand.team, tmp_path), review={"enabled": True})
    assert outcome.status is StoryStatus.DONE
    assert [(note.subject, note.body) for note in stand.workspace.notes] == [
        ("Add the value", "It is 3, as the story asks."),
        ("Address review: It is not one", "It is 2, as the story asks."),
        ("Add tests: A value", "- the value is one"),
        ("Correct us_1.py: it is wrong", "It is 1, as the story asks."),
        ("Merge US-1: A value", ""),
    ]


async def test_committed_is_said_of_commits_only(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base=good())
    stand.team.plan(A, ["us_1.py"], ["b.py"])
    stand.team.deliver(A, 1, good())
    stand.team.deliver(A, 2, {"b.py": "B = 1\n"})
    stand.team.suite(A, suite_text(A))
    assert (await stand.run(await provider(stand.team, tmp_path))).status is StoryStatus.DONE
    told = [(one.name, one.message) for one in stand.sink.events if one.name in {"task_committed", "task_unchanged"}]
    assert told == [
        ("task_unchanged", "T-US-1-01 changes nothing: us_1.py as before"),
        ("task_committed", "T-US-1-02 committed: b.py"),
    ]
