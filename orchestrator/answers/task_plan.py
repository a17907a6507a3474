"""A person's Markdown task plan → its value, by rules alone. What would have to be guessed is reported instead.

A plan is a head and its tasks, each with fields and sentences. What is commented out is not there.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.markdown import Block, Source, TooManyBlocks, blocks_of, field_of, source_of, words
from orchestrator.answers.paths import mentioned_files, paths_of
from orchestrator.answers.plan_fields import PlanField, command_of, fields_of, needs_in, packages_of, tasks_of
from orchestrator.answers.plan_sections import Section, parts_of
from orchestrator.code.check import language_of
from orchestrator.code.javascript.tests import test_names
from orchestrator.code.python.tests import test_functions
from orchestrator.core.breakdown import PlannedTask, TaskPlan
from orchestrator.core.finding import Finding, Where, blocking, major, minor, policy
from orchestrator.core.paths import is_test_file, suffix_of

_GONE = frozenset({"delete", "deletes", "remove", "removes", "rename", "renames", "move", "moves"})
"""Keys of files that a task takes away, which it cannot be held to."""


class TaskPlanReading(NamedTuple):
    """A plan, and what of its text could not be read."""

    plan: TaskPlan
    findings: tuple[Finding, ...] = ()
    """Major where a task is lost, a question where something of it is; `where.file` is the plan's path."""


def read_task_plan(text: str, path: str = "") -> TaskPlanReading:
    """Returns the plan in a text. Never raises; linear. Without what begins a task it has no tasks."""
    source = source_of(text)
    if broken := blocking(source.findings):
        where = Where(file=path or None, line=broken[0].where.line)
        fix = "Save the file as UTF-8."
        return TaskPlanReading(
            TaskPlan(path=path), (major("task_plan.encoding", "the plan holds half a character", where=where, fix=fix),)
        )
    try:
        blocks = blocks_of(source.text, source.first_line)
    except TooManyBlocks:
        fix = "Bring a plan of one story; give each story its own."
        too_long = major("task_plan.too_long", "the plan has too many parts", where=Where(file=path or None), fix=fix)
        return TaskPlanReading(TaskPlan(path=path), (too_long,))
    return _Reader(source, path).read(blocks)


