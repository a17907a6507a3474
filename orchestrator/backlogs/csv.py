"""A CSV backlog: read into rows, and single cells written back without touching another byte.

Every cell knows where it stands in the file.
"""

import errno
import fcntl
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from orchestrator.backlogs.rows import ReadRows, Row, count_lines, decoded, missing_id, read_source, unusable
from orchestrator.backlogs.tree import CRITERIA, JOINED, RUN_FIELDS, field_name, hint_fields
from orchestrator.backlogs.writer import SidecarBacklog, Wanted, set_aside
from orchestrator.core.errors import BacklogError
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.value import parse_criteria
from orchestrator.files.atomic_file import commit, is_read_only, remove_leftovers, stage, unstage

BOM = b"\xef\xbb\xbf"
# Possessive: a long cell without its closing quote must not be tried again from every place.
_CELLS = {
    mark: re.compile(rb'(?P<quoted>"(?:[^"]++|"")*+")(?P<tail>[^%b\r\n]*+)|[^%b\r\n]*+' % (mark, mark))
    for mark in (b",", b";", b"\t", b"|")
}
"""By what stands between cells."""
_NAMED_MARK = re.compile(rb'"?sep=(?P<mark>[,;\t|])"?[ \t,;]*(?:\r\n|\r|\n)', re.IGNORECASE)
"""The first line of a file that Excel wrote to be opened by itself."""
_LINE_END = re.compile(rb"\r\n|\r|\n")
# Blanks at the ends are lost without quotes by some spreadsheets.
_NEEDS_QUOTES = re.compile(r'["\r\n]|\A\s|\s\Z')


class CsvCell(NamedTuple):
    """Where a cell stands in the file's bytes, quotes included. A NamedTuple: files have hundreds of thousands."""

    start: int
    end: int
    closing: int
    """Offset behind the closing quote; -1 for a cell without quotes."""


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One record and the 1-based physical line it starts on."""

    line: int
    cells: tuple[CsvCell, ...]


def _fold(text: str) -> str:
    return text.replace('""', '"')


def _rendered(value: str, mark: bytes, *, quoted: bool) -> bytes:
    """A cell's bytes. NUL would make the file unreadable and a lone surrogate cannot be stored: both are replaced."""
    text = value.replace("\0", "")
    if quoted or mark.decode() in text or _NEEDS_QUOTES.search(text):
        text = '"' + text.replace('"', '""') + '"'
    return text.encode("utf-8", "replace")


class CsvTable:
    """A parsed file. `rows` holds every record, the header and blank lines included; `mark` stands between cells."""

    def __init__(self, data: bytes, rows: tuple[CsvRow, ...], mark: bytes) -> None:
        self.data = data
        self.rows = rows
        self.mark = mark

    def text(self, cell: CsvCell) -> str:
        """Returns the value of one cell, as a spreadsheet shows it."""
        if cell.closing < 0:
            return self.data[cell.start : cell.end].decode("utf-8")
        tail = self.data[cell.closing : cell.end].decode("utf-8")
        return _fold(self.data[cell.start + 1 : cell.closing - 1].decode("utf-8")) + (tail if tail.strip() else "")

    def values(self, row: CsvRow) -> list[str]:
        """Returns the values of one record, as many as it has."""
        return [self.text(cell) for cell in row.cells]

    def broken_quote(self, row: CsvRow) -> bool:
        """Whether text follows a closing quote somewhere: a quote inside was not doubled, cells may have merged."""
        return any(0 <= c.closing < c.end and self.data[c.closing : c.end].strip() for c in row.cells)

    def replaced(self, edits: Mapping[tuple[int, int], str]) -> bytes:
        """The file with the cells at (row number, column number), both 0-based, changed; all other bytes as they were.

        A cell that already holds the value keeps its bytes, a quoted cell stays quoted, a row too short grows.
        """
        patches: list[tuple[int, int, bytes]] = []
        beyond: dict[int, dict[int, str]] = {}
        for (number, column), value in edits.items():
            cells = self.rows[number].cells
            if column >= len(cells):
                beyond.setdefault(number, {})[column] = value
            elif self.text(cells[column]) != value:
                cell = cells[column]
                patches.append((cell.start, cell.end, _rendered(value, self.mark, quoted=cell.closing >= 0)))
        for number, values in beyond.items():
            patches += self._grown(self.rows[number], values)
        # Sorted stably: a growth stands behind the replacement of the row's last cell, at the same end.
        pieces: list[bytes] = []
        position = 0
        for start, end, content in sorted(patches, key=lambda patch: (patch[1], patch[0])):
            pieces += [self.data[position:start], content]
            position = end
        return b"".join([*pieces, self.data[position:]])

    def _grown(self, row: CsvRow, values: Mapping[int, str]) -> list[tuple[int, int, bytes]]:
        if not any(values.values()):
            return []
        last = max(column for column, value in values.items() if value)
        added = [
            _rendered(values.get(column, ""), self.mark, quoted=False) for column in range(len(row.cells), last + 1)
        ]
        end = row.cells[-1].end
        return [(end, end, b"".join(self.mark + cell for cell in added))]


