"""A person's Markdown task plan → its value, by rules alone. What would have to be guessed is reported instead.

A plan is a head and its tasks, each with the fields below its heading: `**Create:** path` and the like, a key and all
that belongs to its value. What is commented out is not there.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.markdown import (
    Block,
    Field,
    Source,
    TooManyBlocks,
    blocks_of,
    field_of,
    pieces_of,
    source_of,
    words,
)
from orchestrator.answers.paths import NOTHING, paths_of
from orchestrator.core.breakdown import PlannedTask, TaskPlan
from orchestrator.core.finding import Finding, Where, blocking, major, minor

LEVEL = 3
"""Of a task's heading: `### Task 1`."""
_NUMBER = re.compile(r"task\s+#?(\d{1,6}(?:\.\d{1,6})?)", re.IGNORECASE)
_ORDINAL = r"[a-z]\b|[ivx]+\b|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b"
# A heading or item that is nearly a task's.
_NEARLY = re.compile(rf"(?P<marks>[^\w<]*(?:\[x?\]\s*)?)task(?:\s*[:#\d]|\s+(?:{_ORDINAL}))", re.IGNORECASE)
_UNSPACED = re.compile(r"#{1,6}task\s*\d", re.IGNORECASE)
_BOLD = re.compile(r"\*\*task\s+\d[^\n]*", re.IGNORECASE)


class Section(NamedTuple):
    """A task's heading and what stands below it."""

    number: str
    """Without zeros before it."""
    title: str
    line: int
    blocks: list[Block]


def number_and_title(block: Block) -> tuple[str, str] | None:
    """Returns the number and title of the task that a block begins, None for any other block."""
    if block.kind != "heading" or block.level != LEVEL:
        return None
    text = words(block.text).rstrip("# ")
    match = _NUMBER.match(text)
    rest = text[match.end() :] if match is not None else ""
    if rest[:1].isalnum() or rest[:1] in {"_", "/", "+"} or (rest[:1] in {".", "-", "–", "—"} and rest[1:2].isdigit()):
        return None  # `Task 1a`, `Task 1/3`, `Task 1-3`, `Task 1.2.3`: which task that is can only be guessed
    if match is None:
        return None
    return ".".join(str(int(part)) for part in match[1].split(".")), rest.strip(" \t:–—-).").strip("* ")


class Parts(NamedTuple):
    """A plan's parts."""

    sections: list[Section]
    ends: list[int]
    """Number of the line behind each section; 0 where the text ends with it."""
    outside: list[Block]
    """Before the first task, and behind a heading of a higher level."""
    nearly: list[Block]
    """What looks like a task's heading, is none, and so keeps its task from being read."""


def parts_of(blocks: Sequence[Block]) -> Parts:
    """Returns the parts of a plan. A task ends at the next task's heading, or at one of a higher level."""
    blocks = list(_uncommented(blocks))
    parts = Parts([], [], [], list(_nearly(blocks)))
    below = parts.outside
    for block in blocks:
        found = number_and_title(block)
        if found is not None or (block.kind == "heading" and block.level < LEVEL):
            parts.ends.extend([block.line] * (len(parts.sections) - len(parts.ends)))
            below = parts.outside
        if found is not None:
            below = []
            parts.sections.append(Section(*found, block.line, below))
        else:
            below.append(block)
    parts.ends.extend([0] * (len(parts.sections) - len(parts.ends)))
    return parts


