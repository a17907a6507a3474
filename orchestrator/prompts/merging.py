"""Both sides of a merge as prompt text: conflicts with the lines around them, each line once."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from orchestrator.core.delivery import Conflict, MergedStory
from orchestrator.prompts.budget import ContextBlock, cap, cap_middle, fence, fit, language_of, tokens
from orchestrator.prompts.context import show_path

_SUBJECTS, _SUBJECT_CHARS = 12, 160
# A function and its neighbours; what is outside stays as it is.
_AROUND = 12
"""Lines shown before and behind a conflict, and around a line that a failure names."""
WHOLE_TOKENS = 2_000
"""A longer file is shown in parts, where it can be changed in parts."""
# Aligning two texts takes the product of their lines.
_ALIGNED_LINES = 6_000
_BEGINS, _MIDDLE, _ENDS, _BASE = "<<<<<<< ", "=======", ">>>>>>> ", "||||||| "


def render_merged(stories: Sequence[MergedStory]) -> str:
    """Returns a line per story with the subjects of its commits."""
    return "\n".join(f"- {one.story or 'others'}: {_subjects(one.subjects)}" for one in stories)


def _subjects(subjects: Sequence[str]) -> str:
    shown = [cap(" ".join(subject.split()), _SUBJECT_CHARS) for subject in subjects[-_SUBJECTS:]]
    more = f"{len(subjects) - len(shown)} earlier; " if len(subjects) > len(shown) else ""
    return more + "; ".join(shown)


def is_short(text: str) -> bool:
    """Returns whether a file is shown whole."""
    return tokens(text) <= WHOLE_TOKENS


def render_conflicts(
    conflicts: Sequence[Conflict], merged: Mapping[str, str], budget_tokens: int, *, parts: bool
) -> str:
    """Returns each file's conflicts, with what stood there when both began.

    Of a long file they stand here with the lines around them; a short one is shown whole elsewhere (`render_tree`), and
    so is every one without `parts`.
    """
    blocks = [ContextBlock(name=one.path, text=_conflict(one, merged.get(one.path, ""), parts)) for one in conflicts]
    return fit(blocks, budget_tokens)


def render_tree(
    merged: Mapping[str, str], conflicts: Sequence[Conflict], red: str, budget_tokens: int, *, parts: bool
) -> str:
    """Returns the merged files: short ones whole, those in conflict first; of long ones the places that `red` names.

    Without `parts` all of them are whole, because the answer can change no part of a file.
    """
    own = {one.path for one in conflicts}
    blocks = []
    for path in sorted(merged, key=lambda path: (path not in own, path)):
        text, name = merged[path], show_path(path)
        if not parts or is_short(text) or (path in own and not _regions(text.split("\n"))):
            shown = f"### {name}\n\n{fence(text, language_of(path))}"
        elif path in own:
            continue
        else:
            shown = _named(path, text, red)
        blocks.append(ContextBlock(name=name, text=shown, weight=2 if path in own else 1))
    return fit(blocks, budget_tokens)


def _named(path: str, text: str, red: str) -> str:
    """The lines around those that a failure names."""
    lines = text.split("\n")
    places = {int(found) for found in re.findall(rf"(?<![\w/.-]){re.escape(path)}:(\d{{1,6}})", red)}
    spans = _spans([(at - 1, at) for at in sorted(places) if at <= len(lines)], len(lines))
    head = f"### {show_path(path)}\n\n{len(lines)} lines, "
    if not spans:
        return f"{head}not shown: what each side changed in it stands below."
    return f"{head}shown around what the failing tests name.\n\n{_excerpts(path, lines, spans)}"


class _Region(NamedTuple):
    """One conflict: lines of the merged text from its first marker to behind its last, and its first side's."""

    start: int
    end: int
    theirs: tuple[str, ...]


