"""Strings in foreign delimiters that models use for long text: triple quotes, fenced code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from orchestrator.answers import code, tokens
from orchestrator.answers.frames import Halt, child_shape
from orchestrator.answers.model import Change

if TYPE_CHECKING:
    from orchestrator.answers.reader import Reader

MAX_DELIMITERS, MAX_TRIED = 1000, 64
"""Closing delimiters that are looked at for one string: in all, and behind one that a comma or closer follows."""
_TRIPLE = {quote * 3: re.compile(quote + "{3,}+") for quote in "\"'"}
_FENCE = re.compile(r"(`{3,}|~{3,})[^\n`\"]{0,60}\r?\n")
_CLOSER = re.compile(r"[ \t\r\n]*+[,}\]]")


def long_text(reader: Reader) -> str | None:
    """The string in triple quotes or a fenced block that begins here; None where neither does."""
    return _triple(reader) if reader.text[reader.at : reader.at + 3] in _TRIPLE else _fenced(reader)


def opens_tuple(reader: Reader) -> bool:
    """Whether the bracket here opens a list of another language, or one round strings: no remark in brackets."""
    place = reader.guide.skip(reader.at + 1)
    following = reader.text[place : place + 1]
    return following in tokens.CLOSING_QUOTE or child_shape(reader.stack, reader.contract).allows("array")


def _triple(reader: Reader) -> str | None:
    """`\"\"\"…\"\"\"` or `'''…'''`: a line end right behind the opening delimiter belongs to the delimiter.

    The text is taken as it stands when it has line ends of its own, with escapes read when it has none; where both
    could be, the reading that parses in the language of the path beside it counts.
    """
    text, start = reader.text, reader.at
    mark = text[start : start + 3]
    if text[start + 3 : start + 4] in (",", ":", "}", "]", ""):
        return None
    if mark in reader.unclosed:
        return None
    end = _end(reader, _TRIPLE[mark].finditer(text, start + 3))
    if end is None:
        if text[start + 3] in "\r\n" and text.find(mark, start + 3) < 0:
            raise Halt("cut", len(text), "a string in triple quotes is not closed")
        reader.unclosed.add(mark)
        return None
    reader.at = end
    reader.changes.append(Change("triple_quotes", start, mark, '"'))
    first = start + 3
    raw = text[first : end - 3]
    if raw[:1] == "\n":
        first += 1
        raw = _without_blank_end(raw[1:])
    return _settled(reader, raw, first, mark[0], end, verbatim="\n" in raw)


def _fenced(reader: Reader) -> str | None:
    """A fenced code block where a string should stand: its lines, as they are."""
    text, start = reader.text, reader.at
    opening = _FENCE.match(text, start)
    if opening is None:
        return None
    closing = re.compile(rf"(?<=\n)[ \t]*{re.escape(opening[1])}[ \t]*(?=\r?\n|[,}}\]]|\Z)")
    end = _end(reader, closing.finditer(text, opening.end() - 1))
    if end is None:
        raise Halt("cut", len(text), "a fenced block is not closed")
    reader.at = end
    reader.changes.append(Change("fenced_value", start, opening.group(), '"'))
    raw = _without_blank_end(text[opening.end() : text.rindex("\n", start, end) + 1])
    return _settled(reader, raw, opening.end(), "`", end, verbatim=True)


def _end(reader: Reader, delimiters: Iterator[re.Match[str]]) -> int | None:
    """Offset after the first delimiter behind which the contract allows the text to go on, else a closer or comma."""
    second, tried = None, 0
    for match in islice(delimiters, MAX_DELIMITERS):
        if reader.may_end(match.end()):
            return match.end()
        if second is None and _CLOSER.match(reader.text, match.end()):
            second = match.end()
        tried += second is not None
        if tried > MAX_TRIED:
            break
    return second


def _without_blank_end(raw: str) -> str:
    """The text without an empty last line, which only keeps the closing delimiter apart."""
    return raw[:-1] if raw.endswith("\n\n") else raw


def _settled(reader: Reader, raw: str, offset: int, closing: str, end: int, verbatim: bool) -> str:
    frame = reader.stack[-1]
    path = code.path_of(frame.key, frame.value, reader.text, end) if frame.is_object else None
    return code.settled(raw, offset, closing, path, verbatim, reader.changes)
