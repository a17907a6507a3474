"""The review loop of a task: judged, sent back with the comments, counted, and where it goes in the end."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.finding import Severity
from orchestrator.core.sprint import StoryOutcome, StoryStatus, TaskOutcome, TaskStatus
from orchestrator.core.suite import CommandResult
from tests.answers.reviews import ended
from tests.event_table import untrue
from tests.story.test_story import RED, A, Stand, codes, good, provider, statuses
from tests.support import APPROVED, delivery, module_of, reviewed, suite_text, task

NO = reviewed("No", "[us_1.py:2] It returns nothing useful")
FIXES = reviewed("With fixes 2", "[us_1.py:1] A name", "[us_1.py:2] The wrong value")
CRITICAL = reviewed("Yes", "[us_1.py:2] It deletes everything", severity="Critical (Blocking)")
OTHER = {"other.py": "X = 1\n"}
RATES = "def rate():\n    rate = 2\n" + "    rate += 1\n" * 60 + "    return rate\n"
"""Of which the project's map shows no more than the name."""


def prepared(folder: Path, *reviews: str, deliveries: int = 1, **runs: Any) -> Stand:
    """A story of one task that is delivered with another value each time."""
    stand = Stand(folder, **runs)
    stand.team.plan(A, ["us_1.py"])
    for value in range(deliveries):
        stand.team.deliver(A, 1, good(value=value))
    for text in reviews:
        stand.team.review(A, 1, text)
    stand.team.suite(A, suite_text(A))
    return stand


async def outcome_of(stand: Stand, looks: int = 0, **review: Any) -> StoryOutcome:
    replies = await provider(stand.team, stand.folder)
    outcome = await stand.run(replies, looks=looks, review={"enabled": True, **review})
    assert untrue(stand.sink.events) == []
    return outcome


def only_task(outcome: StoryOutcome) -> TaskOutcome:
    (one,) = outcome.tasks
    return one


def judged(stand: Stand) -> list[tuple[str, int, int]]:
    """Verdict, attempt and what is left, of every decision."""
    told = (event.data for event in stand.sink.named("review_judged"))
    return [(data["verdict"], data["attempt"], data["budget_left"]) for data in told]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NO, ["It returns nothing useful"]),
        (FIXES, ["The wrong value"]),
        (CRITICAL, ["It deletes everything"]),
        (ended("Ready: No"), ["cannot be merged yet"]),
    ],
)
async def test_what_is_not_approved_goes_back_with_the_comments_and_is_read_again(
    tmp_path: Path, text: str, told: list[str]
) -> None:
    stand = prepared(tmp_path, text, APPROVED, deliveries=2)
    outcome = await outcome_of(stand)
    assert (outcome.status, outcome.findings) == (StoryStatus.DONE, ())
    assert stand.asked == ["breakdown 1", "delivery 1", "review 1", "delivery 2", "review 2", "suite 1"]
    assert judged(stand) == [("sent_back", 1, 4), ("approved", 2, 3)]
    again, second = stand.step.prompts[3].text, stand.step.prompts[4].text
    assert all(words in again for words in [*told, "## Review\n"])
    assert "A name" not in again, "what is not named need not be mended"
    assert "+    return 1" in second, "the diff is against the commit before the first delivery"
    assert "return 0" not in second
    assert "cannot be merged" in told[0] or f"1. ({'critical' if text is CRITICAL else 'major'}" in second
    assert [one.approved for one in only_task(outcome).reviews] == [False, True]
    assert only_task(outcome).comments == ()