def _regions(lines: Sequence[str]) -> list[_Region]:
    """Returns the conflicts that git has marked; a marker without its end is text."""
    found, start, theirs, side = list[_Region](), -1, list[str](), ""
    for at, line in enumerate(lines):
        if line.startswith(_BEGINS):
            start, theirs, side = at, [], "theirs"
        elif start >= 0 and line.startswith(_ENDS):
            found.append(_Region(start, at + 1, tuple(theirs)))
            start = -1
        elif line.rstrip("\r") == _MIDDLE or line.startswith(_BASE):
            side = ""
        elif side == "theirs":
            theirs.append(line)
    return found


def _conflict(conflict: Conflict, merged: str, parts_of_it: bool) -> str:
    lines = merged.split("\n")
    regions = _regions(lines)
    name = show_path(conflict.path)
    head = f"#### {name}\n\n"
    if not regions:
        return head + _differences(conflict)
    if conflict.base is None:
        head += "It was added by both.\n\n"
    parts = list[str]()
    if parts_of_it and not is_short(merged):
        spans = _spans([(one.start, one.end) for one in regions], len(lines))
        parts.append(f"Of {len(lines)} lines these are shown:\n\n{_excerpts(conflict.path, lines, spans)}")
    before = list(_before(conflict.base, lines, regions)) if conflict.base is not None else []
    for number, text in enumerate(before, start=1):
        which = f" in conflict {number} of {len(before)}" if len(before) > 1 else ""
        told = fence(text, language_of(conflict.path)) if text.strip() else "Nothing."
        parts.append(f"Where both began there stood{which}:\n\n{told}")
    return head + "\n\n".join(parts or ["It is shown whole above."])


def _differences(conflict: Conflict) -> str:
    """Returns both sides of a file that git merges as a whole and marks no conflict in."""
    sides = (("merged meanwhile", conflict.result), ("your story", conflict.story))
    return "\n\n".join(f"{name}:\n\n{fence(cap_middle(text, WHOLE_TOKENS * 4))}" for name, text in sides)


def _spans(places: Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """Returns the lines around these places; what touches is one."""
    spans = list[tuple[int, int]]()
    for start, end in places:
        first, last = max(0, start - _AROUND), min(count, end + _AROUND)
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
        else:
            spans.append((first, last))
    return spans


def _excerpts(path: str, lines: Sequence[str], spans: Sequence[tuple[int, int]]) -> str:
    return "\n\n".join(
        f"Lines {first + 1}-{last}:\n\n{fence(chr(10).join(lines[first:last]), language_of(path))}"
        for first, last in spans
    )


def _before(base: str, lines: Sequence[str], regions: Sequence[_Region]) -> Iterator[str]:
    """Yields what stood in each conflict's place where both began, as far as the texts can be aligned."""
    began = base.split("\n")
    side, places, at = list[str](), list[tuple[int, int]](), 0
    for one in regions:
        side += lines[at : one.start]
        places.append((len(side), len(side) + len(one.theirs)))
        side += one.theirs
        at = one.end
    side += lines[at:]
    if max(len(began), len(side)) > _ALIGNED_LINES:
        return
    matched = SequenceMatcher(None, began, side, autojunk=False).get_opcodes()
    for first, last in places:
        yield "\n".join(began[_start(matched, first) : _end(matched, last, len(began))])


_Codes = Sequence[tuple[str, int, int, int, int]]
"""How one text becomes another: what is done with which lines of the first and of the second."""


def _start(matched: _Codes, place: int) -> int:
    """Returns the line of the first text with which begins what stands at `place` of the second."""
    for tag, first, last, start, end in matched:
        if start < place <= end:
            if tag == "equal":
                return first + place - start
            return last if place == end else first
    return 0


def _end(matched: _Codes, place: int, count: int) -> int:
    """Returns the line of the first text, of `count`, before which ends what ends at `place` of the second."""
    for tag, first, last, start, end in matched:
        if start <= place < end:
            if tag == "equal":
                return first + place - start
            return first if place == start else last
    return count
