"""What a model read in a person's task plan, held against its text.

What the rules read for certain stands. A model adds what they leave open, and only what stands in the plan: the goal,
files and commands of tasks for which the rules found none, packages, tasks that another one waits for.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.checks.file_paths import tidy
from orchestrator.checks.requirements import requirement
from orchestrator.checks.task_plan import is_placeholder
from orchestrator.domain.file_kinds import is_test_file
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.domain.task_plan import PlannedTask, TaskPlan

_NUMBER = re.compile(r"(?:task\s*)?#?(\d{1,6}(?:\.\d{1,6})?)", re.IGNORECASE)
_MARKS = re.compile(r"[*_`>#\s]+")
_ITS_NUMBERS = 'Give every heading "### Task N" of the plan once, in order, with its number.'


def read_plan_extract(value: object, plan: TaskPlan, text: str, story_id: str) -> tuple[TaskPlan | None, list[Finding]]:
    """`plan`, the rules' reading of `text`, with what a model's adds; None when that has not the structure of one."""
    where = Where(file=plan.path or None)
    if not isinstance(value, Mapping) or not isinstance(value.get("goal"), str | None):
        fix = "Answer with one JSON object that has a goal and tasks."
        return None, [major("extract.shape", "the answer is no object with a goal", where=where, fix=fix)]
    entries = value.get("tasks")
    read = [_entry(entry) for entry in entries] if isinstance(entries, list) else []
    if not isinstance(entries, list) or None in read:
        message = "`tasks` is no list of tasks with a number and files"
        return None, [major("extract.tasks", message, where=where, fix=_ITS_NUMBERS)]
    told = [entry for entry in read if entry is not None]
    if [entry["number"] for entry in told] != [task.number for task in plan.tasks]:
        message = (
            f"the plan has {len(plan.tasks)} tasks, numbered {', '.join(task.number for task in plan.tasks)[:400]}; "
            f"the answer has {len(told)}, numbered {', '.join(entry['number'] for entry in told)[:400]}"
        )
        return None, [major("extract.tasks", message, where=where, fix=_ITS_NUMBERS)]
    known = frozenset(task.number for task in plan.tasks)
    findings = [*_goal(value.get("goal") or "", plan, text, story_id)]
    tasks = []
    for task, entry in zip(plan.tasks, told, strict=True):
        more, said = _task(task, entry, known, where)
        tasks.append(more)
        findings += said
    packages, said = _packages(value, "packages", text, where)
    dev, more_said = _packages(value, "dev_packages", text, where)
    update = {
        "goal": plan.goal or (value.get("goal") or "").strip(),
        "tasks": tuple(tasks),
        "packages": _joined(plan.packages, packages, plan.dev_packages),
        "dev_packages": _joined(plan.dev_packages, dev, (*plan.packages, *packages)),
    }
    return plan.model_copy(update=update), [*findings, *said, *more_said]


def _entry(value: object) -> dict[str, Any] | None:
    """One task of the answer, None when it lacks a number or files."""
    if not isinstance(value, Mapping):
        return None
    number = next((value[key] for key in ("number", "task_id", "id", "task") if value.get(key) is not None), "")
    match = _NUMBER.fullmatch(str(number).strip())
    files = next((value[key] for key in ("files", "files_to_create", "paths") if key in value), None)
    needs = value.get("depends_on") or ()
    if match is None or not isinstance(files, list) or not all(isinstance(path, str) for path in files):
        return None
    return {
        "number": match[1],
        "files": files,
        "command": value.get("command"),
        "depends_on": [needs] if isinstance(needs, str | int | float) else list(needs),
    }


def _goal(goal: str, plan: TaskPlan, text: str, story_id: str) -> Iterator[Finding]:
    where = Where(file=plan.path or None, field="goal")
    fix = "Copy the goal from the plan word for word; give an empty text where it names none."
    if goal.strip() and _plain(goal) not in _plain(text):
        message = f"the goal `{goal[:120]}` does not stand in the plan"
        yield major("extract.goal", message, where=where, fix=fix)
    elif is_placeholder(goal, story_id) and goal.strip() and not is_placeholder(plan.goal, story_id):
        yield major("extract.goal", f"the goal `{goal[:120]}` is a placeholder", where=where, fix=fix)


def _task(
    task: PlannedTask, entry: Mapping[str, Any], known: frozenset[str], at: Where
) -> tuple[PlannedTask, list[Finding]]:
    findings: list[Finding] = []
    where = at.model_copy(update={"task": task.name, "line": task.line})
    update: dict[str, Any] = {"files": task.files or _files(entry["files"], task, where, findings)}
    command = entry["command"]
    if isinstance(command, str) and command.strip() and command.strip() != task.command:
        if command.strip() not in task.text:
            message = f"the command `{command[:120]}` does not stand in the task"
            fix = "Give a command only as the plan writes it."
            findings.append(major("extract.command", message, where=where, fix=fix))
        elif task.command is None and not update["files"] and not command.strip().startswith("git "):
            update["command"] = command.strip()
    numbers = [match[1] for need in entry["depends_on"] if (match := _NUMBER.fullmatch(str(need).strip()))]
    foreign = [str(need)[:80] for need in entry["depends_on"] if not _NUMBER.fullmatch(str(need).strip())]
    foreign += [number for number in numbers if number not in known]
    if foreign:
        fix = "Name tasks by their numbers in the plan, and only those that the plan says it waits for."
        message = f"it depends on {', '.join(foreign)}, which is no task of the plan"
        findings.append(major("extract.depends", message, where=where, fix=fix))
    added = (number for number in numbers if number in known and number != task.number)
    update["depends_on"] = task.depends_on or tuple(dict.fromkeys(added))
    return task.model_copy(update=update), findings


def _files(paths: Sequence[str], task: PlannedTask, where: Where, findings: list[Finding]) -> tuple[str, ...]:
    """The files of a task that names none by `Create:` or `Modify:`."""
    kept: dict[str, None] = {}
    for path in map(tidy, paths):
        if not path or not _stands(path, task.text):
            message = f"`{path[:120]}` does not stand in the task"
            fix = "Name only paths that stand in the task's own text, letter for letter, without line numbers."
            findings.append(major("extract.files", message, where=where, fix=fix))
        elif is_test_file(path):
            message = f"`{path[:120]}` is a test file and was left out"
            fix = "Leave test files out: the tester writes them."
            findings.append(minor("extract.test_file", message, where=where, fix=fix))
        else:
            kept[path] = None
    return tuple(kept)


def _packages(value: Mapping[str, Any], field: str, text: str, at: Where) -> tuple[tuple[str, ...], list[Finding]]:
    findings: list[Finding] = []
    kept: list[str] = []
    named = value.get(field) or []
    for entry in named if isinstance(named, list) else [named]:
        read = requirement(entry) if isinstance(entry, str) else None
        if read is None or not _named_with(*read, text):
            message = f"the package `{str(entry)[:120]}` does not stand in the plan"
            fix = "Name packages and versions that the plan names, as it writes them."
            where = at.model_copy(update={"field": field})
            findings.append(major("extract.packages", message, where=where, fix=fix))
        else:
            kept.append(str(entry).strip())
    return tuple(kept), findings


def _named_with(name: str, version: str, text: str) -> bool:
    """Whether a line of the text names the package, and with it each number of its version."""
    numbers = re.findall(r"\d[\w.]*", version)
    return any(_stands(name, line) and all(number in line for number in numbers) for line in text.splitlines())


def _stands(name: str, text: str) -> bool:
    """Whether a path or a package stands in a text as itself, not inside of another one."""
    whole = rf"(?<![\w@./-])(?:\./)?{re.escape(name)}(?![\w/-]|\.\w)"
    return re.search(whole, text, re.IGNORECASE) is not None


def _joined(own: Sequence[str], more: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The plan's own packages, and those of the others that it does not name."""
    there = {read[0].lower() for entry in (*own, *others) if (read := requirement(entry))}
    return (*own, *(entry for entry in more if (read := requirement(entry)) and read[0].lower() not in there))


def _plain(text: str) -> str:
    return _MARKS.sub(" ", text).strip().casefold()
