"""Questions to a person: the list of the open ones, and one with all that is needed to answer it."""

import asyncio
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from orchestrator.app.sprints import workspace_of
from orchestrator.board.deliveries import show_finding
from orchestrator.contract.freeze import freeze, worth_freezing
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.command import GATE_OPENED, Choice, Gate, GateKind
from orchestrator.core.delivery import Sides
from orchestrator.core.errors import ContractViolation, WorkspaceError
from orchestrator.core.finding import Finding
from orchestrator.core.history import StoryHistory, conflict_of
from orchestrator.records.sprint_reader import SprintView, find_history
from orchestrator.records.views import (
    begun_by,
    list_answer_commands,
    plan_json,
    question_json,
    story_texts,
    waiting_json,
)
from orchestrator.settings import Environment
from orchestrator.sprint.gate_answers import explain_choice, time_over
from orchestrator.sprint.plan_edit import body_of, plan_text, write_data
from orchestrator.storage.state_folder import StateFolder

LABELS = {
    Choice.APPROVE: "Approve",
    Choice.REJECT: "Reject",
    Choice.REPLAN: "Replan",
    Choice.CANCEL: "Cancel the story",
}
"""Choice → its button; an edit has a form of its own."""
WARNINGS = {
    Choice.REPLAN: "The plan below is dropped, and the architect begins from the start. What was spent stays spent.",
    Choice.CANCEL: "The story ends as cancelled, and what depends on it is blocked. Its branch is kept.",
}
MERGE_WARNING = (
    "The story ends unmerged and needs attention; what depends on it is blocked. Its work stays on its branch."
)
DESIGN = ("database_design", "api_design", "code_patterns", "conventions", "tech_stack", "technical_notes")
"""Fields of a plan that hold free words or data, in the order of their headings."""
PLAN_PARTS = ("dependencies", "acceptance_tests", "tests_to_change", "todos", "architectural_conflict", *DESIGN)


@dataclass(frozen=True, kw_only=True)
class Branch:
    """What git knows about the story of a question."""

    files: tuple[str, ...] | None = None
    """All files of its branch; None when they could not be read."""
    manifests: Mapping[str, str] = field(default_factory=dict)
    """Those that declare packages or name modules, with their texts."""
    sides: Sides | None = None
    """Of a merge: both sides as they are now."""
    problem: str = ""
    """Why it could not be read."""


async def read_branch(environment: Environment, view: SprintView, story: str) -> Branch:
    """Returns what git knows about the open question of a story; nothing when there is none."""
    gate, folder = find_history(view, story).waits_for, StateFolder.of(environment)
    if gate is None:
        return Branch()
    mirror = folder.mirror(Path(view.record.repo))
    if not await asyncio.to_thread(mirror.exists):
        return Branch(problem="its branch is not on this machine")
    workspace = workspace_of(folder, view.record)
    try:
        if gate.kind is GateKind.MERGE:
            return Branch(sides=await workspace.sides(story, await workspace.result_head()))
        files = await workspace.files(story)
        return Branch(files=files, manifests=await workspace.read(story, [one for one in files if worth_freezing(one)]))
    except WorkspaceError as error:
        return Branch(problem=error.message)
    finally:
        workspace.close()


def show_gates(views: Iterable[SprintView], now: datetime) -> dict[str, Any]:
    """Returns what gates.html shows: the open questions of these sprints, the oldest first."""
    asked = [
        {
            "sprint": view.record.sprint,
            "title": view.record.titles.get(story, ""),
            "is_running": view.is_running,
            "begun_by": begun_by(view.record),
            "over": time_over(gate, now),
            **waiting_json(story, gate),
        }
        for view in views
        for story, history in view.histories.items()
        if (gate := history.waits_for) is not None
    ]
    return {"questions": sorted(asked, key=lambda one: one["since"] or "")}


