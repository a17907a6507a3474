"""An architect's answer → Breakdown, and the tasks of a `breakdown_missing` answer joined to those that were there.

Also what speaks against a conflict that contradicts itself, or the tree that everybody can see.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from orchestrator.checks.breakdown_rules import MAX_FILES, MAX_TASKS, numbered, renamed_task, renaming
from orchestrator.code.packages import read_packages
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
from orchestrator.core.delivery import Delivery
from orchestrator.core.finding import Finding, Where, blocking, major, minor
from orchestrator.core.paths import tidy

T = TypeVar("T")
_CONFLICT_TEXTS = ("current_architecture", "story_requirement", "conflict_reason", "recommended_action")
_FREE_FIELDS = ("database_design", "api_design", "code_patterns", "conventions", "tech_stack", "technical_notes")


def read_breakdown(value: object, story_id: str, *, names: bool = False) -> tuple[Breakdown | None, list[Finding]]:
    """Returns the breakdown of story `story_id` in an extracted value, with the findings on it.

    None when the structure is broken (a major finding says where). What could be corrected without guessing is, with
    a minor finding: with `names` also the ids of story and tasks, which are ours to give. A detected conflict needs no
    tasks. Rules on content are check_breakdown's.
    """
    if not isinstance(value, Mapping):
        fix = "Answer with one JSON object that has story_id, architectural_conflict and tasks."
        return None, [major("breakdown.shape", "the answer is no object", where=Where(story=story_id), fix=fix)]
    reader = _Reader(story_id, names)
    conflict = reader.conflict(value.get("architectural_conflict"))
    reader.check_story(value.get("story_id"))
    # Nobody will build the tasks of a story in conflict: what is wrong with them does not count.
    apart = _Reader(story_id, names) if conflict is not None and conflict.detected else reader
    tasks = apart.tasks(value.get("tasks"))
    # A path that cannot be used is struck later; every other major finding leaves no usable breakdown.
    if conflict is None or any(finding.code != "breakdown.unsafe_path" for finding in blocking(reader.findings)):
        return None, reader.findings
    breakdown = Breakdown(
        story_id=story_id,
        architectural_conflict=conflict,
        task_count=_count(value.get("task_count"), len(tasks)),
        tasks=tasks,
        dependencies=reader.packages(value.get("dependencies")),
        acceptance_tests=reader.acceptance_tests(value.get("acceptance_tests")),
        tests_to_change=reader.tests_to_change(value.get("tests_to_change")),
        todos=reader.todos(value.get("todos")),
        **{name: value.get(name) for name in _FREE_FIELDS},
    )
    named, said = numbered(breakdown) if names else (breakdown, [])
    return named, [*reader.findings, *said]


def merge_missing(breakdown: Breakdown, value: object) -> tuple[Breakdown, list[Finding]]:
    """Returns `breakdown` with the tasks of a `breakdown_missing` answer: an object with tasks, or the list itself.

    Known tasks that the answer repeats are left out: the same work under any id, or a known id. When the known task of
    an id stands in the answer under another one, the answer was renumbered: other work under that id is new and gets
    the next free id; dependencies of the new tasks follow. Order is by number, else as they came. Packages declared
    with the new tasks are added. `task_count` never shrinks. Never raises.
    """
    answer = value if isinstance(value, Mapping) else {"tasks": value}
    reader = _Reader(breakdown.story_id)
    fresh, names = _fresh(breakdown, reader.tasks(answer.get("tasks")))
    given = {task.task_id for task in fresh}
    changed = ", ".join(f"{old} → {new}" for old, new in names.items() if old != new and new in given)
    if changed:
        fix = "Number missing tasks on from the last one that is there."
        reader.add(minor("breakdown.renumbered", f"ids of tasks that came later were changed: {changed}", fix=fix))
    packages, known = read_packages(answer.get("dependencies"))[0], breakdown.dependencies
    update = {
        "tasks": _by_number(breakdown.story_id, [*breakdown.tasks, *fresh]),
        "task_count": max(breakdown.task_count, _count(answer.get("task_count"), 0)),
        "dependencies": PackageDependencies(
            dependencies={**packages.dependencies, **known.dependencies},
            devDependencies={**packages.devDependencies, **known.devDependencies},
        ),
    }
    return breakdown.model_copy(update=update), reader.findings


def unwritable_files(breakdown: Breakdown, obstacles: Mapping[str, str]) -> list[Finding]:
    """Returns a major finding for each file of a task where no text can be written: a link, a file that is no text …"""
    fix = "Leave it out of the tasks: plan a file beside it, or name the file that is meant as the project spells it."
    return [
        major(
            "breakdown.unwritable",
            f"`{path}` {obstacles[path]}",
            where=Where(story=breakdown.story_id, task=task.task_id, file=path),
            fix=fix,
        )
        for task in breakdown.tasks
        for path in task.files_to_create
        if path in obstacles
    ]


def unwritten_files(delivery: Delivery, obstacles: Mapping[str, str]) -> list[Finding]:
    """Returns the same of a delivery's files: what they would replace is more than their author can see."""
    fix = "Leave the file as it is, and out of the answer."
    return [
        major(
            "delivery.unwritable", f"`{change.path}` {obstacles[change.path]}", where=Where(file=change.path), fix=fix
        )
        for change in delivery.files
        if change.path in obstacles
    ]


