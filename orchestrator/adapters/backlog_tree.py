"""A parsed YAML or JSON text as a tree of texts with lines, and stories found in it. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rapidfuzz import process

from orchestrator.adapters.backlog_rows import TEXT_FIELDS, Row, missing_id
from orchestrator.domain.findings import Finding, Where, critical, major, minor
from orchestrator.errors import BacklogError

RUN_FIELDS = (
    *("sprint_id", "execution_status", "execution_started_at", "execution_completed_at", "last_event", "last_updated"),
)
"""Fields that a run writes; in these formats they go to the sidecar."""
FIELDS = (
    *("story_id", "title", *TEXT_FIELDS, "dependencies", "acceptance_criteria", "priority", "status", "foundation"),
    *("closes", *RUN_FIELDS),
)
LISTS = {"dependencies": ", ", "closes": ", ", **dict.fromkeys(TEXT_FIELDS, "; ")}
"""Fields that may also be lists, with what stands between their entries in the text they make."""
CRITERIA = "acceptance_criteria"
TOP = "stories"
_NAMES = {name.replace("_", ""): name for name in FIELDS} | {"id": "story_id", "dependson": "dependencies"}
_SEPARATORS = re.compile(r"[\s_-]+")
_NUMBER = re.compile(r"\(?(\d{1,3})[.):]\)?\s+(?=\S)")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_MAX_HINTS = 20


class Scalar(NamedTuple):
    """A text, number, flag or nothing (""), as written, and its 1-based line."""

    line: int
    text: str


class Items(NamedTuple):
    """A list."""

    line: int
    items: "tuple[Node, ...]"


class Fields(NamedTuple):
    """A mapping; a name may stand in it twice."""

    line: int
    pairs: "tuple[tuple[Scalar, Node], ...]"


Node = Scalar | Items | Fields
TreeParser = Callable[[str, str], Node]
"""(text, source) → the tree. Raises BacklogError naming source and line."""


class ReadRows(NamedTuple):
    """What a source holds."""

    rows: Sequence[Row]
    problems: Sequence[Finding]


def unusable(code: str, message: str, source: str, *, fix: str, line: int | None = None) -> BacklogError:
    """The error for a source that cannot be a backlog, with its one finding."""
    finding = critical(code, message, where=Where(file=source, line=line), fix=fix)
    return BacklogError(f"{message}; {fix}", findings=(finding,))


def field_name(name: str) -> str | None:
    """The column that `Story_ID`, `story id`, `storyId` or `id` names, in lower case; None when it names none."""
    return _NAMES.get(_SEPARATORS.sub("", name).lower())


def story_rows(tree: Node, source: str) -> ReadRows:
    """Rows of a list of stories, or of the list under `stories`. Raises BacklogError when there is no such list."""
    entries = _entries(tree, source)
    rows: list[Row] = []
    problems: list[Finding] = []
    for number, entry in enumerate(entries):
        if isinstance(entry, Fields):
            row, found = story_row(entry, source, number=number)
            rows.append(row)
            problems += found if row.story_id else [*found, missing_id(row, source)]
        else:
            message = f"{source}: the entry in line {entry.line} is {_kind(entry)}, not a story with named fields"
            fix = "write fields such as id and title"
            problems.append(critical("backlog.type", message, where=Where(file=source, line=entry.line), fix=fix))
    return ReadRows(rows, [*problems, *_misspelt(entries, source)])


def _entries(tree: Node, source: str) -> Sequence[Node]:
    found: Node | None = tree
    if isinstance(tree, Fields):
        found = next((value for name, value in tree.pairs if name.text.strip().lower() == TOP), None)
    fix = f"write a list of stories, or `{TOP}:` with the list below it"
    if isinstance(tree, Scalar) and not tree.text.strip():
        raise unusable("backlog.empty", f"{source} is empty", source, fix=fix)
    if not isinstance(found, Items):
        line = (found or tree).line
        what = f"`{TOP}` is {_kind(found)}" if found is not None and found is not tree else f"it holds {_kind(tree)}"
        message = f"{source} holds no list of stories: {what} (line {line})"
        raise unusable("backlog.type", message, source, fix=fix, line=line)
    if not found.items:
        raise unusable("backlog.no_rows", f"{source} holds no stories", source, fix=fix, line=found.line)
    return found.items


def _kind(node: Node) -> str:
    if isinstance(node, Scalar):
        return f"the text {node.text[:40]!r}" if node.text else "nothing"
    if isinstance(node, Items):
        return "a list"
    names = ", ".join(name.text[:40] for name, _ in node.pairs[:5])
    return f"a mapping ({names})" if names else "an empty mapping"


def story_row(
    story: Fields, source: str, *, number: int = 0, file: str = "", defaults: Iterable[tuple[str, str]] = ()
) -> tuple[Row, list[Finding]]:
    """One story's row and findings on names that stand twice and values of a wrong kind (such a field counts as empty).

    `source` and `file` make the place of findings; `defaults` fill columns that the story does not name.
    """
    cells: dict[str, str] = {}
    criteria: tuple[str, ...] | None = None
    lines: dict[str, int] = {}
    wrong: list[tuple[str, int, str, str]] = []
    for name, value in story.pairs:
        column = field_name(name.text)
        key = column or name.text
        if key in lines:
            message = f"names {key} twice (lines {lines[key]} and {name.line})"
            wrong.append(("backlog.field_twice", name.line, message, "keep one of the two"))
            continue
        lines[key] = name.line
        if column == CRITERIA and isinstance(value, Items):
            criteria = tuple(filter(None, (_criterion(text, n) for n, text in enumerate(_texts(value), start=1))))
        if column is not None:
            cells[column] = _cell(column, value)
            wrong += _wrong_kind(name, column, value)
    for column, text in defaults:
        cells.setdefault(column, text)
    row = Row(number, lines.get("story_id", story.line), cells, criteria, file)
    return row, [_finding(row, source, problem) for problem in wrong]


def _finding(row: Row, source: str, problem: tuple[str, int, str, str]) -> Finding:
    code, line, message, fix = problem
    where = row.where(source).model_copy(update={"line": line})
    name = row.story_id or "a story"
    place = f"{row.file}:{line}" if row.file else f"line {line}"
    make = critical if code == "backlog.field_twice" else major
    return make(code, f"{name} ({place}) {message}", where=where, fix=fix)


def _cell(column: str, value: Node) -> str:
    if isinstance(value, Scalar):
        return _storable(value.text)
    return LISTS[column].join(_texts(value)) if column in LISTS and isinstance(value, Items) else ""


def _texts(value: Items) -> Iterator[str]:
    return (_storable(item.text.strip()) for item in value.items if isinstance(item, Scalar) and item.text.strip())


def _storable(text: str) -> str:
    """Escapes may name what no file and no command line takes: NUL and halves of characters become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def _criterion(text: str, number: int) -> str:
    """One entry of a list of criteria; its number goes when it is its place in the list."""
    mark = _NUMBER.match(text)
    return " ".join((text[mark.end() :] if mark and int(mark[1]) == number else text).split())


