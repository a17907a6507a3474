"""A story's question and its answers as data, for programs (`show --json`, `status --json`); pure."""

from datetime import datetime
from typing import Any

from orchestrator.domain.gate import GATE_ANSWERED, GATE_OPENED, Choice, Gate
from orchestrator.sprint.answering import Question, questions, settled
from orchestrator.sprint.history import StoryHistory

TO_SAY = {
    Choice.REJECT: ' --comment "what is to change"',
    Choice.EDIT: "",
}
"""What an answer needs beside the story."""


def commands(story: str, sprint: str, gate: Gate) -> dict[str, str]:
    """Choice → the command that answers this very question and no later one."""
    where = f"{story} --sprint {sprint} --gate {gate.number}"
    return {choice.value: f"orchestrator {choice.value} {where}{TO_SAY.get(choice, '')}" for choice in gate.choices}


def plan_of(history: StoryHistory) -> dict[str, Any] | None:
    """The plan that was judged, mended, asked about or edited last, as it was recorded."""
    plans: list[dict[str, Any] | None] = []
    for event in history.events:
        if event.name in {"plan_judged", "plan_mended"}:
            plans.append(event.data["plan"])
        elif event.name == GATE_OPENED:
            plans.append(event.data["gate"]["plan"])
        elif event.name == GATE_ANSWERED:
            plans.append(event.data["answer"].get("plan"))
    return next((plan for plan in reversed(plans) if plan), None)


def question_json(story: str, sprint: str, history: StoryHistory) -> dict[str, Any]:
    """The open question with its commands (None without one), and every question that was answered."""
    gate = history.waits_for
    answered = [_answered(one) for one in questions(history) if one.answer is not None]
    asked = {**gate.model_dump(mode="json"), "commands": commands(story, sprint, gate)} if gate else None
    return {"question": asked, "answers": answered}


def _answered(one: Question) -> dict[str, Any]:
    assert one.answer is not None
    assert one.answered_at is not None
    return {
        "kind": one.gate.kind.value,
        "reason": one.gate.reason,
        "opened_at": _iso(one.gate.opened_at),
        "answered_at": _iso(one.answered_at),
        "said": settled(one.gate, one.answer),
        **one.answer.model_dump(mode="json", exclude={"plan"}),
        "edited": one.answer.plan is not None,
    }


def waiting_json(story: str, gate: Gate) -> dict[str, Any]:
    """A waiting story in a list of them."""
    return {
        "story": story,
        "gate": gate.number,
        "kind": gate.kind.value,
        "reason": gate.reason,
        "since": _iso(gate.opened_at),
        "deadline": _iso(gate.deadline),
        "choices": [choice.value for choice in gate.choices],
    }


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None
