"""Which tests show which acceptance criterion."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from orchestrator.core.sprint import CaseOutcome

# `2`, `AC 2`, `criterion #2: the words of it`: by number, with or without the words behind it.
_NUMBER = re.compile(
    r"^(?:acceptance\s+)?(?:criterion|criteria|ac)?\s*#?(?P<number>\d{1,3})(?:[.):\s-]+(?P<rest>.*))?$", re.I | re.S
)
_ALIKE = 88
"""Minimum similarity, of 100, between a test's words and a criterion's; below, they count as another's."""


class Covered(NamedTuple):
    """One acceptance criterion and the tests that claim to show it."""

    criterion: str
    cases: tuple[CaseOutcome, ...]


def coverage(
    criteria: Sequence[str], cases: Sequence[CaseOutcome]
) -> tuple[tuple[Covered, ...], tuple[CaseOutcome, ...]]:
    """Returns a row per criterion, in order, and the tests without a criterion.

    A test names its criterion by its words (exactly or nearly) or its number; where there is but one, it need not.
    """
    words = [_words(text) for text in criteria]
    found: list[list[CaseOutcome]] = [[] for _ in criteria]
    others = []
    for case in cases:
        place = 0 if len(words) == 1 and not case.criterion.strip() else _place(case.criterion, words)
        if place is None:
            others.append(case)
        else:
            found[place].append(case)
    rows = tuple(Covered(text, tuple(own)) for text, own in zip(criteria, found, strict=True))
    return rows, tuple(others)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _place(named: str, criteria: Sequence[str]) -> int | None:
    match = _NUMBER.match(named.strip())
    if match and not _words(match["rest"] or ""):
        number = int(match["number"])
        return number - 1 if 1 <= number <= len(criteria) else None
    wanted = [_words(text) for text in ((match["rest"], named) if match else (named,))]
    for text in wanted:
        if text and text in criteria:
            return criteria.index(text)
    near = [(max(fuzz.ratio(text, words) for text in wanted), -place) for place, words in enumerate(criteria) if words]
    score, place = max(near, default=(0, 0))
    return -place if score >= _ALIKE else None
