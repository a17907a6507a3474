"""One answer given in several objects, each under a heading: `### Part 1`, `### Part 2`."""

import re
from collections.abc import Sequence
from typing import Any

from orchestrator.answers.frames import Reading
from orchestrator.answers.shape import Shape

_NUMBER = r"(?:\d+|[A-H]|one|two|three|first|second|third|last|final)"
_UNIT = r"(?:part|half|batch|chunk|section)"
_PART = re.compile(
    rf"\b{_UNIT}\b[^\n{{]{{0,12}}\b{_NUMBER}\b|\b{_NUMBER} {_UNIT}\b"
    r"|\(\d+ ?(?:/|of) ?\d+\)|\b\d+/\d+\b|\bcontinued\b|\bcontinuation\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(?m)^(?:#{1,6} .*|\*\*[^*\n]+\*\*:?)$")
_DRAFT = re.compile(
    r"\b(?:draft|revis\w+|final|wait|instead|correct\w*|updat\w+|fix\w*|better|version|alternative\w*|option|example"
    r"|old|new|before|after|previous|attempt|try|improved?)\b",
    re.IGNORECASE,
)
"""What stands between a first and a second try; such objects are no parts of one answer."""
MAX_LED = 300
"""Characters before an object that may announce it."""


def announced_parts(text: str, readings: Sequence[Reading]) -> bool:
    """Returns whether a line before each of the objects says that it is a part."""
    leads = _leads(text, readings)
    return len(leads) > 1 and all(_PART.search(lead) for lead in leads)


def under_headings(text: str, readings: Sequence[Reading]) -> bool:
    """Returns whether each of the objects has a heading of its own, and none speaks of another try."""
    leads = _leads(text, readings)
    titles = [found[-1] if (found := _HEADING.findall(lead)) else "" for lead in leads]
    return all(titles) and len(set(titles)) == len(titles) > 1 and not any(_DRAFT.search(lead) for lead in leads)


def _leads(text: str, readings: Sequence[Reading]) -> list[str]:
    """The text before each of the objects, up to the one before it."""
    ends = [0, *(reading.end for reading in readings)]
    return [
        text[max(end, reading.start - MAX_LED) : reading.start] for end, reading in zip(ends, readings, strict=False)
    ]


def join_parts(values: Sequence[dict[str, Any]], contract: Shape) -> dict[str, Any] | None:
    """Returns the one answer whose parts these are; None where they contradict or repeat each other."""
    joined: dict[str, Any] = {}
    counters = {counter for counter, _ in contract.counters}
    for value in values:
        for key, member in value.items():
            if key not in joined or joined[key] == member:
                joined[key] = member
            elif isinstance(member, list) and isinstance(joined[key], list):
                if _named(member, contract.child(key)) & _named(joined[key], contract.child(key)):
                    return None
                joined[key] = [*joined[key], *member]
            elif key not in counters:
                return None
    for counter, name in contract.counters:
        if counter in joined and isinstance(joined.get(name), list):
            told = [value[counter] for value in values if isinstance(value.get(counter), int)]
            joined[counter] = max(*told, len(joined[name]))
    return joined


def _named(items: list[Any], shape: Shape) -> set[str]:
    """What the items are called: the first key that the contract requires of them, else the items themselves."""
    required = shape.items.required if shape.items is not None else ()
    names = required[0] if required else ()
    return {
        str(next((item[name] for name in names if name in item), item)) if isinstance(item, dict) else str(item)
        for item in items
    }
