"""The rules a breakdown must satisfy: format, completeness, paths, packages."""

from collections.abc import Iterator

from orchestrator.checks.file_paths import folders_of, plan_problem
from orchestrator.checks.requirements import normal_names, package_source, spoken_packages
from orchestrator.domain.breakdown import Breakdown, Task, task_number
from orchestrator.domain.findings import Finding, Where, major, minor, policy
from orchestrator.domain.graph import find_cycle, waves
from orchestrator.domain.paths import spelling, unsafe_reason
from orchestrator.syntax.installs import INSTALLERS, read_installs

MAX_TASK_FILES = 3
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
        findings += _work(breakdown.story_id, task, existing_files, folders)
        findings += _packages(breakdown.story_id, task, declared)
    return [*findings, *_clashes(breakdown, existing_files)]


def _where(story_id: str, task: Task | None = None, field: str | None = None) -> Where:
    return Where(story=story_id, task=task.task_id if task else None, field=field)


def _ids(breakdown: Breakdown) -> Iterator[Finding]:
    story = breakdown.story_id
    fix = f"Number the tasks T-{story}-01, T-{story}-02, … : two digits, each once, rising."
    seen: set[str] = set()
    last = -1
    for place, task in enumerate(breakdown.tasks):
        where = _where(story, task, f"tasks[{place}].task_id")
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
    known = {task.task_id for task in breakdown.tasks}
    for task in breakdown.tasks:
        for needed in task.dependencies:
            if needed not in known:
                message = f"it depends on `{needed}`, which is no task of this story"
                fix = "Name only tasks of this story."
                yield major("breakdown.dependency", message, where=_where(breakdown.story_id, task), fix=fix)
    yield from _cycles(breakdown)


def _cycles(breakdown: Breakdown) -> Iterator[Finding]:
    """Each cycle with its path; cycles that share a task are found one after the other, as they are mended."""
    needs = {task.task_id: task.dependencies for task in breakdown.tasks}
    _, stuck = waves(needs, needs)
    while cycle := find_cycle(stuck, needs):
        message = f"tasks wait for each other: {' → '.join(cycle)}"
        fix = "Take one of these dependencies out."
        yield major("breakdown.cycle", message, where=_where(breakdown.story_id), fix=fix)
        stuck = tuple(task_id for task_id in stuck if task_id not in cycle)


def _count(breakdown: Breakdown) -> Iterator[Finding]:
    if len(breakdown.tasks) < breakdown.task_count:
        message = f"task_count says {breakdown.task_count}, but there are {len(breakdown.tasks)} tasks"
        fix = "Give the missing tasks, or correct task_count."
        yield major("breakdown.missing_tasks", message, where=_where(breakdown.story_id), fix=fix)


def _work(story: str, task: Task, existing: frozenset[str], folders: frozenset[str]) -> Iterator[Finding]:
    where = _where(story, task)
    if not task.files_to_create and task.command is None:
        fix = "Name its files in files_to_create, or give a command, or take the task out."
        yield major("breakdown.no_work", "the task has neither files nor a command", where=where, fix=fix)
    for path in task.files_to_create:
        problem = plan_problem(path, existing, folders)
        if problem is not None:
            message = f"`{path[:200]}` {problem.reason}"
            yield major(problem.code, message, where=where, fix=_PATH_FIX[problem.code])
    if len(task.files_to_create) > MAX_TASK_FILES:
        message = f"the task has {len(task.files_to_create)} files"
        fix = f"Split it: {MAX_TASK_FILES} files at most."
        yield minor("breakdown.too_many_files", message, where=where, fix=fix)


def _packages(story: str, task: Task, declared: frozenset[str]) -> Iterator[Finding]:
    where = _where(story, task)
    fix = "Declare it under dependencies, or do without it."
    found = read_installs(task.command or "")
    installed = (*found.packages, *found.system)
    for unclear in found.unclear[:1]:
        message = f"what `{unclear}` installs cannot be known"
        plainly = "Write the command plainly, and declare its packages under dependencies."
        yield major("breakdown.undeclared_package", message, where=where, fix=plainly)
    for name in installed:
        if name not in declared | INSTALLERS:
            message = f"the command installs `{name}`, which is not declared"
            yield major("breakdown.undeclared_package", message, where=where, fix=fix)
    for name in spoken_packages(task.description):
        if name not in installed and normal_names([name]).isdisjoint(declared):
            message = f"the description names the package `{name}`, which is not declared"
            yield policy("breakdown.undeclared_package", message, where=where, fix=fix)


def _sources(breakdown: Breakdown) -> Iterator[Finding]:
    for group in ("dependencies", "devDependencies"):
        for name, version in getattr(breakdown.dependencies, group).items():
            if source := package_source(name, version):
                message = (
                    f"the package `{name[:120]}` is declared from elsewhere than the usual index: `{source[:160]}`"
                )
                where = _where(breakdown.story_id, field=f"dependencies.{group}")
                yield major("breakdown.package_source", message, where=where, fix="Give its name and a version only.")


def _tests_to_change(breakdown: Breakdown) -> Iterator[Finding]:
    for change in breakdown.tests_to_change:
        reason = unsafe_reason(change.file)
        if reason is not None:
            message = f"`{change.file[:200]}` is unsafe: {reason}"
            where = _where(breakdown.story_id, field="tests_to_change")
            yield major("breakdown.unsafe_path", message, where=where, fix="Name an existing test file by its path.")


def _clashes(breakdown: Breakdown, existing: frozenset[str]) -> Iterator[Finding]:
    """Paths that no single tree can hold on every file system: one a folder of the other, or spelt nearly alike."""
    spelt = {spelling(path): path for path in sorted(existing)}
    declared = {path: task for task in breakdown.tasks for path in task.files_to_create}
    folders = folders_of(frozenset(declared))
    for path, task in declared.items():
        where = _where(breakdown.story_id, task)
        other = spelt.setdefault(spelling(path), path)
        if other != path and path not in existing:
            message = f"`{path}` differs from `{other}` only in case, or in how its accents are composed"
            yield minor("breakdown.path_clash", message, where=where, fix=f"Write `{other}`.")
        if path in folders and path not in existing:
            message = f"`{path}` is a file here and a folder of another file"
            yield major("breakdown.abstract_path", message, where=where, fix="Name files, not folders.")
