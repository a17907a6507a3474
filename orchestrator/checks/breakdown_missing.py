"""The tasks of a `breakdown_missing` answer joined to those that were there."""

from collections.abc import Mapping, Sequence

from orchestrator.checks.breakdown_mend import follow, renamed_text
from orchestrator.checks.requirements import read_packages
from orchestrator.checks.tasks import read_tasks
from orchestrator.domain.breakdown import Breakdown, PackageDependencies, Task, task_name, task_number
from orchestrator.domain.findings import Finding, Where, minor


def merge_missing(breakdown: Breakdown, value: object) -> tuple[Breakdown, list[Finding]]:
    """`breakdown` with the tasks of a `breakdown_missing` answer: an object with tasks, or the list itself.

    Known tasks that the answer repeats are left out: the same work under any id, or a known id. When the known task of
    an id stands in the answer under another one, the answer was numbered anew: other work under that id is new and gets
    the next free id; dependencies of the new tasks follow. Order is by number, else as they came. Packages declared
    with the new tasks are added. `task_count` never shrinks. Never raises.
    """
    answer = value if isinstance(value, Mapping) else {"tasks": value}
    came, findings = read_tasks(answer.get("tasks"), breakdown.story_id)
    fresh, names = _fresh(breakdown, came)
    given = {task.task_id for task in fresh}
    said = ", ".join(f"{old} → {new}" for old, new in names.items() if old != new and new in given)
    if said:
        message = f"ids of tasks that came later were changed: {said}"
        fix = "Number missing tasks on from the last one that is there."
        findings.append(minor("breakdown.renumbered", message, where=Where(story=breakdown.story_id), fix=fix))
    packages, _ = read_packages(answer.get("dependencies"))
    stated = answer.get("task_count")
    counted = stated if isinstance(stated, int) and not isinstance(stated, bool) else 0
    return breakdown.model_copy(
        update={
            "tasks": _by_number(breakdown.story_id, [*breakdown.tasks, *fresh]),
            "task_count": max(breakdown.task_count, counted),
            "dependencies": PackageDependencies(
                dependencies={**packages.dependencies, **breakdown.dependencies.dependencies},
                devDependencies={**packages.devDependencies, **breakdown.dependencies.devDependencies},
            ),
        }
    ), findings


def _fresh(breakdown: Breakdown, came: Sequence[Task]) -> tuple[list[Task], dict[str, str]]:
    """The tasks that are new, under the ids they get, and id in the answer → id in the plan."""
    known = {task.task_id: task for task in breakdown.tasks}
    same = [next((old for old, task in known.items() if _same_work(task, new)), None) for new in came]
    taken = {*known, *(task.task_id for task in came)}
    names: dict[str, str] = {}
    fresh: list[Task] = []
    for task, old in zip(came, same, strict=True):
        if old is not None:
            names.setdefault(task.task_id, old)
        elif any(_same_work(task, other) for other in fresh):
            continue
        elif task.task_id not in known and task.task_id not in names:
            names[task.task_id] = task.task_id
            fresh.append(task)
        elif task.task_id in same and task.task_id not in names:
            free = _free(breakdown.story_id, taken)
            names[task.task_id] = free
            taken.add(free)
            fresh.append(task.model_copy(update={"task_id": free}))
    return [_renamed(task, names) for task in fresh], names


def _same_work(one: Task, other: Task) -> bool:
    """Whether two tasks say the same in the same words, about files that are at least partly the same."""
    if _words(one.description) != _words(other.description):
        return False
    if not one.files_to_create and not other.files_to_create:
        return one.command == other.command
    return not set(one.files_to_create).isdisjoint(other.files_to_create)


def _words(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")


def _free(story_id: str, taken: set[str]) -> str:
    """The first id behind all that are taken."""
    numbers = [number for task_id in taken if (number := task_number(task_id, story_id, 100)) is not None]
    return task_name(story_id, max(numbers, default=0) + 1)


def _renamed(task: Task, names: Mapping[str, str]) -> Task:
    return task.model_copy(
        update={
            "dependencies": follow(task.dependencies, names),
            "description": renamed_text(task.description, names),
            "dependency_reason": renamed_text(task.dependency_reason, names),
        }
    )


def _by_number(story_id: str, tasks: Sequence[Task]) -> tuple[Task, ...]:
    numbers = {task.task_id: task_number(task.task_id, story_id, len(tasks)) for task in tasks}
    if None in numbers.values():
        return tuple(tasks)
    return tuple(sorted(tasks, key=lambda task: numbers[task.task_id] or 0))
