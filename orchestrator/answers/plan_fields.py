"""The fields of a task plan: `**Create:** path` and the like, a key and all that belongs to its value."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.markdown import Block, Field, field_of, pieces_of
from orchestrator.answers.paths import NOTHING

# `Task 2`, `#2`, `T002`, `Tasks 1-3`.
_TASK = re.compile(
    r"(?P<word>tasks?\s+|t-?(?=\d))?#?(?P<from>\d+(?:\.\d+){0,3}(?:[a-z](?![\w]))?)"
    r"(?:\s*(?:[-–—]|to|through)\s*(?:#|T-?)?(?P<to>\d+))?(?P<rest>.*)",
    re.IGNORECASE,
)
_BEHIND_NUMBER = frozenset({"", " ", ":", "–", "—", "-"})
_PARENTHESES = re.compile(r"\([^()]*\)")
_TEST_RUN = re.compile(
    r"(?:\w+=\S*\s+|(?:uv|poetry|pdm|hatch|pipenv)\s+run\s+|npx\s+|(?:npm|pnpm|yarn|bun)\s+(?:exec\s+|run\s+)?"
    r"|[^\s/]*python[\d.]*\s+(?:-m\s+|manage\.py\s+)|[^\s/]*/)*"
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
    if last is not None and first.isdigit() and 0 <= int(last) - int(first) <= MAX_RANGE:
        return [str(number) for number in range(int(first), int(last) + 1)]
    return [".".join(part.lstrip("0") or "0" for part in first.lower().split(".")), *([last] if last else [])]


_NEEDS = re.compile(r"\(\s*(?:depends|dependent) on:?\s+([^()]*)\)", re.IGNORECASE)


def needs_in(title: str) -> tuple[str, ...]:
    """Returns the numbers of the tasks in a title's `(depends on T002, T003)`."""
    return tasks_of(_NEEDS.findall(title), named_only=True)


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
    """One field, or a line that is none and has no key."""

    key: str
    """In small letters, without marks."""
    kind: str
    """What it says, see _kind_of."""
    values: tuple[str, ...]
    """Inline Markdown, line by line: what stands behind the colon, then what follows it; no blank ones."""
    line: int
    code: str = ""
    """The code block that follows it, where nothing stands behind the colon."""
    said: tuple[str, ...] = ()
    """All its lines as they stand, the key with them."""


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
    **dict.fromkeys(("test", "tests", "test file", "test files"), "tests"),
    **dict.fromkeys(("run", "expected", "expected output"), "run"),
}
"""Key of a field → what it says."""
_FILES = frozenset({"create", "created", "creates", "modify", "modified", "modifies"})
_OFTEN_FILES = frozenset({"add", "adds", "added", "update", "updates", "updated", "edit", "edits", "edited"}) | {
    "change", "changes", "changed",
}  # fmt: skip
"""Words of keys that often speak of files, and of other things too."""
_AROUND_FILES = frozenset({"file", "files", "to", "be", "and", "or", "new", "existing"})
_BOUNDS = frozenset({"architecture", "steps"})
_BOX = re.compile(r"^\[(?:[xX\u2713\u2714 ]|[^\w\s\[\]])?\](?!\()\s+")
"""The box that is ticked when a step is done."""
_SIDE_BY_SIDE = re.compile(r"\s\|\s(?=\*\*\w)")
_WORDS = re.compile(r"[^\W_]+")
MAX_LINE = 4000
"""Characters of a line that are looked at."""


def _kind_of(key: str) -> str:
    """Returns what a field of this key says, "" where that is not known.

    "files" where its value are files which the task creates or modifies, "named" where it may hold such files.
    """
    said = set(_WORDS.findall(key))
    if not said.isdisjoint(_FILES) and said <= _FILES | _AROUND_FILES:
        return "files"
    named = _OFTEN_FILES | {"file", "files", "new"}
    if not said.isdisjoint(named) and said <= _FILES | _OFTEN_FILES | _AROUND_FILES:
        return "named"
    return _KINDS.get(key, "")


def fields_of(blocks: Sequence[Block]) -> Iterator[PlanField]:
    """Yields every field and every line outside of fields, in order. Linear in the blocks."""
    lines = list(_lines(blocks))
    at = 0
    while at < len(lines):
        field = _field(lines[at])
        if field is None:
            if lines[at].kind != "fence":
                yield PlanField("", "", (), lines[at].line, said=(lines[at].text,))
            at += 1
            continue
        behind = _behind(lines, at, bool(field.raw))
        below = lines[at + 1 : behind]
        values = (field.raw, *(one.text for one in below if one.kind != "fence"))
        code = next((one.text for one in below if one.kind == "fence"), "")
        key = _key(field)
        said = (lines[at].text, *values[1:])
        yield PlanField(key, _kind_of(key), tuple(filter(None, values)), field.line, code, said)
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
