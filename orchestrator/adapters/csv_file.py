"""CSV that keeps its bytes: every cell knows where it stands, so single cells change and nothing else does."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from orchestrator.domain.findings import Where, critical
from orchestrator.errors import BacklogError

BOM = b"\xef\xbb\xbf"
_CELL = re.compile(rb'(?P<quoted>"(?:[^"]++|"")*+")(?P<tail>[^,\r\n]*+)|[^,\r\n]*+')
_LINE_END = re.compile(rb"\r\n|\r|\n")
_NEEDS_QUOTES = re.compile(r'[",\r\n]|\A\s|\s\Z')


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


def _line_of(data: bytes, offset: int) -> int:
    return sum(1 for _ in _LINE_END.finditer(data, 0, offset)) + 1


def _fold(text: str) -> str:
    return text.replace('""', '"')


def _rendered(value: str, quoted: bool) -> bytes:
    """A cell's bytes. NUL would make the file unreadable and a lone surrogate cannot be stored: both are replaced."""
    text = value.replace("\0", "")
    if quoted or _NEEDS_QUOTES.search(text):
        text = '"' + text.replace('"', '""') + '"'
    return text.encode("utf-8", "replace")


class CsvTable:
    """A parsed file. `rows` holds every record, the header and blank lines included."""

    def __init__(self, data: bytes, rows: tuple[CsvRow, ...]) -> None:
        self.data = data
        self.rows = rows

    def text(self, cell: CsvCell) -> str:
        """The value of one cell, as a spreadsheet shows it."""
        if cell.closing < 0:
            return self.data[cell.start : cell.end].decode("utf-8")
        tail = self.data[cell.closing : cell.end].decode("utf-8")
        return _fold(self.data[cell.start + 1 : cell.closing - 1].decode("utf-8")) + (tail if tail.strip() else "")

    def values(self, row: CsvRow) -> list[str]:
        """The values of one record, as many as it has."""
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
                patches.append((cell.start, cell.end, _rendered(value, cell.closing >= 0)))
        for number, values in beyond.items():
            patches += self._grown(self.rows[number], values)
        # Sorted stably: a growth stands behind the replacement of the row's last cell, at the same end.
        pieces: list[bytes] = []
        position = 0
        for start, end, content in sorted(patches, key=lambda patch: (patch[1], patch[0])):
            pieces += [self.data[position:start], content]
            position = end
        return b"".join([*pieces, self.data[position:]])

    @staticmethod
    def _grown(row: CsvRow, values: Mapping[int, str]) -> list[tuple[int, int, bytes]]:
        if not any(values.values()):
            return []
        last = max(column for column, value in values.items() if value)
        added = [_rendered(values.get(column, ""), False) for column in range(len(row.cells), last + 1)]
        end = row.cells[-1].end
        return [(end, end, b"".join(b"," + cell for cell in added))]


def _check_encoding(data: bytes, source: str) -> None:
    try:
        data.decode("utf-8")
        offset = data.find(b"\0")
    except UnicodeDecodeError as error:
        offset = error.start
    if offset < 0:
        return
    line = _line_of(data, offset)
    inside = offset - max(data.rfind(b"\n", 0, offset), data.rfind(b"\r", 0, offset))
    message = f"{source} is not UTF-8 text: byte 0x{data[offset]:02x} in line {line} (byte {inside} of that line)"
    fix = "save the file as UTF-8 (in a spreadsheet: “CSV UTF-8, comma separated”)"
    finding = critical("backlog.encoding", message, where=Where(file=source, line=line, column=inside), fix=fix)
    raise BacklogError(f"{message}; {fix}", findings=(finding,))


def _unterminated(source: str, line: int) -> BacklogError:
    message = f"{source}: the quoted cell that starts in line {line} is never closed"
    fix = 'close it with ", and write a quote inside a quoted cell as ""'
    finding = critical("backlog.unterminated_quote", message, where=Where(file=source, line=line), fix=fix)
    return BacklogError(f"{message}; {fix}", findings=(finding,))


def _record(data: bytes, position: int, line: int, source: str) -> tuple[tuple[CsvCell, ...], int, int]:
    """The cells of the record at `position`, the offset of its end, and the line that end stands on."""
    cells: list[CsvCell] = []
    while True:
        match = _CELL.match(data, position)
        assert match is not None  # the pattern also matches nothing
        closing = match.end("quoted")
        if closing >= 0:
            line += sum(1 for _ in _LINE_END.finditer(data, position, closing))
        elif data[position : position + 1] == b'"':
            raise _unterminated(source, line)
        cells.append(CsvCell(position, match.end(), closing))
        position = match.end()
        if data[position : position + 1] != b",":
            return tuple(cells), position, line
        position += 1


def parse_csv(data: bytes, source: str) -> CsvTable:
    """Split UTF-8 bytes into records: comma separated, `"` quoted, any mix of line ends, BOM or none.

    Raises BacklogError naming `source`, line and byte when the text is not UTF-8 or a quote stays open.
    """
    _check_encoding(data, source)
    position = len(BOM) if data.startswith(BOM) else 0
    line = 1
    rows: list[CsvRow] = []
    while position < len(data):
        cells, position, last_line = _record(data, position, line, source)
        rows.append(CsvRow(line, cells))
        end = _LINE_END.match(data, position)
        if end is not None:
            position = end.end()
        line = last_line + 1
    return CsvTable(data, tuple(rows))
