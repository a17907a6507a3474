"""Tasks of all stages as one list: each title once, by priority, marked where nothing supports a task (pure)."""

import re
from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz, process

from orchestrator.core.analysis import ImprovementTask, Mark, StageResult
from orchestrator.core.value import same_title

NEAR = 86.0
"""Minimum similarity, of 100, of two titles that are shown as nearly the same."""
MAX_COMPARED = 3000
"""Tasks up to which each is compared with each."""
_PATH = re.compile(r"[\w@.+-]+(?:/[\w@.+-]+)+|[\w@+-]+\.[A-Za-z][\w]{0,9}")  # `src/a.py` or `a.py`
# In backticks, straight or curly quotes.
_QUOTED = re.compile(r"`([^`\n]{3,120})`|\"([^\"\n]{4,120})\"|\u201c([^\u201d\n]{4,120})\u201d")
# Snake_case, camelCase, PascalCase, or `call(`: plain words are no names.
_NAME = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z0-9]+[A-Z]\w+)\b|\b[A-Za-z_]\w{2,}(?=\()")
_NO_WORD = re.compile(r"\S{300,}")
"""Longer than any path or name: left out, for the patterns above take the square of a word's length."""
_ABOUT = 70
"""Minimum similarity, of 100, of a title and a sentence about the same thing."""


class World:
    """Texts of the repository and the PRD."""

    def __init__(self, paths: Iterable[str], texts: Sequence[str]) -> None:
        self._paths = frozenset(paths)
        self._folders = frozenset(
            "/".join(path.split("/")[:end]) for path in self._paths for end in range(1, path.count("/") + 1)
        )
        self._names = frozenset(path.rpartition("/")[2] for path in self._paths)
        self._texts = tuple(texts)

    def has(self, path: str) -> bool:
        """Returns whether a file or folder of this path exists."""
        return path in self._paths or path in self._folders

    def shown_in(self, text: str) -> bool:
        """Returns whether `text` names something that exists: a path, or a name or quotation in a text."""
        # The patterns below take the square of a word's length.
        text = _NO_WORD.sub(" ", text)
        for match in _PATH.finditer(text):
            path = match[0].strip(".").removeprefix("./")
            if self.has(path) or path in self._names:
                return True
        quoted = (next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
        named = (match[0] for match in _NAME.finditer(text))
        return any(self._stands(word.strip().removesuffix("()")) for word in (*quoted, *named))

    def _stands(self, words: str) -> bool:
        return len(words) >= 3 and any(words in text for text in self._texts)


def marks_of(task: ImprovementTask, stages: Sequence[StageResult], world: World) -> tuple[Mark, ...]:
    """Returns reasons for a person to check the task first: its file does not exist, or nothing supports it."""
    there = bool(task.file) and world.has(task.file)
    marks = [Mark.NO_SUCH_FILE] if task.file and not there else []
    if not there and not world.shown_in(f"{task.title}\n{task.description}") and not _said(task, stages, world):
        marks.append(Mark.NO_EVIDENCE)
    return tuple(marks)


def _said(task: ImprovementTask, stages: Sequence[StageResult], world: World) -> bool:
    """Returns whether a stage speaks of the task in its own text, and names something there."""
    texts = (text for stage in stages for text in (*stage.recommendations, *re.split(r"(?<=[.!?])\s", stage.summary)))
    about = same_title(task.title)
    return any(fuzz.token_set_ratio(about, same_title(text)) >= _ABOUT and world.shown_in(text) for text in texts)


def aggregate(stages: Sequence[StageResult], world: World) -> tuple[ImprovementTask, ...]:
    """Returns the tasks of a plan, numbered.

    Of tasks with the same title the first stands, with the higher priority and what only a later one has.
    """
    merged: dict[str, ImprovementTask] = {}
    for task in (task for stage in stages for task in stage.tasks):
        known = same_title(task.title)
        merged[known] = _joined(merged[known], task) if known in merged else task
    ordered = sorted(merged.items(), key=lambda item: item[1].priority.rank)
    numbered = [
        task.model_copy(
            update={"number": number, "marks": marks_of(task, stages, world)},
        )
        for number, (_, task) in enumerate(ordered, start=1)
    ]
    near = _near([known for known, _ in ordered])
    return tuple(
        task.model_copy(update={"near": tuple(numbered[other].number for other in others)})
        for task, others in zip(numbered, near, strict=True)
    )


def _joined(first: ImprovementTask, later: ImprovementTask) -> ImprovementTask:
    higher = min((first, later), key=lambda task: task.priority.rank)
    also = [stage for stage in (*first.also, later.stage) if stage != first.stage]
    return first.model_copy(
        update={
            "priority": higher.priority,
            "priority_stated": higher.priority_stated,
            "description": first.description or later.description,
            "file": first.file or later.file,
            "depends_on": _once((*first.depends_on, *later.depends_on)),
            "also": _once(also),
        }
    )


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _near(titles: Sequence[str]) -> list[list[int]]:
    """Per title the places of those that are nearly the same, each told of the other, in order."""
    found: list[set[int]] = [set() for _ in titles]
    for place, title in enumerate(titles[:MAX_COMPARED]):
        rest = titles[place + 1 : MAX_COMPARED]
        for _, _, at in process.extract(title, rest, scorer=fuzz.token_sort_ratio, score_cutoff=NEAR, limit=None):
            found[place].add(place + 1 + at)
            found[place + 1 + at].add(place)
    return [sorted(held) for held in found]
