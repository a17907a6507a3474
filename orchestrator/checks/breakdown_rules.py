"""The rules a breakdown must satisfy, and what is done to one whose retries are used up: nothing is invented."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from orchestrator.checks.paths import plan_problem
from orchestrator.code.installs import INSTALLERS, read_installs
from orchestrator.code.packages import normal_names, package_source, spoken_packages
from orchestrator.core.breakdown import Breakdown, PackageDependencies, Task, Todos, task_name, task_number
from orchestrator.core.finding import Finding, Where, major, minor, policy
from orchestrator.core.paths import folders_of, spelling, unsafe_reason
from orchestrator.core.story import cycles

MAX_TASKS = 200
"""Tasks of one story. A plan with more is refused: it is no story, and each of them is paid for."""
MAX_FILES = 1_000
"""Files of all tasks of a plan, and of one delivery."""
MAX_TASK_FILES = 3  # more is a task that a model seldom finishes in one answer
_PATH_FIX = {
    "breakdown.unsafe_path": "Name it by its path from the repository's root, with `/`.",
    "breakdown.abstract_path": "Name real files by their path from the repository's root.",
    "breakdown.test_file": "Leave it out, and say in acceptance_tests what is to be tested.",
    "breakdown.binary_file": "Leave it out, or have a text file made that does the same.",
}


def check_breakdown(
    breakdown: Breakdown, existing_files: frozenset[str], known_packages: frozenset[str] = frozenset()
) -> list[Finding]:
    """Everything that is wrong with a read breakdown; [] for one with a detected conflict, whose tasks do not count.

    `existing_files` are the repository's tracked files, `known_packages` the normalised names in its manifests.
    """
    if breakdown.architectural_conflict.detected:
        return []
    findings = [*_ids(breakdown), *_dependencies(breakdown), *_count(breakdown), *_tests_to_change(breakdown)]
    findings += _sources(breakdown)
    folders = folders_of(existing_files)
    declared = normal_names(breakdown.dependencies.names) | known_packages
    for task in breakdown.tasks:
        findings += (one.placed(task=task.task_id) for one in _work(task, existing_files, folders))
        findings += (one.placed(task=task.task_id) for one in _packages(task, declared))
    findings += _clashes(breakdown, existing_files)
    return [finding.placed(story=breakdown.story_id) for finding in findings]


def _ids(breakdown: Breakdown) -> Iterator[Finding]:
    story = breakdown.story_id
    fix = f"Number the tasks T-{story}-01, T-{story}-02, … : two digits, each once, rising."
    seen: set[str] = set()
    last = -1
    for place, task in enumerate(breakdown.tasks):
        where = Where(task=task.task_id, field=f"tasks[{place}].task_id")
        number = task_number(task.task_id, story, len(breakdown.tasks))
        if number is None:
            yield major("breakdown.task_id", f"`{task.task_id}` is no task id of {story}", where=where, fix=fix)
        elif task.task_id in seen:
            yield major("breakdown.task_id", f"`{task.task_id}` names two tasks", where=where, fix=fix)
        elif number <= last:
            yield major("breakdown.task_id", f"`{task.task_id}` does not rise", where=where, fix=fix)
        last = max(last, -1 if number is None else number)
        seen.add(task.task_id)


def _dependencies(breakdown: Breakdown) -> Iterator[Finding]:
    needs = {task.task_id: task.dependencies for task in breakdown.tasks}
    for task_id, needed in ((task.task_id, needed) for task in breakdown.tasks for needed in task.dependencies):
        if needed not in needs:
            message = f"it depends on `{needed}`, which is no task of this story"
            fix = "Name only tasks of this story."
            yield major("breakdown.dependency", message, where=Where(task=task_id), fix=fix)
    for cycle in cycles(needs):
        message = f"tasks wait for each other: {' → '.join(cycle)}"
        yield major("breakdown.cycle", message, fix="Take one of these dependencies out.")


def _count(breakdown: Breakdown) -> Iterator[Finding]:
    if len(breakdown.tasks) < breakdown.task_count:
        message = f"task_count says {breakdown.task_count}, but there are {len(breakdown.tasks)} tasks"
        yield major("breakdown.missing_tasks", message, fix="Give the missing tasks, or correct task_count.")


def _work(task: Task, existing: frozenset[str], folders: frozenset[str]) -> Iterator[Finding]:
    if not task.files_to_create and task.command is None:
        fix = "Name its files in files_to_create, or give a command, or take the task out."
        yield major("breakdown.no_work", "the task has neither files nor a command", fix=fix)
    for path in task.files_to_create:
        if (problem := plan_problem(path, existing, folders)) is not None:
            yield major(problem.code, f"`{path[:200]}` {problem.reason}", fix=_PATH_FIX[problem.code])
    if len(task.files_to_create) > MAX_TASK_FILES:
        fix = f"Split it: {MAX_TASK_FILES} files at most."
        yield minor("breakdown.too_many_files", f"the task has {len(task.files_to_create)} files", fix=fix)


def _packages(task: Task, declared: frozenset[str]) -> Iterator[Finding]:
    fix = "Declare it under dependencies, or do without it."
    found = read_installs(task.command or "")
    for unclear in found.unclear[:1]:
        message = f"what `{unclear}` installs cannot be known"
        plainly = "Write the command plainly, and declare its packages under dependencies."
        yield major("breakdown.undeclared_package", message, fix=plainly)
    for name in found.packages:
        if name not in declared | INSTALLERS:
            message = f"the command installs `{name}`, which is not declared"
            yield major("breakdown.undeclared_package", message, fix=fix)
    for name in spoken_packages(task.description):
        if name not in found.packages and normal_names([name]).isdisjoint(declared):
            message = f"the description names the package `{name}`, which is not declared"
            yield policy("breakdown.undeclared_package", message, fix=fix)


def _sources(breakdown: Breakdown) -> Iterator[Finding]:
    for group, packages in breakdown.dependencies:
        for name, version in packages.items():
            if source := package_source(name, version):
                message = (
                    f"the package `{name[:120]}` is declared from elsewhere than the usual index: `{source[:160]}`"
                )
                where = Where(field=f"dependencies.{group}")
                yield major("breakdown.package_source", message, where=where, fix="Give its name and a version only.")


def _tests_to_change(breakdown: Breakdown) -> Iterator[Finding]:
    for change in breakdown.tests_to_change:
        if (reason := unsafe_reason(change.file)) is not None:
            message, where = f"`{change.file[:200]}` is unsafe: {reason}", Where(field="tests_to_change")
            yield major("breakdown.unsafe_path", message, where=where, fix="Name an existing test file by its path.")


def _clashes(breakdown: Breakdown, existing: frozenset[str]) -> Iterator[Finding]:
    """Paths that no single tree can hold on every file system: one a folder of the other, or spelt nearly alike."""
    spelt = {spelling(path): path for path in sorted(existing)}
    declared = {path: task.task_id for task in breakdown.tasks for path in task.files_to_create}
    folders = folders_of(declared)
    for path, task_id in declared.items():
        where = Where(task=task_id)
        other = spelt.setdefault(spelling(path), path)
        if other != path and path not in existing:
            message = f"`{path}` differs from `{other}` only in case, or in how its accents are composed"
            yield minor("breakdown.path_clash", message, where=where, fix=f"Write `{other}`.")
        if path in folders and path not in existing:
            message = f"`{path}` is a file here and a folder of another file"
            yield major("breakdown.abstract_path", message, where=where, fix="Name files, not folders.")


_STRUCK_FIX = "If the path was meant, give it as a file of the project and plan the story again."


def mend(breakdown: Breakdown, existing_files: frozenset[str]) -> tuple[Breakdown, list[Finding]]:
    """Returns `breakdown` with what the rules refuse struck or dropped, and ids renumbered when they break the rules.

    That is: bad paths, packages from elsewhere, impossible dependencies. Every change is a minor finding. What names a
    task (dependencies, descriptions, todos) follows a new number. A breakdown that satisfies the rules comes back
    equal, with no finding. What stays wrong (a task without work, too few tasks) is for check_breakdown to find again.
    """
    findings: list[Finding] = []
    tasks = _strike(breakdown, existing_files, findings)
    tasks, names = _renumber(breakdown.story_id, tasks, findings)
    tasks = _untangle(tasks, findings)
    changes = tuple(change for change in breakdown.tests_to_change if unsafe_reason(change.file) is None)
    if len(changes) < len(breakdown.tests_to_change):
        message, where = "unsafe paths were struck from tests_to_change", Where(field="tests_to_change")
        findings.append(minor("breakdown.struck", message, where=where, fix=_STRUCK_FIX))
    update = {
        "tasks": tuple(tasks),
        "tests_to_change": changes,
        "todos": _renamed_todos(breakdown.todos, names),
        "dependencies": _mended_packages(breakdown, findings),
    }
    return breakdown.model_copy(update=update), [one.placed(story=breakdown.story_id) for one in findings]


def _mended_packages(breakdown: Breakdown, findings: list[Finding]) -> PackageDependencies:
    """Returns the declared packages without those from elsewhere."""
    kept: dict[str, dict[str, str]] = {}
    for group, packages in breakdown.dependencies:
        kept[group] = {name: version for name, version in packages.items() if not package_source(name, version)}
        for name in sorted(packages.keys() - kept[group].keys()):
            message = f"the package `{name[:120]}` was struck: `{packages[name][:160]}` is no version"
            fix = "If the package is needed, declare it by name and version and plan the story again."
            findings.append(minor("breakdown.struck", message, where=Where(field=f"dependencies.{group}"), fix=fix))
    return PackageDependencies.model_validate(kept)


Rename = Callable[[str], str]
"""Text → the text with task ids in it replaced by their new ones."""


def renamed_task(task: Task, names: Mapping[str, str], rename: Rename) -> Task:
    """Returns the task with what it says of other tasks under their new ids; `rename` is `renaming(names)`."""
    update = {
        "dependencies": tuple(dict.fromkeys(names.get(needed, needed) for needed in task.dependencies)),
        "description": rename(task.description),
        "dependency_reason": rename(task.dependency_reason),
    }
    return task.model_copy(update=update)


def renaming(names: Mapping[str, str]) -> Rename:
    """Returns what replaces task ids in texts by their new ones; ids that may be mere words or numbers it leaves alone.

    Made once for all texts of a plan: it holds every id.
    """
    changed = [name for name, new in names.items() if name != new and re.search(r"[A-Za-z][^ ]*[0-9]", name)]
    if not changed:
        return str
    # The longest first: T-1-10 is not T-1-1 with a zero behind it.
    longest_first = "|".join(re.escape(name) for name in sorted(changed, key=len, reverse=True))
    form = re.compile(rf"(?<![\w.-])(?:{longest_first})(?![\w-])")
    return lambda text: form.sub(lambda match: names[match[0]], text)


def _strike(breakdown: Breakdown, existing: frozenset[str], findings: list[Finding]) -> list[Task]:
    known_folders = folders_of(existing)
    own_folders = folders_of(path for task in breakdown.tasks for path in task.files_to_create)
    result: list[Task] = []
    for task in breakdown.tasks:
        kept: list[str] = []
        for path in task.files_to_create:
            problem = plan_problem(path, existing, known_folders)
            if problem is None and (path not in own_folders or path in existing):
                kept.append(path)
                continue
            reason = problem.reason if problem else "is a folder of another file"
            message = f"`{path[:200]}` was struck: it {reason}"
            findings.append(minor("breakdown.struck", message, where=Where(task=task.task_id), fix=_STRUCK_FIX))
        result.append(task.model_copy(update={"files_to_create": tuple(kept)}))
    return result


def numbered(breakdown: Breakdown) -> tuple[Breakdown, list[Finding]]:
    """Returns `breakdown` with ids by the rules: kept where they are, else given by place; a minor finding tells.

    What names a task (dependencies, descriptions, todos) follows; a dependency that is written otherwise (`2`,
    `T-A-2`) means the one task with that number. What it may not mean stays, and is check_breakdown's to find.
    """
    findings: list[Finding] = []
    tasks, names = _renumber(breakdown.story_id, breakdown.tasks, findings)
    if not findings and tasks == list(breakdown.tasks):
        return breakdown, []
    update = {"tasks": tuple(tasks), "todos": _renamed_todos(breakdown.todos, names)}
    return breakdown.model_copy(update=update), [one.placed(story=breakdown.story_id) for one in findings]


def _renamed_todos(todos: Todos, names: Mapping[str, str]) -> Todos:
    rename = renaming(names)
    return Todos.model_validate({group: tuple(map(rename, texts)) for group, texts in todos})


def counted_tasks(plan: Breakdown) -> tuple[Breakdown, list[Finding]]:
    """Returns the plan with the number of tasks that it has, and with their ids by the rules."""
    named, findings = numbered(plan)
    if named.task_count == len(named.tasks):
        return named, findings
    message = f"task_count was {named.task_count} and is now {len(named.tasks)}"
    findings.append(minor("breakdown.missing_tasks", message, fix="Look whether a task is missing."))
    return named.model_copy(update={"task_count": len(named.tasks)}), findings


def _renumber(story: str, tasks: Sequence[Task], findings: list[Finding]) -> tuple[list[Task], dict[str, str]]:
    """Returns the tasks, and old id → new id where they were given new ones."""
    numbers = [task_number(task.task_id, story, len(tasks)) for task in tasks]
    known = [number for number in numbers if number is not None]
    if len(known) == len(tasks) and all(before < after for before, after in pairwise(known)):
        new = [task.task_id for task in tasks]
        mapping: dict[str, str] = {}
    else:
        new = [task_name(story, number) for number in range(1, len(tasks) + 1)]
        mapping = {}
        for task, name in zip(tasks, new, strict=True):
            mapping.setdefault(task.task_id, name)  # a doubled id means its first task in what is said
        pairs = ", ".join(f"{task.task_id or 'none'} → {name}" for task, name in zip(tasks, new, strict=True))
        fix = "Nothing needs to be done; look for the tasks under their new ids."
        findings.append(minor("breakdown.renumbered", f"task ids were renumbered: {pairs}", fix=fix))
    result: list[Task] = []
    given, places, rename = {*new}, _Places(story, tasks), renaming(mapping)
    for place, (task, name) in enumerate(zip(tasks, new, strict=True)):
        needs: list[str] = []
        for need in task.dependencies:
            meant = [new[at] for at in places.meant(need, place)]
            # What named no task before must not come to name one by chance.
            if not meant and need in given:
                findings.append(_dropped(name, need, known=False))
            needs += meant or ([] if need in given else [need])
        changed = renamed_task(task.model_copy(update={"task_id": name, "dependencies": ()}), mapping, rename)
        result.append(changed.model_copy(update={"dependencies": tuple(dict.fromkeys(needs))}))
    return result, mapping


_LAST_NUMBER = re.compile(r"(?:^|[^0-9])0*([0-9]{1,4})\W*$")


class _Places:
    """Where the tasks of a plan stand, by their ids and by the numbers in these."""

    def __init__(self, story: str, tasks: Sequence[Task]) -> None:
        # `2`, `T-2`, `task 2`, `T-US-004-2`; another story's task is none of these.
        spelt = rf"(?:t(?:ask)?)?[-_ ]*(?:{re.escape(story)})?[-_ ]*0*([0-9]{{1,4}})"
        self._spelt = re.compile(spelt, re.IGNORECASE)
        self._of_id, self._of_number = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        for at, task in enumerate(tasks):
            self._of_id[task.task_id].append(at)
            self._of_number[_number(task.task_id or str(at + 1))].append(at)

    def meant(self, need: str, place: int) -> list[int]:
        """Returns the places of the tasks that the task at `place` means by an id; of a doubled one all earlier."""
        if same := self._of_id.get(need, []):
            return [at for at in same if at < place] or same[:1]
        number = self._spelt.fullmatch(need)
        alike = self._of_number.get(number[1], []) if number else []
        return alike if len(alike) == 1 and alike[0] < place else []


def _number(task_id: str) -> str:
    """Returns the number that a task's id ends in, "" without one."""
    found = _LAST_NUMBER.search(task_id)
    return found[1] if found else ""


