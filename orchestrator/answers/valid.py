"""What of a broken text is valid is taken over at the speed of the standard parser, as the reader would read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orchestrator.answers import gaps, strict, tokens
from orchestrator.answers.frames import child_shape
from orchestrator.answers.lexis import STRETCH
from orchestrator.answers.model import MAX_DEPTH
from orchestrator.answers.shape import ANYTHING, Shape

if TYPE_CHECKING:
    from orchestrator.answers.reader import Reader

MAX_FAILURES = 6
"""Containers found broken one after another until no further one is tried."""


def plain_items(reader: Reader) -> None:
    """Take over a run of items that need no mending at the speed of the strict parser."""
    frame = reader.stack[-1]
    if reader.guided or reader.at < reader.singly or frame.shape.lists_objects:
        return
    run = tokens.PLAIN_ITEMS.match(reader.text, reader.at)
    if run is None:
        return
    if "..." in run.group() or "…" in run.group():
        reader.singly = run.end()
        return
    frame.value.extend(json.loads(f"[{run.group()[:-1]}]"))
    reader.at = run.end()
    frame.comma_at, frame.last_string_at = run.end() - 1, -1


def plain_members(reader: Reader) -> None:
    """Take over a run of an object's members that need no mending, each in one look."""
    frame, text = reader.stack[-1], reader.text
    if reader.guided or reader.reclose:
        return
    while (member := tokens.PLAIN_MEMBER.match(text, reader.at)) is not None:
        name, written, word = member.groups()
        if name in frame.value or name.startswith((".", "…")):
            return
        if name not in frame.shape.props:
            reader.reclosable = reader.reclosable or any(outer.wants(name) for outer in reader.stack[:-1])
        start = member.start(1) - 1
        reader.keyed = True
        reader.begin_value(name, start)
        if written is None:
            frame.put(json.loads(word))
        else:
            frame.put(json.loads(f'"{written}"') if "\\" in written else written)
        frame.comma_at, frame.last_string_at = member.end() - 1, -1
        reader.at = member.end()
    reader.step = reader.key


def whole_container(reader: Reader) -> bool:
    """Take over the object or list that begins here if it is valid and nothing in it has two meanings."""
    text, start, frame = reader.text, reader.at, reader.stack[-1]
    if reader.guided or reader.reclose or not reader.keyed or reader.failures >= MAX_FAILURES:
        return False
    if start >= reader.valid_to:
        stretch = STRETCH.match(text, start)
        reader.valid_to = stretch.end() if stretch else start
    try:
        value, end = strict.prefix(text, start)
    except (ValueError, RecursionError):
        reader.failures += 1
        return False
    openers = text.count("{", start, end) + text.count("[", start, end)
    if end > reader.valid_to + 1 or openers + len(reader.stack) > MAX_DEPTH or gaps.may_hold_gap(value):
        reader.failures += 1
        return False
    reader.failures = 0
    around = [frame.shape for frame in reader.stack]
    reader.reclosable = reader.reclosable or _awaited(value, [*around, child_shape(reader.stack, reader.contract)])
    reader.at, frame.last_string_at = end, -1
    frame.put(value)
    reader.step = reader.after
    return True


def _awaited(value: Any, shapes: list[Shape]) -> bool:
    """Whether some key in the value, whose shape is the last, is one that only a container around it knows."""
    *around, shape = shapes
    if shape is ANYTHING and not any(outer.props for outer in around):
        return False
    if type(value) is list:
        below = [*shapes, shape.items or ANYTHING]
        return any(_awaited(item, below) for item in value if type(item) is dict or type(item) is list)
    foreign = value.keys() - shape.props.keys()
    if foreign and any(name in outer.props for outer in around for name in foreign):
        return True
    inner = ((key, member) for key, member in value.items() if type(member) is dict or type(member) is list)
    return any(_awaited(member, [*shapes, shape.child(key)]) for key, member in inner)
