"""The rules a breakdown must satisfy, and what is done to one whose retries are used up: nothing is invented."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from packaging.utils import canonicalize_name

from orchestrator.checks.paths import folders_of, plan_problem
from orchestrator.code.installs import INSTALLERS, read_installs
from orchestrator.code.manifests.distributions import is_python_builtin, npm_package, python_distribution
from orchestrator.core.breakdown import Breakdown, PackageDependencies, Task, Todos, task_name, task_number
from orchestrator.core.finding import Finding, Where, major, minor, policy
from orchestrator.core.paths import spelling, unsafe_reason
from orchestrator.core.story import find_cycle, waves

_REQUIREMENT = re.compile(
    r"^(?P<name>@[a-z0-9~][\w.~-]*/[\w.~-]+|[A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*"
    r"(@\s*(?P<at>[^\s;]+)|(?P<pin>(===?|[<>!~]=?|\^)[^;@]*)|[: ]\s*(?P<bare>[\^~]?v?\d[\w.*+-]*))?\s*(;.*)?$",
    re.IGNORECASE,
)
_NONE = frozenset({"", "none", "n/a", "na", "-", "null", "nothing"})
_WELL_KNOWN = re.compile(
    r"\b(flask|django|fastapi|starlette|uvicorn|gunicorn|sqlalchemy|pydantic|numpy|pandas|scipy|matplotlib|httpx|aiohttp"
    r"|beautifulsoup4|scikit-learn|psycopg2?|pymysql|pyjwt|bcrypt|passlib|celery|jinja2|lodash|axios|express\.js|mongoose"
    r"|sequelize|better-sqlite3|jsonwebtoken|body-parser|supertest|tailwindcss|webpack|nodemon|dotenv|python-dotenv)\b",
    re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"[`'\"](?P<before>@?[A-Za-z0-9][\w./-]*)[`'\"]\s+(?:npm |pip |third-party )?(?:package|library|dependency)\b"
    r"|\b(?:npm|pip|third-party) (?:package|library|dependency) [`'\"]?(?P<behind>@?[A-Za-z0-9][\w./-]*\w)",
    re.IGNORECASE,
)
_INSTALLED = re.compile(
    r"\b(?:pip3?|uv|npm|pnpm|yarn|bun|poetry|pdm|pipenv)\s+(?:install|add|i)\s+(?!-[re]\b)(?:-\S+\s+)*"
    r"(?P<name>@?[A-Za-z0-9][\w./-]*\w)",
    re.IGNORECASE,
)
_NO_MODULE = re.compile(r"No module named '([A-Za-z_][\w.]*)'")
_NO_PACKAGE = re.compile(r"Cannot find (?:module|package) '(@?[A-Za-z0-9][\w./-]*)'")
_ALIAS = re.compile(r"^npm:(?P<name>@?[^@\s]+)(@[^/\s]*)?$")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_PLACE = re.compile(r"^(\.\.?([/\\]|$)|~?[/\\]|\S+@\S+:|\S+[/\\]\S+$|\S+\.(tgz|tar\.gz|whl|zip)$)", re.IGNORECASE)
"""A path, an address of git without a scheme, `user/repository`, an archive."""
_REQUIREMENT_CAP = 200
_DESCRIPTION_CAP = 5000
"""Characters that are read: what is longer is no requirement, or repeats itself."""
_SAME = {"express.js": "express"}


def requirement(text: str) -> tuple[str, str] | None:
    """(name, version) of a requirement such as `express@^4.18.0` or `flask>=2`, else None; no version: `*`."""
    text = " ".join(text[:_REQUIREMENT_CAP].split())
    match = _REQUIREMENT.match(text)
    if match is None or text.lower() in _NONE:
        return None
    version = (match["at"] or match["pin"] or match["bare"] or "*").strip()
    return match["name"], version


def read_packages(value: object) -> tuple[PackageDependencies, list[str]]:
    """Packages from {dependencies, devDependencies}, a flat map or a list; and the entries that name no package."""
    ignored: list[str] = []
    if isinstance(value, Mapping) and {"dependencies", "devDependencies"} & set(value):
        normal = _group(value.get("dependencies"), ignored)
        dev = _group(value.get("devDependencies"), ignored)
        return PackageDependencies(dependencies=normal, devDependencies=dev), ignored
    return PackageDependencies(dependencies=_group(value, ignored)), ignored


def _group(value: object, ignored: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(value, Mapping):
        for name, version in value.items():
            read = requirement(str(name))
            if read is None:
                _note(name, ignored)
            else:
                found[read[0]] = read[1] if package_source(*read) else _stated(version) or read[1]
        return found
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            found.update(_group({entry["name"]: entry.get("version")}, ignored))
        elif isinstance(entry, str) and (read := requirement(entry)) is not None:
            found[read[0]] = read[1]
        else:
            _note(entry, ignored)
    return found


def _stated(version: object) -> str:
    """The version in what stands behind a name: a text, a number, or a table as package managers know them."""
    if isinstance(version, Mapping):
        sources = (version.get(how) for how in ("git", "url", "path", "file", "registry", "index", "source"))
        places = (place for place in sources if isinstance(place, str) and place.strip())
        version = next((place if ":" in place else f"file:{place}" for place in places), version.get("version"))
    return str(version).strip() if isinstance(version, str | int | float) else ""


def package_source(name: str, version: str) -> str:
    """What a version says beyond a version: an address, a path, another package's name; "" for a mere version."""
    told = version.split(";")[0].strip()
    alias = _ALIAS.match(told)
    if alias and alias["name"].lower() == name.lower():
        return ""
    elsewhere = "://" in told or _SCHEME.match(told) or _PLACE.match(told)
    return told if elsewhere and not told.startswith("workspace:") else ""


