"""Which tasks a person ticked in a plan that is there already (pure)."""

import re
from collections.abc import Iterable, Iterator

from orchestrator.domain.titles import same_title

HEADING = "# MVP Improvement Plan"
COMMENT, ESCAPED_COMMENT = "<!--", "&lt;!--"
"""A title that holds the first is written with the second: it begins no comment."""
_BOX = re.compile(r"^[-*+] \[(?P<mark>[ xX])\][ \t]+(?P<text>\S.*?)[ \t]*$", re.MULTILINE)
_BADGE = re.compile(r"^(\*\*)?\[[A-Za-z]+\](\*\*)?[ \t]*")
_REFERENCE = re.compile(r"[ \t]*\((`+)[^`].*?\1\)$")


def is_plan(text: str) -> bool:
    """Whether the text is a plan of ours: a file that is none is never written over."""
    return any(line.strip() == HEADING for line in text.splitlines()[:5])


def holds_tasks(text: str) -> bool:
    """Whether a box stands in the plan."""
    return _BOX.search(text) is not None


def ticked_titles(text: str) -> frozenset[str]:
    """Titles with a ticked box, as `same_title` has them."""
    return frozenset(form for line in _ticked(text) for form in _forms(line))


def ticks_left(text: str, titles: Iterable[str]) -> tuple[str, ...]:
    """What stands behind ticked boxes whose titles are none of `titles`, each once and in order."""
    known = {same_title(title) for title in titles}
    return tuple(dict.fromkeys(line for line in _ticked(text) if known.isdisjoint(_forms(line))))


def _ticked(text: str) -> Iterator[str]:
    return (match["text"].strip() for match in _BOX.finditer(text) if match["mark"] != " ")


def _forms(line: str) -> frozenset[str]:
    """The line's title with the file behind it and without: a title may end like a reference."""
    title = _BADGE.sub("", line.replace(ESCAPED_COMMENT, COMMENT)).strip()
    return frozenset({same_title(title), same_title(_REFERENCE.sub("", title))})
