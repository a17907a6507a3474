"""A part of a broken text, cut out for repair, and its repaired form put back in its place.

Two things make that safe for a text that is too long to be sent whole: what comes back must say the same (only quotes,
escapes, commas, brackets and blanks may differ), so that nothing is lost or invented; and it is not read as an answer
itself: the whole text with the part in its place goes through `extract` again.
"""

import re
from typing import NamedTuple

AROUND = 3000
"""Characters on each side of the place; up to as many again are added to reach the end of a line."""
_FENCED = re.compile(r"\s*(`{3,}|~{3,})[^\n`]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


class Part(NamedTuple):
    """A stretch of a text: offsets, without blanks at its ends."""

    start: int
    end: int


def offset_of(text: str, line: int, column: int) -> int:
    """The 0-based offset of a 1-based place; the end of the text when it has fewer lines."""
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return min(at + column - 1, len(text))


def part_around(text: str, offset: int) -> Part:
    """The part of `text` around `offset`: whole lines where lines are short."""
    start, end = max(offset - AROUND, 0), min(offset + AROUND, len(text))
    line_start = text.rfind("\n", max(start - AROUND, 0), start) + 1
    line_end = text.find("\n", end, end + AROUND)
    start = line_start if line_start or start <= AROUND else start
    end = line_end if line_end >= 0 else end if end + AROUND < len(text) else len(text)
    while start < offset and text[start].isspace():
        start += 1
    while end > offset and text[end - 1].isspace():
        end -= 1
    return Part(start, end)


def patched(text: str, part: Part, reply: str) -> str | None:
    """`text` with `reply` (raw or in one code fence) in the place of `part`; None when it does not say the same."""
    fenced = _FENCED.fullmatch(reply)
    new = (fenced[2] if fenced else reply).strip()
    old = text[part.start : part.end]
    if not new or new == old or _said(new) != _said(old):
        return None
    return text[: part.start] + new + text[part.end :]


def _said(text: str) -> str:
    """The letters and figures of a stretch of JSON, whatever its form."""
    return "".join(filter(str.isalnum, _ESCAPE.sub(_meaning, text))).casefold()


def _meaning(escape: re.Match[str]) -> str:
    meant = escape[1]
    return chr(int(meant[1:], 16)) if len(meant) > 1 else " " if meant in "nrtbf" else meant
