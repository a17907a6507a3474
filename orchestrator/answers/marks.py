"""Where a guided reading stood before a string: from there it goes on when the end it chose led nowhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrator.answers.frames import Frame

if TYPE_CHECKING:
    from orchestrator.answers.reader import Reader

MAX_MARKS = 16
"""Marks that are kept; from an earlier place the text is read anew."""
MAX_OPEN = 12
"""Open containers among which marks are made: each costs a look at all of them."""


class Mark(NamedTuple):
    """What a reader knew before a string."""

    end: int
    """Where the string was found to end."""
    at: int
    step: Callable[[], None] | None
    counts: tuple[int, int, int]
    """Changes, duplicates and ends that were listed."""
    flags: tuple[bool, bool, bool, int, int]
    unclosed: frozenset[str]
    frames: list[tuple[int, tuple[Any, ...]]]
    """How many members each open container had, and its other attributes."""


def mark(reader: Reader) -> Mark | None:
    """The place of a guided reader that is about to read a string; None where too much is open."""
    if not reader.guided or len(reader.stack) > MAX_OPEN:
        return None
    return Mark(
        end=-1,
        at=reader.at,
        step=reader.step,
        counts=(len(reader.changes), len(reader.duplicates), len(reader.guide.ends)),
        flags=(reader.keyed, reader.loose, reader.reclosable, reader.bare_keys, reader.singly),
        unclosed=frozenset(reader.unclosed),
        frames=[(len(frame.value), frame.state()) for frame in reader.stack],
    )


def back_to(reader: Reader, end: int) -> bool:
    """Put a reader back to before the string that ended at `end`, which is banned now; False where it was not kept.

    Open containers are copied: the reading that was made of them stays as it is.
    """
    marked = next((known for known in reversed(reader.marks) if known.end == end), None)
    if marked is None or len(reader.duplicates) != marked.counts[1]:
        return False
    while reader.marks and reader.marks.pop() is not marked:
        pass
    reader.guide.banned |= {end}
    del reader.changes[marked.counts[0] :], reader.guide.ends[marked.counts[2] :]
    reader.keyed, reader.loose, reader.reclosable, reader.bare_keys, reader.singly = marked.flags
    reader.at, reader.step, reader.unclosed, reader.value = marked.at, marked.step, set(marked.unclosed), None
    reader.stack = [_reopened(count, state) for count, state in marked.frames]
    return True


def _reopened(count: int, state: tuple[Any, ...]) -> Frame:
    is_object, value, *rest = state
    return Frame(is_object, dict(islice(value.items(), count)) if is_object else value[:count], *rest)