def _note(entry: object, ignored: list[str]) -> None:
    if entry is not None and str(entry).strip().lower() not in _NONE:
        ignored.append(str(entry)[:120])


def normal_names(names: Iterable[str]) -> frozenset[str]:
    """Every name in the forms it may be compared in: lower case (npm) and PEP 503 (Python)."""
    lowered = {name.strip().lower() for name in names}
    return frozenset(lowered | {str(canonicalize_name(name)) for name in lowered})


def missing_packages(text: str) -> tuple[str, ...]:
    """Returns the packages that an analysis, a review or a failed run says are missing; each once.

    A Python module stands for the distribution that usually brings it.
    """
    text = text[-_DESCRIPTION_CAP:]
    found = dict.fromkeys(m["name"].lower() for m in _INSTALLED.finditer(text))
    found |= dict.fromkeys((m["before"] or m["behind"]).lower() for m in _SPOKEN.finditer(text))
    tops = [match[1].split(".")[0] for match in _NO_MODULE.finditer(text)]
    found |= dict.fromkeys(python_distribution(top) for top in tops if not is_python_builtin(top))
    found |= dict.fromkeys(npm_package(match[1]) for match in _NO_PACKAGE.finditer(text))
    return tuple(found)


def spoken_packages(description: str) -> tuple[str, ...]:
    """Packages a description names plainly enough to expect a declaration; lower case, each once."""
    description = description[:_DESCRIPTION_CAP]
    found = dict.fromkeys(m["name"].lower() for m in _INSTALLED.finditer(description))
    found.update(dict.fromkeys((m["before"] or m["behind"]).lower() for m in _SPOKEN.finditer(description)))
    found.update(dict.fromkeys(m[1].lower() for m in _WELL_KNOWN.finditer(description)))
    return tuple(dict.fromkeys(_SAME.get(name, name) for name in found))


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
        "dependencies": _mended_packages(breakdown, findings),
    }
    return breakdown.model_copy(update=update), findings


def _mended_packages(breakdown: Breakdown, findings: list[Finding]) -> PackageDependencies:
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
