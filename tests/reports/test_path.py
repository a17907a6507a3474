"""A story's events folded into its path."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.core.command import Loop, Verdict, decided
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import major, minor
from orchestrator.reports.path import NOTES, STEPS, span, story_path
from orchestrator.story.routing import PlanRoute

START = datetime(2026, 1, 1, 8, tzinfo=UTC)


def event(name: str, message: str = "", *, after_s: float = 0, task: str | None = None, **data: Any) -> Event:
    level = data.pop("level", Level.INFO)
    time = START + timedelta(seconds=after_s)
    return Event(
        id=f"S/A:{name}",
        time=time,
        level=level,
        name=name,
        message=message,
        sprint="S",
        story="A",
        task=task,
        data=data,
    )


def texts(*events: Event) -> list[str]:
    return [
        f"{step.mark}: {step.text}{' ' + str(list(step.notes)) if step.notes else ''}" for step in story_path(events)
    ]


TWO = [major("breakdown.path", "`../x` is unsafe"), major("breakdown.id", "`one` is no id"), minor("x.y", "small")]
PLAN = {"tasks": [{}, {}]}


def plan(verdict: PlanRoute, attempt: int, left: int, *findings: Any, **more: Any) -> Event:
    said = decided(Loop.PLAN, verdict, findings=findings, attempt=attempt, budget_left=left)
    return event("plan_judged", f"plan {attempt}: {verdict}", plan=PLAN, **{**said, **more})


def test_the_plan_loop_and_the_gate() -> None:
    gate = {"reason": "the plan is invalid: 2 issues", "kind": "plan"}
    asked = decided(Loop.GATE, Verdict.ASKED, findings=TWO, attempt=2, budget_left=0)
    told = texts(
        event("story_started", "A starts: Title"),
        event("call_retried", "overloaded"),
        event("call_retried", "overloaded"),
        event("answer_healed", "healed", repairs={"raw_newline": 2}),
        plan(PlanRoute.REVISE, 1, 1, *TWO),
        plan(PlanRoute.ESCALATE, 2, 0, TWO[0]),
        event("gate_opened", "A waits …", after_s=10, gate=gate, **asked),
        event("gate_answered", "A: the plan is approved by anna", after_s=11_000, answer={"number": 1}),
        event("gate_settled", "the plan is approved by anna: go", after_s=11_530, **{**asked, "verdict": "approve"}),
        event("contract_frozen", "allowed beside what is there: 3 files and 0 new packages", contract={}),
    )
    assert told == [
        "begin: begins",
        "again: plan 1 of 2 with 2 tasks: revise (2 issues: `../x` is unsafe; `one` is no id) "
        "['2 retries', 'healed: raw newline']",
        "bad: plan 2 of 2 with 2 tasks: escalate (`../x` is unsafe)",
        "wait: waits for a person: the plan is invalid: 2 issues",
        "good: the plan is approved by anna: go ['after 3 h 12 m']",
        "good: contract frozen: 3 files and 0 new packages",
    ]


def test_an_answer_that_waits_for_its_story_and_a_plan_of_a_person() -> None:
    found = [finding.model_dump(mode="json") for finding in TWO]
    told = texts(
        event("plan_given", "a person's plan", plan_file="b.md"),
        event("plan_given", "a person's plan", level=Level.WARN, plan_file="a.md", findings=found),
        plan(PlanRoute.ESCALATE, 1, 0, TWO[0], plan_file="a.md"),
        event("gate_opened", "A waits for a person", level=Level.WARN),
        event("gate_answered", "A: the plan is rejected by bob"),
    )
    assert told == [
        "good: b.md is read",
        "again: a.md is read (2 issues: `../x` is unsafe; `one` is no id)",
        "bad: a person's plan (a.md) with 2 tasks: escalate (`../x` is unsafe)",
        "wait: A waits for a person",
        "wait: A: the plan is rejected by bob; it counts when the story goes on",
    ]


def test_building_testing_and_merging() -> None:
    def answer(name: str, verdict: Verdict, attempt: int, *findings: Any) -> Event:
        said = decided(Loop.ANSWER, verdict, findings=findings, attempt=attempt, budget_left=3 - attempt)
        return event(name, "…", task="T-A-01", purpose="delivery", **said)

    def task(status: str, attempt: int) -> Event:
        said = {"stage": "build", "verdict": status, "findings": [], "attempt": attempt, "budget_left": 3 - attempt}
        return event("task_finished", "…", task="T-A-01", status=status, **said)

    def tests(verdict: Verdict, attempt: int, message: str) -> Event:
        said = decided(Loop.TEST, verdict, attempt=attempt, budget_left=3 - attempt)
        return event("tests_finished", f"attempt {attempt}: {message}", green=verdict is Verdict.GREEN, **said)

    merged = decided(Loop.MERGE, Verdict.MERGED, attempt=1, budget_left=0)
    kept = decided(Loop.MERGE, Verdict.ACCEPTED, attempt=1, budget_left=0)
    events = [
        event("command_finished", level=Level.WARN, **decided(Loop.BUILD, Verdict.FAILED, attempt=1, budget_left=2)),
        answer("answer_sent_back", Verdict.SENT_BACK, 1, major("command.failed", "`make` ended with 2:\nmuch output")),
        event("command_finished", **decided(Loop.BUILD, Verdict.PASSED, attempt=1, budget_left=2)),
        answer("answer_accepted", Verdict.ACCEPTED, 2),
        task("done", 1),
        event("suite_committed", "tests/test_a.py with 5 tests"),
        tests(Verdict.MEND, 1, "3 passed, 2 failed"),
        event("failure_analysed", "the failure was analysed: a.py: wrong"),
        task("partial", 2),
        tests(Verdict.GREEN, 2, "5 passed, 0 failed"),
        event("diff_checked", "the whole diff keeps to the contract", level=Level.DEBUG, **kept),
        event("story_merged", "merged as 0123456789", **merged),
        event("story_finished", "A is done", status="done"),
    ]
    assert texts(*events) == [
        "again: T-A-01: delivery 1 of 3 sent back (`make` ended with 2:) ['command failed']",
        "good: T-A-01 done ['command passed', 'accepted at reply 2 of 3']",
        "good: suite tests/test_a.py with 5 tests",
        "again: tests 1 of 3: 3 passed, 2 failed, to be mended",
        "again: the failure was analysed: a.py: wrong",
        "again: T-A-01 partial for attempt 2 of 3",
        "good: tests 2 of 3: 5 passed, 0 failed",
        "good: merged as 0123456789",
        "good: A is done",
    ]
    assert [step.inner for step in story_path(events)][:2] == [True, False]


OLDER = [
    event("story_started", "A starts"),
    event("plan_judged", "plan 1 with 1 task: revise (no)", route="revise", plan=None),
    event("plan_judged", "plan 2 with 1 task: approved", route="approved"),
    event("contract_frozen", "frozen"),
    event("answer_sent_back", "the delivery is sent back: no", findings=[{"code": "a.b", "message": "no"}, "odd"]),
    event("task_finished", "T-1 is done", task="T-1", status="done"),
    event("tests_finished", "attempt 1: 1 passed, 0 failed", green=True, attempt=1),
    event("answer_healed", "healed"), event("gate_settled", "settled"), event("gate_opened", "open", gate="odd"),
    event("something_else", "new in a later version", level=Level.WARN), event("detail", level=Level.DEBUG),
    event("story_finished", "A is done", status="done"),
]  # fmt: skip


def test_a_log_of_another_version_is_told_by_its_messages() -> None:
    assert texts(*OLDER) == [
        "begin: begins",
        "again: plan: revise",
        "good: plan: valid",
        "good: contract frozen: frozen",
        "again: the delivery is sent back: no",
        "good: T-1 done",
        "good: tests 1: attempt 1: 1 passed, 0 failed",
        "bad: settled ['healed']",
        "wait: open",
        "bad: new in a later version",
        "good: A is done",
    ]


@pytest.mark.parametrize("odd", [None, 7, True, "text", [], [None], {}, {"tasks": 3}, {"reason": ["x"]}])
def test_odd_data_breaks_nothing(odd: Any) -> None:

    keys = ("stage", "verdict", "findings", "attempt", "budget_left", "plan", "gate", "status", "repairs", "purpose")
    events = [event(name, "it is so", **dict.fromkeys((*keys, "green", "plan_file"), odd)) for name in [*STEPS, *NOTES]]
    steps = story_path(events)
    assert len(steps) >= len(STEPS) - 2
    assert json.dumps([step.model_dump(mode="json") for step in steps])


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-5, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 m"), (11_520, "3 h 12 m"), (86_400 * 2 + 18_000, "2 d 5 h")],
)
def test_a_span_in_words(seconds: int, told: str) -> None:
    assert span(timedelta(seconds=seconds)) == told
