"""Rows of a parsed CSV backlog → stories, and the findings only a row's shape can give. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from orchestrator.adapters.csv_file import CsvRow, CsvTable
from orchestrator.domain.backlog_text import IdIndex, is_yes, parse_dependencies, priority_of
from orchestrator.domain.criteria_text import parse_criteria
from orchestrator.domain.findings import Finding, Where, critical, major, minor
from orchestrator.domain.story import Priority, Story
from orchestrator.errors import BacklogError

REQUIRED = ("Story_ID", "Title")
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

Overlay = Callable[[str, str, str], str]
"""(story id, lower-case column name, the file's cell) → the value that counts."""


class Row(NamedTuple):
    """One record that holds something: its number in the table, its line, its cells by lower-case column name."""

    number: int
    line: int
    cells: Mapping[str, str]

    @property
    def story_id(self) -> str:
        """The trimmed id, "" when the row has none."""
        return self.cells.get("story_id", "").strip()


class Sheet:
    """A CSV table with its header understood. Raises BacklogError when it can be no backlog."""

    def __init__(self, table: CsvTable, source: str) -> None:
        self.table = table
        self.source = source
        read = ((number, row, table.values(row)) for number, row in enumerate(table.rows))
        filled = [entry for entry in read if any(value.strip() for value in entry[2])]
        if not filled:
            raise _unusable("backlog.empty", f"{source} is empty", source, fix=f"its first line names {_required()}")
        _, self._header, names = filled[0]
        self.names = tuple(name.strip() for name in names)
        self.columns: dict[str, int] = {}
        for number, name in enumerate(self.names):
            if name:
                self.columns.setdefault(name.lower(), number)
        self._check_header()
        if len(filled) == 1:
            message = f"{source} has a header and no rows"
            raise _unusable("backlog.no_rows", message, source, fix="write one row per story")
        self._filled = filled[1:]

    def _check_header(self) -> None:
        missing = [name for name in REQUIRED if name.lower() not in self.columns]
        if missing:
            found = ", ".join(name or "(blank)" for name in self.names[:40])
            lacking = " and no column ".join(missing)
            message = f"{self.source} has no column {lacking}; the header found is: {found[:1000]}"
            fix = f"the first line must name {_required()}, separated by commas"
            raise _unusable("backlog.columns", message, self.source, fix=fix, line=self._header.line)

    def rows(self) -> list[Row]:
        """Every row below the header that is not blank, in file order."""
        return [Row(number, row.line, self._cells(values)) for number, row, values in self._filled]

    def _cells(self, values: Sequence[str]) -> dict[str, str]:
        return {name: values[column] for name, column in self.columns.items() if column < len(values)}

    def shape_findings(self) -> list[Finding]:
        """What is wrong with the form of header and rows."""
        found: list[Finding] = []
        seen: set[str] = set()
        for name in filter(None, self.names):
            if name.lower() in seen:
                where = Where(file=self.source, line=self._header.line, field=name)
                message = f"the header names {name} twice; the first column counts"
                found.append(minor("backlog.column_twice", message, where=where, fix="rename one of the two"))
            seen.add(name.lower())
        for _, row, values in self._filled:
            found += self._row_findings(row, values)
        return found

    def _row_findings(self, row: CsvRow, values: Sequence[str]) -> list[Finding]:
        found: list[Finding] = []
        story_id = self._cells(values).get("story_id", "").strip()
        where = Where(file=self.source, line=row.line, story=story_id or None)
        name = f"{story_id} (line {row.line})" if story_id else f"the row in line {row.line}"
        if not story_id:
            message = f"{name} has no Story_ID"
            found.append(critical("backlog.missing_id", message, where=where, fix="give the row an id of its own"))
        if self.table.broken_quote(row):
            message = f"{name} has text behind a closing quote, so cells may have run together"
            fix = 'write a quote inside a quoted cell as ""'
            found.append(major("backlog.quote", message, where=where, fix=fix))
        extra = values[len(self.names) :]
        if any(value.strip() for value in extra):
            message = f"{name} has {len(values)} cells, the header has {len(self.names)}"
            fix = "put quotes around the cell that holds a comma"
            found.append(major("backlog.too_many_cells", message, where=where, fix=fix))
        elif extra:
            message = f"{name} ends with {len(extra)} commas too many"
            found.append(minor("backlog.extra_commas", message, where=where, fix="remove them"))
        return found


def build_stories(sheet: Sheet, overlay: Overlay, foundation: str) -> tuple[list[Story], list[Finding]]:
    """A story for every row that has an id (also a bad or repeated one), and findings on cells nobody else sees.

    `foundation` is the id of the tech-stack story when no row marks one.
    """
    rows = [row for row in sheet.rows() if row.story_id]
    index = IdIndex(row.story_id for row in rows)
    marked = {row.story_id for row in rows if is_yes(row.cells.get("foundation", ""))} or {foundation}
    stories: list[Story] = []
    found: list[Finding] = []
    for row in rows:
        priority_text = row.cells.get("priority", "")
        priority = priority_of(priority_text)
        if priority is None:
            message = f"{row.story_id} (line {row.line}) has the unknown priority {priority_text.strip()[:60]!r}"
            where = Where(file=sheet.source, line=row.line, story=row.story_id, field="Priority")
            fix = "write Critical, High, Medium or Low; it counts as Medium"
            found.append(minor("backlog.priority", message, where=where, fix=fix))
        stories.append(_story(row, overlay, index, priority, row.story_id in marked))
    return stories, found


def _story(row: Row, overlay: Overlay, index: IdIndex, priority: Priority | None, foundation: bool) -> Story:
    note = row.cells.get("dependencies", "")
    return Story(
        id=row.story_id,
        title=row.cells.get("title", "").strip(),
        **{name: row.cells.get(name, "") for name in TEXT_FIELDS},
        dependencies=parse_dependencies(note, index).ids,
        dependency_note=note,
        acceptance_criteria=parse_criteria(row.cells.get("acceptance_criteria", "")),
        priority=Priority.MEDIUM if priority is None else priority,
        sprint_id=overlay(row.story_id, "sprint_id", row.cells.get("sprint_id", "")).strip(),
        execution_status=overlay(row.story_id, "execution_status", row.cells.get("execution_status", "")),
        foundation=foundation,
        line=row.line,
    )


def _required() -> str:
    return " and ".join(REQUIRED)


def _unusable(code: str, message: str, source: str, *, fix: str, line: int | None = None) -> BacklogError:
    finding = critical(code, message, where=Where(file=source, line=line), fix=fix)
    return BacklogError(f"{message}; {fix}", findings=(finding,))