class _Reader:
    """One plan."""

    def __init__(self, source: Source, path: str) -> None:
        self._lines, self._first, self._path = source.text.split("\n"), source.first_line, path
        self._findings: list[Finding] = []

    def read(self, blocks: Sequence[Block]) -> TaskPlanReading:
        """Returns the plan in these blocks."""
        parts = parts_of([self._unquoted(block) for block in blocks])
        fields = list(fields_of(parts.outside))
        behind = self._first + len(self._lines)
        tasks = [self._task(one, end or behind) for one, end in zip(parts.sections, parts.ends, strict=True)]
        everywhere = [*fields, *(field for section in parts.sections for field in fields_of(section.blocks))]
        self._nearly(parts.nearly)
        begins = parts.sections[0].line if parts.sections else behind
        plan = TaskPlan(
            path=self._path,
            goal=_goal(fields, parts.outside),
            tasks=tuple(tasks),
            packages=_packages(everywhere, "packages"),
            dev_packages=_packages(everywhere, "dev packages"),
            tech_stack=next((_plain(field.values) for field in fields if field.kind == "stack"), ""),
            head=self._text(self._first, begins - 1),
            opening=tuple(_opening(parts.outside)),
            headed=parts.headed,
        )
        return TaskPlanReading(plan, tuple(sorted(self._findings, key=lambda one: one.where.line or 0)))

    def _task(self, section: Section, behind: int) -> PlannedTask:
        name = section.label or f"Task {section.number}"
        fields = list(fields_of(section.blocks))
        sure: dict[str, None] = {}
        named: dict[str, None] = {}
        needs = dict.fromkeys(needs_in(section.said))
        command: str | None = None
        for field in fields:
            if field.kind in {"files", "named", "tests"}:
                certain, guessed = self._paths(field, name)
                sure.update(dict.fromkeys(certain))
                named.update(dict.fromkeys(guessed))
            elif field.kind == "depends":
                named_only = not field.key.startswith("depends")
                needs.update(dict.fromkeys(tasks_of(field.values, named_only=named_only)))
            elif field.kind == "command":
                command = self._command(field, name, command)
        runs_only = False
        said = [line for field in fields if not field.kind for line in field.said]
        mentioned = [path for path in mentioned_files([section.said, *said]) if not _is_read(path)]
        if not sure and not named and command is None:
            named = dict.fromkeys(mentioned)
            runs = [field for field in fields if field.kind == "run" and field.key == "run"]
            runs_only = bool(runs) and not named and all(_is_heading(line) for line in said)
            for field in runs if runs_only else ():
                command = self._command(field, name, command)
        paths = list(dict.fromkeys((*sure, *named)))
        files = tuple(path for path in paths if not is_test_file(path))
        tests = tuple(path for path in paths if is_test_file(path))
        for field in fields:
            if field.key in _GONE:
                self._unread(field, name, files)
        if not files and command is None:
            self._ask_whether_built([path for path in mentioned if not is_test_file(path)], section.line, name)
        return PlannedTask(
            number=section.number,
            label=section.label,
            title=section.title,
            text=self._text(section.line, behind - 1),
            files=files,
            unsure=tuple(path for path in files if path not in sure),
            tests=tests,
            test_code=tuple(code for code in _codes(section.blocks) if any(_has_tests(code, path) for path in tests)),
            command=command,
            depends_on=tuple(needs),
            line=section.line,
            done=section.done,
            unclear=not (files or tests or command or section.done or runs_only),
        )

    def _paths(self, field: PlanField, name: str) -> tuple[Sequence[str], Sequence[str]]:
        """Returns the paths in a field: those it says for certain, and those that a sentence in it mentions."""
        paths, unread = paths_of(field.values)
        if field.kind == "tests":
            return [path for path in paths if is_test_file(path)], ()
        if field.kind == "named":
            plain = [path for path in paths if path in mentioned_files([f"`{path}`"])]
            return (), plain or mentioned_files(field.values)
        found = mentioned_files(unread)
        for text in (one for one in unread if not mentioned_files([one])):
            message = f"`{text[:120]}` cannot be read as a path: which file is it?"
            fix = "Put each path into backticks: - Create: `src/shop/prices.py`"
            self._say(policy("task_plan.path", message, where=self._where(field.line, name), fix=fix))
        return paths, found

    def _command(self, field: PlanField, name: str, before: str | None) -> str | None:
        said, test_run = command_of(field.values, field.code)
        where = self._where(field.line, name)
        if test_run:
            message = "the command only runs tests and was left out: the tester's suite is run anyway"
            fix = "Leave it out, or write it as a step: Run: …"
            self._say(minor("task_plan.test_command", message, where=where, fix=fix))
        return " && ".join(one for one in (before, said) if one) or None

    def _ask_whether_built(self, mentioned: Sequence[str], line: int, name: str) -> None:
        """Asks about files that a sentence mentions in a task that names tests alone: it may test or change them."""
        if mentioned:
            message = f"does the task change `{mentioned[0][:120]}`? It names tests alone, which are the tester's"
            fix = f"Write - Modify: `{mentioned[0][:120]}` when the task writes it."
            self._say(policy("task_plan.unread_files", message, where=self._where(line, name), fix=fix))

    def _unread(self, field: PlanField, name: str, files: Sequence[str]) -> None:
        paths = [path for path in paths_of(field.values)[0] if ("/" in path or "." in path) and path not in files]
        if paths:
            key = field.key.capitalize()
            message = f"`{key}: {paths[0][:120]}` is not read as a file of the task"
            fix = f"Write - Create: `{paths[0][:120]}` or - Modify: `{paths[0][:120]}` when the task writes it."
            self._say(minor("task_plan.unread_files", message, where=self._where(field.line, name), fix=fix))

    def _nearly(self, blocks: Sequence[Block]) -> None:
        if not blocks:
            return
        more = f" (and {len(blocks) - 1} more)" if len(blocks) > 1 else ""
        shown = blocks[0].text.split("\n")[0].lstrip("# ")[:80]
        marks = "#" * blocks[0].level
        message = f"`{f'{marks} {shown}'.strip()}`{more} reads like a task's heading and is none"
        fix = "Write it with three marks and a number: ### Task 1: Component"
        self._say(major("task_plan.heading", message, where=self._where(blocks[0].line), fix=fix))

    def _say(self, finding: Finding) -> None:
        self._findings.append(finding)

    def _where(self, line: int, task: str | None = None) -> Where:
        return Where(file=self._path or None, line=line, task=task)

    def _unquoted(self, block: Block) -> Block:
        """Returns a quotation as a paragraph: it may hold fields, never headings."""
        if block.kind != "quote":
            return block
        lines = self._lines[block.line - self._first : block.end - self._first + 1]
        return block._replace(kind="paragraph", text="\n".join(line.lstrip("> \t") for line in lines))

    def _text(self, first: int, last: int) -> str:
        lines = self._lines[first - self._first : last - self._first + 1]
        while lines and (not lines[-1].strip() or not lines[-1].strip("-*_ ")):
            lines.pop()
        return "\n".join(lines).strip("\n")


