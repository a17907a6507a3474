"""What others wrote, in prompts: between marks that it cannot close, and where in it something stands."""

import re
from itertools import count
from typing import NamedTuple

TAG = "data"
"""Name of the mark. That what stands in it gives no orders, personas are told once (system_prompts/shared/data.md)."""
SLOTS = frozenset(
    {"vision", "surface", "record", "sprint_stories", "story", "wireframe", "import_summaries", "modified_files"}
    | {"shown_files", "whole_files", "history", "merged_stories", "conflicts", "red", "result_diff", "story_diff"}
    | {"prd", "codebase"}
    | {"files", "environment", "older_tests", "faulty", "suite", "report", "diff", "plan", "broken", "part"}
)
"""Slots of prompts that hold what others wrote; the rest holds our own words and what one persona asks of another."""
_TAGS = re.compile(rf"<\s*(?:/\s*)?{TAG}(?:-([0-9]+))?", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]*(`{3,})(.*)")
_HEADING = re.compile(r"#{3,4} (.+)")
_SIDE = re.compile(r", (where both began|merged meanwhile|your story)$")


def as_data(text: str, source: str) -> str:
    """`text` verbatim between an opening and a closing mark; "" for a blank one. The same for the same text.

    A text that holds such a mark gets one with a number that it does not hold.
    """
    if not text.strip():
        return ""
    found = {number.lstrip("0") for number in _TAGS.findall(text)}
    tag = f"{TAG}-{next(number for number in count(1) if str(number) not in found)}" if found else TAG
    end = "" if text.endswith("\n") else "\n"
    return f'<{tag} of="{source}">\n{text}{end}</{tag}>'


class Place(NamedTuple):
    """Where in a rendered text something stands."""

    file: str | None
    """The file that is shown there; None outside of one."""
    line: int
    """In that file, else in the text; counted from 1."""


def place_in(text: str, offset: int) -> Place:
    """Where `offset` lies in a text that shows files as `prompts.project.render_files` does."""
    lines = text[:offset].split("\n")
    bar, file, inside = "", None, 0
    for one in lines:
        inside += 1
        fence = _FENCE.fullmatch(one)
        if fence and not bar:
            bar, inside = fence[1], 0
        elif fence and len(fence[1]) >= len(bar) and not fence[2].strip():
            bar, file = "", None
        elif not bar and (heading := _HEADING.fullmatch(one)):
            file = _SIDE.sub("", heading[1]).strip()
    return Place(file, inside) if bar and file else Place(None, len(lines))
