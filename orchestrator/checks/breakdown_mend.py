"""What is done to a breakdown whose retries are used up: deterministic, told, inventing nothing (A3, A5)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from orchestrator.checks.file_paths import folders_of, plan_problem
from orchestrator.checks.requirements import package_source
from orchestrator.domain.breakdown import Breakdown, PackageDependencies, Task, Todos, task_name, task_number
from orchestrator.domain.findings import Finding, Where, minor
from orchestrator.domain.paths import unsafe_reason

_STRUCK_FIX = "If the path was meant, give it as a file of the project and plan the story anew."
_PACKAGE_FIX = "If the package is needed, declare it by name and version and plan the story anew."
_DROPPED_FIX = "Look whether the order of the tasks is right without it."


def mend(breakdown: Breakdown, existing_files: frozenset[str]) -> tuple[Breakdown, list[Finding]]:
    """`breakdown` with what the rules refuse struck or dropped, and ids renumbered when they break the rules.

    That is: bad paths, packages from elsewhere, impossible dependencies. Every change is a minor finding. What names a
    task (dependencies, descriptions, todos) follows a new number. A breakdown that satisfies A3 and A5 comes back
    equal, with no finding. What stays wrong (a task without work, too few tasks) is for check_breakdown to find again.
    """
    findings: list[Finding] = []
    tasks = _strike(breakdown, existing_files, findings)
    tasks, names = _renumber(breakdown.story_id, tasks, findings)
    tasks = _untangle(breakdown.story_id, tasks, findings)
    changes = tuple(change for change in breakdown.tests_to_change if unsafe_reason(change.file) is None)
    if len(changes) < len(breakdown.tests_to_change):
        where = Where(story=breakdown.story_id, field="tests_to_change")
        message = "unsafe paths were struck from tests_to_change"
        findings.append(minor("breakdown.struck", message, where=where, fix=_STRUCK_FIX))
    update = {
        "tasks": tuple(tasks),
        "tests_to_change": changes,
        "todos": _todos(breakdown.todos, names),
        "dependencies": _packages(breakdown, findings),
    }
    return breakdown.model_copy(update=update), findings


def _packages(breakdown: Breakdown, findings: list[Finding]) -> PackageDependencies:
    """The declared packages without those from elsewhere: they are not allowed by it."""
    kept: dict[str, dict[str, str]] = {}
    for group in ("dependencies", "devDependencies"):
        declared: dict[str, str] = getattr(breakdown.dependencies, group)
        kept[group] = {name: version for name, version in declared.items() if not package_source(name, version)}
        for name in sorted(declared.keys() - kept[group].keys()):
            where = Where(story=breakdown.story_id, field=f"dependencies.{group}")
            message = f"the package `{name[:120]}` was struck: `{declared[name][:160]}` is no version"
            findings.append(minor("breakdown.struck", message, where=where, fix=_PACKAGE_FIX))
    return PackageDependencies.model_validate(kept)


def follow(dependencies: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Dependencies under the tasks' new names, each once."""
    return tuple(dict.fromkeys(names.get(needed, needed) for needed in dependencies))


def renamed_text(text: str, names: Mapping[str, str]) -> str:
    """`text` with task ids in it replaced by their new ones; ids that may be mere words or numbers are left alone."""
    told = [name for name, new in names.items() if name != new and re.search(r"[A-Za-z][^ ]*[0-9]", name)]
    if not told:
        return text
    longest_first = "|".join(re.escape(name) for name in sorted(told, key=len, reverse=True))
    return re.sub(rf"(?<![\w.-])(?:{longest_first})(?![\w-])", lambda match: names[match[0]], text)


def _todos(todos: Todos, names: Mapping[str, str]) -> Todos:
    return Todos(
        add=tuple(renamed_text(text, names) for text in todos.add),
        remove=tuple(renamed_text(text, names) for text in todos.remove),
    )


