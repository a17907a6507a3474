"""Whether a person's task plan can be built as it stands, what is wrong with it, and the breakdown it comes to.

A task with a file or a command is the developer's. What tests a task names are the tester's. Where an open task says
neither, the plan is a text like any other: the architect follows it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from orchestrator.checks.breakdown_rules import MAX_TASKS, check_breakdown, renaming
from orchestrator.code.packages import read_packages
from orchestrator.core.breakdown import (
    AcceptanceTest,
    ArchitecturalConflict,
    Breakdown,
    PackageDependencies,
    PlannedTask,
    Task,
    TaskPlan,
    TaskPlanReading,
    task_name,
)
from orchestrator.core.finding import Finding, Where, major, minor

_FIXES = {
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


class JudgedTaskPlan(NamedTuple):
    """What the rules say about a person's plan."""

    breakdown: Breakdown | None
    """What it is built by; None where the architect follows its text."""
    findings: tuple[Finding, ...]
    """The gravest first."""


def judge_task_plan(
    reading: TaskPlanReading,
    text: str,
    story: str,
    files: frozenset[str] = frozenset(),
    packages: frozenset[str] = frozenset(),
    *,
    min_chars: int,
) -> JudgedTaskPlan:
    """Returns a read plan's breakdown, and all that is wrong with its text and its tasks, in the plan's own words.

    `files` and `packages` are what the project has. Never raises.
    """
    plan, unread = reading
    why, breakdown = why_followed(plan), None
    # Nothing is lost by what nearly is a task where the architect gets the whole text.
    findings = [*_length(text, plan.path, min_chars), *(() if why and plan.tasks else unread)]
    if why:
        message = f"it is no plan that is built as it stands, because {why}: the architect follows its text"
        fix = "Begin each task with ### Task 1: Component, and name its files: - Create: `src/shop/prices.py`"
        findings.append(minor("task_plan.followed", message, where=_where(plan), fix=fix))
    else:
        breakdown = _breakdown(plan, story)
        findings += [*_tasks(plan), *_goal(plan, story), *_needs(plan), *_packages(plan)]
        findings += _planned(plan, breakdown, files, packages)
    told = [finding.placed(story=story) for finding in findings]
    return JudgedTaskPlan(breakdown, tuple(sorted(told, key=lambda one: (-one.severity.rank, one.where.line or 0))))


def why_followed(plan: TaskPlan) -> str:
    """Returns why a text is given to the architect; "" for a plan that is built as it stands."""
    if not plan.tasks:
        return "it has no task"
    left = [task for task in plan.tasks if not task.done]
    unclear = [task.name for task in left if not (task.files or task.tests or task.command)]
    if unclear:
        return f"{', '.join(unclear)[:400]} names no file, test or command"
    return "no task names a file or a command" if left and not _built(plan) else ""


def is_placeholder(goal: str, story_id: str = "") -> bool:
    """Whether a goal says nothing: `Implementation plan`, `TODO`, the story's id alone, a template not filled in.

    Where the story is not known, whatever looks like an id is taken for its.
    """
    said = _TEMPLATE.sub(" ", goal).casefold()
    said = re.sub(rf"(?<!\w){re.escape(story_id.casefold())}(?!\w)" if story_id else _ID, " ", said)
    return _PUT_OFF.match(said) is not None or all(word in _FILLERS for word in _WORDS.findall(said))


def _length(text: str, path: str, min_chars: int) -> Iterator[Finding]:
    length = len(text.strip())
    if length < min_chars:
        message = f"the plan is too short: {length} characters, at least {min_chars} (plan.min_chars) are wanted"
        fix = "Say per task what to build and how it must behave; the developer sees nothing else."
        yield major("task_plan.too_short", message, where=Where(file=path or None), fix=fix)


def _built(plan: TaskPlan) -> list[PlannedTask]:
    """Returns the developer's tasks."""
    return [task for task in plan.tasks if not task.done and (task.files or task.command)]


def _ids(plan: TaskPlan, story: str) -> Mapping[str, PlannedTask]:
    return {task_name(story, place): task for place, task in enumerate(_built(plan), start=1)}


