"""The reviewer: what is shown, what is heard, and what is asked once more."""

from typing import Any

import pytest

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import ReviewBrief, Reviewed, ReviewIssue, Verdict
from orchestrator.core.finding import Severity
from orchestrator.personas.reviewer import Reviewer
from orchestrator.settings import Policies
from tests.answers.reviews import CLEAN, GOOD, TEMPLATE, ended
from tests.event_table import untrue
from tests.personas.desks import STORY, SURFACE, Bench, bench, brief
from tests.support import breakdown

TASK = f"T-{STORY}-01"
DIFF = "diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-A = 1\n+A = 2\n"


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"persona": "reviewer", "task": TASK, "purpose": "review", "text": text, **more}


def a_brief(diff: str = DIFF, previous: tuple[ReviewIssue, ...] = ()) -> ReviewBrief:
    task = Breakdown.model_validate(breakdown(STORY, ["app.py"])).tasks[0]
    contract = ArchitectureContract(
        story_id=STORY,
        base_commit="",
        baseline_files=(),
        declared_files=("app.py",),
        task_files={TASK: ("app.py",)},
        baseline_dependencies=("requests",),
        declared_dependencies=(),
    )
    return ReviewBrief(task=task, contract=contract, surface=SURFACE, diff=diff, previous=previous)


async def reviewed(at: Bench, told: ReviewBrief | None = None, name: str = "reviewer") -> Reviewed:
    return await Reviewer(at.desk, brief(), name).review(told or a_brief())


def events(at: Bench) -> list[str]:
    return [event.name for event in at.sink.events]


async def test_a_yes_approves_with_one_call() -> None:
    at = bench(says(CLEAN))
    result = await reviewed(at)
    assert result.approved
    assert (result.by, result.findings, result.unseen, result.comments) == ("reviewer", (), (), ())
    assert at.asked == ["review 1"]
    assert events(at) == ["answer_accepted", "review_read"]
    assert at.step.prompts[0].schema_name is None
    assert at.step.prompts[0].key.task == TASK


async def test_the_reviewer_sees_task_contract_story_diff_and_what_was_open() -> None:
    open_one = ReviewIssue(number=4, severity=Severity.MAJOR, file="app.py", line=1, title="Still open", fix="Close it")
    at = bench(says(CLEAN))
    await reviewed(at, a_brief(previous=(open_one,)))
    assert at.segment(0, "task").count("- app.py") == 1
    assert "Files to create" not in at.segment(0, "task"), "the contract's list says it"
    assert "requests" in at.segment(0, "contract")
    assert "1. A price is shown" in at.segment(0, "story")
    task = at.segment(0, "task")
    assert TASK in task
    assert f"### app.py\n\n```diff\n{DIFF}```" in task
    assert "4. (major, line 1) `app.py` Still open\n   - Fix: Close it" in task
    assert at.segment(0, "feedback") == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "LGTM, approved!",
        '{"approved": true}',
        ended(TEMPLATE),
        ended("Ready: Yes, but fix 1"),
        "<think>\n" + CLEAN,
    ],
)
async def test_without_a_verdict_the_reviewer_is_asked_once_more(text: str) -> None:
    at = bench(says(text), says(CLEAN))
    assert (await reviewed(at)).approved
    assert at.asked == ["review 1", "review 2"]
    assert "`Ready: Yes`" in at.segment(1, "feedback")
    assert events(at) == ["answer_sent_back", "answer_accepted", "review_read"]
    at = bench(says(text), says(text), says(CLEAN))
    result = await reviewed(at)
    assert not result.approved
    assert at.asked == ["review 1", "review 2"]
    assert [finding.code for finding in result.findings] == ["review.no_verdict"]
    assert events(at) == ["answer_sent_back", "answer_given_up", "review_read"]
    assert untrue(at.sink.events) == []


async def test_a_no_in_a_text_that_is_not_whole_counts() -> None:
    at = bench(says(GOOD, stop_reason="max_tokens"))
    result = await reviewed(at)
    assert result.review.verdict is Verdict.WITH_FIXES
    assert at.asked == ["review 1"]


async def test_a_change_too_long_to_be_shown_is_not_approved() -> None:
    long = DIFF.replace("app.py", "huge.py") + "+x = 1\n" * 2000
    at = bench(says(CLEAN), policies=Policies(context_tokens=1000))
    result = await reviewed(at, a_brief(long + DIFF))
    assert result.review.approved
    assert not result.approved
    assert result.unseen == ("huge.py",)
    assert [(finding.code, "huge.py" in finding.message) for finding in result.findings] == [("review.diff_cut", True)]
    assert events(at) == ["review_diff_cut", "answer_accepted", "review_read"]
    assert f"```diff\n{DIFF}```" in at.segment(0, "task")
    assert "huge.py: cut here" in at.segment(0, "task")