def ignored_files(breakdown: Breakdown, ignored: Collection[str], *, told: bool) -> list[Finding]:
    """Files of the plan that git ignores, which are major until it was told."""
    fix = "Take it off the list, environment.build can make it; or list .gitignore too: say how it changes."
    findings = []
    for task in breakdown.tasks:
        make = minor if told else major
        for path in sorted({*task.files_to_create} & {*ignored}):
            where = Where(story=breakdown.story_id, task=task.task_id, field="files_to_create", file=path)
            message = f"the repository's .gitignore leaves `{path}` out, so that no commit can have it"
            findings.append(make("breakdown.ignored_file", message, where=where, fix=fix))
    return findings


class _Reader:
    """Reads the parts of one answer, and collects what it corrected and what it could not use."""

    def __init__(self, story_id: str, names: bool = False) -> None:
        self.story_id, self._names = story_id, names
        self.findings: list[Finding] = []
        self._named = 0
        """Files of the tasks so far."""

    def add(self, finding: Finding, field: str | None = None, task: str | None = None) -> None:
        """Records a finding at its place."""
        self.findings.append(finding.placed(story=self.story_id, field=field, task=task))

    def check_story(self, stated: object) -> None:
        """Records that the answer is for no story or for another one."""
        fix = f'Give "story_id": "{self.story_id}".'
        if stated is None or stated == "":
            make = minor if self._names else major
            self.add(make("breakdown.shape", "story_id is missing", fix=fix), "story_id")
        elif stated != self.story_id:
            message = f"story_id was {str(stated)[:80]!r} and is now {self.story_id!r}"
            self.add(minor("breakdown.story_id", message, fix=fix), "story_id")

    def conflict(self, value: object) -> ArchitecturalConflict | None:
        """Returns whether a conflict was detected, with its texts; None when the answer does not say."""
        field, fix = "architectural_conflict", 'Give {"detected": false}, or {"detected": true} with the four texts.'
        if value is False:
            self.add(minor("breakdown.conflict", "architectural_conflict was `false` itself", fix=fix), field)
            return ArchitecturalConflict(detected=False)
        detected = value.get("detected") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(detected, bool):
            message = "architectural_conflict is missing or no object that says whether one was `detected`"
            self.add(major("breakdown.conflict", message, fix=fix), field)
            return None
        texts = {name: _first_text(value, name) for name in _CONFLICT_TEXTS}
        lacking = ", ".join(name for name, text in texts.items() if not text)
        if detected and lacking:
            self.add(major("breakdown.conflict", f"a conflict was detected, but it lacks {lacking}", fix=fix), field)
        return ArchitecturalConflict(detected=detected, **texts)

    def tasks(self, value: object) -> tuple[Task, ...]:
        """Returns the tasks of a list of objects, in order, without those that are none."""
        if not isinstance(value, list) or not value:
            problem = "`tasks` is empty" if value == [] else "`tasks` is no list"
            self.add(major("breakdown.tasks", problem, fix="Give a non-empty list of task objects."), "tasks")
            return ()
        if len(value) > MAX_TASKS:
            problem = f"the plan has {len(value)} tasks, and a story has {MAX_TASKS} at most"
            fix = "Join tasks that belong together; each is one piece of work with its files."
            self.add(major("breakdown.too_many_tasks", problem, fix=fix), "tasks")
            return ()
        tasks = [self._task(entry, f"tasks[{place}]") for place, entry in enumerate(value)]
        return tuple(task for task in tasks if task is not None)

    def _task(self, entry: object, field: str) -> Task | None:
        raw = entry if isinstance(entry, Mapping) else {}
        task_id, description = _task_id(raw), _first_text(raw, "description", "title")
        files = raw.get("files_to_create")
        if not (task_id or self._names) or not description or not isinstance(files, list):
            stated = {
                "task_id": task_id or self._names,
                "description": description,
                "files_to_create (a list)": isinstance(files, list),
            }
            lacking = " and ".join(name for name, there in stated.items() if not there)
            fix = "Give every task task_id, description and files_to_create."
            self.add(major("breakdown.tasks", f"a task lacks {lacking}", fix=fix), field)
            return None
        return Task(
            task_id=task_id,
            description=description,
            files_to_create=self._files(files, field, task_id),
            command_to_run=self._command(raw.get("command_to_run"), field, task_id),
            dependencies=self._dependencies(raw.get("dependencies"), field, task_id),
            dependency_reason=_first_text(raw, "dependency_reason"),
        )

    def _files(self, entries: list[object], field: str, task_id: str) -> tuple[str, ...]:
        self._named += len(entries)
        if self._named > MAX_FILES:
            fix = "Name in each task the files that it makes or changes itself."
            self.add(major("breakdown.tasks", f"the tasks name more than {MAX_FILES} files", fix=fix), field, task_id)
            return ()
        for entry in entries:
            if not isinstance(entry, str):
                message = f"`{str(entry)[:80]}` is no path: files_to_create holds strings only"
                self.add(major("breakdown.unsafe_path", message, fix="Write the path as a string."), field, task_id)
        return tuple(dict.fromkeys(tidy(entry) for entry in entries if isinstance(entry, str)))

    def _command(self, value: object, field: str, task_id: str) -> str | None:
        if value is None or isinstance(value, str):
            return (value or "").strip() or None
        fix = "Write the command as one string, or leave it out."
        self.add(major("breakdown.command", "command_to_run is no string", fix=fix), field, task_id)
        return None

    def _dependencies(self, value: object, field: str, task_id: str) -> tuple[str, ...]:
        values = [value] if isinstance(value, str) else [] if value is None else value
        if self._names and isinstance(values, list):  # 1 for the first task
            values = [str(item) if type(item) is int else item for item in values]
        if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
            fix = "List the ids of tasks of this story."
            self.add(major("breakdown.dependency", "`dependencies` is no list of task ids", fix=fix), field, task_id)
            return ()
        if len(values) > MAX_TASKS:
            message = f"the task has {len(values)} dependencies, and a story has {MAX_TASKS} tasks at most"
            self.add(major("breakdown.dependency", message, fix="Name what it waits for."), field, task_id)
            return ()
        return tuple(dict.fromkeys(item.strip() for item in values if item.strip()))

    def packages(self, value: object) -> PackageDependencies:
        """Returns the packages that are declared."""
        packages, ignored = read_packages(value)
        for entry in ignored:
            message = f"`{entry}` names no package and was left out"
            self.add(minor("breakdown.packages", message, fix="Write name → version."))
        return packages

    def acceptance_tests(self, value: object) -> tuple[AcceptanceTest, ...]:
        """Returns entries {criterion, test}, or bare criteria as strings."""

        def read(entry: object) -> AcceptanceTest | None:
            criterion, test = _pair(entry, ("criterion", "criteria", "name"), ("test", "description"))
            return AcceptanceTest(criterion=criterion, test=test) if criterion else None

        return self._entries(value, "acceptance_tests", read)

    def tests_to_change(self, value: object) -> tuple[TestToChange, ...]:
        """Returns entries {file, reason}, or bare paths as strings."""

        def read(entry: object) -> TestToChange | None:
            file, reason = _pair(entry, ("file", "path"), ("reason",))
            return TestToChange(file=tidy(file), reason=reason) if file else None

        return self._entries(value, "tests_to_change", read)

    def todos(self, value: object) -> Todos:
        """Returns {add, remove}, or a list of what to add."""
        parts = value if isinstance(value, Mapping) else {"add": value}
        add, remove = (
            self._entries(parts.get(name), f"todos.{name}", lambda entry: _pair(entry, (), ())[0] or None)
            for name in ("add", "remove")
        )
        return Todos(add=add, remove=remove)

    def _entries(self, value: object, field: str, read: Callable[[object], T | None]) -> tuple[T, ...]:
        if value is None:
            return ()
        found = [read(entry) for entry in (value if isinstance(value, list) else [value])]
        kept = tuple(entry for entry in found if entry is not None)
        if len(kept) < len(found):
            message = f"{len(found) - len(kept)} entries of `{field}` were not understood and left out"
            self.add(minor("breakdown.notes", message, fix="Write every entry as the shape of the answer says."), field)
        return kept


