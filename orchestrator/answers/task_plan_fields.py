"""The fields of a task plan, `**Create:** path` and the like: a key, and all that belongs to its value."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Block
from orchestrator.answers.action_plan_fields import Field, field_of


class PlanField(NamedTuple):
    """One field."""

    key: str
    """In small letters, without marks."""
    values: tuple[str, ...]
    """Inline Markdown, line by line: what stands behind the colon, then what follows it; no blank ones."""
    line: int
    bold: bool
    code: str = ""
    """The code block that follows it, where nothing stands behind the colon."""


class _Line(NamedTuple):
    """A line of a paragraph or bullet, or a whole code block."""

    text: str
    line: int
    block: int
    depth: int
    kind: str


GOAL, COMMAND, DEPENDS, PACKAGES, DEV_PACKAGES, STACK = (
    frozenset({"goal", "goals"}),
    frozenset({"command", "commands"}),
    frozenset({"depends on", "depends", "dependencies", "dependency"}),
    frozenset({"packages", "package"}),
    frozenset({"dev packages", "dev package", "development packages"}),
    frozenset({"tech stack", "technology stack"}),
)
_FILES = frozenset({"create", "created", "creates", "modify", "modified", "modifies"})
_AROUND_FILES = frozenset({"file", "files", "to", "be", "and", "or", "new", "existing"})
_BOUNDS = frozenset({"test", "tests", "files", "file", "run", "expected", "architecture", "steps"})
_BOX = re.compile(r"\[[ xX]\]\s+")
_SIDE_BY_SIDE = re.compile(r"\s\|\s(?=\*\*\w)")
_WORDS = re.compile(r"[^\W_]+")
MAX_LINE = 4000
"""Characters of a line that are looked at."""


def names_files(key: str) -> bool:
    """Whether a key says that its value are files which the task creates or modifies."""
    said = set(_WORDS.findall(key))
    return not said.isdisjoint(_FILES) and said <= _FILES | _AROUND_FILES


def fields_of(blocks: Sequence[Block]) -> Iterator[PlanField]:
    """Every field, in order. Linear in the blocks."""
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
        yield PlanField(_key(field), tuple(filter(None, values)), field.line, field.bold, code)
        at = behind


def _behind(lines: Sequence[_Line], at: int, said: bool) -> int:
    """The place behind a field's value: its paragraph or bullet; what is below it where its own line says nothing."""
    first, place = lines[at], at + 1
    while place < len(lines) and lines[place].block == first.block and not _ends(lines[place]):
        place += 1
    if said or place > at + 1 or place == len(lines):
        return place
    while place < len(lines) and lines[place].depth > first.depth and lines[place].kind == "item":
        if _ends(lines[place]):
            return place
        place += 1
    if place > at + 1:
        return place
    following = lines[place]
    if following.kind == "fence":
        return place + 1
    while place < len(lines) and lines[place].block == following.block and following.kind == "paragraph":
        if _ends(lines[place]):
            return place
        place += 1
    return place


def _ends(line: _Line) -> bool:
    """Whether a line begins something of its own: a bold key, or one that is known."""
    field = _field(line)
    if field is None:
        return False
    key = _key(field)
    known = GOAL | COMMAND | DEPENDS | PACKAGES | DEV_PACKAGES | STACK | _BOUNDS
    return field.bold or key in known or names_files(key)


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
                for part in _SIDE_BY_SIDE.split(_unboxed(text[:MAX_LINE].strip())):
                    yield _Line(part, line, number, block.depth, block.kind)


def _unboxed(text: str) -> str:
    """Without the box that is ticked when a step is done."""
    return _BOX.sub("", text, count=1) if _BOX.match(text) else text
