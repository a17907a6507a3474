"""A YAML or JSON text as a tree of texts with lines, and stories found in it. Pure.

YAML is read as nodes, so that no tag builds anything and each value stays as written.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import yaml
from rapidfuzz import fuzz, process

from orchestrator.backlogs.rows import COMMON_NAMES, TEXT_FIELDS, ReadRows, Row, missing_id, unusable
from orchestrator.core.errors import BacklogError
from orchestrator.core.finding import Finding, Where, critical, major, minor
from orchestrator.core.value import is_criteria_heading, listed

RUN_FIELDS = (
    *("sprint_id", "execution_status", "execution_started_at", "execution_completed_at", "last_event", "last_updated"),
)
"""Fields that a run writes; in these formats they go to the sidecar."""
FIELDS = (
    *("story_id", "title", *TEXT_FIELDS, "dependencies", "acceptance_criteria", "priority", "status", "foundation"),
    *("closes", "finished", *COMMON_NAMES.values(), *RUN_FIELDS),
)
LISTS = {"dependencies": ", ", "closes": ", ", **dict.fromkeys((*TEXT_FIELDS, *COMMON_NAMES.values()), "; ")}
"""Fields that may also be lists, with what stands between their entries in the text they make."""
CRITERIA = "acceptance_criteria"
JOINED = frozenset({*TEXT_FIELDS, *COMMON_NAMES.values(), "dependencies", "closes", "finished"})
"""Fields that several columns may fill."""
_MAY_BE_CUT = frozenset({"story_id", "title", CRITERIA, *JOINED})
TOP = "stories"
_NAMES = {name.replace("_", ""): name for name in FIELDS} | {
    "id": "story_id",
    "prio": "priority",
    "state": "status",
    **dict.fromkeys(("passes", "done", "complete", "completed", "canceled", "cancelled", "closed"), "finished"),
    **dict.fromkeys(("completedat", "closedat", "canceledat", "cancelledat", "finishedat"), "finished"),
    **dict.fromkeys(("dependson", "dependency", "dependenton", "blockedby", "isblockedby"), "dependencies"),
    **dict.fromkeys(("blocker", "blockers", "needs", "requires", "waitsfor", "waitingfor"), "dependencies"),
    **dict.fromkeys(("prerequisite", "prerequisites", "predecessor", "predecessors"), "dependencies"),
    **dict.fromkeys(("inwardissuelink(blocks)", "inwardissuelink(dependency)"), "dependencies"),
}
"""What people and trackers call a field: `requires` is a dependency in a table. Of headings see `heading_field`."""
_SEPARATORS = re.compile(r"[\s_-]+")
_NUMBER = re.compile(r"\(?(\d{1,3})[.):]\)?\s+(?=\S)")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_MAX_HINTS = 20  # misspelt fields reported one by one


class Scalar(NamedTuple):
    """A text, number, flag or nothing (""), as written, and its 1-based line."""

    line: int
    text: str
    cut: str = ""
    """What stands behind it on its line and YAML takes for a comment: ` #42 and issue #43`."""


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


def field_name(name: str) -> str | None:
    """The column that `Story_ID`, `story id`, `storyId` or `id` names, in lower case; None when it names none."""
    return _NAMES.get(_SEPARATORS.sub("", name).lower())


_PROSE_HEADINGS = frozenset({"needs", "requires", "prerequisite", "prerequisites", "blocker", "blockers"})


def heading_field(heading: str) -> str | None:
    """The field that a heading of a Markdown story names; None for words that head prose as often (`Needs`, `Done`)."""
    plain = heading.strip().rstrip(":")
    column = field_name(plain) or ("acceptance_criteria" if is_criteria_heading(plain) else None)
    prose = column == "finished" or _SEPARATORS.sub("", plain).lower() in _PROSE_HEADINGS
    return None if prose else column


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
    return ReadRows(rows, [*problems, *hint_fields(unread_of(rows), source)])


def unread_of(rows: Iterable[Row]) -> dict[str, int]:
    """Returns the names that stand in rows and are not read, with the line of the first."""
    found: dict[str, int] = {}
    for row in rows:
        found |= {name: line for name, line in row.unread.items() if name not in found}
    return found


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
    spelled: set[str] = set()
    unread: dict[str, int] = {}
    wrong: list[tuple[str, int, str, str]] = []
    for name, value in story.pairs:
        column = field_name(name.text)
        key = column or name.text
        if column is None:
            unread.setdefault(name.text, name.line)
        if column in cells and _SEPARATORS.sub("", name.text).lower() not in spelled and column in JOINED:
            cells[column] = "; ".join(filter(None, (cells[column], _cell(column, value))))
            wrong += _wrong_kind(name, column, value)
            continue
        if key in lines:
            message = f"names {key} twice (lines {lines[key]} and {name.line})"
            wrong.append(("backlog.field_twice", name.line, message, "keep one of the two"))
            continue
        lines[key] = name.line
        spelled.add(_SEPARATORS.sub("", name.text).lower())
        if column == CRITERIA and isinstance(value, Items):
            criteria = tuple(filter(None, (_criterion(text, n) for n, text in enumerate(_texts(value), start=1))))
        if column is not None:
            cells[column] = _cell(column, value)
            wrong += [*_wrong_kind(name, column, value), *_cut_off(name, column, value)]
    for column, text in defaults:
        cells.setdefault(column, text)
    row = Row(number, lines.get("story_id", story.line), cells, criteria, file, unread)
    return row, [_finding(row, source, problem) for problem in wrong]


def _finding(row: Row, source: str, problem: tuple[str, int, str, str]) -> Finding:
    code, line, message, fix = problem
    where = row.where(source).model_copy(update={"line": line})
    name = row.story_id or "a story"
    place = f"{row.file}:{line}" if row.file else f"line {line}"
    make = {"backlog.field_twice": critical, "backlog.comment": minor}.get(code, major)
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


def _cut_off(name: Scalar, column: str, value: Node) -> Iterator[tuple[str, int, str, str]]:
    """Texts that end at a ` #` although their line goes on: an issue's number, a colour."""
    if column in _MAY_BE_CUT:
        for one in value.items if isinstance(value, Items) else (value,):
            if isinstance(one, Scalar) and one.cut:
                message = (
                    f"says {one.text[-40:]!r} in {name.text}; YAML takes what follows for a comment: {one.cut[:80]!r}"
                )
                yield "backlog.comment", one.line, message, "put quotes around the text, unless it is a comment"