def _pair(entry: object, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, str]:
    if isinstance(entry, str):
        return entry.strip(), ""
    return (_first_text(entry, *first), _first_text(entry, *second)) if isinstance(entry, Mapping) else ("", "")


def _first_text(entry: Mapping[str, object], *names: str) -> str:
    return next((text.strip() for name in names if isinstance(text := entry.get(name), str) and text.strip()), "")


def _task_id(entry: Mapping[str, object]) -> str:
    """Returns what an answer calls a task: a text, or a bare number; "" without a name."""
    number = next((held for name in ("task_id", "taskId", "id") if type(held := entry.get(name)) is int), None)
    return _first_text(entry, "task_id", "taskId", "id") or ("" if number is None else str(number))


def _count(value: object, otherwise: int) -> int:
    """A count that an answer states: JSON's true and false are numbers to Python."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _fresh(breakdown: Breakdown, came: Sequence[Task]) -> tuple[list[Task], dict[str, str]]:
    """Returns the tasks that are new, under the ids they get, and id in the answer → id in the plan."""
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
            numbers = (task_number(one, breakdown.story_id, 100) or 0 for one in taken)
            names[task.task_id] = free = task_name(breakdown.story_id, max(numbers, default=0) + 1)
            taken.add(free)
            fresh.append(task.model_copy(update={"task_id": free}))
    rename = renaming(names)
    return [renamed_task(task, names, rename) for task in fresh], names


def _same_work(one: Task, other: Task) -> bool:
    """Returns whether two tasks say the same in the same words, about files that are at least partly the same."""
    if one.files_to_create or other.files_to_create:
        alike = not set(one.files_to_create).isdisjoint(other.files_to_create)
    else:
        alike = one.command == other.command
    return alike and _words(one.description) == _words(other.description)


def _words(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")


def _by_number(story_id: str, tasks: Sequence[Task]) -> tuple[Task, ...]:
    numbers = {task.task_id: task_number(task.task_id, story_id, len(tasks)) for task in tasks}
    if None in numbers.values():
        return tuple(tasks)
    return tuple(sorted(tasks, key=lambda task: numbers[task.task_id] or 0))


# ---- whether a conflict is one: a suspicion, never a refusal; a conflict that is reported again stands

_FIX = (
    "Where nothing stands against the story, set `detected` to false and plan it. Where something does, name the "
    "convention or design that would be broken, and where it stands."
)
_SHOWN = 10
"""Files that a finding names."""
# A small model fills in a form: each of these was said beside `detected: true`.
_NONE = re.compile(
    r"\b(?:no (?:\w+ )?(?:conflicts?|contradictions?)\b|there (?:is|are) no conflicts?|not? (?:in )?conflict\b"
    r"|does(?: not|n't) conflict|no (?:\w+ )?(?:action|change)s? (?:is|are|was|were) (?:required|needed|necessary)"
    r"|nothing (?:has|needs) to be done|no action (?:required|needed|necessary))",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"^(?:none|n/?a|nil|no|null|not applicable|nothing|-)?\.?$", re.IGNORECASE)
_THERE = re.compile(r"\balready (?:\w+ ){0,2}(?:exists?|implemented|there|present|defined|in place)\b", re.IGNORECASE)
_MISSING = re.compile(
    r"\b(?:do(?:es)?(?: not|n't) exist|(?:is|are) (?:missing|not there|absent|not present)|(?:cannot|can't) be found"
    r"|not found|lacks?\b|there is no)\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w./-])[\w-][\w./-]{0,200}\.[A-Za-z][A-Za-z0-9]{0,5}\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")


def doubts(plan: Breakdown, files: Collection[str]) -> list[Finding]:
    """Returns what speaks against the conflict that a plan reports; `files` are the paths of the project."""
    conflict, where = plan.architectural_conflict, Where(story=plan.story_id, field="architectural_conflict")
    found = [*_with_itself(plan), *_with_the_tree(conflict, files)]
    return [
        major("breakdown.doubtful_conflict", f"the conflict is doubtful: {message}", where=where, fix=_FIX)
        for message in dict.fromkeys(found)
    ]


def _with_itself(plan: Breakdown) -> Iterator[str]:
    conflict = plan.architectural_conflict
    for field in ("current_architecture", "conflict_reason", "recommended_action"):
        if (said := _NONE.search(getattr(conflict, field))) is not None:
            yield f'`detected` is true, and `{field}` says "{said[0]}"'
    if _EMPTY.match(conflict.conflict_reason.strip()):
        yield "`detected` is true, and `conflict_reason` names none"
    if plan.tasks:
        yield f"`detected` is true, and the plan has {len(plan.tasks)} tasks for the story all the same"


def _with_the_tree(conflict: ArchitecturalConflict, files: Collection[str]) -> Iterator[str]:
    texts = (conflict.current_architecture, conflict.conflict_reason, conflict.recommended_action)
    for sentence in (one for text in texts for one in _SENTENCE.split(text)):
        named = [path.removeprefix("./") for path in _PATH.findall(sentence)]
        if (said := _THERE.search(sentence)) is not None:
            if not files:
                yield f'it says "{said[0]}", and the repository is empty: nothing exists yet'
            elif gone := [path for path in named if not _has(path, files)]:
                yield f'it says "{said[0]}" of {_quoted(gone)}, which the repository does not have'
        if (said := _MISSING.search(sentence)) is not None and (here := [one for one in named if one in files]):
            yield f'it says "{said[0]}" of {_quoted(here)}, which the repository has'


def _has(path: str, files: Collection[str]) -> bool:
    return any(file == path or file.endswith(f"/{path}") for file in files)


def _quoted(paths: list[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths[:_SHOWN])
