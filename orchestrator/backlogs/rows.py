"""The text of a backlog's source, its rows → stories, and the findings on cells that nobody else sees."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from orchestrator.core.errors import BacklogError
from orchestrator.core.finding import Finding, Where, critical, minor
from orchestrator.core.story import IdIndex, Priority, Story, is_yes, parse_dependencies, priority_of
from orchestrator.core.value import Value, counted, criteria_below, listed, parse_criteria

TEXT_FIELDS = (
    "user_story",
    "functional_requirements",
    "non_functional_requirements",
    "integrations",
    "constraints",
    "vision_ref",
    "wireframe_ref",
    "notes",
)
"""Fields of Story whose column has the same name in any case and whose text is taken as written."""
COMMON_NAMES = {"user_story": "story", "functional_requirements": "description"}
"""Field of Story → the name that other tools give to such text; read after the field's own column."""

_MAX_NAMED = 10
Overlay = Callable[[str, str, str], str]
"""(story id, lower-case column name, the file's cell) → the value that counts."""


class ReadingRules(Value):
    """What the configuration says about reading backlogs."""

    foundation: str = ""
    """Id of the tech-stack story when no row marks one."""
    closes: dict[str, tuple[str, ...]] = {}
    """Story id → ids of rows that are closed with it, beside what rows say themselves."""


class Row(NamedTuple):
    """One record that holds something: its number in the source, its line, its cells by lower-case column name."""

    number: int
    line: int
    cells: Mapping[str, str]
    criteria: tuple[str, ...] | None = None
    """Acceptance criteria that were given as a list; None when the cell's text has to be split."""
    file: str = ""
    """Name of the row's own file, where the backlog is a folder."""
    unread: Mapping[str, int] = {}
    """Names of its own that are no field, with their lines."""

    @property
    def story_id(self) -> str:
        """The trimmed id, "" when the row has none."""
        return self.cells.get("story_id", "").strip()

    def where(self, source: str, field: str | None = None) -> Where:
        """Returns the row's place for a finding."""
        file = f"{source}/{self.file}" if self.file else source
        return Where(file=file, line=self.line, story=self.story_id or None, field=field)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else f"line {self.line}"
        return f"{self.story_id} ({place})" if self.story_id else f"the row in {place}"


class ReadRows(NamedTuple):
    """What a source holds."""

    rows: Sequence[Row]
    problems: Sequence[Finding]


def unusable(code: str, message: str, source: str, *, fix: str, line: int | None = None) -> BacklogError:
    """Returns the error for a source that cannot be a backlog, with its one finding."""
    finding = critical(code, message, where=Where(file=source, line=line), fix=fix)
    return BacklogError(f"{message}; {fix}", findings=(finding,))


_LINE_END = re.compile(rb"\r\n|\r|\n")


def count_lines(data: bytes, start: int, end: int) -> int:
    """Returns how many lines end between two offsets."""
    return sum(1 for _ in _LINE_END.finditer(data, start, end))


