"""Sprints and stories as data, for programs: what `status`, `show` and `contract` print with `--json`."""

from typing import Any

from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.gate import Gate
from orchestrator.domain.sprint import SprintRecord
from orchestrator.errors import ConfigError
from orchestrator.sprint.history import StoryHistory, conflict_of
from orchestrator.sprint.pruned import expect_kept
from orchestrator.sprint.questions import plan_of, question_json, waiting_json
from orchestrator.wiring.read import SprintView, history_of

CONTRACTS = frozenset({"contract_frozen", "contract_amended", "merge_resolved"})
"""Events that carry a contract; the last one counts."""
UNSAFE_PATH = "delivery.unsafe_path"


def waiting_of(view: SprintView) -> dict[str, Gate]:
    """Story → what a person is asked about it."""
    asked = {story: history.waits_for for story, history in view.histories.items()}
    return {story: gate for story, gate in asked.items() if gate is not None}


def sprint_json(view: SprintView) -> dict[str, Any]:
    """The object of report.json, who works on the sprint, which stories wait for a person, and what happened last."""
    waiting = [waiting_json(story, gate) for story, gate in waiting_of(view).items()]
    return {
        **view.report.model_dump(mode="json"),
        "backlog": view.record.backlog,
        "begun_by": begun_by(view.record),
        "running_pid": view.running_pid,
        "waiting": waiting,
        "paused": view.paused,
        "held": view.held,
        "last": {story: history.last_message for story, history in view.histories.items()},
    }


def begun_by(record: SprintRecord) -> str:
    """The command that began the sprint, and goes on with it where nobody is at work: run, serve."""
    return "serve" if record.executor else "run"


def story_json(view: SprintView, story: str, stat: str) -> dict[str, Any]:
    """Everything the record says of a story; `stat` is its diff stat. Raises ConfigError for one that nobody knows."""
    history = history_of(view, story)
    report = next(entry for entry in view.report.stories if entry.id == story)
    conflict, replan = conflict_of(history), view.record.replans.get(story)
    tests = [event for event in history.events if event.name in {"tests_finished", "older_tests_failed"}]
    return {
        **report.model_dump(mode="json"),
        "sprint": view.record.sprint,
        "pruned": view.record.pruned.at.isoformat() if view.record.pruned else None,
        "conflict": conflict.model_dump(mode="json", exclude={"detected"}) if conflict else None,
        "replan": replan.model_dump(mode="json") if replan else None,
        **question_json(story, view.record.sprint, history),
        "plan": plan_of(history),
        "plan_file": _plan_file(view, story, history),
        "contract": _contract(history),
        "refused": _refused(history),
        "diff_stat": stat,
        "test_output": tests[-1].data.get("output", "") if tests else "",
        "history": [
            {"time": event.time.isoformat(), "event": event.name, "message": event.message} for event in history.events
        ],
    }


def contract_of(view: SprintView, story: str) -> ArchitectureContract:
    """The story's contract as it is now. Raises ConfigError when it has none, or none any more."""
    history = history_of(view, story)
    expect_kept(view.record)
    frozen = _contract(history)
    if frozen is None:
        raise ConfigError(f"{story} has no contract: its plan was not accepted (status {history.status})")
    return ArchitectureContract.model_validate(frozen)


def _contract(history: StoryHistory) -> Any:
    found = [event.data.get("contract") for event in history.events if event.name in CONTRACTS]
    return next((contract for contract in reversed(found) if contract), None)


def _refused(history: StoryHistory) -> list[dict[str, Any]]:
    """What the contract refused on the way and in the end, each once."""
    sent_back = [one for event in history.events if event.name == "answer_sent_back" for one in event.data["findings"]]
    final = [one.model_dump(mode="json") for one in history.outcome.findings] if history.outcome else []
    found = [one for one in (*sent_back, *final) if one["code"].startswith(("contract.", UNSAFE_PATH))]
    return [one for number, one in enumerate(found) if one not in found[:number]]


def _plan_file(view: SprintView, story: str, history: StoryHistory) -> str | None:
    """The file of a person's plan; None where the plan that was judged last is the architect's."""
    judged = [event.data.get("plan_file") for event in history.events if event.name == "plan_judged"]
    brought = view.record.plans.get(story)
    return (judged[-1] if judged else brought.path if brought else None) or None