def show_gate(view: SprintView, story: str, branch: Branch, now: datetime) -> dict[str, Any]:
    """Returns what gate.html shows of a story's question. `view` has the whole history of the story."""
    history = find_history(view, story)
    gate, told = history.waits_for, plan_json(history)
    nothing: dict[str, Any] = {"plan": None, "edit": None, "refused": []}
    conflict = gate.conflict if gate is not None and gate.conflict.detected else conflict_of(history)
    return {
        "sprint": view.record.sprint,
        "story": story,
        "title": view.record.titles.get(story, ""),
        "texts": story_texts(history),
        "criteria": [*(history.criteria or view.record.criteria.get(story, ()))],
        "status": history.status.value,
        "is_running": view.is_running,
        "begun_by": begun_by(view.record),
        "answers": question_json(story, view.record.sprint, history)["answers"],
        "question": None if gate is None else _question(view.record.sprint, story, gate, now),
        "conflict": [] if conflict is None else [
            {"title": name.replace("_", " ").capitalize(), "text": text}
            for name, text in conflict.model_dump(exclude={"detected"}).items()
        ],
        "branch_problem": branch.problem,
        "sides": None if branch.sides is None else _sides(branch.sides),
        **(_plan_values(gate, told, history, branch) if gate is not None else nothing),
    }  # fmt: skip


def _question(sprint: str, story: str, gate: Gate, now: datetime) -> dict[str, Any]:
    merging = gate.kind is GateKind.MERGE
    warnings = WARNINGS | ({Choice.CANCEL: MERGE_WARNING} if merging else {})
    return {
        **waiting_json(story, gate),
        "iteration": gate.iteration,
        "plan_file": gate.plan_file,
        "branch": gate.branch,
        "barred": gate.barred,
        "over": time_over(gate, now),
        "commands": list_answer_commands(story, sprint, gate),
        "answers": [
            {
                "choice": choice.value,
                "label": LABELS[choice],
                "means": explain_choice(gate, choice),
                "warning": warnings.get(choice, ""),
            }
            for choice in gate.choices
            if choice in LABELS
        ],
    }


def _plan_values(gate: Gate, told: Mapping[str, Any], history: StoryHistory, branch: Branch) -> dict[str, Any]:
    """Returns the plan as its author wrote it with the findings in it, what its mended form changes, its contract."""
    written = Breakdown.model_validate(told["written"]) if told["written"] else gate.plan
    merging = gate.kind is GateKind.MERGE
    # What is wrong with a merge is wrong with both sides, and not with the plan.
    found = [] if merging else [*gate.issues, *gate.notes]
    found = [*dict.fromkeys([*found, *map(Finding.model_validate, told["found"])])]
    known = {*found}
    mended = [one for one in gate.mended if one not in known]
    editable = Choice.EDIT in gate.choices
    asked = [event.data["gate"] for event in history.select({GATE_OPENED})]
    before = Breakdown.model_validate(asked[-2]["plan"]) if len(asked) > 1 and asked[-2]["plan"] else None
    return {
        "plan": show_plan(written, found, branch) | {
            "mended": [show_finding(one) for one in mended],
            "changes": _diff(plan_text(written, ()), plan_text(gate.plan, ())) if written is not gate.plan else [],
            "revised": _diff(plan_text(before, ()), plan_text(gate.plan, ())) if before is not None else [],
        },
        "refused": [show_finding(one) for one in gate.issues] if merging else [],
        "contract": _contract(gate.plan, branch) if gate.kind is GateKind.PLAN else None,
        "edit": {"text": body_of(plan_text(gate.plan, ()))} if editable else None,
    }  # fmt: skip


class _Placed:
    """Findings of a plan, each at the part that it is about."""

    def __init__(self, plan: Breakdown, findings: Sequence[Finding]) -> None:
        self._plan = plan
        self._at: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for one in findings:
            self._at.setdefault(self._place(one), []).append(show_finding(one))

    def take(self, part: str, name: str = "") -> list[dict[str, Any]]:
        """Returns the findings about a part of the plan, or about one thing in it."""
        return self._at.get((part, name), [])

    def _place(self, finding: Finding) -> tuple[str, str]:
        """Returns a task and a file of it, a task, or another part of the plan; ("", "") for none of them."""
        where = finding.where
        part = (where.field or "").partition("[")[0].partition(".")[0]
        task = self._plan.task(where.task) if where.task else None
        if task is None and part == "tasks":
            number = (where.field or "").partition("[")[2].partition("]")[0]
            task = self._plan.tasks[int(number)] if number.isdecimal() and int(number) < len(self._plan.tasks) else None
        if task is not None:
            # Few findings name the file apart from their words, where it stands in backticks.
            named = [path for path in task.files_to_create if path == where.file or f"`{path}`" in finding.message]
            return task.task_id, named[0] if named else ""
        owner = next((one for one in self._plan.tasks if where.file in one.files_to_create), None)
        if owner is not None and where.file is not None:
            return owner.task_id, where.file
        return (part, "") if part in PLAN_PARTS else ("", "")


