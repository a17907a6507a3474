"""What says that members were left out: an ellipsis, a comment about the rest, fewer items than announced."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from orchestrator.answers import tokens
from orchestrator.answers.frames import Frame, Halt
from orchestrator.answers.shape import Shape

if TYPE_CHECKING:
    from orchestrator.answers.reader import Reader

_DOTS = re.compile(r"(?://+|\#+|/\*+|<!--)\s*(?:\.{2,}|…)")
_NOUNS = r"(?:\s+(?:of\s+)?(?:the\s+|your\s+|these\s+)?[\w-]+){0,2}?"
_PLACE = (
    r"(?:\s+(?:here|below|follow\w*|goes? here|would go here|unchanged|omitted.*|remain\w* .*|as (?:before|above).*"
    r"|(?:are|is) (?:unchanged|the same|similar|omitted).*|etc|similarly|to be added|for brevity))?"
)
_REST = re.compile(
    rf"\W*(?:(?:and|plus|add|then|the|all|any|with|your|insert|\(?\d+)\s+)*"
    rf"(?:(?:remaining|rest|others?|additional|further|more|similar|subsequent){_NOUNS}{_PLACE}"
    r"|(?:etc|and so (?:on|forth)).{0,40}|continu\w+.{0,60}|same (?:for|as) .{0,60}|repeat.{0,60}"
    r"|.{0,40}(?:omitted|truncated|left out|abbreviated|for brevity).{0,40})\W*",
    re.IGNORECASE,
)
"""What a comment or a string says of items that are not there."""
_WORDS = (
    "...", "…", "remaining", "rest", "other", "additional", "further", "more", "similar", "subsequent", "etc", "and so",
    "continu", "same", "repeat", "omitted", "truncated", "left out", "abbreviated", "brevity",
)  # fmt: skip
"""One of them is in all that _REST can match: they are looked for first, because that is fast."""


def gap(reader: Reader, at: int) -> Halt:
    """How an ellipsis ends the reading: after members it is a gap, before any it makes the text a template."""
    stack = reader.stack
    inner = stack[-1]
    # {...} as one more item of a list leaves items out; as the first member of anything it is a placeholder.
    kept = inner if inner.value or len(stack) < 2 else stack[-2]
    listed = kept is inner or not kept.is_object
    outcome = "cut" if kept.value and listed else "template"
    return Halt(outcome, at, "an ellipsis stands where members were left out", gap=True)


def placeholder(reader: Reader) -> Halt:
    """How an ellipsis instead of a value ends the reading: as a cut when nothing of the answer comes behind it."""
    text, at = reader.text, reader.at
    last = "}" not in text[at : at + 4000] and "]" not in text[at : at + 4000]
    outcome = "cut" if last and any(frame.value for frame in reader.stack) else "template"
    return Halt(outcome, at, "a placeholder stands where a value was expected", gap=outcome == "cut")


def is_gap_comment(comment: str, frame: Frame, following: str) -> bool:
    """Whether a comment among members, which `following` comes after, says that some were left out."""
    if not frame.value:
        return False
    if _DOTS.match(comment):
        return True
    return following in ("]", "}", "") and not frame.is_object and _REST.fullmatch(comment) is not None


def may_be_gap_comment(comment: str) -> bool:
    """Whether a comment says that members were left out, if it stands where it can."""
    return _DOTS.match(comment) is not None or _REST.fullmatch(comment) is not None


def may_hold_gap(value: dict[str, Any] | list[Any]) -> bool:
    """Whether a string in some list says that items were left out, if others stand before it that are no strings."""
    containers: list[Any] = [value]
    strings: list[str] = []
    for container in containers:
        if type(container) is dict:
            containers += [member for member in container.values() if type(member) is dict or type(member) is list]
        else:
            containers += [member for member in container if type(member) is dict or type(member) is list]
            strings += [member for member in container if type(member) is str]
    if not strings:
        return False
    said = "\n".join(strings).lower()
    return any(word in said for word in _WORDS) and any(_says_gap(string, strict=True) for string in strings)


def is_gap_item(value: object, frame: Frame) -> bool:
    """Whether a member of a list of objects only says that items were left out."""
    listed = frame.shape.lists_objects or any(isinstance(item, dict) for item in frame.value[:1])
    return listed and _says_gap(value, frame.shape.items is None or not frame.shape.items.allows("string"))


def is_gap_word(token: str, frame: Frame) -> bool:
    """Whether words without quotes among the members of a list say that others were left out."""
    return not frame.is_object and bool(frame.value) and _says_gap(token, strict=True)


def has_gap(value: object, shape: Shape) -> bool:
    """Whether an ellipsis stands among the items of the contract's lists of objects, or fewer items than announced."""
    return isinstance(value, dict) and (announced(value, shape) is not None or _first_gap(value, shape) is not None)


def before_gap(value: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The value with the list that has a gap ended before it: what stands behind a gap has no known place."""
    found = _first_gap(value, shape)
    return value if found is None else {**value, found[0]: value[found[0]][: found[1]]}


def announced(value: dict[str, Any], shape: Shape) -> tuple[str, int] | None:
    """The contract's list of objects that holds fewer items than a count beside it says, with that count."""
    for counter, name in shape.counters:
        count, items = value.get(counter), value.get(name)
        if isinstance(items, list) and type(count) is int and len(items) < count:
            return name, count
    return None


def _first_gap(value: dict[str, Any], shape: Shape) -> tuple[str, int] | None:
    """Name of a list of objects and the index of its first item that only says that others were left out."""
    for name, items in value.items():
        below = shape.props.get(name) if isinstance(items, list) and items else None
        if below is None or not below.lists_objects:
            continue
        strict = below.items is not None and not below.items.allows("string")
        for index, item in enumerate(items):
            if _says_gap(item, strict):
                return name, index
    return None


def _says_gap(item: object, strict: bool) -> bool:
    """Whether a list item is no item: an ellipsis, or (where strings have no place) words about the rest."""
    if isinstance(item, str):
        return item[:20].lstrip().startswith(("...", "…")) or (
            strict and len(item) < 120 and _REST.fullmatch(item) is not None
        )
    if isinstance(item, list | dict) and len(item) == 1:
        only = next(iter(item))
        return isinstance(only, str) and tokens.ELLIPSIS.fullmatch(only.strip()) is not None
    return False
