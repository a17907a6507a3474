"""What is done to a breakdown whose retries are used up: deterministic, told, inventing nothing (A3, A5)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from orchestrator.checks.file_paths import folders_of, plan_problem
from orchestrator.domain.breakdown import TASK_ID, Breakdown, Task
from orchestrator.domain.findings import Finding, Where, minor
from orchestrator.domain.paths import unsafe_reason


def mend(breakdown: Breakdown, existing_files: frozenset[str]) -> tuple[Breakdown, list[Finding]]:
    """`breakdown` with bad paths struck, ids renumbered when they break the rules, impossible dependencies dropped.

    Every change is a minor finding. A breakdown that satisfies A3 and A5 comes back equal, with no finding. What stays
    wrong (a task without work, too few tasks) is for check_breakdown to find again.
    """
    findings: list[Finding] = []
    tasks = _strike(breakdown, existing_files, findings)
    tasks = _renumber(breakdown.story_id, tasks, findings)
    tasks = _untangle(breakdown.story_id, tasks, findings)
    changes = tuple(change for change in breakdown.tests_to_change if unsafe_reason(change.file) is None)
    if len(changes) < len(breakdown.tests_to_change):
        where = Where(story=breakdown.story_id, field="tests_to_change")
        findings.append(minor("breakdown.struck", "unsafe paths were struck from tests_to_change", where=where))
    return breakdown.model_copy(update={"tasks": tuple(tasks), "tests_to_change": changes}), findings


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
            findings.append(minor("breakdown.struck", f"`{path[:200]}` was struck: {reason}", where=where))
        result.append(task.model_copy(update={"files_to_create": tuple(kept)}))
    return result


def _renumber(story: str, tasks: Sequence[Task], findings: list[Finding]) -> list[Task]:
    if _well_numbered(story, tasks):
        return list(tasks)
    new = [f"T-{story}-{number:02d}" for number in range(1, len(tasks) + 1)]
    mapping: dict[str, str] = {}
    for task, name in zip(tasks, new, strict=True):
        mapping.setdefault(task.task_id, name)  # a doubled id means its first task
    said = ", ".join(f"{task.task_id} → {name}" for task, name in zip(tasks, new, strict=True))
    findings.append(minor("breakdown.renumbered", f"task ids were renumbered: {said}", where=Where(story=story)))
    return [
        task.model_copy(
            update={
                "task_id": name,
                "dependencies": tuple(dict.fromkeys(mapping.get(needed, needed) for needed in task.dependencies)),
            }
        )
        for task, name in zip(tasks, new, strict=True)
    ]


def _well_numbered(story: str, tasks: Sequence[Task]) -> bool:
    matches = [TASK_ID.match(task.task_id) for task in tasks]
    numbers = [int(match["number"]) for match in matches if match is not None and match["story"] == story]
    rising = all(before < after for before, after in pairwise(numbers))
    return len(numbers) == len(tasks) and rising


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
    findings.extend(_dropped(story, tasks, place, kept))
    return [
        task.model_copy(update={"dependencies": tuple(n for n in task.dependencies if n in kept[task.task_id])})
        for task in tasks
    ]


def _dropped(
    story: str, tasks: Sequence[Task], place: Mapping[str, int], kept: Mapping[str, set[str]]
) -> Iterator[Finding]:
    for task in tasks:
        for need in task.dependencies:
            if need not in kept[task.task_id]:
                reason = "would close a cycle" if need in place else "is no task of this story"
                message = f"the dependency on `{need}` was dropped: it {reason}"
                yield minor("breakdown.dependency_dropped", message, where=Where(story=story, task=task.task_id))


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
