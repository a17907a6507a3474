"""Renders text for prompts within a token budget: safe fences, marked cuts, excerpts around a place.

What others wrote stands between marks that it cannot close.
"""

import re
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from orchestrator.core.paths import suffix_of
from orchestrator.core.value import Value

# Close to what vendors count for English and code.
CHARS_PER_TOKEN = 4
"""How many characters a token is taken for."""
BUDGET_TOKENS = 24_000
"""The budget of one renderer when its caller names none."""

_BACKTICKS = re.compile(r"`+")
_GAP = "\n\n"
NOTICE_CHARS = 1200  # of the list of what is missing
_MIN_CUT_CHARS = 200
"""A block is not cut down to less than this: a few lines mislead more than they tell."""


class ContextBlock(Value):
    """One piece of context. Heavier blocks are served first when the budget is short."""

    name: str
    """How the block is spoken of when it is left out."""
    text: str
    weight: int = 1


def tokens(text: str) -> int:
    """Estimated number of tokens of `text`, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def fence(text: str, language: str = "") -> str:
    """Returns `text` verbatim in a code fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    bar = "`" * max(3, longest + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{bar}{language}\n{text}{end}{bar}"


def language_of(path: str) -> str:
    """Returns the language that a fence names for a file: its suffix, where that is a plain word."""
    suffix = suffix_of(path).lstrip(".")
    return suffix if suffix.isalnum() and len(suffix) <= 10 else ""


def cap(text: str, limit: int) -> str:
    """Returns `text`, or its first `limit` characters followed by a note of how many were left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} … ({len(text) - limit} more characters left out)"


def cap_middle(text: str, limit: int) -> str:
    """Returns `text`, or its head and tail of `limit` characters together with a note between them."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    note = f"\n[… {len(text) - limit} characters left out …]\n"
    return text[:head] + note + (text[-tail:] if tail else "")


def _open_fence(text: str) -> str:
    """Returns the bar of the fence that is open at the end of `text`, or ""."""
    bar = ""
    for line in text.split("\n"):
        run = _BACKTICKS.match(line)
        if run is None or len(run.group()) < 3:
            continue
        if not bar:
            bar = run.group()
        elif len(run.group()) >= len(bar) and line.rstrip() == run.group():
            bar = ""
    return bar


def _cut(block: ContextBlock, room: int) -> str:
    """The block's first whole lines and a note of what is missing, at most `room` characters; "" when it is too few."""
    start, end = f"[{cap(block.name, 60)}: cut here, ", f" of {len(block.text)} characters left out]"
    bar_room = len(_open_fence(block.text[: max(room, 0)])) + 2
    kept = block.text[: max(0, room - len(start) - len(end) - len(str(len(block.text))) - bar_room)]
    kept = kept.rpartition("\n")[0] or kept
    if room < _MIN_CUT_CHARS or not kept:
        return ""
    bar = _open_fence(kept)
    return "\n".join(filter(None, (kept, bar, f"{start}{len(block.text) - len(kept)}{end}")))


def fit(blocks: Sequence[ContextBlock], budget_tokens: int) -> str:
    """Returns the blocks' texts in the given order, together at most `budget_tokens`; blank blocks vanish.

    When they do not fit: heavier blocks first, of equals the shorter ones; a cut block ends at a line, its open fence
    closed, with a note; blocks that are missing are named in a last line.
    """
    return fit_told(blocks, budget_tokens)[0]


def fit_told(blocks: Sequence[ContextBlock], budget_tokens: int) -> tuple[str, tuple[str, ...]]:
    """Returns the same, and the names of the blocks that are not shown whole."""
    spoken = [block for block in blocks if block.text.strip()]
    budget = max(budget_tokens, 0) * CHARS_PER_TOKEN
    whole = _GAP.join(block.text for block in spoken)
    if len(whole) <= budget:
        return whole, ()
    # Room for the line that names what is missing is set aside before anything is placed.
    notice = min(budget // 4, NOTICE_CHARS)
    room, placed = budget - notice, dict.fromkeys(range(len(spoken)), "")
    for place in sorted(placed, key=lambda at: (-spoken[at].weight, len(spoken[at].text))):
        text = spoken[place].text
        placed[place] = text if len(text) + len(_GAP) <= room else _cut(spoken[place], room - len(_GAP))
        room -= len(placed[place]) + len(_GAP) if placed[place] else 0
    missing = [spoken[place].name for place, text in placed.items() if not text]
    line = f"[Left out for lack of room ({len(missing)}): {', '.join(missing)}]"
    line = line if len(line) <= notice else f"{line[: max(0, notice - 2)]}…]"[:notice]
    cut = tuple(spoken[place].name for place, text in placed.items() if text != spoken[place].text)
    return _GAP.join(filter(None, (*placed.values(), line if missing else ""))), cut


AROUND_LINES = 4  # before and after a place
WIDTH = 160
"""Characters of a line that are shown; of the line itself those around the column."""


def render_excerpt(text: str, line: int, column: int) -> str:
    """Returns the lines around a 1-based place, in a fence; a place behind the text is its end."""
    lines = text.split("\n")
    at = min(max(line, 1), len(lines))
    first, last = max(at - AROUND_LINES, 1), min(at + AROUND_LINES, len(lines))
    gutter = len(str(last))
    shown = []
    for number in range(first, last + 1):
        content = lines[number - 1].replace("\t", " ").rstrip("\r")
        start = max(0, min(column - 1 - WIDTH // 2, len(content) - WIDTH)) if number == at else 0
        head, tail = ("…" if start else ""), ("…" if start + WIDTH < len(content) else "")
        shown.append(f"{number:>{gutter}} | {head}{content[start : start + WIDTH]}{tail}")
        if number == at:
            place = min(column - 1, len(content)) - start + len(head)
            shown.append(f"{'':>{gutter}} | {' ' * place}^")
    return fence("\n".join(shown), "text")


TAG = "data"
"""Name of the mark. system_prompts/shared/data.md tells personas that its content contains no instructions."""
SLOTS = frozenset(
    {"vision", "surface", "record", "sprint_stories", "story", "wireframe", "nearby", "modified_files"}
    | {"shown_files", "whole_files", "history", "merged_stories", "conflicts", "red", "result_diff", "story_diff"}
    | {"prd", "codebase"}
    | {"files", "environment", "older_tests", "near_tests", "faulty", "suite", "report", "diff", "plan", "broken"}
)
"""Slots of prompts that hold what others wrote; the rest holds our own words and what one persona asks of another."""
_TAGS = re.compile(rf"<\s*(?:/\s*)?{TAG}(?:-([0-9]+))?", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]*(`{3,})(.*)")
_HEADING = re.compile(r"#{3,4} (.+)")


def as_data(text: str, source: str) -> str:
    """Returns `text` verbatim between an opening and a closing mark; "" for a blank one. The same for the same text.

    A text that holds such a mark gets one with a number that it does not hold.
    """
    if not text.strip():
        return ""
    # `<data-07` could be taken for `<data-7`, so numbers are compared without zeros.
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
    """Returns where `offset` lies in a text that shows files as `prompts.project.render_files` does."""
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
            file = heading[1].strip()
    return Place(file, inside) if bar and file else Place(None, len(lines))