def _strike(breakdown: Breakdown, existing: frozenset[str], findings: list[Finding]) -> list[Task]:
    known_folders = folders_of(existing)
    own_folders = folders_of(frozenset(path for task in breakdown.tasks for path in task.files_to_create))
    result: list[Task] = []
    for task in breakdown.tasks:
        kept: list[str] = []
        for path in task.files_to_create:
            problem = plan_problem(path, existing, known_folders)
            if problem is None and (path not in own_folders or path in existing):
                kept.append(path)
                continue
            reason = problem.reason if problem else "it is a folder of another file"
            where = Where(story=breakdown.story_id, task=task.task_id)
            message = f"`{path[:200]}` was struck: it {reason.removeprefix('it ')}"
            findings.append(minor("breakdown.struck", message, where=where, fix=_STRUCK_FIX))
        result.append(task.model_copy(update={"files_to_create": tuple(kept)}))
    return result


def _renumber(story: str, tasks: Sequence[Task], findings: list[Finding]) -> tuple[list[Task], dict[str, str]]:
    """The tasks, and old id → new id where they were given new ones."""
    if _well_numbered(story, tasks):
        return list(tasks), {}
    new = [task_name(story, number) for number in range(1, len(tasks) + 1)]
    mapping: dict[str, str] = {}
    for task, name in zip(tasks, new, strict=True):
        mapping.setdefault(task.task_id, name)  # a doubled id means its first task
    said = ", ".join(f"{task.task_id} → {name}" for task, name in zip(tasks, new, strict=True))
    message = f"task ids were renumbered: {said}"
    fix = "Nothing needs to be done; look for the tasks under their new ids."
    findings.append(minor("breakdown.renumbered", message, where=Where(story=story), fix=fix))
    result: list[Task] = []
    for task, name in zip(tasks, new, strict=True):
        # What named no task before must not come to name one by chance.
        findings += [_dropped(story, name, need, _UNKNOWN) for need in task.dependencies if need not in mapping]
        update = {
            "task_id": name,
            "dependencies": follow([need for need in task.dependencies if need in mapping], mapping),
            "description": renamed_text(task.description, mapping),
            "dependency_reason": renamed_text(task.dependency_reason, mapping),
        }
        result.append(task.model_copy(update=update))
    return result, mapping


def _well_numbered(story: str, tasks: Sequence[Task]) -> bool:
    found = [task_number(task.task_id, story, len(tasks)) for task in tasks]
    numbers = [number for number in found if number is not None]
    return len(numbers) == len(tasks) and all(before < after for before, after in pairwise(numbers))


def _untangle(story: str, tasks: Sequence[Task], findings: list[Finding]) -> list[Task]:
    """Drop dependencies on nothing, on itself, and those that close a cycle.

    Dependencies on earlier tasks are kept first: among themselves they cannot make a cycle.
    """
    place = {task.task_id: number for number, task in enumerate(tasks)}
    kept = {
        task.task_id: {need for need in task.dependencies if place.get(need, number) < number}
        for number, task in enumerate(tasks)
    }
    for task in tasks:
        for need in task.dependencies:
            if need in place and place[need] > place[task.task_id] and not _reaches(need, task.task_id, kept):
                kept[task.task_id].add(need)
    findings.extend(_all_dropped(story, tasks, place, kept))
    return [
        task.model_copy(update={"dependencies": tuple(n for n in task.dependencies if n in kept[task.task_id])})
        for task in tasks
    ]


_UNKNOWN, _CYCLE = "is no task of this story", "would close a cycle"


def _dropped(story: str, task: str, need: str, reason: str) -> Finding:
    message = f"the dependency on `{need[:120]}` was dropped: it {reason}"
    return minor("breakdown.dependency_dropped", message, where=Where(story=story, task=task), fix=_DROPPED_FIX)


def _all_dropped(
    story: str, tasks: Sequence[Task], place: Mapping[str, int], kept: Mapping[str, set[str]]
) -> Iterator[Finding]:
    for task in tasks:
        for need in task.dependencies:
            if need not in kept[task.task_id]:
                yield _dropped(story, task.task_id, need, _CYCLE if need in place else _UNKNOWN)


def _reaches(start: str, goal: str, needs: Mapping[str, set[str]]) -> bool:
    waiting, seen = [start], {start}
    while waiting:
        current = waiting.pop()
        if current == goal:
            return True
        fresh = needs[current] - seen
        seen |= fresh
        waiting += fresh
    return False