def read_source(path: Path, source: str) -> tuple[bytes, str]:
    """Returns a source's bytes, and its text without a byte order mark.

    Raises BacklogError when it cannot be read or is not UTF-8 text.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"cannot read the backlog {source}: {error.strerror}"
        raise unusable("backlog.unreadable", message, source, fix="name an existing file or folder") from error
    return data, decoded(data, source)


def decoded(data: bytes, source: str) -> str:
    """Returns the text of UTF-8 bytes without a byte order mark. Raises BacklogError naming the line of a bad byte."""
    try:
        text, offset = data.decode("utf-8"), data.find(b"\0")
    except UnicodeDecodeError as error:
        text, offset = "", error.start
    if offset < 0:
        return text.removeprefix("\ufeff")
    line = count_lines(data, 0, offset) + 1
    message = f"{source} is not UTF-8 text: byte 0x{data[offset]:02x} in line {line}"
    if data[offset] == 0:
        message = f"{source} holds a NUL byte in line {line}: it is UTF-16, or no text"
    fix = "save the file as UTF-8 (in a spreadsheet: “CSV UTF-8, comma separated”)"
    raise unusable("backlog.encoding", message, source, fix=fix, line=line)


def missing_id(row: Row, source: str) -> Finding:
    """What is said about a row without an id."""
    message = f"{row} has no Story_ID"
    return critical("backlog.missing_id", message, where=row.where(source), fix="give the row an id of its own")


def build_stories(
    rows: Sequence[Row], source: str, overlay: Overlay, rules: ReadingRules
) -> tuple[list[Story], list[Finding]]:
    """Returns a story for every row with an id (also a bad or repeated one), and findings on its cells."""
    rows = [row for row in rows if row.story_id]
    index = IdIndex(row.story_id for row in rows)
    marked = {row.story_id for row in rows if is_yes(row.cells.get("foundation", ""))} or {rules.foundation}
    configured = {index.find(closer.strip()) or closer: rows for closer, rows in rules.closes.items()}
    stories: list[Story] = []
    found: list[Finding] = _told_finished(rows, overlay, source)
    for row in rows:
        priority_text = row.cells.get("priority", "")
        priority = priority_of(priority_text)
        if priority is None:
            message = f"{row} has the unknown priority {priority_text.strip()[:60]!r}"
            fix = "write Critical, High, Medium or Low; it counts as Medium"
            found.append(minor("backlog.priority", message, where=row.where(source, "Priority"), fix=fix))
        cell = parse_dependencies(row.cells.get("closes", ""), index)
        more = (index.find(name.strip()) or name for name in configured.pop(row.story_id, ()))
        closes = tuple(dict.fromkeys((*cell.ids, *cell.unknown, *cell.notes, *more)))
        stories.append(_story(row, overlay, index, priority, row.story_id in marked, closes))
    for closer in configured:
        message = f"the configuration names {closer[:80]} in backlog.closes, which is no row of the backlog"
        where = Where(field="backlog.closes")
        found.append(critical("backlog.unknown_closer", message, where=where, fix="correct the id or take it out"))
    return stories, found


_FINISHED = frozenset(
    {"done", "closed", "complete", "completed", "finished", "accepted", "resolved", "released", "merged", "shipped"}
    | {"delivered", "deployed", "canceled", "cancelled", "wontdo", "wontfix", "duplicate", "obsolete", "rejected"}
    | {"archived", "removed", "abandoned"}
)
"""Words of trackers for what nobody works on any more."""
_DATE = re.compile(r"\s*(\d{4}-\d\d-\d\d|\d{1,2}[/.](\d{1,2}|[A-Za-z]{3})[/.]\d{2,4})")


def _finished_by(row: Row) -> str:
    """Returns the word by which a tracker says that a row is finished, "" when it does not."""
    status = row.cells.get("status", "")
    word = re.sub(r"[\W_]+", "", re.split(r"[(;,]|\s[-\u2013\u2014]\s", status)[0]).lower()
    if word in _FINISHED:
        return status.strip()
    flags = re.split(r"[;\n]", row.cells.get("finished", ""))
    return "finished" if any(is_yes(flag) or _DATE.match(flag) for flag in flags) else ""


def _told_finished(rows: Sequence[Row], overlay: Overlay, source: str) -> list[Finding]:
    told = {row.story_id: word for row in rows if (word := _finished_by(row)) and not _run_status(row, overlay)}
    if not told:
        return []
    named = listed([f"{story_id[:80]} ({word[:40]})" for story_id, word in told.items()], _MAX_NAMED)
    message = f"{counted(len(told), 'row')} finished by the backlog's own words: {named}"
    fix = "write `pending` into Execution_Status of a row that is to be run all the same"
    return [minor("backlog.finished", message, where=Where(file=source), fix=fix)]


def _run_status(row: Row, overlay: Overlay) -> str:
    status = overlay(row.story_id, "execution_status", row.cells.get("execution_status", ""))
    return status if status.strip() else ""


def _text(row: Row, name: str) -> str:
    own, common = row.cells.get(name, ""), row.cells.get(COMMON_NAMES.get(name, ""), "")
    return f"{own}\n{common}" if own.strip() and common.strip() else own or common


def _criteria(row: Row) -> tuple[str, ...]:
    """Returns its criteria; where no field has any, those below a heading of its other texts."""
    if row.criteria is not None:
        return row.criteria
    own = parse_criteria(row.cells.get("acceptance_criteria", ""))
    texts = (_text(row, name) for name in TEXT_FIELDS)
    return own or next((found for text in texts if (found := criteria_below(text))), ())


def _story(
    row: Row, overlay: Overlay, index: IdIndex, priority: Priority | None, foundation: bool, closes: tuple[str, ...]
) -> Story:
    note = row.cells.get("dependencies", "")
    status = _run_status(row, overlay) or ("completed" if _finished_by(row) else "")
    return Story(
        id=row.story_id,
        title=row.cells.get("title", "").strip(),
        **{name: _text(row, name) for name in TEXT_FIELDS},
        dependencies=parse_dependencies(note, index).ids,
        dependency_note=note,
        closes=closes,
        acceptance_criteria=_criteria(row),
        priority=Priority.MEDIUM if priority is None else priority,
        sprint_id=overlay(row.story_id, "sprint_id", row.cells.get("sprint_id", "")).strip(),
        execution_status=status,
        foundation=foundation,
        file=row.file,
        line=row.line,
    )
