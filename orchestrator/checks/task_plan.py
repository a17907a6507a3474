"""What a person's task plan must have, the breakdown it comes to, and what a model reads in it.

What the rules read for certain stands. A model adds what they leave open, and only what stands in the plan: the goal,
files and commands of tasks for which the rules found none, packages, tasks that another one waits for.

A task with a file or a command is the developer's. What tests a task names are the tester's. A task in which nothing
was found to be done is a question, and told to the developer beside the others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.checks.breakdown_rules import MAX_TASKS, check_breakdown, renaming
from orchestrator.code.packages import read_packages, requirement
from orchestrator.core.breakdown import (
    AcceptanceTest,
    ArchitecturalConflict,
    Breakdown,
    PackageDependencies,
    PlannedTask,
    Task,
    TaskPlan,
    task_name,
)
from orchestrator.core.finding import Finding, Where, major, minor, policy
from orchestrator.core.paths import is_test_file, tidy
from orchestrator.prompts.budget import fence

_FIXES = {
    "breakdown.no_work": "Name its files as - Create: `src/shop/prices.py` or - Modify: `src/shop/prices.py`, "
    "or give it **Command:** `…`.",
    "breakdown.undeclared_package": "Declare it: **Packages:** name>=1, or **Dev packages:** name.",
    "breakdown.package_source": "Give its name and a version only: **Packages:** name>=1",
}
"""What an author of Markdown does about a finding of the breakdown's rules; else what the rule says."""
_WORDS = re.compile(r"\w+")
_PUT_OFF = re.compile(r"\W*(?:todo|tbd|tba|fixme|xxx)\s*(?:[:(–—-]|$)")
_ID = r"(?<!\w)[a-z]+[-_]\d+(?!\w)"
# `[One sentence]`, `<goal>`, `{{goal}}`: a template that was not filled in.
_TEMPLATE = re.compile(r"\[[^\]]*\]|<[^>]*>|\{+[^}]*\}+")
_FILLERS = frozenset(
    {"implementation", "implement", "plan", "plans", "task", "tasks", "story", "user", "feature", "goal", "goals"}
    | {"name", "todo", "tbd", "tba", "tbc", "fixme", "wip", "xxx", "placeholder", "none", "n", "na", "nothing"}
    | {"to", "be", "done", "defined", "determined", "decided", "the", "a", "an", "of", "for", "this", "that", "it"}
    | {"and", "my", "our", "your"}
)
"""Words that say nothing about what is to be reached, however they are put together."""


def check_task_plan(plan: TaskPlan, story_id: str) -> list[Finding]:
    """Runs the structural checks except that of its length: tasks, a goal, numbers, what depends on what, packages."""
    findings = [*_tasks(plan), *_goal(plan, story_id), *_numbers(plan), *_unclear(plan)]
    findings += _needs(plan)
    for entry in _packages(plan)[1]:
        message = f"`{entry}` names no package and was left out"
        fix = "Write names and versions: **Packages:** name>=1, other"
        findings.append(minor("task_plan.packages", message, where=_where(plan), fix=fix))
    return findings


def check_length(text: str, path: str, min_chars: int) -> list[Finding]:
    """Whether the plan says enough; blanks around it do not count."""
    length = len(text.strip())
    if length >= min_chars:
        return []
    message = f"the plan is too short: {length} characters, at least {min_chars} (plan.min_chars) are wanted"
    fix = "Say per task what to build and how it must behave; the developer sees nothing else."
    return [major("task_plan.too_short", message, where=Where(file=path or None), fix=fix)]


def is_placeholder(goal: str, story_id: str = "") -> bool:
    """Whether a goal says nothing: `Implementation plan`, `TODO`, the story's id alone, a template not filled in.

    Where the story is not known, whatever looks like an id is taken for its.
    """
    said = _TEMPLATE.sub(" ", goal).casefold()
    said = re.sub(rf"(?<!\w){re.escape(story_id.casefold())}(?!\w)" if story_id else _ID, " ", said)
    return _PUT_OFF.match(said) is not None or all(word in _FILLERS for word in _WORDS.findall(said))


def goal_of(plan: TaskPlan, story_id: str = "") -> str:
    """Returns the plan's goal; where none is named its title, or its first paragraph; "" without tasks."""
    said = plan.opening if plan.tasks else ()
    return plan.goal or next((one for one in said if not is_placeholder(one, story_id)), "")