def hint_fields(lines: Mapping[str, int], source: str) -> Iterator[Finding]:
    """Yields findings that name what is not read (name → line): once each, those nearly a field's one by one."""
    unknown = [(text, line) for text, line in lines.items() if field_name(text) is None]
    others: list[str] = []
    for text, line in unknown:
        near = process.extractOne(_SEPARATORS.sub("", text).lower(), list(_NAMES), scorer=fuzz.ratio, score_cutoff=80)
        if near is None or len(unknown) > _MAX_HINTS:
            others.append(text[:60])
            continue
        message = f"{source}: the field {text[:60]!r} (line {line}) is not known and not read"
        fix = f"did you mean {_NAMES[near[0]]}?"
        yield minor("backlog.field", message, where=Where(file=source, line=line, field=text[:60]), fix=fix)
    if others:
        message = f"{source}: not read: {listed(others, _MAX_HINTS)}"
        fix = "name a field as docs/backlogs.md has it where a story needs it"
        yield minor("backlog.field", message, where=Where(file=source, line=min(lines.values())), fix=fix)


MAX_DEPTH = 8  # a backlog nests less; bounds recursion
_ONLY_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')


def parse_json(text: str, source: str) -> Node:
    """Returns the tree of a JSON text; numbers stay as written. Raises BacklogError naming source and line.

    JSON's own reader says whether it is JSON; its lines are those that YAML's reader finds, of which JSON is a part.
    """
    if not text.strip():
        return Scalar(1, "")
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise _broken("JSON", source, f"{error.msg} at column {error.colno}", error.lineno) from error
    except RecursionError as error:
        raise _broken("JSON", source, "it is nested too deeply", 1) from error
    # Between values YAML knows no tabs; in a string JSON allows no bare one.
    return parse_yaml(_STRING.sub(_as_yaml, text).replace("\t", " "), source)