def _uncommented(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yields the blocks outside of comments; one that is never closed comments nothing out."""
    closings = [at for at, block in enumerate(blocks) if block.kind != "fence" and "-->" in block.text]
    behind = 0
    for at, block in enumerate(blocks):
        if at >= behind and block.kind == "paragraph" and block.text.startswith("<!--"):
            place = bisect_left(closings, at)
            behind = closings[place] + 1 if place < len(closings) else at
        if at >= behind:
            yield block


def _nearly(blocks: Sequence[Block]) -> Iterator[Block]:
    tasks = [at for at, block in enumerate(blocks) if number_and_title(block) is not None]
    first = next((at for at, block in enumerate(blocks) if block.kind == "heading"), 0)
    for at, block in enumerate(blocks):
        if block.kind == "heading":
            is_title = block.level == 1 and at == first and tasks
            if is_title or number_and_title(block) or (tasks and block.level > LEVEL):
                continue
            if _NEARLY.match(words(block.text)) and not _groups(blocks, tasks, at):
                yield block
        elif block.kind == "paragraph" and (_UNSPACED.match(block.text) or (not tasks and _BOLD.match(block.text))):
            yield block


def _groups(blocks: Sequence[Block], tasks: Sequence[int], at: int) -> bool:
    """Returns whether a heading only gathers tasks that are numbered below it: `## Task 1` before `### Task 1.1`."""
    place = bisect_left(tasks, at)
    if place == len(tasks):
        return False
    between = (blocks[one] for one in range(at + 1, tasks[place]))
    if any(block.kind == "heading" and block.level <= blocks[at].level for block in between):
        return False
    number, following = _NUMBER.match(words(blocks[at].text)), number_and_title(blocks[tasks[place]])
    return number is not None and following is not None and following[0].startswith(f"{number[1]}.")


# `Task 2`, `#2`, `Tasks 1-3`.
_TASK = re.compile(
    r"(?P<word>tasks?\s+)?#?(?P<from>\d+(?:\.\d+)?)(?:\s*(?:[-–—]|to|through)\s*#?(?P<to>\d+))?(?P<rest>.*)",
    re.IGNORECASE,
)
_BEHIND_NUMBER = frozenset({"", " ", ":", "–", "—", "-"})
_PARENTHESES = re.compile(r"\([^()]*\)")
_TEST_RUN = re.compile(
    r"(?:\w+=\S*\s+|(?:uv|poetry|pdm|hatch|pipenv)\s+run\s+|npx\s+|(?:npm|pnpm|yarn|bun)\s+(?:exec\s+|run\s+)?"
    r"|\S*python[\d.]*\s+(?:-m\s+|manage\.py\s+)|\S*/)*"
    r"(?:pytest|py\.test|unittest|nose2|tox|nox|jest|vitest|mocha|playwright\s+test|tests?|test:\S+|node\s+--test"
    r"|cargo\s+test|go\s+test|(?:mvnw?|gradlew?)\s+test|dotnet\s+test|make\s+(?:test|check))(?:\s|$)",
    re.IGNORECASE,
)
MAX_RANGE = 50
"""Tasks that `Tasks 1-N` may stand for."""


def tasks_of(values: Sequence[str], *, named_only: bool) -> tuple[str, ...]:
    """Returns the numbers of the tasks that a field names; a text that names none stays as it is, or is left out.

    With `named_only` a number counts only behind the word task: the field may as well speak of packages.
    """
    found: dict[str, None] = {}
    for value in values:
        said = _PARENTHESES.sub(" ", value.replace("*", "").replace("`", "")).strip()
        said = re.split(r"\.(?:\s|$)", said, maxsplit=1)[0]
        titled = False
        for part in re.split(r"[,;&|+]|\band\b", said):
            part = part.strip(" .:-–—")
            match = _TASK.fullmatch(part) if not part.casefold().startswith("none") else None
            if match is not None and (match["word"] or found or not named_only) and match["rest"][:1] in _BEHIND_NUMBER:
                found.update(dict.fromkeys(_numbers(match)))
                titled = bool(match["rest"].strip())
            elif not named_only and not titled and part.split(" ")[0].casefold() not in NOTHING:
                found[part] = None
    return tuple(found)


def _numbers(match: re.Match[str]) -> list[str]:
    first, last = match["from"], match["to"]
    if last is not None and "." not in first and 0 <= int(last) - int(first) <= MAX_RANGE:
        return [str(number) for number in range(int(first), int(last) + 1)]
    return [".".join(str(int(part)) for part in first.split(".")), *([last] if last else [])]


def packages_of(values: Sequence[str]) -> tuple[str, ...]:
    """Returns requirements as they were written, one each."""
    found: list[str] = []
    for value in values:
        for part in re.split(r"[,;]", _PARENTHESES.sub(" ", value)):
            part = part.strip(" `*\"'")
            if found and part[:1] in set("<>=!~") and part:
                found[-1] += f",{part}"  # `flask>=2,<4` is one requirement
            elif part.casefold() not in NOTHING and part.split(" ")[0].casefold() != "none":
                found.append(part)
    return tuple(dict.fromkeys(found))


def command_of(values: Sequence[str], code: str) -> tuple[str | None, bool]:
    """Returns the shell command in a field, and whether it only runs tests and so is no command of a task."""
    spans = [piece.text for value in values for piece in pieces_of(value) if piece.kind == "code"]
    said = (spans[0] if spans else code or " ".join(values)).strip().removeprefix("$ ")
    if said.casefold().rstrip(".") in NOTHING:
        return None, False
    parts = [part.strip() for part in re.split(r"&&|;|\n", said) if not part.strip().startswith("cd ")]
    return (None, True) if all(_TEST_RUN.match(part) for part in parts) else (said, False)


class PlanField(NamedTuple):
    """One field."""

    key: str
    """In small letters, without marks."""
    kind: str
    """What it says, see _kind_of."""
    values: tuple[str, ...]
    """Inline Markdown, line by line: what stands behind the colon, then what follows it; no blank ones."""
    line: int
    code: str = ""
    """The code block that follows it, where nothing stands behind the colon."""


class _Line(NamedTuple):
    """A line of a paragraph or bullet, or a whole code block."""

    text: str
    line: int
    block: int
    depth: int
    kind: str


_KINDS = {
    **dict.fromkeys(("goal", "goals"), "goal"),
    **dict.fromkeys(("command", "commands"), "command"),
    **dict.fromkeys(("depends on", "depends", "dependencies", "dependency"), "depends"),
    **dict.fromkeys(("packages", "package"), "packages"),
    **dict.fromkeys(("dev packages", "dev package", "development packages"), "dev packages"),
    **dict.fromkeys(("tech stack", "technology stack"), "stack"),
}
"""Key of a field → what it says."""
_FILES = frozenset({"create", "created", "creates", "modify", "modified", "modifies"})
_AROUND_FILES = frozenset({"file", "files", "to", "be", "and", "or", "new", "existing"})
_BOUNDS = frozenset({"test", "tests", "files", "file", "run", "expected", "architecture", "steps"})
_BOX = re.compile(r"^\[[ xX]\]\s+")
"""The box that is ticked when a step is done."""
_SIDE_BY_SIDE = re.compile(r"\s\|\s(?=\*\*\w)")
_WORDS = re.compile(r"[^\W_]+")
MAX_LINE = 4000
"""Characters of a line that are looked at."""


def _kind_of(key: str) -> str:
    """Returns what a field of this key says; "files" where its value are files which the task creates or modifies."""
    said = set(_WORDS.findall(key))
    return "files" if not said.isdisjoint(_FILES) and said <= _FILES | _AROUND_FILES else _KINDS.get(key, "")


def fields_of(blocks: Sequence[Block]) -> Iterator[PlanField]:
    """Yields every field, in order. Linear in the blocks."""
    lines = list(_lines(blocks))
    at = 0
    while at < len(lines):
        field = _field(lines[at])
        if field is None:
            at += 1
            continue
        behind = _behind(lines, at, bool(field.raw))
        below = lines[at + 1 : behind]
        values = (field.raw, *(one.text for one in below if one.kind != "fence"))
        code = next((one.text for one in below if one.kind == "fence"), "")
        key = _key(field)
        yield PlanField(key, _kind_of(key), tuple(filter(None, values)), field.line, code)
        at = behind


def _behind(lines: Sequence[_Line], at: int, said: bool) -> int:
    """The place behind a field's value: its paragraph or bullet; what is below it where its own line says nothing."""
    first = lines[at]

    def end(place: int, belongs: Callable[[_Line], bool]) -> int:
        while place < len(lines) and belongs(lines[place]) and not _ends(lines[place]):
            place += 1
        return place

    place = end(at + 1, lambda one: one.block == first.block)
    if said or place > at + 1 or place == len(lines):
        return place
    place = end(place, lambda one: one.kind == "item" and one.depth > first.depth)
    if place > at + 1:
        return place
    following = lines[place]
    if following.kind == "fence":
        return place + 1
    return end(place, lambda one: one.kind == "paragraph" and one.block == following.block)


def _ends(line: _Line) -> bool:
    """Returns whether a line begins something of its own: a bold key, or one that is known."""
    field = _field(line)
    if field is None:
        return False
    key = _key(field)
    return field.bold or key in _BOUNDS or bool(_kind_of(key))


def _field(line: _Line) -> Field | None:
    return None if line.kind == "fence" else field_of(line.text, line.line)


def _key(field: Field) -> str:
    return " ".join(_WORDS.findall(field.key)).casefold()


def _lines(blocks: Sequence[Block]) -> Iterator[_Line]:
    for number, block in enumerate(blocks):
        if block.kind == "fence":
            yield _Line(block.text.strip("\n"), block.line, number, block.depth, "fence")
        elif block.kind in {"paragraph", "item"}:
            for line, text in enumerate(block.text.split("\n"), start=block.line):
                for part in _SIDE_BY_SIDE.split(_BOX.sub("", text[:MAX_LINE].strip())):
                    yield _Line(part, line, number, block.depth, block.kind)


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
    """Returns the plan in a text. Never raises; linear. Without a task's heading it has no tasks."""
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
        )
        return TaskPlanReading(plan, tuple(sorted(self._findings, key=lambda one: one.where.line or 0)))

    def _task(self, section: Section, behind: int) -> PlannedTask:
        number, title, line, blocks = section
        files: dict[str, None] = {}
        needs: dict[str, None] = {}
        command: str | None = None
        for field in fields_of(blocks):
            if field.kind == "files":
                files.update(dict.fromkeys(self._paths(field, number)))
            elif field.kind == "depends":
                named_only = not field.key.startswith("depends")
                needs.update(dict.fromkeys(tasks_of(field.values, named_only=named_only)))
            elif field.kind == "command":
                command = self._command(field, number, command)
            elif field.key in _OTHER_FILES:
                self._unread(field, number)
        return PlannedTask(
            number=number,
            title=title,
            text=self._text(line, behind - 1),
            files=tuple(files),
            command=command,
            depends_on=tuple(needs),
            line=line,
        )

    def _paths(self, field: PlanField, number: str) -> tuple[str, ...]:
        paths, unread = paths_of(field.values)
        for text in unread:
            message = f"`{text[:120]}` cannot be read as a path"
            fix = "Put each path into backticks: - Create: `src/shop/prices.py`"
            self._say(major("task_plan.path", message, where=self._where(field.line, number), fix=fix))
        return paths

    def _command(self, field: PlanField, number: str, before: str | None) -> str | None:
        said, test_run = command_of(field.values, field.code)
        where = self._where(field.line, number)
        if test_run:
            message = "the command only runs tests and was left out: the tester's suite is run anyway"
            fix = "Leave it out, or write it as a step: Run: …"
            self._say(minor("task_plan.test_command", message, where=where, fix=fix))
        if said is not None and before is not None:
            fix = "Write one command: **Command:** `make assets && make pages`"
            self._say(major("task_plan.commands", "the task has a second command", where=where, fix=fix))
        return before if before is not None else said

    def _unread(self, field: PlanField, number: str) -> None:
        paths = [path for path in paths_of(field.values)[0] if "/" in path or "." in path]
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