@pytest.mark.parametrize("last", [True, False])
async def test_reviews_that_are_used_up_let_the_story_go_on_to_a_person(tmp_path: Path, last: bool) -> None:
    stand = Stand(tmp_path)
    tasks = [["other.py"], ["us_1.py"]] if last else [["us_1.py"], ["other.py"]]
    stuck, smooth = (2, 1) if last else (1, 2)
    stand.team.plan(A, *tasks)
    stand.team.deliver(A, smooth, OTHER)
    for value in (5, 4, 1):
        stand.team.deliver(A, stuck, good(value=value))
        stand.team.review(A, stuck, FIXES)
    stand.team.suite(A, suite_text(A))
    outcome = await outcome_of(stand, max_iterations=3)
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert stand.workspace.result == {}
    assert outcome.tests.passed == 1, "its tests have run all the same"
    assert list(statuses(outcome).values()) == [
        TaskStatus.UNAPPROVED if number == stuck else TaskStatus.DONE for number in (1, 2)
    ]
    assert [one for one in judged(stand) if one[0] != "approved"] == [
        ("sent_back", 1, 2), ("sent_back", 2, 1), ("unapproved", 3, 0),
    ]  # fmt: skip
    (finding,) = outcome.findings
    assert (finding.code, finding.severity, finding.where.task) == (
        "review.unapproved", Severity.MAJOR, f"T-{A}-{stuck:02d}",
    )  # fmt: skip
    assert "not approved in 3 reviews; open: us_1.py:2 The wrong value: It is wrong." in finding.message
    open_ones = next(one for one in outcome.tasks if one.id == finding.where.task).comments
    assert [(one.file, one.line, one.title) for one in open_ones] == [("us_1.py", 2, "The wrong value")]


@pytest.mark.parametrize(
    ("own", "ends"),
    [({"security": 1}, [("unapproved", 1, 0)]), ({"security": 3}, [("sent_back", 1, 2), ("approved", 2, 1)])],
)
async def test_a_reviewers_own_number_counts_when_it_does_not_approve(
    tmp_path: Path, own: dict[str, int], ends: list[tuple[str, int, int]]
) -> None:
    stand = prepared(tmp_path, APPROVED, APPROVED, deliveries=2)
    for text in (FIXES, APPROVED):
        stand.team.review(A, 1, text, by="security")
    review = {"enabled": True, "reviewers": ["reviewer", "security"], "max_iterations": 2}
    await stand.run(await provider(stand.team, tmp_path), review=review, own_reviews=own)
    assert judged(stand) == ends
    assert untrue(stand.sink.events) == []


async def test_a_reviewer_knows_what_was_said_answered_and_changed_before(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base={"rates.py": RATES}, stories=[RED])
    stand.team.plan(A, ["other.py"], ["us_1.py", "more.py"])
    stand.team.deliver(A, 1, OTHER)
    stand.team.review(A, 1, APPROVED)
    for value, title, notes in ((5, "", ""), (4, "Return four", "Five was too much."), (1, "Return one", "")):
        answer = delivery(A, 2, {**good(value=value), "more.py": "M = 1\n"})
        stand.team.say("alex", A, "delivery", {**answer, "title": title, "notes": notes}, task=2)
    for text in ("READ rates.py", FIXES, APPROVED, APPROVED):
        stand.team.review(A, 2, text)
    stand.team.analyse(A, ("us_1.py", "return 1"))
    stand.team.suite(A, suite_text(A))
    outcome = await outcome_of(stand, looks=2)
    assert outcome.status is StoryStatus.DONE
    asked = [one for one in stand.step.prompts if one.key.purpose == "review" and one.key.task == f"T-{A}-02"]
    assert len(asked) == 4, "the second review is not asked for rates.py again"
    first, _, second, third = (prompt.text for prompt in asked)
    assert "Earlier reviews" not in first
    assert "other.py:\n```py\nX = 1" in first, "what other tasks made is shown"
    assert f"### T-{A}-02" not in first
    assert "rate = 2" not in first
    assert "rate = 2" in second
    said = second.partition("## Earlier reviews of this task\n\n")[2]
    assert said.startswith(
        "### Review 1\n\n- You: With fixes 2. The change as the task asks for it.\n"
        "  1. (major) us_1.py:1 A name\n  2. (major) us_1.py:2 The wrong value\n\n"
        'The developer\'s answer:\n\n<data of="answer">\nReturn four\n\nFive was too much.\n</data>\n\n'
        "Changed since the last review: us_1.py.\n\nAs they were then: more.py.\n\n"
        "## Comments of the last review\n\n1. (major, line 2)"
    )
    assert "- You: Yes. The change as the task asks for it.\n- Then tests failed:\n  - us_1.py: it is wrong" in third
    assert "Comments of the last review" not in third.partition("## Earlier reviews of this task")[2]


