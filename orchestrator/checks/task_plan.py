"""What a person's task plan must have; the breakdown it comes to, judged by the rules of any breakdown."""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.checks.breakdown_mend import renamed_text
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.requirements import read_packages
from orchestrator.domain.breakdown import ArchitecturalConflict, Breakdown, PackageDependencies, Task, task_name
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.domain.task_plan import PlannedTask, TaskPlan

_FIXES = {
    "breakdown.no_work": "Name its files as - Create: `src/shop/prices.py` or - Modify: `src/shop/prices.py`, "
    "or give it **Command:** `…`.",
    "breakdown.test_file": "Write it as - Test: `path`: what tests the story is the tester's.",
    "breakdown.undeclared_package": "Declare it: **Packages:** name>=1, or **Dev packages:** name.",
    "breakdown.package_source": "Give its name and a version only: **Packages:** name>=1",
}
"""What an author of Markdown does about a finding of the breakdown's rules; else what the rule says."""
_WORDS = re.compile(r"\w+")
_PUT_OFF = re.compile(r"\W*(?:todo|tbd|tba|fixme|xxx)\s*(?:[:(–—-]|$)")
_ID = r"(?<!\w)[a-z]+[-_]\d+(?!\w)"
_TEMPLATE = re.compile(r"\[[^\]]*\]|<[^>]*>|\{+[^}]*\}+")
_FILLERS = frozenset(
    {"implementation", "implement", "plan", "plans", "task", "tasks", "story", "user", "feature", "goal", "goals"}
    | {"name", "todo", "tbd", "tba", "tbc", "fixme", "wip", "xxx", "placeholder", "none", "n", "na", "nothing"}
    | {"to", "be", "done", "defined", "determined", "decided", "the", "a", "an", "of", "for", "this", "that", "it"}
    | {"and", "my", "our", "your"}
)
"""Words that say nothing about what is to be reached, however they are put together."""


def check_task_plan(plan: TaskPlan, story_id: str) -> list[Finding]:
    """The structural checks but that of its length: tasks, a goal, numbers, what depends on what, packages."""
    findings = [*_tasks(plan), *_goal(plan, story_id), *_numbers(plan)]
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


def breakdown_of(plan: TaskPlan, story_id: str) -> Breakdown:
    """The plan as a breakdown: tasks in its order, each told by its name and whole section; nothing is made up."""
    numbers = _ids(plan, story_id)
    tasks = tuple(
        Task(
            task_id=task_name(story_id, place),
            description=task.told,
            files_to_create=task.files,
            command_to_run=task.command,
            dependencies=_dependencies(task, task_name(story_id, place), numbers),
        )
        for place, task in enumerate(plan.tasks, start=1)
    )
    return Breakdown(
        story_id=story_id,
        architectural_conflict=ArchitecturalConflict(detected=False),
        task_count=len(tasks),
        tasks=tasks,
        dependencies=_packages(plan)[0],
        code_patterns=plan.head or None,
        tech_stack=plan.tech_stack or None,
        technical_notes=f"Goal: {plan.goal}" if plan.goal else None,
    )


def check_planned(
    plan: TaskPlan, breakdown: Breakdown, existing_files: frozenset[str], known_packages: frozenset[str] = frozenset()
) -> list[Finding]:
    """What the rules of a breakdown say about the plan's, in the plan's own words: its file, its lines, its numbers."""
    tasks = {task.task_id: own for task, own in zip(breakdown.tasks, plan.tasks, strict=True)}
    names = {task_id: task.name for task_id, task in tasks.items()}
    return [
        finding.model_copy(
            update={
                "message": renamed_text(finding.message, names),
                "where": _where(plan, tasks.get(finding.where.task or "")).model_copy(
                    update={"story": finding.where.story}
                ),
                "fix": _FIXES.get(finding.code, finding.fix),
            }
        )
        for finding in check_breakdown(breakdown, existing_files, known_packages)
    ]


def _where(plan: TaskPlan, task: PlannedTask | None = None) -> Where:
    return Where(file=plan.path or None, line=task.line if task else None, task=task.name if task else None)


def _tasks(plan: TaskPlan) -> Iterator[Finding]:
    if not plan.tasks:
        fix = "Write at least one task's heading at the start of a line: ### Task 1: Component"
        yield major("task_plan.no_tasks", "the plan has no task", where=_where(plan), fix=fix)


def _goal(plan: TaskPlan, story_id: str) -> Iterator[Finding]:
    fix = "Say in a sentence what is reached when all is done: **Goal:** Customers see prices with their currency"
    if not plan.goal:
        yield major("task_plan.no_goal", "the plan has no goal", where=_where(plan), fix=fix)
    elif is_placeholder(plan.goal, story_id):
        message = f"the goal `{plan.goal[:80]}` is a placeholder"
        yield major("task_plan.placeholder_goal", message, where=_where(plan), fix=fix)


def _numbers(plan: TaskPlan) -> Iterator[Finding]:
    first: dict[str, PlannedTask] = {}
    for task in plan.tasks:
        before = first.setdefault(task.number, task)
        if before is not task:
            message = f"{task.name} stands in line {before.line} already"
            fix = "Give every task a number of its own: ### Task 1, ### Task 2, …"
            yield major("task_plan.duplicate", message, where=_where(plan, task), fix=fix)


def _needs(plan: TaskPlan) -> Iterator[Finding]:
    known = _ids(plan, "")
    for task in plan.tasks:
        for need in task.depends_on:
            if need not in known:
                named = f"Task {need}" if need[:1].isdigit() else f"`{need[:80]}`"
                message = f"it depends on {named}, which is no task of the plan"
                fix = "Name tasks of the plan by their numbers: **Depends on:** Task 1, Task 2"
                yield major("task_plan.dependency", message, where=_where(plan, task), fix=fix)


def _ids(plan: TaskPlan, story_id: str) -> Mapping[str, Sequence[str]]:
    """Number → ids of its tasks: of `1` where there is only 1.1 and 1.2 both; of a number given twice the first."""
    own: dict[str, list[str]] = {}
    parts: dict[str, list[str]] = {}
    for place, task in enumerate(plan.tasks, start=1):
        name = task_name(story_id, place)
        own.setdefault(task.number, [name])
        whole, dot, _ = task.number.partition(".")
        if dot:
            parts.setdefault(whole, []).append(name)
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