def _unterminated(source: str, line: int) -> BacklogError:
    message = f"{source}: the quoted cell that starts in line {line} is never closed"
    fix = 'close it with ", and write a quote inside a quoted cell as ""'
    return unusable("backlog.unterminated_quote", message, source, fix=fix, line=line)


def _record(data: bytes, position: int, line: int, source: str, mark: bytes) -> tuple[tuple[CsvCell, ...], int, int]:
    """Returns the cells of the record at `position`, the offset of its end, and the line that end stands on."""
    cells: list[CsvCell] = []
    while True:
        match = _CELLS[mark].match(data, position)
        assert match is not None  # the pattern also matches nothing
        closing = match.end("quoted")
        if closing >= 0:
            line += count_lines(data, position, closing)
        elif data[position : position + 1] == b'"':
            raise _unterminated(source, line)
        cells.append(CsvCell(position, match.end(), closing))
        position = match.end()
        if data[position : position + 1] != mark:
            return tuple(cells), position, line
        position += 1


def _mark_of(data: bytes, start: int) -> tuple[bytes, int]:
    """Returns what stands between cells, and where the first record begins: as `sep=;` says, else as the header has it.

    Of a header without a comma outside of quotes it is the semicolon, tab or bar that stands in it most often.
    """
    if named := _NAMED_MARK.match(data, start):
        return named["mark"], named.end()
    begun = re.compile(rb"[\s\x00]*").match(data, start)
    line = _LINE_END.split(data[begun.end() if begun else start :], maxsplit=1)[0]
    bare = re.sub(rb'"[^"]*+"', b"", line)
    return max(_CELLS, key=lambda mark: bare.count(mark) if bare.count(b",") == 0 else mark == b","), start


def parse_csv(data: bytes, source: str) -> CsvTable:
    """Split UTF-8 bytes into records: separated by commas, or as `_mark_of` says; `"` quoted, any line ends, BOM or
    none.

    Raises BacklogError naming `source`, line and byte when the text is not UTF-8 or a quote stays open.
    """
    decoded(data, source)
    position = len(BOM) if data.startswith(BOM) else 0
    mark, first = _mark_of(data, position)
    line = 1 + count_lines(data, position, first)
    position = first
    rows: list[CsvRow] = []
    while position < len(data):
        cells, position, last_line = _record(data, position, line, source, mark)
        rows.append(CsvRow(line, cells))
        end = _LINE_END.match(data, position)
        if end is not None:
            position = end.end()
        line = last_line + 1
    return CsvTable(data, tuple(rows), mark)


REQUIRED = ("Story_ID", "Title")