def show_plan(plan: Breakdown, findings: Sequence[Finding], branch: Branch) -> dict[str, Any]:
    """Returns a plan with these findings, each at the part that it is about, as `plan_parts` of _plan.html shows it."""
    placed = _Placed(plan, findings)
    there = None if branch.files is None else frozenset(branch.files)
    return {
        "top": [*placed.take(""), *placed.take("architectural_conflict")],
        "tasks": [
            {
                "id": task.task_id,
                "description": task.description,
                "command": task.command or "",
                "after": [*task.dependencies],
                "why_after": task.dependency_reason,
                "findings": placed.take(task.task_id),
                "files": [
                    {
                        "path": path,
                        "kind": "" if there is None else "changed" if path in there else "new",
                        "findings": placed.take(task.task_id, path),
                    }
                    for path in task.files_to_create
                ],
            }
            for task in plan.tasks
        ],
        "packages": [
            {"name": name, "version": version, "development": group == "devDependencies"}
            for group, packages in plan.dependencies
            for name, version in packages.items()
        ],
        "packages_findings": placed.take("dependencies"),
        "tests": [one.model_dump() for one in plan.acceptance_tests],
        "tests_findings": placed.take("acceptance_tests"),
        "older_tests": [one.model_dump() for one in plan.tests_to_change],
        "older_tests_findings": placed.take("tests_to_change"),
        "design": [
            {"title": name.replace("_", " ").capitalize(), "text": text, "findings": found}
            for name in DESIGN
            for text, found in [(_words(getattr(plan, name)), placed.take(name))]
            if text or found
        ],
        "todos": [{"verb": verb, "text": text} for verb, texts in plan.todos for text in texts],
        "todos_findings": placed.take("todos"),
    }


def _words(value: Any) -> str:
    if not value:
        return ""
    return (value if isinstance(value, str) else write_data(value)).rstrip()


def _contract(plan: Breakdown, branch: Branch) -> dict[str, Any]:
    """Returns the contract that a story would get with this plan, or why it would get none."""
    if branch.files is None:
        return {"refused": "", "files": [], "packages": [], "known": False}
    try:
        made = freeze(breakdown=plan, base_commit="", files=branch.files, manifests=branch.manifests)
    except ContractViolation as error:
        return {"refused": error.message, "files": [], "packages": [], "known": True}
    there, packages = set(made.baseline_files), set(made.baseline_dependencies)
    return {
        "refused": "",
        "files": [{"path": path, "is_new": path not in there} for path in made.declared_files],
        "packages": [{"name": name, "is_new": name not in packages} for name in made.declared_dependencies],
        "known": True,
    }


def _diff(before: str, after: str) -> list[dict[str, str]]:
    """Returns the lines of a unified diff, each with what it is."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return [{"kind": kinds.get(line[:1], "same"), "text": line} for line in _patch(before, after).splitlines()]


def _patch(before: str, after: str) -> str:
    """Returns a unified diff without its head."""
    return "\n".join([*difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")][2:])


def _sides(sides: Sides) -> dict[str, Any]:
    return {
        "merged": [{"story": one.story, "subjects": [*one.subjects]} for one in sides.merged],
        "unreadable": [*sides.unreadable],
        "files": [{"path": one.path, "patch": _patch(one.result, one.story)} for one in sides.conflicts],
        "result_diff": sides.result_diff,
        "story_diff": sides.story_diff,
    }
