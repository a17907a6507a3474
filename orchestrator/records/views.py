"""Sprints, stories and their questions as data: what `status`, `show` and `contract` print with `--json`."""

from datetime import datetime
from typing import Any

from orchestrator.core.command import GATE_ANSWERED, GATE_OPENED, Choice, Gate
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.errors import ConfigError
from orchestrator.core.history import STARTED, StoryHistory, conflict_of
from orchestrator.core.sprint import SprintRecord, StoryStatus
from orchestrator.core.value import each_once
from orchestrator.records.sprint_reader import SprintView, find_history
from orchestrator.sprint.gate_answers import Question, questions, settled

TO_SAY = {
    Choice.REJECT: ' --comment "what is to change"',
    Choice.EDIT: "",
}
"""Further options of the command for an answer."""


def list_answer_commands(story: str, sprint: str, gate: Gate) -> dict[str, str]:
    """Choice → the command that answers this very question and no later one."""
    where = f"{story} --sprint {sprint} --gate {gate.number}"
    return {choice.value: f"orchestrator {choice.value} {where}{TO_SAY.get(choice, '')}" for choice in gate.choices}


def plan_json(history: StoryHistory) -> dict[str, Any]:
    """Returns the plan that counts, and what became of the one that was judged last, as they were recorded.

    `plan` was judged, mended, asked about or edited last. Where it is the mended form, `written` is what the architect
    wrote, and `mended` what was changed in it; `found` is what was found in the plan as it was written.
    """
    told: dict[str, Any] = {"plan": None, "written": None, "found": [], "mended": []}
    for event in history.events:
        data, before = event.data, told["written"] or told["plan"]
        if event.name == "plan_judged":
            told = {"plan": data["plan"], "written": None, "found": data.get("findings", []), "mended": []}
        elif event.name == "plan_mended":
            told |= {"plan": data["plan"], "written": before, "mended": data.get("findings", [])}
        elif event.name == GATE_OPENED and data["gate"]["plan"]:
            gate, is_mended = data["gate"], bool(data["gate"].get("mended"))
            told |= {"plan": gate["plan"]} | ({"written": before, "mended": gate["mended"]} if is_mended else {})
        elif event.name == GATE_ANSWERED and data["answer"].get("plan"):
            told = {"plan": data["answer"]["plan"], "written": None, "found": [], "mended": []}
    return told


def question_json(story: str, sprint: str, history: StoryHistory) -> dict[str, Any]:
    """Returns the open question with its commands (None without one), and every question that was answered."""
    gate = history.waits_for
    answered = [_answered(one) for one in questions(history) if one.answer is not None]
    asked = {**gate.model_dump(mode="json"), "commands": list_answer_commands(story, sprint, gate)} if gate else None
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
    """Returns a waiting story in a list of them."""
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


CONTRACTS = frozenset({"contract_frozen", "contract_amended", "merge_resolved"})
"""Events that carry a contract; the last one counts."""
UNSAFE_PATH = "delivery.unsafe_path"


def sprint_json(view: SprintView) -> dict[str, Any]:
    """Returns report.json's object, with who works on the sprint, which stories wait, and what happened last."""
    last = {story: history.last for story, history in view.histories.items()}
    not_done = {story for story, history in view.histories.items() if history.status is not StoryStatus.DONE}
    return {
        **view.report.model_dump(mode="json"),
        "backlog": view.record.backlog,
        "begun_by": begun_by(view.record),
        "running_pid": view.running_pid,
        "running_on": view.running_on,
        "waiting": [waiting_json(story, one.waits_for) for story, one in view.histories.items() if one.waits_for],
        "paused": view.paused,
        "budgets": [one.model_dump() for one in view.budgets],
        "held": view.held,
        "last": {story: told.message if told else "" for story, told in last.items()},
        "needs": {
            story: needs
            for story, history in view.histories.items()
            if history.status is StoryStatus.PENDING
            and (needs := [one for one in view.record.needs.get(story, ()) if one in not_done])
        },
        "running_since": _iso(began_at(view)) if view.is_running else None,
        "last_at": {story: _iso(told.time) if told else None for story, told in last.items()},
    }


_BEGUN = frozenset({"sprint_started", "sprint_continued"})


def began_at(view: SprintView) -> datetime | None:
    """Returns when a process began to work on the sprint last; the end of a pause is no such event."""
    begins = (one.time for one in reversed(view.events) if one.name in _BEGUN and "stories" in one.data)
    return next(begins, None)


def begun_by(record: SprintRecord) -> str:
    """Returns the command that started the sprint and resumes it when no process runs it: run, serve."""
    return "serve" if record.executor else "run"


def story_json(view: SprintView, story: str, stat: str) -> dict[str, Any]:
    """Returns everything recorded of a story; `stat` is its diff stat. Raises ConfigError for an unknown one."""
    history = find_history(view, story)
    report = next(entry for entry in view.report.stories if entry.id == story)
    conflict, replan = conflict_of(history), view.record.replans.get(story)
    tests = history.select({"tests_finished", "older_tests_failed"})
    return {
        **report.model_dump(mode="json"),
        "sprint": view.record.sprint,
        "conflict": conflict.model_dump(mode="json", exclude={"detected"}) if conflict else None,
        "replan": replan.model_dump(mode="json") if replan else None,
        **question_json(story, view.record.sprint, history),
        **plan_json(history),
        "texts": story_texts(history),
        "plan_file": _plan_file(view, story, history),
        "contract": _contract(history),
        "refused": _refused(history),
        "diff_stat": stat,
        "test_output": tests[-1].data.get("output", "") if tests else "",
        "history": [
            {"time": event.time.isoformat(), "event": event.name, "message": event.message} for event in history.events
        ],
    }


def story_texts(history: StoryHistory) -> dict[str, str]:
    """Returns what the story asked for when it began, besides title and criteria: the backlog's field → its text."""
    told: dict[str, str] = next((event.data.get("texts", {}) for event in history.select({STARTED})), {})
    return told


def read_contract(view: SprintView, story: str) -> ArchitectureContract:
    """Returns the story's contract as it is now. Raises ConfigError when it has none."""
    history = find_history(view, story)
    frozen = _contract(history)
    if frozen is None:
        raise ConfigError(f"{story} has no contract: its plan was not accepted (status {history.status})")
    return ArchitectureContract.model_validate(frozen)


def _contract(history: StoryHistory) -> Any:
    found = [event.data.get("contract") for event in history.select(CONTRACTS)]
    return next((contract for contract in reversed(found) if contract), None)


def _refused(history: StoryHistory) -> list[dict[str, Any]]:
    """Returns what the contract refused on the way and in the end, each once."""
    sent_back = [one for event in history.select({"answer_sent_back"}) for one in event.data["findings"]]
    final = [one.model_dump(mode="json") for one in history.outcome.findings] if history.outcome else []
    found = [one for one in (*sent_back, *final) if one["code"].startswith(("contract.", UNSAFE_PATH))]
    return each_once(found)


def _plan_file(view: SprintView, story: str, history: StoryHistory) -> str | None:
    """Returns the file of a person's plan; None where the plan that was judged last is the architect's."""
    judged = [event.data.get("plan_file") for event in history.select({"plan_judged"})]
    brought = view.record.plans.get(story)
    return (judged[-1] if judged else brought.path if brought else None) or None
