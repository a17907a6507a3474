"""The human gate of a story: when a person is asked, and what each answer means; scripted, without an engine."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.checks.breakdown import read_breakdown
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.command import NOBODY, Choice, Gate, GateAnswer, GateKind
from orchestrator.core.sprint import BroughtPlan, StoryOutcome, StoryStatus
from tests.cli.waiting import CONFLICT
from tests.story.test_story import A, Stand, codes, good, provider
from tests.support import breakdown, suite_text, task

EMPTY = task(A, 1, [])
"""A task with neither file nor command: no mending helps."""
ABSTRACT = "database"
"""A path that is no file: struck when the budget is used up, so that the task is left with what else it has."""


class People:
    """Answers gates in turn, and keeps what it was asked."""

    def __init__(self, *answers: Choice | GateAnswer | Callable[[Gate], GateAnswer]) -> None:
        self._answers = list(answers)
        self.asked: list[Gate] = []

    def __call__(self, gate: Gate) -> GateAnswer:
        self.asked.append(gate)
        answer = self._answers.pop(0)
        if isinstance(answer, Choice):
            by = NOBODY if answer is Choice.TIME_OUT else "anna"
            return GateAnswer(number=gate.number, choice=answer, comment="", by=by)
        return answer if isinstance(answer, GateAnswer) else answer(gate)


def said(choice: Choice, comment: str = "", plan: Breakdown | None = None) -> GateAnswer:
    return GateAnswer(number=1, choice=choice, comment=comment, plan=plan, by="anna")


def plan_of(*tasks: Any) -> Breakdown:
    plan, _ = read_breakdown(breakdown(A, *tasks), A)
    assert plan is not None
    return plan


class Playing(Stand):
    """A story with these plans of the architect, one after the other, and a good rest."""

    def __init__(self, folder: Path, plans: Sequence[Any], *people: Any) -> None:
        super().__init__(folder)
        for plan in plans:
            self.team.say("mike", A, "breakdown", plan)
        self.team.deliver(A, 1, good())
        self.team.suite(A, suite_text(A))
        self.people = People(*people)
        self.person = self.people

    async def ends(self, mode: str, **gate: Any) -> StoryOutcome:
        policies: dict[str, Any] = {"gate": {"mode": mode, **gate}}
        return await self.run(await provider(self.team, self.folder), **policies)

    @property
    def judged(self) -> list[tuple[str, int]]:
        return [(event.data["verdict"], event.data["budget_left"]) for event in self.sink.named("plan_judged")]

    @property
    def plans_asked(self) -> list[str]:
        return [prompt.text for prompt in self.step.prompts if prompt.key.purpose == "breakdown"]


GOOD, BAD = breakdown(A, ["us_1.py"]), breakdown(A, EMPTY)


async def test_a_plan_is_revised_with_its_issues_and_no_more_than_the_budget(tmp_path: Path) -> None:
    play = Playing(tmp_path, [BAD, BAD, BAD])
    outcome = await play.ends("auto")
    assert (outcome.status, codes(outcome)) == (StoryStatus.NEEDS_ATTENTION, {"breakdown.no_work"})
    assert play.judged == [("revise", 2), ("revise", 1), ("escalate", 0)]
    first, *later = play.plans_asked
    assert "Plan Revision Required" not in first
    for text in later:
        section = text.split("## Plan Revision Required", 1)[1]
        assert "neither files nor a command" in section
        assert "Fix: Name its files in files_to_create" in section
        assert '"files_to_create": []' in section, "the previous plan is shown"
    assert play.people.asked == []


async def test_an_escalated_plan_is_approved_with_what_is_said_of_it(tmp_path: Path) -> None:
    half = breakdown(A, ["us_1.py"], task(A, 2, []))
    play = Playing(tmp_path, [half] * 3, Choice.APPROVE)
    outcome = await play.ends("escalations")
    (gate,) = play.people.asked
    assert (gate.valid, gate.barred, [issue.code for issue in gate.issues]) == (False, "", ["breakdown.no_work"])
    found = {finding.code: finding for finding in outcome.findings}
    assert outcome.status is StoryStatus.DONE
    assert found["gate.approved_invalid"].message == "anna approved the plan in spite of 1 issue"
    assert not found["breakdown.no_work"].severity.blocks


async def test_a_plan_that_the_contract_would_refuse_cannot_be_approved(tmp_path: Path) -> None:
    undeclared = breakdown(A, task(A, 1, ["us_1.py"], "pip install requests"))
    play = Playing(tmp_path, [undeclared] * 3, Choice.APPROVE, Choice.CANCEL)
    outcome = await play.ends("escalations")
    first, second = play.people.asked
    assert Choice.APPROVE not in first.choices
    assert "installs `requests`" in first.barred
    assert (first.number, second.number, first.valid) == (1, 2, False)
    assert (outcome.status, codes(outcome)) == (StoryStatus.CANCELLED, {"gate.cancelled"})


async def test_a_rejection_is_one_more_revision_with_the_comment(tmp_path: Path) -> None:
    comment = "one module is enough"
    play = Playing(tmp_path, [BAD, BAD, BAD, GOOD], said(Choice.REJECT, comment))
    assert (await play.ends("escalations")).status is StoryStatus.DONE
    assert play.judged == [("revise", 2), ("revise", 1), ("escalate", 0), ("valid", 0)]
    last = play.plans_asked[-1].split("## Plan Revision Required", 1)[1]
    assert comment in last
    assert "neither files nor a command" in last


async def test_an_edited_plan_is_checked_again_and_built(tmp_path: Path) -> None:
    play = Playing(tmp_path, [BAD] * 3, said(Choice.EDIT, plan=plan_of(["us_1.py"])))
    outcome = await play.ends("escalations")
    assert (outcome.status, len(play.plans_asked)) == (StoryStatus.DONE, 3)


async def test_planning_from_the_start_forgets_the_revisions_and_tells_the_comment(tmp_path: Path) -> None:
    play = Playing(tmp_path, [BAD, BAD, BAD, BAD, GOOD], said(Choice.REPLAN, "think of files first"))
    assert (await play.ends("escalations")).status is StoryStatus.DONE
    assert play.judged[3:] == [("revise", 2), ("valid", 1)]
    assert "Plan Revision Required" not in play.plans_asked[3]
    assert "think of files first" in play.plans_asked[3]
    assert "Conflict that a person has overridden" not in play.plans_asked[3]


@pytest.mark.parametrize(
    ("plan", "on_timeout", "status"),
    [
        (BAD, "needs_attention", StoryStatus.NEEDS_ATTENTION),
        (BAD, "approve", StoryStatus.NEEDS_ATTENTION),
        (BAD, "cancel", StoryStatus.CANCELLED),
        (GOOD, "needs_attention", StoryStatus.NEEDS_ATTENTION),
        (GOOD, "approve", StoryStatus.DONE),
    ],
)
async def test_when_nobody_answers(tmp_path: Path, plan: Any, on_timeout: str, status: StoryStatus) -> None:
    play = Playing(tmp_path, [plan] * 3, Choice.TIME_OUT)
    outcome = await play.ends("always", timeout_s=60, on_timeout=on_timeout)
    assert outcome.status is status
    assert ("gate.unanswered" in codes(outcome)) is (status is not StoryStatus.DONE)
    assert play.people.asked[0].deadline is not None


async def test_a_person_is_told_what_mending_changed(tmp_path: Path) -> None:
    abstract = breakdown(A, ["us_1.py", ABSTRACT])
    play = Playing(tmp_path, [abstract] * 3, Choice.APPROVE)
    assert (await play.ends("always")).status is StoryStatus.DONE
    (gate,) = play.people.asked
    assert gate.plan.tasks[0].files_to_create == ("us_1.py",)
    assert gate.reason == "the plan was invalid to the last; approving it builds its mended form"
    assert [finding.code for finding in gate.mended] == ["breakdown.struck"]
    written = play.sink.named("plan_judged")[-1]
    assert written.message.startswith("plan 3 with 1 task: escalate")
    assert written.data["plan"]["tasks"][0]["files_to_create"] == ["us_1.py", ABSTRACT]


@pytest.mark.parametrize("choice", [Choice.APPROVE, Choice.REPLAN])
async def test_an_overridden_conflict_is_planned_anew_with_the_comment(tmp_path: Path, choice: Choice) -> None:
    conflicting = breakdown(A) | {"architectural_conflict": CONFLICT, "tasks": []}
    play = Playing(tmp_path, [conflicting, conflicting, GOOD], said(choice, "keep the file"))
    assert (await play.ends("escalations")).status is StoryStatus.DONE
    (gate,) = play.people.asked
    assert (gate.kind, gate.conflict.conflict_reason) == (GateKind.CONFLICT, CONFLICT["conflict_reason"])
    assert "keep the file" in play.plans_asked[1]
    assert "a local file cannot be shared" in play.plans_asked[1]
    assert "counts as settled" in play.plans_asked[2].split("## Plan Revision Required", 1)[1]


@pytest.mark.parametrize(
    ("mode", "answers", "status"),
    [
        ("auto", [], StoryStatus.CONFLICTED),
        ("escalations", [Choice.TIME_OUT], StoryStatus.CONFLICTED),
        ("escalations", [Choice.CANCEL], StoryStatus.CANCELLED),
    ],
)
async def test_a_conflict_that_stays(tmp_path: Path, mode: str, answers: list[Choice], status: StoryStatus) -> None:
    conflicting = breakdown(A) | {"architectural_conflict": CONFLICT, "tasks": []}
    play = Playing(tmp_path, [conflicting], *answers)
    outcome = await play.ends(mode, on_timeout="approve")
    assert outcome.status is status
    assert len(play.sink.named("conflict_detected")) == 1


DOUBTFUL = CONFLICT | {"current_architecture": "No conflicts", "recommended_action": "No action is required."}


@pytest.mark.parametrize(("then", "status"), [(GOOD, StoryStatus.DONE), (None, StoryStatus.CONFLICTED)])
async def test_a_conflict_that_contradicts_itself_goes_back_once_with_the_facts(
    tmp_path: Path, then: dict[str, Any] | None, status: StoryStatus
) -> None:
    doubtful = breakdown(A) | {"architectural_conflict": DOUBTFUL, "tasks": []}
    play = Playing(tmp_path, [doubtful, then or doubtful])
    assert (await play.ends("auto")).status is status
    assert len(play.plans_asked) == 2
    asked = play.plans_asked[1].split("## Plan Revision Required", 1)[1]
    assert '`current_architecture` says "No conflicts"' in asked
    assert "set `detected` to false and plan it" in asked
    assert len(play.sink.named("conflict_detected")) == (then is None)


def given(path: str = "us_1.py") -> BroughtPlan:
    task = f"### Task 1: value\n\n- Create: `{path}`\n\n{'It gives the value. ' * 20}"
    return BroughtPlan(path="plans/us-1.md", text=f"# The value is there\n\n{task}")


async def test_a_persons_plan_takes_the_architects_place(tmp_path: Path) -> None:
    play = Playing(tmp_path, [])
    play.given = given()
    assert (await play.ends("auto")).status is StoryStatus.DONE
    assert play.plans_asked == []


async def test_a_persons_invalid_plan_is_never_rewritten(tmp_path: Path) -> None:
    play = Playing(tmp_path, [GOOD], Choice.REJECT, said(Choice.REPLAN, "plan it yourself"))
    play.given = given("../us_1.py")
    assert (await play.ends("escalations")).status is StoryStatus.DONE
    first, second = play.people.asked
    assert (first.plan_file, Choice.REJECT in first.choices, first.number, second.number) == (
        "plans/us-1.md", False, 1, 2,
    )  # fmt: skip
    assert len(play.plans_asked) == 1, "planned by the architect only after a person said so"
    assert "plan it yourself" in play.plans_asked[0]


async def test_a_persons_invalid_plan_in_mode_auto_waits_on_its_branch(tmp_path: Path) -> None:
    play = Playing(tmp_path, [])
    play.given = given("../us_1.py")
    outcome = await play.ends("auto")
    assert (outcome.status, codes(outcome)) == (StoryStatus.NEEDS_ATTENTION, {"breakdown.unsafe_path"})
    assert play.judged == [("escalate", 0)]
