"""Both sides of a merge as prompt text."""

from collections.abc import Sequence

from orchestrator.domain.gitfacts import Conflict, MergedStory
from orchestrator.prompts.budget import CHARS_PER_TOKEN, ContextBlock, cap, cap_middle, fence, fit

_SUBJECTS, _SUBJECT_CHARS = 12, 160
_AROUND = 4
"""Lines shown before and behind the part in which the sides differ."""


def render_merged(stories: Sequence[MergedStory]) -> str:
    """A line per story with the subjects of its commits."""
    return "\n".join(f"- {one.story or 'others'}: {_subjects(one.subjects)}" for one in stories)


def _subjects(subjects: Sequence[str]) -> str:
    shown = [cap(" ".join(subject.split()), _SUBJECT_CHARS) for subject in subjects[-_SUBJECTS:]]
    more = f"{len(subjects) - len(shown)} earlier; " if len(subjects) > len(shown) else ""
    return more + "; ".join(shown)


def render_conflicts(conflicts: Sequence[Conflict], budget_tokens: int) -> str:
    """Each file's texts side by side; of long ones the part in which they differ."""
    room = budget_tokens * CHARS_PER_TOKEN // max(1, 3 * len(conflicts))
    blocks = [ContextBlock(name=one.path, text=_side_by_side(one, room)) for one in conflicts]
    return fit(blocks, budget_tokens)


def _side_by_side(conflict: Conflict, room: int) -> str:
    told = {
        "where both began": conflict.base,
        "merged meanwhile": conflict.result,
        "your story": conflict.story,
    }
    texts = {name: text for name, text in told.items() if text is not None}
    if any(len(text) > room for text in texts.values()):
        texts = dict(zip(texts, _windows(list(texts.values()), room), strict=True))
    name = conflict.path if conflict.path.isprintable() else repr(conflict.path)
    parts = [f"#### {name}, {side}\n\n{fence(text)}" for side, text in texts.items()]
    return "\n\n".join(parts if conflict.base is not None else [f"`{name}` was added by both.", *parts])


def _windows(texts: Sequence[str], room: int) -> list[str]:
    """The texts without the lines at head and end that are the same in all, but for a few."""
    lines = [text.splitlines(keepends=True) for text in texts]
    shortest = min(map(len, lines))
    head = next((at for at in range(shortest) if len({one[at] for one in lines}) > 1), shortest)
    most = shortest - head
    tail = next((at for at in range(most) if len({one[-1 - at] for one in lines}) > 1), most)
    first, last = max(0, head - _AROUND), max(0, tail - _AROUND)
    shown = ["".join(one[first : len(one) - last]) for one in lines]
    before = f"[… {first} lines, the same everywhere …]\n" if first else ""
    behind = f"[… {last} lines, the same everywhere …]\n" if last else ""
    return [before + cap_middle(text, room) + ("" if text.endswith("\n") else "\n") + behind for text in shown]
