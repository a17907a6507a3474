"""A person's Markdown task plan → its tasks, by rules alone; what nearly is a task among them is refused by name.

Tasks stand under headings `### Task N: …` with fields (`Create:`, `Modify:`, `Test:`, `Command:`, `Depends on:`), or
are boxes (`- [ ] T001 …`, `- [ ] 1.2 …`, `- [ ] …`) whose sentences name the files.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.markdown import Block, TooManyBlocks, blocks_of, field_of, pieces_of, source_of, words
from orchestrator.answers.paths import NOTHING, mentioned_files, paths_of
from orchestrator.core.breakdown import PlannedTask, TaskPlan, TaskPlanReading
from orchestrator.core.finding import Finding, Where, blocking, major, policy
from orchestrator.core.paths import is_test_file

# `Task 1/3`, `Task 1-3`, `Task 1a`: which task that is can only be guessed.
_TASK = re.compile(r"task\s+#?(\d{1,6}(?:\.\d{1,6}){0,3})(?![\w/+]|[.–—-]\d)", re.IGNORECASE)
_NEARLY = re.compile(r"(?:#{1,6}|\*\*|[^\w<]*(?:\[x?\]\s*)?)task(?:\s*[:#\d]|\s+[a-z]\b)", re.IGNORECASE)
# Other signs than x say that it is begun, put off or left out: not that it is done.
_BOX = re.compile(r"\[[ ]?(?P<done>[xX\u2713\u2714]|[^\w\s\[\]]?)[ ]?\](?!\()\*?\s*(?P<rest>.*)")
# `T001`, `T003a`, `T-004`, `1.2`, `3.`. `3 retries` is no number of a task.
_CALLED = re.compile(
    r"\**(?P<id>T-?(?P<t>\d{1,6}[a-z]?)|\d{1,6}(?:\.\d{1,6}){1,3}[a-z]?|\d{1,6}[a-z]?(?=[.):]))\b[.):]*\**(?:\s+|$)"
    r"(?P<rest>.*)"
)
_LIKE_A_TASK = re.compile(r"\**(?:T|task)[-_ #]?\d", re.IGNORECASE)
_TAGS = re.compile(r"(?:\[[\w-]{1,12}\](?!\()\s*)+")  # `[P] [US1]`, and no link
_NEEDS = re.compile(r"\(\s*depends on:?\s+([^()]*)\)", re.IGNORECASE)
_NEED = re.compile(
    r"(?<![\w.@-])(?:tasks?\s+|T-?)?#?(\d{1,6}(?:\.\d{1,6})*[a-z]?)\b(?:\s*[-–—]\s*(?:T-?)?(\d{1,6}))?", re.I
)
MAX_RANGE = 50
"""Tasks that `Tasks 1-N` may stand for."""
_REMARK = re.compile(r"\([^()]*\)")
_FILE_WORDS = frozenset({"create", "modify", "file", "files", "to", "and", "or", "new"})
_KINDS = {
    **dict.fromkeys(("goal", "goals"), "goal"),
    **dict.fromkeys(("test", "tests", "test file", "test files"), "tests"),
    **dict.fromkeys(("command", "commands"), "command"),
    **dict.fromkeys(("depends on", "depends"), "depends"),
    **dict.fromkeys(("packages", "package"), "packages"),
    **dict.fromkeys(("dev packages", "dev package"), "dev packages"),
}
MAX_LINE = 4000
"""Characters of a line that are looked at."""


def read_task_plan(text: str, path: str = "") -> TaskPlanReading:
    """Returns the plan in a text; without tasks the text is no plan that rules can read. Never raises; linear."""
    source = source_of(text)
    fix = "Save it as UTF-8, and bring a plan of one story."
    if broken := blocking(source.findings):
        where = Where(file=path or None, line=broken[0].where.line)
        return TaskPlanReading(
            TaskPlan(path=path), (major("task_plan.encoding", "it holds half a character", where=where, fix=fix),)
        )
    try:
        blocks = blocks_of(_uncommented(source.text), source.first_line)
    except TooManyBlocks:
        told = major("task_plan.too_long", "the plan has too many parts", where=Where(file=path or None), fix=fix)
        return TaskPlanReading(TaskPlan(path=path), (told,))
    return _Reader(source.text.split("\n"), source.first_line, path).read(blocks)


class _Section(NamedTuple):
    """What begins a task, and what stands below it."""

    number: str
    name: str
    said: str
    """What stands behind the number, as it was written."""
    line: int
    level: int
    """Of its heading; 7 for a box, which any heading ends."""
    blocks: list[Block]
    done: bool = False


class _Reader:
    """One plan."""

    def __init__(self, lines: Sequence[str], first: int, path: str) -> None:
        self._lines, self._first, self._path = lines, first, path
        self._findings: list[Finding] = []

    def read(self, blocks: Sequence[Block]) -> TaskPlanReading:
        """Returns the plan in these blocks."""
        headed = any(_of_heading(block) for block in blocks)
        numbered = any((box := _box(block)) and _CALLED.match(box["rest"]) for block in blocks)
        begins = _of_heading if headed else _of_numbered_box if numbered else _of_box
        sections, ends, outside = self._parts(blocks, begins, boxes=numbered and not headed)
        if not headed and not numbered:
            sections = [one._replace(number=str(n), name=f"Task {n}") for n, one in enumerate(sections, start=1)]
        tasks = [self._task(*one) for one in zip(sections, ends, strict=True)]
        fields = [*_fields(outside), *(field for one in sections for field in _fields(one.blocks))]
        plan = TaskPlan(
            path=self._path,
            goals=_goals(outside) if sections else (),
            tasks=tuple(tasks),
            packages=_packages(fields, "packages"),
            dev_packages=_packages(fields, "dev packages"),
            head=self._text(self._first, sections[0].line - 1) if sections else "",
            headed=headed,
        )
        return TaskPlanReading(plan, tuple(self._findings))

    def _parts(
        self, blocks: Sequence[Block], begins: Callable[[Block], _Section | None], *, boxes: bool
    ) -> tuple[list[_Section], list[int], list[Block]]:
        """Returns the tasks, the last line of each, and what belongs to none. Tells of what nearly begins one.

        A task ends at the next one, or at a heading of a higher level.
        """
        sections, ends, outside = list[_Section](), list[int](), list[Block]()
        nearly: list[Block] = []
        below, level = outside, 7
        for block in blocks:
            found = begins(block)
            leaves = block.kind == "heading" and block.level < level
            if (found or leaves) and len(ends) < len(sections):
                ends.append(block.line - 1)
            if found:
                sections.append(found)
                below, level = found.blocks, found.level
                continue
            if leaves:
                below, level = outside, 7
            if _is_nearly(block, level, boxes=boxes) and block is not blocks[0]:
                nearly.append(block)
            below.append(block)
        ends += [self._first + len(self._lines) - 1] * (len(sections) - len(ends))
        for block in nearly if sections else ():  # without a task there is none beside which one could be lost
            message = f"`{words(block.text.partition(chr(10))[0])[:80]}` reads like a task and is none"
            fix = "Write it with three marks and a number: ### Task 1: Component"
            self._findings.append(major("task_plan.heading", message, where=self._where(block.line), fix=fix))
        return sections, ends, outside

    def _task(self, section: _Section, end: int) -> PlannedTask:
        paths: dict[str, None] = {}
        tests: dict[str, None] = {}
        commands: list[str] = []
        needs = {need: None for said in _NEEDS.findall(section.said) for need in _numbers(said)}
        own = _without_done(section)
        for kind, values in _fields(own):
            if kind in {"files", "tests"}:
                found = self._paths(values, section) if kind == "files" else paths_of(values)[0]
                (paths if kind == "files" else tests).update(dict.fromkeys(found))
            elif kind == "depends":
                needs |= dict.fromkeys(_numbers(" ".join(values)))
            elif kind == "command":
                commands += [said for said in [_command(values)] if said]
        if section.level == 7 and not paths and not commands:
            # A ticked line with open boxes below it is done itself; what is open are they.
            said = [] if section.done and own is not section.blocks else [section.said]
            paths |= dict.fromkeys(mentioned_files([*said, *(block.text for block in own if block.kind != "fence")]))
        tests |= {path: None for path in paths if is_test_file(path)}
        return PlannedTask(
            number=section.number,
            name=section.name,
            title=words(section.said).lstrip(" \t:–—-).*").rstrip(" \t:–—-.*"),
            text=self._text(section.line, end),
            files=tuple(path for path in paths if path not in tests),
            tests=tuple(path for path in tests if is_test_file(path)),
            command=" && ".join(commands) or None,
            depends_on=tuple(needs),
            line=section.line,
            done=section.done and own is section.blocks,
        )

    def _paths(self, values: Sequence[str], section: _Section) -> list[str]:
        paths, unread = paths_of(values)
        found = mentioned_files(unread)
        for text in (one for one in unread if not mentioned_files([one])):
            message = f"`{text[:120]}` cannot be read as a path: which file is it?"
            fix = "Put each path into backticks: - Create: `src/shop/prices.py`"
            where = self._where(section.line, section.name)
            self._findings.append(policy("task_plan.path", message, where=where, fix=fix))
        return [*paths, *found]

    def _where(self, line: int, task: str | None = None) -> Where:
        return Where(file=self._path or None, line=line, task=task)

    def _text(self, first: int, last: int) -> str:
        return "\n".join(self._lines[first - self._first : last - self._first + 1]).rstrip("-*_ \n").strip("\n")


def _uncommented(text: str) -> str:
    """Returns the text with blanks for its comments; one that is never closed comments nothing out."""
    end = text.rfind("-->") + 3
    blank = re.sub(r"<!--.*?-->", lambda found: re.sub(r"[^\n]", " ", found[0]), text[:end], flags=re.DOTALL)
    return blank + text[end:]


def _of_heading(block: Block) -> _Section | None:
    """`### Task 1: Words`."""
    text = words(block.text).rstrip("# ") if block.kind == "heading" and block.level in {2, 3, 4} else ""
    match = _TASK.match(text)
    if match is None:
        return None
    number = _number(match[1])
    return _Section(number, f"Task {number}", text[match.end() :], block.line, block.level, [])


def _box(block: Block) -> re.Match[str] | None:
    return _BOX.match(block.text) if block.kind == "item" and block.depth == 1 else None


def _of_numbered_box(block: Block) -> _Section | None:
    """`- [ ] T001 [P] [US1] Words`, `- [ ] 1.2 Words`, `- [ ] 3. Words`."""
    box = _box(block)
    called = _CALLED.match(box["rest"]) if box else None
    if box is None or called is None:
        return None
    number = _number(called["t"] or called["id"])
    return _of_box(block, number, called["id"] if called["t"] else f"Task {number}", called["rest"])


def _of_box(block: Block, number: str = "", name: str = "", said: str | None = None) -> _Section | None:
    """`- [ ] Words`. The first line is the title, the rest of the item stands below."""
    box = _box(block)
    if box is None:
        return None
    rest = block.text.partition("\n")[2]
    below = [block._replace(kind="paragraph", line=block.line + 1, text=rest)] if rest.strip() else []
    title = _TAGS.sub("", box["rest"] if said is None else said, count=1)
    return _Section(number, name, title, block.line, 7, below, _is_ticked(box))


def _number(text: str) -> str:
    return ".".join(part.lstrip("0") or "0" for part in text.lower().split("."))


def _is_ticked(box: re.Match[str]) -> bool:
    return box["done"] in {"x", "X", "\u2713", "\u2714"}


def _is_nearly(block: Block, level: int, *, boxes: bool) -> bool:
    """Returns whether a block reads like what begins a task: its task would be lost in the one before."""
    if block.kind == "heading":
        return block.level <= level and _NEARLY.match(words(block.text)) is not None
    if block.kind == "paragraph":
        return block.text.startswith(("#", "**")) and level == 7 and _NEARLY.match(block.text) is not None
    box = _box(block) if boxes else None
    return box is not None and _LIKE_A_TASK.match(box["rest"]) is not None


def _without_done(section: _Section) -> list[Block]:
    """Returns what is below a box without what is ticked there; all of it, as it is, when no box there is open."""
    boxes = [_BOX.match(block.text) if block.kind == "item" else None for block in section.blocks]
    if section.level < 7 or all(box is None or _is_ticked(box) for box in boxes):
        return section.blocks
    kept: list[Block] = []
    skipped = 0
    for block, box in zip(section.blocks, boxes, strict=True):
        if block.kind == "item" and (not skipped or block.depth <= skipped):
            skipped = block.depth if box is not None and _is_ticked(box) else 0
        if not skipped:
            kept.append(block)
    return kept


class _Line(NamedTuple):
    """A line of a paragraph or item, or a whole block of code."""

    text: str
    kind: str
    depth: int
    block: int


def _fields(blocks: Sequence[Block]) -> Iterator[tuple[str, list[str]]]:
    """Yields kind and value of every known field: its line and the rest of its paragraph; where that says nothing, the
    items, the block of code or the paragraph below it."""
    left = deque(_lines(blocks))

    def take(belongs: Callable[[_Line], bool]) -> Iterator[str]:
        while left and belongs(left[0]) and not _key(left[0])[0]:
            yield left.popleft().text

    while left:
        own = left.popleft()
        is_key, kind, value = _key(own)
        if not is_key or not kind:
            continue
        values = [value] if value else []
        values += take(lambda one, own=own: one.block == own.block)  # type: ignore[misc]
        if not values:
            values += take(lambda one, own=own: one.kind == "item" and one.depth > own.depth)  # type: ignore[misc]
        if not values and left and left[0].kind in {"fence", "paragraph"}:
            values += take(lambda one, block=left[0].block: one.block == block)  # type: ignore[misc]
        yield kind, values


def _lines(blocks: Sequence[Block]) -> Iterator[_Line]:
    for number, block in enumerate(blocks):
        if block.kind == "fence":
            yield _Line(block.text.strip("\n"), "fence", block.depth, number)
        for line in block.text.split("\n") if block.kind in {"paragraph", "item"} else ():
            yield _Line(_BOX.sub(r"\g<rest>", line[:MAX_LINE].strip(), count=1), block.kind, block.depth, number)


def _key(line: _Line) -> tuple[bool, str, str]:
    """Returns whether a line begins a field, what that says ("" where that is not known), and its value."""
    field = field_of(line.text, 0) if line.kind != "fence" else None
    kind = _kind(field.key) if field else ""
    return (bool(kind or field.bold), kind, field.raw) if field else (False, "", "")


def _kind(key: str) -> str:
    said = re.findall(r"[^\W_]+", key.casefold())
    if {"create", "modify"} & {*said} and {*said} <= _FILE_WORDS:
        return "files"
    return _KINDS.get(" ".join(said), "")


def _goals(blocks: Sequence[Block]) -> tuple[str, ...]:
    """Returns what may say the goal: its field or what stands under its heading; else title and first paragraph."""
    found = [" ".join(values) for kind, values in _fields(blocks) if kind == "goal"]
    title, first = list[str](), list[str]()
    for at, block in enumerate(blocks):
        name, _, rest = words(block.text).partition(":")
        if block.kind == "heading" and _kind(name.lstrip("0123456789.) ")) == "goal":
            found += [rest or "".join(below.text for below in blocks[at + 1 : at + 2])]
        elif block.kind == "heading" and block.level == 1:
            title.append(words(block.text))
        elif block.kind == "paragraph" and field_of(block.text.partition("\n")[0], 0) is None:
            first.append(words(block.text.replace("\n", " ")))
    said = (" ".join(one.split()).strip("* ") for one in (found[:1] or (*title[:1], *first[:1])))
    return tuple(filter(None, said))


def _packages(fields: Sequence[tuple[str, list[str]]], kind: str) -> tuple[str, ...]:
    """Returns requirements as they were written, one each."""
    found: list[str] = []
    for value in (value for of, values in fields if of == kind for value in values):
        for part in (one.strip(" `*\"'") for one in re.split(r"[,;]", _REMARK.sub(" ", value))):
            if found and part[:1] in {*"<>=!~"}:
                found[-1] += f",{part}"  # `flask>=2,<4` is one requirement
            elif part.casefold() not in NOTHING:
                found.append(part)
    return tuple(dict.fromkeys(found))


def _command(values: Sequence[str]) -> str:
    """Returns the command in a field: in backticks, or all that it says."""
    spans = [piece.text for value in values for piece in pieces_of(value) if piece.kind == "code"]
    said = (spans[0] if spans else " ".join(values)).strip().removeprefix("$ ")
    return "" if said.casefold().rstrip(".") in NOTHING else said


def _numbers(said: str) -> list[str]:
    """Returns the numbers of the tasks in the first sentence of a field; what stands in parentheses is a remark."""
    found: list[str] = []
    for match in _NEED.finditer(re.split(r"\.(?:\s|$)", _REMARK.sub(" ", said), maxsplit=1)[0]):
        first, last = match[1], match[2]
        is_range = last is not None and first.isdigit() and 0 <= int(last) - int(first) <= MAX_RANGE
        found += map(str, range(int(first), int(last) + 1)) if is_range else [_number(first), *([last] if last else [])]
    return found