def breakdown_of(plan: TaskPlan, story_id: str) -> Breakdown:
    """The plan as a breakdown: the developer's tasks in its order, each told by its name and whole section, and what
    is to be tested; nothing is made up."""
    built = plan.developed
    ids = {id(task): task_name(story_id, place) for place, task in enumerate(built, start=1)}
    numbers = _ids(plan, ids)
    tasks = tuple(
        Task(
            task_id=ids[id(task)],
            description=task.told,
            files_to_create=task.files,
            command_to_run=task.command,
            dependencies=_dependencies(task, ids[id(task)], numbers),
        )
        for task in built
    )
    goal = goal_of(plan, story_id)
    beside = [task.told for task in plan.tasks if task.unclear and id(task) not in ids]
    return Breakdown(
        story_id=story_id,
        architectural_conflict=ArchitecturalConflict(detected=False),
        task_count=len(tasks),
        tasks=tasks,
        dependencies=_packages(plan)[0],
        acceptance_tests=tuple(_to_test(task, id(task) in ids) for task in plan.tasks if task.tests and not task.done),
        code_patterns="\n\n".join(filter(None, (plan.head, *beside))) or None,
        tech_stack=plan.tech_stack or None,
        technical_notes=f"Goal: {goal}" if goal else None,
    )


def _to_test(task: PlannedTask, is_built: bool) -> AcceptanceTest:
    """What a task asks the tester for: its files with their code, and all that it says where it is nobody else's."""
    files = ", ".join(f"`{path}`" for path in task.tests)
    codes = "".join(f"\n\n{fence(code)}" for code in task.test_code)
    return AcceptanceTest(
        criterion=task.title or task.name, test=f"{files}{codes}" if is_built else f"{files}: {task.told}"
    )


def check_planned(
    plan: TaskPlan, breakdown: Breakdown, existing_files: frozenset[str], known_packages: frozenset[str] = frozenset()
) -> list[Finding]:
    """What the rules of a breakdown say about the plan's, in the plan's own words: its file, its lines, its numbers."""
    left = list(plan.tasks)
    tasks: dict[str, PlannedTask] = {}
    for task in breakdown.tasks:  # all of the plan's, or some: those for the developer
        own = next((one for one in left if one.told == task.description), None)
        if own is not None:
            tasks[task.task_id] = own
            del left[: left.index(own) + 1]
    rename = renaming({task_id: task.name for task_id, task in tasks.items()})
    return [
        finding.model_copy(
            update={
                "message": rename(finding.message),
                "where": _where(plan, tasks.get(finding.where.task or "")),
                "fix": _FIXES.get(finding.code, finding.fix),
            }
        ).placed(story=finding.where.story)
        for finding in check_breakdown(breakdown, existing_files, known_packages)
    ]


def _where(plan: TaskPlan, task: PlannedTask | None = None) -> Where:
    return Where(file=plan.path or None, line=task.line if task else None, task=task.name if task else None)


def _tasks(plan: TaskPlan) -> Iterator[Finding]:
    if not plan.tasks:
        fix = "Begin each task with a heading, ### Task 1: Component, or a box, - [ ] T001 Component in src/shop.py"
        yield major("task_plan.no_tasks", "the plan has no task", where=_where(plan), fix=fix)
    if len(plan.developed) > MAX_TASKS:
        message = f"the plan has {len(plan.developed)} tasks, and a story has {MAX_TASKS} at most"
        fix = "Divide it into the plans of several stories."
        yield major("task_plan.too_many_tasks", message, where=_where(plan), fix=fix)


def _goal(plan: TaskPlan, story_id: str) -> Iterator[Finding]:
    fix = "Say in a sentence what is reached when all is done: **Goal:** Customers see prices with their currency"
    goal = goal_of(plan, story_id)
    if not goal:
        yield major("task_plan.no_goal", "the plan has no goal", where=_where(plan), fix=fix)
    elif is_placeholder(goal, story_id):
        message = f"the goal `{goal[:80]}` is a placeholder"
        yield major("task_plan.placeholder_goal", message, where=_where(plan), fix=fix)


def _unclear(plan: TaskPlan) -> Iterator[Finding]:
    """One question about all tasks in which nothing was found to be done, unless nothing is to be built at all."""
    unclear = [task for task in plan.tasks if task.unclear]
    if not unclear or set(unclear) & set(plan.developed):
        return
    names = ", ".join(task.name for task in unclear)
    message = f"which file or command is meant by {names[:400]}? None was found, so it is no task of its own"
    fix = "Where it is one, name its files: - Modify: `src/shop/prices.py`, or give it **Command:** `…`."
    yield policy("task_plan.unclear", message, where=_where(plan, unclear[0]), fix=fix)


