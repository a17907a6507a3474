"""A person's Markdown task plan → its value, by rules alone. What would have to be guessed is told instead."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Block, TooManyBlocks, blocks_of, words
from orchestrator.answers.action_plan_source import Source, source_of
from orchestrator.answers.task_plan_fields import (
    COMMAND,
    DEPENDS,
    DEV_PACKAGES,
    GOAL,
    PACKAGES,
    STACK,
    PlanField,
    fields_of,
    names_files,
)
from orchestrator.answers.task_plan_sections import Section, parts_of
from orchestrator.answers.task_plan_values import command_of, packages_of, paths_of, tasks_of
from orchestrator.domain.findings import Finding, Where, blocking, major, minor
from orchestrator.domain.task_plan import PlannedTask, TaskPlan

MAX_BLOCKS = 100_000
"""Blocks of a plan that are read; a person's may be long."""
_OTHER_FILES = frozenset({"files", "file", "update", "updates", "edit", "edits", "change", "changes", "new", "add"}) | {
    "delete", "deletes", "remove", "removes", "rename", "renames", "move", "moves",
}  # fmt: skip
"""Keys that often speak of files and say nothing that can be relied on."""


class TaskPlanReading(NamedTuple):
    """A plan, and what of its text could not be read."""

    plan: TaskPlan
    findings: tuple[Finding, ...] = ()
    """Major where something of a task is lost; `where.file` is the plan's path."""


def read_task_plan(text: str, path: str = "") -> TaskPlanReading:
    """The plan in a text. Never raises; linear. Without a task's heading it has no tasks, which is for the checks."""
    source = source_of(text)
    if broken := blocking(source.findings):
        where = Where(file=path or None, line=broken[0].where.line)
        fix = "Save the file as UTF-8."
        return TaskPlanReading(
            TaskPlan(path=path), (major("task_plan.encoding", "the plan holds half a character", where=where, fix=fix),)
        )
    try:
        blocks = blocks_of(source.text, source.first_line, MAX_BLOCKS)
    except TooManyBlocks:
        fix = "Bring a plan of one story; give each story its own."
        too_long = major("task_plan.too_long", "the plan has too many parts", where=Where(file=path or None), fix=fix)
        return TaskPlanReading(TaskPlan(path=path), (too_long,))
    return _Reader(source, path).read(blocks)


def has_tasks(text: str) -> bool:
    """Whether a text has the heading of a task."""
    return "task" in text.casefold() and bool(read_task_plan(text).plan.tasks)