async def test_review_can_be_switched_off(tmp_path: Path) -> None:
    stand = prepared(tmp_path, NO)
    outcome = await stand.run(await provider(stand.team, tmp_path), review={"enabled": False})
    assert outcome.status is StoryStatus.DONE
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1"]
    assert only_task(outcome).reviews == ()


@pytest.mark.parametrize("same", [False, True])
async def test_nobody_approves_what_nobody_saw(tmp_path: Path, same: bool) -> None:
    stand = prepared(tmp_path, APPROVED, APPROVED, deliveries=1, stories=[RED])
    stand.team.deliver(A, 1, good(value=0 if same else 1))
    stand.team.analyse(A, ("us_1.py", "return 1"))
    outcome = await outcome_of(stand, max_iterations=1)
    assert "review 2" not in stand.asked, "attempts do not reset the count"
    if same:
        assert outcome.status is StoryStatus.DONE
        assert judged(stand) == [("approved", 1, 0)]
        return
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert judged(stand) == [("approved", 1, 0), ("unapproved", 1, 0)]
    (finding,) = outcome.findings
    assert finding.message == "nobody has read its last change, after 1 review"


async def test_what_needs_a_person_anyway_and_what_changes_nothing_is_not_read(tmp_path: Path) -> None:
    bad = CommandResult(argv=("x",), exit_code=1, output="")
    stand = Stand(tmp_path, base=good(), commands=[bad.model_copy(update={"exit_code": 0}), *[bad] * 3])
    stand.team.plan(A, task(A, 1, [], "true"), task(A, 2, ["us_1.py"]), task(A, 3, ["a.py"], "false"))
    stand.team.deliver(A, 2, good())
    for _ in range(3):
        stand.team.deliver(A, 3, {"a.py": "X = 1\n"})
    outcome = await outcome_of(stand)
    assert list(statuses(outcome).values()) == [TaskStatus.DONE, TaskStatus.DONE, TaskStatus.FAILED]
    assert not [asked for asked in stand.asked if asked.startswith("review")]


async def test_what_hides_from_the_reviewer_is_not_approved(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.team.plan(A, ["us_1.py", "run.sh"])
    stand.team.deliver(A, 1, {**good(), "run.sh": "echo \0\nrm -rf ~\n"})
    stand.team.review(A, 1, APPROVED)
    stand.team.suite(A, suite_text(A))
    outcome = await outcome_of(stand, max_iterations=1)
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    (told,) = stand.sink.named("review_judged")
    assert [finding["code"] for finding in told.data["findings"]] == ["review.diff_cut"]
    assert "run.sh" in told.data["findings"][0]["message"]
    (left,) = [one for one in outcome.findings if one.code == "review.unapproved"]
    assert "no reviewer saw it whole" in left.message, "not what the reviewer praised"


async def test_a_reviewer_who_cannot_be_asked_leaves_the_task_unapproved(tmp_path: Path) -> None:
    stand = prepared(tmp_path)
    stand.team.review(A, 1, "", error="auth")
    outcome = await outcome_of(stand)
    assert outcome.status is StoryStatus.FAILED
    assert statuses(outcome) == {f"T-{A}-01": TaskStatus.UNAPPROVED}
    assert codes(outcome) == {"provider.auth", "review.unapproved"}
    assert module_of(A) + ".py" in await stand.workspace.files(A)
