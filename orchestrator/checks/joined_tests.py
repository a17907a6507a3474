"""One test file that two stories added to → a text with the additions of both. Pure."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from orchestrator.checks.kept_tests import lost_parts
from orchestrator.code.check import check_syntax
from orchestrator.core.delivery import Conflict

MAX_LINES = 5_000
"""Of a side; comparing takes time with their product."""
_NAMED_IMPORT = re.compile(r"^(import\s*\{)([^{}]*)(\}\s*from\s*['\"].+['\"];?)$")
_IMPORT = re.compile(r"^(?:import|from)\s")


class _Change(NamedTuple):
    """Lines in place of those of the base from `start` to `end`."""

    start: int
    end: int
    lines: list[str]


def joined(conflict: Conflict) -> str | None:
    """Returns the file with what both sides added; None where one of them changed what was there, or it is not sure."""
    path, sides = conflict.path, (conflict.result, conflict.story)
    if conflict.base is not None and any(lost_parts(path, conflict.base, side) for side in sides):
        return None
    first, second = (side.splitlines() for side in sides)
    if max(len(first), len(second)) > MAX_LINES:
        return None
    if conflict.base is None:
        # Twice imported is an error in JavaScript.
        merged: list[str] | None = [*first, *(line for line in second if not _IMPORT.match(line) or line not in first)]
    else:
        base = conflict.base.splitlines()
        merged = _merged(base, [*_changes(base, first)], [*_changes(base, second)])
    text = "\n".join(merged) + "\n" if merged is not None else ""
    whole = text and not any(lost_parts(path, side, text) for side in sides)
    return text if whole and not check_syntax(path, text, code="suite.syntax") else None


def _changes(base: Sequence[str], side: Sequence[str]) -> Iterator[_Change]:
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, base, side, autojunk=False).get_opcodes():
        if kind != "equal":
            yield _Change(i1, i2, [*side[j1:j2]])


def _merged(base: Sequence[str], first: list[_Change], second: list[_Change]) -> list[str] | None:
    out: list[str] = []
    at = 0
    while first or second:
        one, two = (changes[0] if changes else None for changes in (first, second))
        if one is not None and two is not None and _touch(one, two):
            lines = _both(base, one, two)
            if lines is None:
                return None
            start, end = min(one.start, two.start), max(one.end, two.end)
            first.pop(0)
            second.pop(0)
        else:
            ahead = first if two is None or (one is not None and one.start <= two.start) else second
            start, end, lines = ahead.pop(0)
        if start < at:
            return None
        out += [*base[at:start], *lines]
        at = end
    return [*out, *base[at:]]


def _touch(one: _Change, two: _Change) -> bool:
    return one.start == two.start or (one.start < two.end and two.start < one.end)


def _both(base: Sequence[str], one: _Change, two: _Change) -> list[str] | None:
    """Returns the lines of two changes of one place: both additions, or one import of both's names."""
    if one.lines == two.lines and (one.start, one.end) == (two.start, two.end):
        return one.lines
    if one.start == one.end and two.start == two.end:
        return [*one.lines, *two.lines]
    if (one.start, one.end) != (two.start, two.end) or len(one.lines) != len(two.lines):
        return None
    pairs = [_one_import(first, second) for first, second in zip(one.lines, two.lines, strict=True)]
    return [line for lines in pairs if lines is not None for line in lines] if None not in pairs else None


def _one_import(first: str, second: str) -> list[str] | None:
    ours, theirs = _NAMED_IMPORT.match(first), _NAMED_IMPORT.match(second)
    if ours and theirs and ours[3] == theirs[3]:
        names = dict.fromkeys(name.strip() for part in (ours[2], theirs[2]) for name in part.split(",") if name.strip())
        return [f"{ours[1]} {', '.join(names)} {ours[3]}"]
    if first == second:
        return [first]
    return [first, second] if _IMPORT.match(first) and _IMPORT.match(second) and "{" not in first + second else None
