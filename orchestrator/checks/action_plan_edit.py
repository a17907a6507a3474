"""One FIND/REPLACE pair against a file's text: where it matches, and the text with it replaced. Pure.

A pair is lines for lines: the last line end of each block belongs to its fence, CRLF counts as LF, and what is replaced
gets the line ends of the place. Lines that are found whole and replaced by an empty block vanish with their line ends.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

MAX_MATCHES = 1000
"""Matches of one FIND that are counted."""
BOM = "\ufeff"


@dataclass(frozen=True)
class FileText:
    """The text of a file, and the same with LF line ends."""

    raw: str

    @cached_property
    def lf(self) -> str:
        """What FIND is compared with."""
        return self.raw.replace("\r\n", "\n")

    @cached_property
    def _carriage_returns(self) -> list[int]:
        """Offsets in `lf` of the line ends that are CRLF in `raw`."""
        found: list[int] = []
        at = self.raw.find("\r\n")
        while at >= 0:
            found.append(at - len(found))
            at = self.raw.find("\r\n", at + 2)
        return found

    def offset(self, at: int) -> int:
        """The offset in `raw` of an offset in `lf`."""
        return at + bisect_left(self._carriage_returns, at)

    def line(self, at: int) -> int:
        """1-based line of an offset in `lf`."""
        return self.lf.count("\n", 0, at) + 1

    def line_end(self, at: int) -> str:
        """How lines end at an offset in `lf`: there, else before it, else LF."""
        end = self.lf.find("\n", at)
        end = self.lf.rfind("\n", 0, at) if end < 0 else end
        place = bisect_left(self._carriage_returns, end) if end >= 0 else -1
        there = 0 <= place < len(self._carriage_returns) and self._carriage_returns[place] == end
        return "\r\n" if there else "\n"


def needle_of(find: str) -> str:
    """The text that a FIND block looks for: its last line end belongs to the fence."""
    return find.removesuffix("\n")


def matches(text: FileText, find: str) -> list[int]:
    """Offsets in `text.lf` at which FIND matches, overlapping ones too, at most MAX_MATCHES."""

    def each() -> Iterator[int]:
        needle = needle_of(find)
        at = text.lf.find(needle)
        while at >= 0:
            yield at
            at = text.lf.find(needle, at + 1)

    return list(islice(each(), MAX_MATCHES))


def replaced(text: FileText, at: int, find: str, replace: str) -> str:
    """The file's text with the match at `at` replaced."""
    end = at + len(needle_of(find))
    if not replace:
        at, end = _whole_lines(text.lf, at, end)
    new = needle_of(replace).replace("\n", text.line_end(at))
    return text.raw[: text.offset(at)] + new + text.raw[text.offset(end) :]


def _whole_lines(lf: str, start: int, end: int) -> tuple[int, int]:
    """The span with one line end when it holds whole lines: that behind it, at the file's end that before it."""
    begins = start == 0 or lf[start - 1] == "\n" or (start == 1 and lf[0] == BOM)
    if not begins or (end < len(lf) and lf[end] != "\n"):
        return start, end
    if end < len(lf):
        return start, end + 1
    return (start - 1 if start and lf[start - 1] == "\n" else start), end


def like(old: str, new: str) -> str:
    """A whole new text with the old one's byte order mark, and its CRLF where all its lines end so."""
    if old.startswith(BOM) and not new.startswith(BOM):
        new = BOM + new
    if "\r\n" in old and "\n" not in old.replace("\r\n", ""):
        new = new.replace("\n", "\r\n")
    return new