def _breakdown(plan: TaskPlan, story: str) -> Breakdown:
    """Returns the developer's tasks in their order, each told by its whole section, and what is to be tested."""
    ids = _ids(plan, story)
    tasks = tuple(
        Task(
            task_id=task_id,
            description=task.told,
            files_to_create=task.files,
            command_to_run=task.command,
            dependencies=tuple(
                other for need in task.depends_on for other, its in ids.items() if _is_meant(need, its, by=task)
            ),
        )
        for task_id, task in ids.items()
    )
    return Breakdown(
        story_id=story,
        architectural_conflict=ArchitecturalConflict(detected=False),
        task_count=len(tasks),
        tasks=tasks,
        dependencies=_read_packages(plan)[0],
        acceptance_tests=tuple(
            AcceptanceTest(criterion=task.title or task.name, test=f"{', '.join(task.tests)}: {task.told}")
            for task in plan.tasks
            if task.tests and not task.done
        ),
        code_patterns=plan.head or None,
    )


def _is_meant(need: str, task: PlannedTask, by: PlannedTask) -> bool:
    """Returns whether a task waits for another: of `1` for 1.1 and 1.2 as well, but not a part for itself."""
    return need == task.number or (task.number.startswith(f"{need}.") and task is not by)


def _planned(
    plan: TaskPlan, breakdown: Breakdown, files: frozenset[str], packages: frozenset[str]
) -> Iterator[Finding]:
    """Yields what the rules of every breakdown say, in the plan's own words: its file, its lines, its numbers."""
    tasks = _ids(plan, breakdown.story_id)
    rename = renaming({task_id: task.name for task_id, task in tasks.items()})
    for finding in check_breakdown(breakdown, files, packages):
        where, fix = _where(plan, tasks.get(finding.where.task or "")), _FIXES.get(finding.code, finding.fix)
        yield finding.model_copy(update={"message": rename(finding.message), "where": where, "fix": fix})


def _where(plan: TaskPlan, task: PlannedTask | None = None) -> Where:
    return Where(file=plan.path or None, line=task.line if task else None, task=task.name if task else None)


def _tasks(plan: TaskPlan) -> Iterator[Finding]:
    """Yields what is wrong with the number of tasks, and with tasks of the same number."""
    built = _built(plan)
    if not built:
        yield major("task_plan.no_tasks", "every task is ticked", where=_where(plan), fix="Open the box of a task.")
    if len(built) > MAX_TASKS:
        message = f"the plan has {len(built)} tasks, and a story has {MAX_TASKS} at most"
        fix = "Divide it into the plans of several stories."
        yield major("task_plan.too_many_tasks", message, where=_where(plan), fix=fix)
    first: dict[str, PlannedTask] = {}
    for task in plan.tasks:
        before = first.setdefault(task.number, task)
        if before is not task:
            message = f"{task.name} stands in line {before.line} already"
            fix = "Give every task a number of its own: ### Task 1, ### Task 2, …"
            yield major("task_plan.duplicate", message, where=_where(plan, task), fix=fix)


def _goal(plan: TaskPlan, story: str) -> Iterator[Finding]:
    fix = "Say in a sentence what is reached when all is done: **Goal:** Customers see prices with their currency"
    if not plan.goals:
        yield major("task_plan.no_goal", "the plan has no goal", where=_where(plan), fix=fix)
    elif all(is_placeholder(goal, story) for goal in plan.goals):
        message = f"the goal `{plan.goals[0][:80]}` is a placeholder"
        yield major("task_plan.placeholder_goal", message, where=_where(plan), fix=fix)


def _needs(plan: TaskPlan) -> Iterator[Finding]:
    for task in plan.tasks:
        for need in task.depends_on:
            if not any(_is_meant(need, one, by=task) for one in plan.tasks):
                fix = "Name tasks of the plan by their numbers: **Depends on:** Task 1, Task 2"
                message = f"it depends on Task {need}, which is no task of the plan"
                yield major("task_plan.dependency", message, where=_where(plan, task), fix=fix)


def _packages(plan: TaskPlan) -> Iterator[Finding]:
    for entry in _read_packages(plan)[1]:
        message = f"`{entry}` names no package and was left out"
        fix = "Write names and versions: **Packages:** name>=1, other"
        yield minor("task_plan.packages", message, where=_where(plan), fix=fix)


def _read_packages(plan: TaskPlan) -> tuple[PackageDependencies, list[str]]:
    return read_packages({"dependencies": list(plan.packages), "devDependencies": list(plan.dev_packages)})
