"""The page of a story: its path, plan, contract, tasks, reviews, tests, calls and cost; and the page of one call."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any

from orchestrator.board.calls import StoryCalls, add_up
from orchestrator.board.cards import Cards
from orchestrator.board.deliveries import iso, list_deliveries, list_reviews, show_finding
from orchestrator.board.fit import fit
from orchestrator.board.gates import Branch, show_plan
from orchestrator.board.orders import list_story_orders
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.event import Event
from orchestrator.core.finding import Finding
from orchestrator.core.sprint import CaseOutcome, StoryStatus, TaskStatus
from orchestrator.records.sprint_reader import Reader, SprintView, find_history
from orchestrator.records.views import begun_by, plan_json, story_json
from orchestrator.reports.path import Mark, PathStep, of_story, span

SIGNS = {Mark.BEGIN: "○", Mark.GOOD: "✓", Mark.AGAIN: "↻", Mark.WAIT: "?", Mark.BAD: "✗", Mark.NOW: "▸"}
LONG = timedelta(minutes=1)
"""A gap between two steps that is worth telling."""
MOST_STEPS = 400
"""Of a path on the page: the latest."""
_RUNS = frozenset({"tests_finished", "older_tests_failed"})
_AMENDED = frozenset({"contract_amended", "amendment_refused"})


class StoryPage:
    """A story at one moment, as values for templates. Blocks.

    `whole` is the sprint as pages follow it; the story itself is read with all that is recorded of it.
    """

    def __init__(self, reader: Reader, whole: SprintView, story: str) -> None:
        find_history(whole, story)
        self._reader, self._whole, self._story = reader, whole, story
        self._view = reader.story(whole.record.sprint, story)
        self._history = self._view.histories[story]
        self._events = self._history.events
        self._shown = story_json(self._view, story, "")

    def values(self, place: int) -> dict[str, Any]:
        """Returns what story.html shows; `place`: up to where the log was read."""
        values = {
            "place": place,
            "sprint": self._whole.record.sprint,
            "story": self._story,
            "head": self._head,
            "waits": [*self._list_waits()],
            "orders": list_story_orders(self._whole, self._story),
            "path": self._path,
            "plan": self._plan,
            "contract": self._contract,
            "tasks": [self._task(task) for task in self._task_ids],
            "reviews": list_reviews(self._events, self._calls.find_answer),
            "tests": self._tests,
            "findings_of_story": [*map(show_finding, self._shown["findings"])],
            "stages": add_up(self._events, self._report.stages),
            "calls": self._calls.rows(is_running=self._view.is_running),
        }
        return fit(values)

    def call(self, name: str) -> dict[str, Any]:
        """Returns what call.html shows. Raises UnknownName."""
        values = {
            "sprint": self._whole.record.sprint,
            "story": self._story,
            "title": self._shown["title"],
            "call": self._calls.call(name),
        }
        return fit(values)

    def call_text(self, name: str, part: str) -> str:
        """Returns the prompt or the answer of a call, whole. Raises UnknownName."""
        call = self._calls.call(name)
        return str(call["prompt_text"] if part == "prompt" else call["answer"])

    @cached_property
    def _calls(self) -> StoryCalls:
        return StoryCalls(self._reader.folder, self._view.record, self._story, self._events)

    @cached_property
    def _report(self) -> Any:
        return next(one for one in self._view.report.stories if one.id == self._story)

    @property
    def _head(self) -> dict[str, Any]:
        history, record = self._history, self._view.record
        return {
            "title": self._shown["title"],
            "state": Cards(self._whole).state(self._story),
            "is_running": self._view.is_running,
            "begun_by": begun_by(record),
            "started": iso(history.started),
            "finished": iso(history.finished),
            "lasts_s": history.duration_s,
            "attempts": self._report.attempts,
            "calls": history.calls,
            "earlier_calls": history.earlier_calls,
            "looks": history.looks,
            "tokens": history.tokens.model_dump(),
            "usd": history.cost_usd,
            "branch": self._report.branch or "",
            "commit": self._report.commit or "",
            "changed": [{"path": path, "kind": kind} for path, kind in (self._report.changed or {}).items()],
            "texts": self._shown["texts"],
            "criteria": [*(history.criteria or record.criteria.get(self._story, ()))],
            "conflict": self._shown["conflict"],
            "replan": self._shown["replan"],
            "generation": record.generations.get(self._story, 1),
        }

    def _list_waits(self) -> Iterator[dict[str, Any]]:
        """Yields what keeps the story from going on."""
        whole, history = self._whole, self._history
        if (gate := history.waits_for) is not None:
            yield {"kind": "gate", "text": gate.reason, "since": iso(gate.opened_at), "deadline": iso(gate.deadline)}
        if history.outcome is not None:
            return
        if self._story in whole.held:
            yield {"kind": "held", "text": whole.held[self._story]}
        elif whole.paused:
            yield {"kind": "held", "text": whole.paused}
        if history.status is StoryStatus.PENDING:
            needs = whole.record.needs.get(self._story, ())
            known = [(one, whole.histories[one].status) for one in needs if one in whole.histories]
            for one, status in known:
                if status is not StoryStatus.DONE:
                    yield {"kind": "need", "text": "", "story": one, "status": status.value}

    @property
    def _path(self) -> dict[str, Any]:
        steps = of_story(self._history, running=self._view.is_running, orders=self._view.events)
        left_out = max(0, len(steps) - MOST_STEPS)
        days = bool(steps) and steps[0].time.date() != steps[-1].time.date()
        return {"left_out": left_out, "days": days, "steps": [*_draw(steps)][left_out:]}

    @property
    def _plan(self) -> dict[str, Any] | None:
        told = plan_json(self._history)
        raw = told["written"] or told["plan"]
        if raw is None:
            return None
        found = [Finding.model_validate(one) for one in told["found"]]
        return {
            **show_plan(Breakdown.model_validate(raw), found, Branch()),
            "is_written": told["written"] is not None,
            "file": self._shown["plan_file"] or "",
            "mended": [*map(show_finding, told["mended"])],
            "accepted": self._shown["contract"] is not None,
        }

    @property
    def _contract(self) -> dict[str, Any] | None:
        """Returns what may be written and used, who allowed it, and what was refused; None before there is one."""
        contract = self._shown["contract"]
        if contract is None:
            return None
        amended = [event for event in self._events if event.name in _AMENDED]
        given = {path: number for number, one in enumerate(contract["amendments"], start=1) for path in one["files"]}
        added = {name for one in contract["amendments"] for name in one["dependencies"]}
        times = [event.time for event in amended if event.name == "contract_amended"]
        return {
            "base": contract["base_commit"],
            "tasks": [
                {"id": task, "files": [{"path": path, "amendment": given.get(path, 0)} for path in files]}
                for task, files in contract["task_files"].items()
            ],
            "files_before": len(contract["baseline_files"]),
            "packages": [name for name in contract["declared_dependencies"] if name not in added],
            "packages_before": contract["baseline_dependencies"],
            "amendments": [
                {**one, "number": number, "time": iso(times[number - 1] if number <= len(times) else None)}
                for number, one in enumerate(contract["amendments"], start=1)
            ],
            "denied": [event.message for event in amended if event.name == "amendment_refused"],
            "refused": [*map(show_finding, self._shown["refused"])],
        }

    @property
    def _task_ids(self) -> list[str]:
        plan = self._shown["plan"] or {}
        planned = [task["task_id"] for task in plan.get("tasks", ())]
        others = (one["id"] for one in self._shown["tasks"])
        return [*dict.fromkeys((*planned, *others))]

    def _task(self, task: str) -> dict[str, Any]:
        plan = self._shown["plan"] or {}
        words = next((one["description"] for one in plan.get("tasks", ()) if one["task_id"] == task), "")
        own = [event for event in self._events if event.task == task]
        outcome = next((one for one in self._shown["tasks"] if one["id"] == task), None)
        finished = [event for event in own if event.name == "task_finished"]
        status = outcome["status"] if outcome else finished[-1].data.get("status") if finished else ""
        if not status:
            status = "executing" if own else TaskStatus.PENDING.value
        return {
            "id": task,
            "title": words,
            "status": status,
            "deliveries": len(finished),
            "commits": [*list_deliveries(own, task)],
            "commands": [
                {"message": event.message, "level": event.level.value}
                for event in own
                if event.name == "command_finished"
            ],
            "comments": [{**one, "severity": str(one["severity"])} for one in (outcome["comments"] if outcome else ())],
        }

    @property
    def _tests(self) -> dict[str, Any]:
        report = self._report
        named = {case.name for row in report.criteria for case in row.tests}
        others = [one for one in report.tests.cases if one.name not in named]
        runs = [event for event in self._events if event.name in _RUNS]
        analysed = [event for event in self._events if event.name == "failure_analysed"]
        return {
            "passed": report.tests.passed,
            "failed": report.tests.failed,
            "run": report.tests.run,
            "criteria": [{"criterion": row.criterion, "tests": _fold_cases(row.tests)} for row in report.criteria],
            "others": _fold_cases(others),
            "runs": [_run(event) for event in runs],
            "analyses": [
                {
                    "time": iso(event.time),
                    "suite_fault": event.data.get("suite_fault") or "",
                    "environment": event.data.get("environment") or "",
                    "instructions": event.data.get("instructions") or [],
                }
                for event in analysed
            ],
            "rewritten": [one.model_dump() for one in report.rewritten],
        }


def _fold_cases(cases: Sequence[CaseOutcome]) -> list[dict[str, Any]]:
    """Returns tests by name and result; those of one function with different parameters are counted."""
    found = Counter((case.name, case.result, case.shown_by) for case in cases)
    return [
        {"name": name, "result": result, "shown_by": shown_by, "count": count}
        for (name, result, shown_by), count in found.items()
    ]


def _draw(steps: Sequence[PathStep]) -> Iterator[dict[str, Any]]:
    before = steps[0].time if steps else None
    for step in steps:
        gap = step.time - before if before else timedelta()
        before = step.time
        yield {
            "time": step.time.isoformat(),
            "gap": span(gap) if gap >= LONG else "",
            "mark": step.mark.value,
            "sign": SIGNS[step.mark],
            "stage": step.stage,
            "task": step.task or "",
            "text": step.text,
            "notes": [*step.notes],
            "inner": step.inner,
        }


def _run(event: Event) -> dict[str, Any]:
    data = event.data
    return {
        "time": iso(event.time),
        "older": event.name == "older_tests_failed",
        "attempt": data["attempt"],
        "green": data["green"],
        "message": event.message,
        "verdict": str(data.get("verdict") or "").replace("_", " "),
        "problem": data.get("problem") or "",
        "failing": [{"name": one["name"], "message": one["message"]} for one in data["failing"]],
        "flaky": [str(one) for one in data.get("flaky") or ()],
        "ran_with": data.get("ran_with") or [],
        "duration_s": (data.get("duration_ms") or 0) / 1000,
        "output": data.get("output") or "",
    }
