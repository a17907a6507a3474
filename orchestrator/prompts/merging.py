"""Both sides of a merge as prompt text: conflicts with the lines around them, each line once."""

import re
from collections.abc import Mapping, Sequence

from orchestrator.core.delivery import Conflict, MergedStory
from orchestrator.prompts.budget import ContextBlock, cap, cap_middle, fence, fit, language_of, tokens
from orchestrator.prompts.context import show_path

_SUBJECTS, _SUBJECT_CHARS = 12, 160
# A function and its neighbours; what is outside stays as it is.
_AROUND = 12
"""Lines shown before and behind a conflict, and around a line that a failure names."""
WHOLE_TOKENS = 2_000
"""A longer file is shown in parts, where it can be changed in parts."""
_BEGINS, _ENDS = "<<<<<<< ", ">>>>>>> "


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
    """Returns each file's conflicts.

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


def _regions(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the conflicts that git has marked, each from its first marker to behind its last; a marker without its
    end is text."""
    found, start = list[tuple[int, int]](), -1
    for at, line in enumerate(lines):
        if line.startswith(_BEGINS):
            start = at
        elif start >= 0 and line.startswith(_ENDS):
            found.append((start, at + 1))
            start = -1
    return found


def _conflict(conflict: Conflict, merged: str, parts: bool) -> str:
    lines = merged.split("\n")
    regions = _regions(lines)
    head = f"#### {show_path(conflict.path)}\n\n"
    if not regions:
        return head + _differences(conflict)
    head += "" if conflict.base is not None else "It was added by both.\n\n"
    if not parts or is_short(merged):
        return f"{head}It is shown whole above."
    excerpts = _excerpts(conflict.path, lines, _spans(regions, len(lines)))
    return f"{head}Of {len(lines)} lines these are shown:\n\n{excerpts}"


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