def _wrong_kind(name: Scalar, column: str, value: Node) -> Iterator[tuple[str, int, str, str]]:
    quotes = "write text; put quotes around text that holds `: ` or begins with a bracket"
    if isinstance(value, Fields):
        yield "backlog.type", value.line, f"has {_kind(value)} in {name.text}", quotes
    elif isinstance(value, Items) and column not in LISTS and column != CRITERIA:
        yield "backlog.type", value.line, f"has a list in {name.text}", "write one text"
    elif isinstance(value, Items):
        for item in value.items:
            if not isinstance(item, Scalar):
                yield "backlog.type", item.line, f"has {_kind(item)} as an entry of {name.text}", quotes


def _misspelt(entries: Sequence[Node], source: str) -> Iterator[Finding]:
    """Unknown names that are nearly a field's: told once each, other names are nobody's business."""
    seen: dict[str, int] = {}
    for entry in entries:
        for name, _ in entry.pairs if isinstance(entry, Fields) else ():
            if field_name(name.text) is None:
                seen.setdefault(name.text, name.line)
    for text, line in list(seen.items())[:_MAX_HINTS]:
        near = process.extractOne(_SEPARATORS.sub("", text).lower(), list(_NAMES), score_cutoff=85)
        if near:
            message = f"{source}: the field {text[:60]!r} (line {line}) is not known and not read"
            fix = f"did you mean {_NAMES[near[0]]}?"
            yield minor("backlog.field", message, where=Where(file=source, line=line, field=text[:60]), fix=fix)
