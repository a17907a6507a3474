"""Tasks of an improvement plan → stories of a backlog that `run` takes as it is (pure)."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from orchestrator.analysis.plan_file import MARKS
from orchestrator.core.analysis import ImprovementPlan, ImprovementTask
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.story import find_cycle
from orchestrator.core.value import parse_criteria, printable, same_title

PREFIX = "IMP"
FORMATS = (".csv", ".yaml", ".yml")
# A line such as `**Depends on:** US-001`, with any list mark or emphasis before it.
_WAITS = re.compile(r"^[^\w\n]*(?:depends on|dependencies|dependency)\s*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
# A fence that is never closed runs to the end, as in Markdown.
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
# A heading of criteria on a line by itself.
_CRITERIA = re.compile(
    r"^[^\w\n]*(?:acceptance criteria|criteria|done when|it is done when)\b[^\w\n]*$", re.I | re.MULTILINE
)
# `- x`, `1. x`, `AC 1: x`.
_ITEM = re.compile(r"^[ \t]*(?:[-*+\u2022]|(?:AC[ -]?)?\(?\d{1,3}[.):])[ \t]+\S", re.I | re.MULTILINE)
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_NUMBERED = re.compile(r"(?:task\s*)?#?(\d{1,4})", re.IGNORECASE)


def story_id(task: ImprovementTask) -> str:
    """IMP-001 for the plan's first task."""
    return f"{PREFIX}-{task.number:03d}"


def backlog_text(plan: ImprovementPlan, suffix: str, header: Sequence[str]) -> tuple[str, tuple[Finding, ...]]:
    """The file's text, by its suffix (FORMATS) and with the columns of `header`; what is said about dependencies.

    A task that a person ticked is completed. Dependencies are those that tasks state; a cycle is not closed.
    """
    needs, findings = dependencies(plan.tasks)
    stories = [_story(task, needs[task.number], plan) for task in plan.tasks]
    return (_csv(stories, header) if suffix == ".csv" else _yaml(stories)), findings


def dependencies(tasks: Sequence[ImprovementTask]) -> tuple[dict[int, tuple[int, ...]], tuple[Finding, ...]]:
    """Task → the tasks it waits for, by number, and what could not be kept of what is stated."""
    by_title = {same_title(task.title): task.number for task in tasks}
    numbers = {task.number for task in tasks}
    needs: dict[int, tuple[int, ...]] = {task.number: () for task in tasks}
    findings = []
    for task in tasks:
        for told in _stated(task):
            match = _NUMBERED.fullmatch(told)
            other = by_title.get(same_title(told)) or (int(match[1]) if match and int(match[1]) in numbers else None)
            why = "it names no task of the plan" if other is None else _clash(task.number, other, needs)
            if other is not None and not why:
                needs[task.number] = tuple(dict.fromkeys((*needs[task.number], other)))
            elif why:
                message = f"{story_id(task)} does not wait for {told[:80]!r}: {why}"
                where = Where(story=story_id(task), field="Dependencies")
                findings.append(
                    minor("improve.dependency", message, where=where, fix="put it into the backlog by hand")
                )
    return needs, tuple(findings)


def _stated(task: ImprovementTask) -> list[str]:
    """Titles or numbers of what the task waits for, where the answer or its description says so."""
    told = [name for match in _WAITS.finditer(task.description) for name in re.split(r"[;,]", match[1])]
    names = (name.strip().strip("`\"'*.").strip() for name in (*task.depends_on, *told))
    return [name for name in dict.fromkeys(names) if name and name.lower() not in {"none", "nothing", "n/a", "-"}]


def _clash(number: int, other: int, needs: Mapping[int, tuple[int, ...]]) -> str:
    if other == number:
        return "a task cannot wait for itself"
    tried = {str(one): tuple(str(two) for two in held) for one, held in needs.items()}
    tried[str(number)] = (*tried[str(number)], str(other))
    return "they would wait for each other" if find_cycle(tried, tried) else ""


def _story(task: ImprovementTask, needs: Sequence[int], plan: ImprovementPlan) -> dict[str, Any]:
    """Columns of a backlog → cells; lists where a cell holds several things."""
    names = {stage.id: stage.name for stage in plan.stages}
    stages = [f"{names[one]} ({one})" if names.get(one, one) != one else one for one in (task.stage, *task.also)]
    notes = [f"Source stage: {', '.join(stages)}; task {task.number} of analysis {plan.analysis}"]
    notes += [f"File: {task.file}"] if task.file else []
    notes += [f"Priority stated as: {task.priority_stated}"] if task.priority_stated else []
    notes += [f"Nearly the same as {', '.join(f'{PREFIX}-{one:03d}' for one in task.near)}"] if task.near else []
    notes += [f"To be looked at: {MARKS[mark]}" for mark in task.marks]
    place = f"Concerns {task.file}" if task.file else ""
    description = printable(task.description).strip()
    story = {
        "Story_ID": story_id(task),
        "Title": task.title,
        "Functional_Requirements": "\n".join(part for part in (description, place) if part),
        "Dependencies": [f"{PREFIX}-{one:03d}" for one in needs],
        # A story needs a criterion: where a task says none, its title is the promise.
        "Acceptance_Criteria": list(_criteria(_WAITS.sub("", description)) or (task.title,)),
        "Priority": task.priority.capitalize(),
        "Status": "Backlog",
        "Notes": "; ".join(notes),
    }
    return {**story, "Execution_Status": "completed"} if task.done else story


def _criteria(description: str) -> tuple[str, ...]:
    """Returns the items of its lists, of those under a heading that says so when there is one, else its paragraphs.

    What stands in a fence is code, and a semicolon in prose ends nothing.
    """
    text = _FENCED.sub("\n\n", description)
    text = next((part for part in reversed(_CRITERIA.split(text)[1:]) if part.strip()), text)
    listed = _ITEM.search(text) is not None
    pieces = parse_criteria(text) if listed else (" ".join(part.split()) for part in _PARAGRAPHS.split(text))
    found = tuple(piece for piece in pieces if re.search(r"\w", piece))
    return tuple(piece for piece in found if not piece.endswith(":")) or found


def _csv(stories: Sequence[Mapping[str, Any]], header: Sequence[str]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, header, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for story in stories:
        criteria = "\n".join(f"{number}. {text}" for number, text in enumerate(story["Acceptance_Criteria"], start=1))
        cells = {**story, "Dependencies": "; ".join(story["Dependencies"]), "Acceptance_Criteria": criteria}
        writer.writerow({name: printable(text) for name, text in cells.items()})
    return out.getvalue()


def _yaml(stories: Sequence[Mapping[str, Any]]) -> str:
    kept = [{name.lower(): _printable(value) for name, value in story.items() if value} for story in stories]
    return yaml.safe_dump({"stories": kept}, sort_keys=False, allow_unicode=True, width=110)


def _printable(value: Any) -> Any:
    return [printable(text) for text in value] if isinstance(value, list) else printable(value)