def _untangle(tasks: Sequence[Task], findings: list[Finding]) -> list[Task]:
    """Drops dependencies on no task, and of each cycle one on a later task: those on earlier ones make no cycle."""
    place = {task.task_id: number for number, task in enumerate(tasks)}
    needs = {task.task_id: [need for need in task.dependencies if need in place] for task in tasks}
    for task_id in place:
        later = {need for need in needs[task_id] if place[need] >= place[task_id]}
        closing = later & _behind(task_id, needs) if later else later
        needs[task_id] = [need for need in needs[task_id] if need not in closing]
    for task in tasks:
        kept = {*needs[task.task_id]}
        dropped = [need for need in task.dependencies if need not in kept]
        findings += [_dropped(task.task_id, need, known=need in place) for need in dropped]
    return [task.model_copy(update={"dependencies": tuple(needs[task.task_id])}) for task in tasks]


def _behind(task_id: str, needs: Mapping[str, Sequence[str]]) -> set[str]:
    """Returns the task and all that wait for it, directly or not."""
    waiting = defaultdict[str, list[str]](list)
    for other, needed in needs.items():
        for need in needed:
            waiting[need].append(other)
    found, left = {task_id}, [task_id]
    while left:
        new = [other for other in waiting[left.pop()] if other not in found]
        found.update(new)
        left += new
    return found


def _dropped(task_id: str, need: str, *, known: bool) -> Finding:
    reason = "would close a cycle" if known else "is no task of this story"
    message = f"the dependency on `{need[:120]}` was dropped: it {reason}"
    fix = "Look whether the order of the tasks is right without it."
    return minor("breakdown.dependency_dropped", message, where=Where(task=task_id), fix=fix)
