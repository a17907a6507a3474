"""A parsed CSV backlog → rows, and the findings only a row's shape can give. Pure."""

from collections.abc import Sequence

from orchestrator.adapters.backlog_rows import Row, missing_id
from orchestrator.adapters.csv_file import CsvRow, CsvTable
from orchestrator.domain.findings import Finding, Where, critical, major, minor
from orchestrator.errors import BacklogError

REQUIRED = ("Story_ID", "Title")


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
        for number, row, values in self._filled:
            found += self._row_findings(number, row, values)
        return found

    def _row_findings(self, number: int, row: CsvRow, values: Sequence[str]) -> list[Finding]:
        name = Row(number, row.line, self._cells(values))
        where = name.where(self.source)
        found = [] if name.story_id else [missing_id(name, self.source)]
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


def _required() -> str:
    return " and ".join(REQUIRED)


def _unusable(code: str, message: str, source: str, *, fix: str, line: int | None = None) -> BacklogError:
    finding = critical(code, message, where=Where(file=source, line=line), fix=fix)
    return BacklogError(f"{message}; {fix}", findings=(finding,))