def _codes(blocks: Sequence[Block]) -> Iterator[str]:
    return (block.text for block in blocks if block.kind == "fence")


def _has_tests(code: str, path: str) -> bool:
    """Returns whether code in the language of this test file defines tests."""
    if path.endswith(".py"):
        return bool(test_functions(code))
    return language_of(path) in {"JavaScript", "TypeScript"} and bool(test_names(code, path))


def _is_read(path: str) -> bool:
    """Returns whether a file is no task's to write: a text among the tests, as a feature's own documents in specs/."""
    return (is_test_file(path) or path.startswith("specs/")) and suffix_of(path) in {".md", ".mdx", ".rst", ".txt"}


def _is_heading(line: str) -> bool:
    """Returns whether a line only names what follows: `**Step 1: Build the assets**`."""
    return not line.strip() or (line.startswith("**") and line.endswith("**"))


def _opening(blocks: Sequence[Block]) -> Iterator[str]:
    """Yields the title of a plan, then its first paragraph that is no field."""
    yield from (words(block.text).strip("# ") for block in blocks[:1] if block.kind == "heading" and block.level == 1)
    paragraphs = (block.text for block in blocks if block.kind == "paragraph")
    yield from [" ".join(text.split()) for text in paragraphs if field_of(text.split("\n")[0], 0) is None][:1]


def _goal(fields: Iterable[PlanField], blocks: Sequence[Block]) -> str:
    """Returns the text of a goal field, else what stands under a heading Goal; "" when there is neither."""
    stated = next((field for field in fields if field.kind == "goal" and field.values), None)
    return _plain(stated.values) if stated is not None else _plain(_under_goal(blocks))


def _under_goal(blocks: Sequence[Block]) -> Iterator[str]:
    inside = False
    for block in blocks:
        if block.kind == "heading":
            if inside:
                return
            name, _, rest = words(block.text).partition(":")
            inside = name.strip(" #*").lstrip("0123456789.) ").casefold() in {"goal", "goals"}
            if inside and rest.strip():
                yield rest
                return
        elif inside and block.kind in {"paragraph", "item"}:
            yield block.text


def _packages(fields: Iterable[PlanField], kind: str) -> tuple[str, ...]:
    found = (package for field in fields if field.kind == kind for package in packages_of(field.values))
    return tuple(dict.fromkeys(found))


def _plain(values: Iterable[str]) -> str:
    return " ".join(" ".join(values).split()).strip("* ")
