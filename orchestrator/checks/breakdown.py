"""An architect's answer → Breakdown, and the tasks of a `breakdown_missing` answer joined to those that were there."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from orchestrator.checks.breakdown_rules import check_breakdown, follow, mend, read_packages, renamed_text
from orchestrator.checks.paths import tidy
from orchestrator.core.breakdown import (
    AcceptanceTest,
    ArchitecturalConflict,
    Breakdown,
    PackageDependencies,
    Task,
    TestToChange,
    Todos,
    task_name,
    task_number,
)
from orchestrator.core.finding import Finding, Where, blocking, major, minor

_ALIASES = {"task_id": ("task_id", "taskId", "id"), "description": ("description", "title")}
_SHAPE_FIX = "Give every task task_id, description and files_to_create."


def read_tasks(value: object, story_id: str) -> tuple[tuple[Task, ...], list[Finding]]:
    """Tasks of a list of objects, in order. A major finding for each that is none; it is left out.

    Missing `dependencies` and `dependency_reason` are empty. Entries of `files_to_create` that are no strings are
    dropped with a major `breakdown.unsafe_path`.
    """
    where = Where(story=story_id, field="tasks")
    if not isinstance(value, list) or not value:
        said = "`tasks` is empty" if value == [] else "`tasks` is no list"
        return (), [major("breakdown.tasks", said, where=where, fix="Give a non-empty list of task objects.")]
    findings: list[Finding] = []
    tasks = [_task(entry, place, story_id, findings) for place, entry in enumerate(value)]
    return tuple(task for task in tasks if task is not None), findings


def _task(entry: object, place: int, story_id: str, findings: list[Finding]) -> Task | None:
    where = Where(story=story_id, field=f"tasks[{place}]")
    if not isinstance(entry, Mapping):
        findings.append(major("breakdown.tasks", "a task is no object", where=where, fix=_SHAPE_FIX))
        return None
    texts = {field: _text(entry, field) for field in _ALIASES}
    lacking = [field for field, text in texts.items() if not text]
    files = entry.get("files_to_create")
    if not isinstance(files, list):
        lacking.append("files_to_create (a list)")
    if lacking or not isinstance(files, list):
        message = f"a task lacks {' and '.join(lacking)}"
        findings.append(major("breakdown.tasks", message, where=where, fix=_SHAPE_FIX))
        return None
    where, reason = where.model_copy(update={"task": texts["task_id"]}), entry.get("dependency_reason")
    return Task(
        task_id=texts["task_id"],
        description=texts["description"],
        files_to_create=_files(files, where, findings),
        command_to_run=_command(entry.get("command_to_run"), where, findings),
        dependencies=_dependencies(entry, where, findings),
        dependency_reason=reason.strip() if isinstance(reason, str) else "",
    )


def _text(entry: Mapping[str, object], field: str) -> str:
    for name in _ALIASES[field]:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _files(entries: list[object], where: Where, findings: list[Finding]) -> tuple[str, ...]:
    kept: dict[str, None] = {}
    for entry in entries:
        if isinstance(entry, str):
            kept[tidy(entry)] = None
        else:
            message = f"`{str(entry)[:80]}` is no path: files_to_create holds strings only"
            findings.append(major("breakdown.unsafe_path", message, where=where, fix="Write the path as a string."))
    return tuple(kept)


def _command(value: object, where: Where, findings: list[Finding]) -> str | None:
    if value is None or isinstance(value, str):
        return (value or "").strip() or None
    fix = "Write the command as one string, or leave it out."
    findings.append(major("breakdown.command", "command_to_run is no string", where=where, fix=fix))
    return None


def _dependencies(entry: Mapping[str, object], where: Where, findings: list[Finding]) -> tuple[str, ...]:
    value = entry.get("dependencies")
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        fix = "List the ids of tasks of this story."
        findings.append(major("breakdown.dependency", "`dependencies` is no list of task ids", where=where, fix=fix))
        return ()
    return tuple(dict.fromkeys(item.strip() for item in values if item.strip()))


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


T = TypeVar("T")


def read_acceptance_tests(value: object, story_id: str, findings: list[Finding]) -> tuple[AcceptanceTest, ...]:
    """Entries {criterion, test}, or bare criteria as strings."""

    def read(entry: object) -> AcceptanceTest | None:
        criterion, test = _pair(entry, ("criterion", "criteria", "name"), ("test", "description"))
        return AcceptanceTest(criterion=criterion, test=test) if criterion else None

    return _entries(value, "acceptance_tests", story_id, findings, read)


def read_tests_to_change(value: object, story_id: str, findings: list[Finding]) -> tuple[TestToChange, ...]:
    """Entries {file, reason}, or bare paths as strings."""

    def read(entry: object) -> TestToChange | None:
        file, reason = _pair(entry, ("file", "path"), ("reason",))
        return TestToChange(file=tidy(file), reason=reason) if file else None

    return _entries(value, "tests_to_change", story_id, findings, read)


def read_todos(value: object, story_id: str, findings: list[Finding]) -> Todos:
    """{add, remove}, or a list of what to add."""
    if value is None:
        return Todos()
    parts = value if isinstance(value, Mapping) else {"add": value}

    def read(entry: object) -> str | None:
        return entry.strip() or None if isinstance(entry, str) else None

    return Todos(
        add=_entries(parts.get("add"), "todos.add", story_id, findings, read),
        remove=_entries(parts.get("remove"), "todos.remove", story_id, findings, read),
    )


def _entries(
    value: object, field: str, story_id: str, findings: list[Finding], read: Callable[[object], T | None]
) -> tuple[T, ...]:
    if value is None:
        return ()
    found = [read(entry) for entry in (value if isinstance(value, list) else [value])]
    kept = tuple(entry for entry in found if entry is not None)
    if len(kept) < len(found):
        message = f"{len(found) - len(kept)} entries of `{field}` were not understood and left out"
        fix = "Write every entry as the shape of the answer says."
        findings.append(minor("breakdown.notes", message, where=Where(story=story_id, field=field), fix=fix))
    return kept


def _pair(entry: object, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, str]:
    if isinstance(entry, str):
        return entry.strip(), ""
    if not isinstance(entry, Mapping):
        return "", ""
    return _first_text(entry, first), _first_text(entry, second)


def _first_text(entry: Mapping[str, object], names: tuple[str, ...]) -> str:
    return next((text.strip() for name in names if isinstance(text := entry.get(name), str) and text.strip()), "")


__all__ = ["check_breakdown", "ignored_files", "mend", "merge_missing", "read_breakdown"]

_CONFLICT_TEXTS = ("current_architecture", "story_requirement", "conflict_reason", "recommended_action")
_FREE_FIELDS = ("database_design", "api_design", "code_patterns", "conventions", "tech_stack", "technical_notes")
_PASSING = frozenset({"breakdown.unsafe_path"})
"""Major findings of reading that leave a usable breakdown: the rules on paths, not on structure (A5)."""


def read_breakdown(value: object, story_id: str) -> tuple[Breakdown | None, list[Finding]]:
    """The breakdown of story `story_id` in an extracted value, with what was said about it.

    None when the structure is broken (a major finding says where). What could be corrected without guessing is, with
    a minor finding. A detected conflict needs no tasks. Rules on content are check_breakdown's.
    """
    if not isinstance(value, Mapping):
        fix = "Answer with one JSON object that has story_id, architectural_conflict and tasks."
        return None, [major("breakdown.shape", "the answer is no object", where=Where(story=story_id), fix=fix)]
    findings: list[Finding] = []
    conflict = _conflict(value.get("architectural_conflict"), story_id, findings)
    _story(value, story_id, findings)
    broken = bool(blocking(findings))
    if conflict is not None and conflict.detected:
        # nobody will build these tasks: what is wrong with them is nobody's work
        tasks = read_tasks(value.get("tasks"), story_id)[0]
    else:
        tasks, said = read_tasks(value.get("tasks"), story_id)
        broken = broken or any(finding.code not in _PASSING for finding in blocking(said))
        findings += said
    if conflict is None or broken:
        return None, findings
    return _assemble(value, story_id, conflict, tasks, findings), findings


def _conflict(value: object, story_id: str, findings: list[Finding]) -> ArchitecturalConflict | None:
    where = Where(story=story_id, field="architectural_conflict")
    fix = 'Give {"detected": false}, or {"detected": true} with the four texts.'
    if value is False:
        message = "architectural_conflict was `false` itself"
        findings.append(minor("breakdown.conflict", message, where=where, fix=fix))
        return ArchitecturalConflict(detected=False)
    detected = value.get("detected") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(detected, bool):
        message = "architectural_conflict is missing or no object that says whether one was `detected`"
        findings.append(major("breakdown.conflict", message, where=where, fix=fix))
        return None
    texts = {name: text.strip() for name in _CONFLICT_TEXTS if isinstance(text := value.get(name), str)}
    lacking = [name for name in _CONFLICT_TEXTS if not texts.get(name)]
    if detected and lacking:
        message = f"a conflict was detected, but it lacks {', '.join(lacking)}"
        findings.append(major("breakdown.conflict", message, where=where, fix=fix))
    return ArchitecturalConflict(detected=detected, **texts)


def _story(value: Mapping[str, object], story_id: str, findings: list[Finding]) -> None:
    where = Where(story=story_id, field="story_id")
    stated = value.get("story_id")
    if stated is None or stated == "":
        message = "story_id is missing"
        findings.append(major("breakdown.shape", message, where=where, fix=f'Give "story_id": "{story_id}".'))
    elif stated != story_id:
        message = f"story_id was {str(stated)[:80]!r} and is now {story_id!r}"
        fix = f'Give "story_id": "{story_id}".'
        findings.append(minor("breakdown.story_id", message, where=where, fix=fix))


def _assemble(
    value: Mapping[str, object],
    story_id: str,
    conflict: ArchitecturalConflict,
    tasks: tuple[Task, ...],
    findings: list[Finding],
) -> Breakdown:
    where = Where(story=story_id)
    count = value.get("task_count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        count = len(tasks)
    packages, ignored = read_packages(value.get("dependencies"))
    for entry in ignored:
        message = f"`{entry}` names no package and was left out"
        findings.append(minor("breakdown.packages", message, where=where, fix="Write name → version."))
    free = {name: value.get(name) for name in _FREE_FIELDS}
    return Breakdown(
        story_id=story_id,
        architectural_conflict=conflict,
        task_count=count,
        tasks=tasks,
        dependencies=packages,
        acceptance_tests=read_acceptance_tests(value.get("acceptance_tests"), story_id, findings),
        tests_to_change=read_tests_to_change(value.get("tests_to_change"), story_id, findings),
        todos=read_todos(value.get("todos"), story_id, findings),
        **free,
    )


def ignored_files(breakdown: Breakdown, ignored: Collection[str], *, told: bool) -> list[Finding]:
    """Files of the plan that git ignores; those that no command of their task makes are major until it was told."""
    fix = (
        "Let command_to_run make it, which is then run again wherever it is needed; or take it off the list; or list "
        ".gitignore too, and say how it changes."
    )
    findings = []
    for task in breakdown.tasks:
        for path in sorted({*task.files_to_create} & {*ignored}):
            where = Where(story=breakdown.story_id, task=task.task_id, field="files_to_create", file=path)
            message = f"the repository's .gitignore leaves `{path}` out, so that no commit can have it"
            if task.command or told:
                findings.append(minor("breakdown.ignored_file", message, where=where, fix=fix))
            else:
                findings.append(major("breakdown.ignored_file", message, where=where, fix=fix))
    return findings
