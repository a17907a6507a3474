"""Which tasks a person ticked in a plan that is there already (pure)."""

import re

from orchestrator.domain.titles import same_title

HEADING = "# MVP Improvement Plan"
_BOX = re.compile(r"^[-*+] \[(?P<mark>[ xX])\][ \t]+(?P<text>\S.*?)[ \t]*$", re.MULTILINE)
_BADGE = re.compile(r"^(\*\*)?\[[A-Za-z]+\](\*\*)?[ \t]*")
_REFERENCE = re.compile(r"[ \t]*\((`+)[^`].*?\1\)$")


def is_plan(text: str) -> bool:
    """Whether the text is a plan of ours: a file that is none is never written over."""
    return any(line.strip() == HEADING for line in text.splitlines()[:5])


def ticked_titles(text: str) -> frozenset[str]:
    """Titles with a ticked box, as `same_title` has them."""
    found = set()
    for match in _BOX.finditer(text):
        if match["mark"] != " ":
            title = _BADGE.sub("", match["text"]).strip()
            found |= {same_title(title), same_title(_REFERENCE.sub("", title))}
    return frozenset(found)