def _numbers(plan: TaskPlan) -> Iterator[Finding]:
    first: dict[str, PlannedTask] = {}
    for task in plan.tasks:
        before = first.setdefault(task.number, task)
        if before is not task:
            message = f"{task.name} stands in line {before.line} already"
            fix = "Give every task a number of its own: ### Task 1, ### Task 2, …"
            yield major("task_plan.duplicate", message, where=_where(plan, task), fix=fix)


def _needs(plan: TaskPlan) -> Iterator[Finding]:
    known = _ids(plan, {})
    for task in plan.tasks:
        for need in task.depends_on:
            if need not in known:
                fix = "Name tasks of the plan by their numbers: **Depends on:** Task 1, Task 2"
                where = _where(plan, task)
                if need[:1].isdigit():
                    message = f"it depends on Task {need}, which is no task of the plan"
                    yield major("task_plan.dependency", message, where=where, fix=fix)
                else:
                    message = f"which task is `{need[:80]}`, on which it depends? The tasks are built in their order"
                    yield policy("task_plan.dependency", message, where=where, fix=fix)


def _ids(plan: TaskPlan, ids: Mapping[int, str]) -> Mapping[str, Sequence[str]]:
    """Number → ids of its tasks: of `1` where there is only 1.1 and 1.2 both; of a number given twice the first.

    A task without an id of its own, which nobody builds, stands for those that it waits for.
    """
    own: dict[str, list[str]] = {}
    parts: dict[str, list[str]] = {}
    for task in plan.tasks:
        name = ids.get(id(task))
        waits = [one for need in task.depends_on for one in own.get(need, parts.get(need, ()))]
        meant = waits if name is None else [name]
        own.setdefault(task.number, meant)
        whole, dot, _ = task.number.partition(".")
        if dot:
            parts.setdefault(whole, []).extend(meant)
    return {**parts, **own}


def _dependencies(task: PlannedTask, own: str, numbers: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Ids of the tasks it names; a part that names its whole means the other parts."""
    found = {
        task_id: None
        for need in task.depends_on
        for task_id in numbers.get(need, ())
        if task_id != own or need == task.number
    }
    return tuple(found)


def _packages(plan: TaskPlan) -> tuple[PackageDependencies, list[str]]:
    return read_packages({"dependencies": list(plan.packages), "devDependencies": list(plan.dev_packages)})


_NUMBER = re.compile(r"(?:task\s*|t)?#?(?:0(?=\d))*(\d{1,6}(?:\.\d{1,6})?)", re.IGNORECASE)
_MARKS = re.compile(r"[*_`>#\s]+")
_ITS_NUMBERS = "Give every task of the plan once, in order, with its number."


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
    findings = [*_read_goal(value.get("goal") or "", plan, text, story_id)]
    tasks = []
    for task, entry in zip(plan.tasks, told, strict=True):
        more, said = _task(task, entry, known, where)
        tasks.append(more)
        findings += said
    packages, said = _read_packages(value, "packages", text, where)
    dev, more_said = _read_packages(value, "dev_packages", text, where)
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


def _read_goal(goal: str, plan: TaskPlan, text: str, story_id: str) -> Iterator[Finding]:
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
    is_sure = len(task.unsure) < len(task.files)
    update: dict[str, Any] = {"files": (not is_sure and _files(entry["files"], task, where, findings)) or task.files}
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
    update["unclear"] = task.unclear and not (update["files"] or update.get("command"))
    return task.model_copy(update=update), findings


def _files(paths: Sequence[str], task: PlannedTask, where: Where, findings: list[Finding]) -> tuple[str, ...]:
    """Returns the files of a task that names none by `Create:` or `Modify:`."""
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


def _read_packages(value: Mapping[str, Any], field: str, text: str, at: Where) -> tuple[tuple[str, ...], list[Finding]]:
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
    """Returns whether a line of the text names the package, and with it each number of its version."""
    numbers = re.findall(r"\d[\w.]*", version)
    return any(_stands(name, line) and all(number in line for number in numbers) for line in text.splitlines())


def _stands(name: str, text: str) -> bool:
    """Returns whether a path or a package stands in a text as itself, not inside of another one."""
    whole = rf"(?<![\w@./-])(?:\./)?{re.escape(name)}(?![\w/-]|\.\w)"
    return re.search(whole, text, re.IGNORECASE) is not None


def _joined(own: Sequence[str], more: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Returns the plan's own packages, and those of the others that it does not name."""
    there = {read[0].lower() for entry in (*own, *others) if (read := requirement(entry))}
    return (*own, *(entry for entry in more if (read := requirement(entry)) and read[0].lower() not in there))


def _plain(text: str) -> str:
    return _MARKS.sub(" ", text).strip().casefold()