def _as_yaml(string: re.Match[str]) -> str:
    """Returns a string of JSON without escaped halves of characters, and with what YAML takes only escaped."""
    plain = json.dumps(_storable(json.loads(string[0])), ensure_ascii=False)
    return _ONLY_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


_NULL, _MERGE = "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"
_BEHIND = re.compile(r"[ \t]+(#[^\r\n]*)")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads ten thousand stories in a second, the other is there everywhere."""


def parse_yaml(text: str, source: str, *, before: int = 0) -> Node:
    """Returns the one document of `text`; `before` lines of the file stand in front of it.

    Raises BacklogError naming source and line for broken YAML, a second document, merge keys and deep nesting.
    """
    try:
        depth = 0
        # The composer in C recurses, so that deep nesting would end the process: events are counted first.
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise _Unreadable("it is nested too deeply", event.start_mark.line if event.start_mark else 0)
        root = yaml.compose(text, Loader=_LOADER)
        return Scalar(1 + before, "") if root is None else _node(root, text, before, {}, 0)
    except _Unreadable as error:
        raise _broken("YAML", source, error.problem, error.line + 1 + before) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        problem = "a second document begins" if "single document" in str(error.context) else error.problem
        raise _broken("YAML", source, problem or "it cannot be read", line + before, _tab_in(text, line)) from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1 if isinstance(error.position, int) else 1
        raise _broken("YAML", source, "it holds a character that YAML does not allow", line + before) from error


class _Unreadable(Exception):
    """YAML that is not read here, with its 0-based line."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line


def _broken(what: str, source: str, problem: str, line: int, tab: bool = False) -> BacklogError:
    fix = "YAML is indented with spaces, never with tabs" if tab else "put quotes around texts with `: `, `#`, `@`"
    fix = "see the text just before that place" if what == "JSON" else fix
    message = f"{source}, line {line}: not valid {what} ({problem})"
    return unusable("backlog.syntax", message, source, fix=fix, line=line)


def _tab_in(text: str, line: int) -> bool:
    return any("\t" in near for near in text.split("\n")[max(line - 2, 0) : line])


def _node(node: yaml.Node, text: str, before: int, made: dict[int, Node], depth: int) -> Node:
    """The tree below a node of YAML; what aliases name is made once, so that they cannot multiply it."""
    at = node.start_mark.line
    if depth > MAX_DEPTH:
        raise _Unreadable("an alias names what it stands in", at)
    if id(node) in made:
        return made[id(node)]
    found: Node
    if isinstance(node, yaml.MappingNode):
        pairs = [(_node(name, text, before, made, depth + 1), name, value) for name, value in node.value]
        for name, key, _ in pairs:
            if not isinstance(name, Scalar) or key.tag == _MERGE:
                problem = "merge keys (<<) are not read" if key.tag == _MERGE else "a field's name is no text"
                raise _Unreadable(problem, key.start_mark.line)
        fields = (
            (name, _node(value, text, before, made, depth + 1)) for name, _, value in pairs if isinstance(name, Scalar)
        )
        found = Fields(at + 1 + before, tuple(fields))
    elif isinstance(node, yaml.SequenceNode):
        found = Items(at + 1 + before, tuple(_node(one, text, before, made, depth + 1) for one in node.value))
    else:
        # Quoted texts and blocks say themselves where they end.
        behind = (
            _BEHIND.match(text, node.end_mark.index) if isinstance(node, yaml.ScalarNode) and not node.style else None
        )
        found = Scalar(at + 1 + before, "" if node.tag == _NULL else node.value, behind[1] if behind else "")
    made[id(node)] = found
    return found
