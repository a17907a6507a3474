"""A story's events folded into its path."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.core.command import Loop, Verdict, decided
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import major, minor
from orchestrator.reports.path import span, story_path

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


def plan(verdict: Verdict, attempt: int, left: int, *findings: Any, **more: Any) -> Event:
    said = decided(Loop.PLAN, verdict, findings=findings, attempt=attempt, budget_left=left)
    return event("plan_judged", f"plan {attempt}: {verdict}", plan=PLAN, **{**said, **more})


def test_an_answer_that_waits_for_its_story_and_a_plan_of_a_person() -> None:
    told = texts(
        event("plan_given", "a person's plan", plan_file="b.md", followed=True),
        event("plan_given", "a person's plan", plan_file="a.md", followed=False),
        plan(Verdict.ESCALATE, 1, 0, TWO[0], plan_file="a.md"),
        event("gate_opened", "A waits for a person", level=Level.WARN, gate={"reason": "it is unsafe"}),
        event("gate_answered", "A: the plan is rejected by bob"),
    )
    assert told == [
        "good: b.md is followed",
        "good: a.md is read",
        "bad: a person's plan (a.md) with 2 tasks: escalate (`../x` is unsafe)",
        "wait: waits for a person: it is unsafe",
        "wait: A: the plan is rejected by bob; it counts when the story goes on",
    ]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-5, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 m"), (11_520, "3 h 12 m"), (86_400 * 2 + 18_000, "2 d 5 h")],
)
def test_a_span_in_words(seconds: int, told: str) -> None:
    assert span(timedelta(seconds=seconds)) == told