class _Reader:
    """One plan."""

    def __init__(self, source: Source, path: str) -> None:
        self._lines, self._first, self._path = source.text.split("\n"), source.first_line, path
        self._findings: list[Finding] = []

    def read(self, blocks: Sequence[Block]) -> TaskPlanReading:
        """The plan in these blocks."""
        parts = parts_of([self._unquoted(block) for block in blocks], self._first + len(self._lines) - 1)
        outside = (*parts.head, *parts.tail)
        fields = list(fields_of(outside))
        tasks = [self._task(section) for section in parts.sections]
        everywhere = [*fields, *(field for section in parts.sections for field in fields_of(section.blocks))]
        self._nearly(parts.nearly)
        begins = parts.sections[0].header.line if parts.sections else self._first + len(self._lines)
        plan = TaskPlan(
            path=self._path,
            goal=_goal(fields, outside),
            tasks=tuple(tasks),
            packages=_packages(everywhere, PACKAGES),
            dev_packages=_packages(everywhere, DEV_PACKAGES),
            tech_stack=next((_plain(field.values) for field in fields if field.key in STACK), ""),
            head=self._text(self._first, begins - 1),
        )
        return TaskPlanReading(plan, tuple(sorted(self._findings, key=lambda one: one.where.line or 0)))

    def _task(self, section: Section) -> PlannedTask:
        number, title, line = section.header
        files: dict[str, None] = {}
        needs: dict[str, None] = {}
        command: str | None = None
        for field in fields_of(section.blocks):
            if names_files(field.key):
                files.update(dict.fromkeys(self._paths(field, number)))
            elif field.key in DEPENDS:
                named_only = not field.key.startswith("depends")
                needs.update(dict.fromkeys(tasks_of(field.values, named_only=named_only)))
            elif field.key in COMMAND:
                command = self._command(field, number, command)
            elif field.key in _OTHER_FILES:
                self._unread(field, number)
        return PlannedTask(
            number=number,
            title=title,
            text=self._text(line, section.end),
            files=tuple(files),
            command=command,
            depends_on=tuple(needs),
            line=line,
        )

    def _paths(self, field: PlanField, number: str) -> tuple[str, ...]:
        found = paths_of(field.values)
        for text in found.unread:
            message = f"`{text[:120]}` cannot be read as a path"
            fix = "Put each path into backticks: - Create: `src/shop/prices.py`"
            self._say(major("task_plan.path", message, where=self._where(field.line, number), fix=fix))
        return found.paths

    def _command(self, field: PlanField, number: str, before: str | None) -> str | None:
        said = command_of(field.values, field.code)
        where = self._where(field.line, number)
        if said.test_run:
            message = "the command only runs tests and was left out: the tester's suite is run anyway"
            fix = "Leave it out, or write it as a step: Run: …"
            self._say(minor("task_plan.test_command", message, where=where, fix=fix))
        if said.command is not None and before is not None:
            fix = "Write one command: **Command:** `make assets && make pages`"
            self._say(major("task_plan.commands", "the task has a second command", where=where, fix=fix))
        return before if before is not None else said.command

    def _unread(self, field: PlanField, number: str) -> None:
        paths = [path for path in paths_of(field.values).paths if "/" in path or "." in path]
        if paths:
            key = field.key.capitalize()
            message = f"`{key}: {paths[0][:120]}` is not read as a file of the task"
            fix = f"Write - Create: `{paths[0][:120]}` or - Modify: `{paths[0][:120]}` when the task writes it."
            self._say(minor("task_plan.unread_files", message, where=self._where(field.line, number), fix=fix))

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

    def _where(self, line: int, number: str | None = None) -> Where:
        return Where(file=self._path or None, line=line, task=f"Task {number}" if number else None)

    def _unquoted(self, block: Block) -> Block:
        """What is quoted may hold fields, never headings."""
        if block.kind != "quote":
            return block
        lines = self._lines[block.line - self._first : block.end - self._first + 1]
        return block._replace(kind="paragraph", text="\n".join(line.lstrip("> \t") for line in lines))

    def _text(self, first: int, last: int) -> str:
        lines = self._lines[first - self._first : last - self._first + 1]
        while lines and (not lines[-1].strip() or not lines[-1].strip("-*_ ")):
            lines.pop()
        return "\n".join(lines).strip("\n")


def _goal(fields: Iterable[PlanField], blocks: Sequence[Block]) -> str:
    """The text of a goal field, else what stands under a heading Goal; "" when there is neither."""
    stated = next((field for field in fields if field.key in GOAL and field.values), None)
    return _plain(stated.values) if stated is not None else _plain(_under_goal(blocks))


def _under_goal(blocks: Sequence[Block]) -> Iterator[str]:
    inside = False
    for block in blocks:
        if block.kind == "heading":
            if inside:
                return
            name, _, rest = words(block.text).partition(":")
            inside = name.strip(" #*").lstrip("0123456789.) ").casefold() in GOAL
            if inside and rest.strip():
                yield rest
                return
        elif inside and block.kind in {"paragraph", "item"}:
            yield block.text


def _packages(fields: Iterable[PlanField], keys: frozenset[str]) -> tuple[str, ...]:
    found = (package for field in fields if field.key in keys for package in packages_of(field.values))
    return tuple(dict.fromkeys(found))


def _plain(values: Iterable[str]) -> str:
    return " ".join(" ".join(values).split()).strip("* ")