class Sheet:
    """A CSV table with its header understood. Raises BacklogError when it can be no backlog."""

    def __init__(self, table: CsvTable, source: str) -> None:
        self.table = table
        self.source = source
        read = ((number, row, table.values(row)) for number, row in enumerate(table.rows))
        filled = [entry for entry in read if any(value.strip() for value in entry[2])]
        if not filled:
            raise unusable("backlog.empty", f"{source} is empty", source, fix=f"its first line names {_required()}")
        _, self._header, names = filled[0]
        self.names = tuple(name.strip() for name in names)
        self.columns: dict[str, int] = {}
        for number, name in enumerate(self.names):
            if name:
                self.columns.setdefault(name.lower(), number)
        self._meant: dict[str, list[int]] = {}
        for number, name in enumerate(self.names):
            if column := field_name(name):
                self._meant.setdefault(column, []).append(number)
                self.columns.setdefault(column, number)  # after those that are named as we write them
        self._check_header()
        if len(filled) == 1:
            message = f"{source} has a header and no rows"
            raise unusable("backlog.no_rows", message, source, fix="write one row per story")
        self._filled = [(self._row(number, row, values), row, values) for number, row, values in filled[1:]]

    def _check_header(self) -> None:
        missing = [name for name in REQUIRED if name.lower() not in self.columns]
        if missing:
            found = ", ".join(name or "(blank)" for name in self.names[:40])
            lacking = " and no column ".join(missing)
            message = f"{self.source} has no column {lacking}; the header found is: {found[:1000]}"
            fix = f"the first line must name {_required()}, separated by commas"
            raise unusable("backlog.columns", message, self.source, fix=fix, line=self._header.line)

    def rows(self) -> list[Row]:
        """Every row below the header that is not blank, in file order."""
        return [row for row, _, _ in self._filled]

    def _row(self, number: int, record: CsvRow, values: Sequence[str]) -> Row:
        """The row: of several columns that mean the same, those that are filled count."""
        cells = {name: values[column] for name, column in self.columns.items() if column < len(values)}
        criteria = None
        for column, numbers in self._meant.items():
            if len(numbers) < 2 or column in RUN_FIELDS:
                continue
            told = list(dict.fromkeys(values[one] for one in numbers if one < len(values) and values[one].strip()))
            if column == CRITERIA and len(told) > 1:
                criteria = tuple(dict.fromkeys(one for text in told for one in parse_criteria(text)))
            if column in JOINED or column == CRITERIA:
                cells[column] = "\n".join(told)
            elif not cells.get(column, "").strip() and told:
                cells[column] = told[0]
        return Row(number, record.line, cells, criteria)

    def shape_findings(self) -> list[Finding]:
        """What is wrong with the form of header and rows."""
        found: list[Finding] = []
        for column, numbers in self._meant.items():
            if len(numbers) > 1 and column != "finished":
                names = " and ".join(dict.fromkeys(self.names[one] for one in numbers))
                joined = column in JOINED or column == CRITERIA
                how = "what is filled counts, joined" if joined else "the first that is filled counts"
                where = Where(file=self.source, line=self._header.line, field=self.names[numbers[0]])
                message = f"the header names {column} {len(numbers)} times ({names}); {how}"
                found.append(minor("backlog.column_twice", message, where=where, fix="keep one of them"))
        found += hint_fields(dict.fromkeys(filter(None, self.names), self._header.line), self.source)
        for row, record, values in self._filled:
            found += self._row_findings(row, record, values)
        return found

    def _row_findings(self, row: Row, record: CsvRow, values: Sequence[str]) -> list[Finding]:
        where = row.where(self.source)
        found = [] if row.story_id else [missing_id(row, self.source)]
        if self.table.broken_quote(record):
            message = f"{row} has text behind a closing quote, so cells may have run together"
            fix = 'write a quote inside a quoted cell as ""'
            found.append(major("backlog.quote", message, where=where, fix=fix))
        extra = values[len(self.names) :]
        if any(value.strip() for value in extra):
            message = f"{row} has {len(values)} cells, the header has {len(self.names)}"
            fix = "put quotes around the cell that holds a comma"
            found.append(major("backlog.too_many_cells", message, where=where, fix=fix))
        return found


def _required() -> str:
    return " and ".join(REQUIRED)


_TRIES = 5
"""Limit on retries of a write after another process saved the file."""


class _ChangedMeanwhile(OSError):
    """Somebody saved the file between our reading it and our replacing it."""


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock on the file itself, so that two processes do not lose each other's cells.

    The file is replaced by every write: after waiting, the lock must still be on the file the path names.
    """
    while True:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with suppress(OSError):  # a file system without locks: the sprint's own lock has to do
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                yield
                return
        finally:
            os.close(descriptor)


def _signature(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


class CsvBacklog(SidecarBacklog):
    """One CSV file, whose cells are changed in place; the sidecar has those that it cannot take."""

    def rows(self) -> ReadRows:
        """Rows and findings of the file alone.

        Raises BacklogError (message and finding) when it is missing, empty, not UTF-8, has an open quote, lacks a
        required column, or holds no rows.
        """
        sheet = self._sheet()
        return ReadRows(sheet.rows(), sheet.shape_findings())

    def into_source(self, wanted: Wanted, aside: Wanted) -> tuple[Wanted, str | None]:
        """Cells into the file as it is now; when it cannot be changed at all, every cell is the sidecar's."""
        try:
            remaining, gone = self._into_file(wanted, aside)
        except (OSError, BacklogError) as error:
            cells = set_aside(wanted, aside, self._current())
            return cells, f"the backlog file {self._path} was not changed ({_reason(error)})"
        return remaining, f"no row {', '.join(gone)} is left in {self._path}" if gone else None

    def _sheet(self, data: bytes | None = None) -> Sheet:
        source = str(self._path)
        return Sheet(parse_csv(read_source(self._path, source)[0] if data is None else data, source), source)

    def _current(self) -> dict[str, Mapping[str, str]]:
        """What the file holds, as far as it can be read; a cell that a row is too short for is empty."""
        try:
            sheet = self._sheet()
        except BacklogError:
            return {}
        return {row.story_id: {**dict.fromkeys(sheet.columns, ""), **row.cells} for row in reversed(sheet.rows())}

    def _into_file(self, wanted: Wanted, aside: Wanted) -> tuple[Wanted, list[str]]:
        """Put cells into the file; returns what stays in the sidecar, and wanted ids that have no row any more."""
        if is_read_only(self._path):
            raise OSError(errno.EROFS, "it or its folder is read-only")
        target = Path(os.path.realpath(self._path))
        for _ in range(_TRIES - 1):
            try:
                return self._into_file_once(target, wanted, aside)
            except _ChangedMeanwhile:  # another process saved the file: try again
                continue
        return self._into_file_once(target, wanted, aside)

    def _into_file_once(self, target: Path, wanted: Wanted, aside: Wanted) -> tuple[Wanted, list[str]]:
        with _locked(target):
            signature = _signature(target)
            data = target.read_bytes()
            sheet = self._sheet(data)
            edits, remaining, gone = _edits(sheet, wanted, aside)
            changed = sheet.table.replaced(edits)
            if changed != data:
                beside = stage(target, changed)
                if _signature(target) != signature:
                    unstage(beside)
                    raise _ChangedMeanwhile(errno.EAGAIN, "it is being changed by somebody else")
                commit(beside, target)
            else:
                remove_leftovers(target)
        return remaining, gone


def _edits(sheet: Sheet, wanted: Wanted, aside: Wanted) -> tuple[dict[tuple[int, int], str], Wanted, list[str]]:
    """Cell edits for wanted and set-aside values; what stays in the sidecar; wanted ids without a row."""
    rows = {row.story_id: row for row in reversed(sheet.rows())}
    edits: dict[tuple[int, int], str] = {}
    remaining: Wanted = {}
    for story, column, cell in ((story, *pair) for story, row in aside.items() for pair in row.items()):
        place = sheet.columns.get(column.lower())
        if place is None or story not in rows:
            remaining.setdefault(story, {})[column] = cell
        elif cell.newer_than(rows[story].cells.get(column.lower(), "")):
            edits[rows[story].number, place] = cell.value
    for story, row in wanted.items():
        for column, cell in row.items():
            place = sheet.columns.get(column.lower())
            if place is None or story not in rows:
                remaining.setdefault(story, {})[column] = cell
            else:
                edits[rows[story].number, place] = cell.value
    return edits, remaining, [story for story in wanted if story not in rows]


def _reason(error: OSError | BacklogError) -> str:
    return error.message if isinstance(error, BacklogError) else (error.strerror or str(error))
