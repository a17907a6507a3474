"""What a task rests on: the file it names, and what its stage says that stands in the repository or the PRD (pure)."""

import re
from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz

from orchestrator.domain.analysis import ImprovementTask, Mark, StageResult
from orchestrator.domain.titles import same_title

_PATH = re.compile(r"[\w@.+-]+(?:/[\w@.+-]+)+|[\w@+-]+\.[A-Za-z][\w]{0,9}")
_QUOTED = re.compile(r"`([^`\n]{3,120})`|\"([^\"\n]{4,120})\"|\u201c([^\u201d\n]{4,120})\u201d")
_NAME = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z0-9]+[A-Z]\w+)\b|\b[A-Za-z_]\w{2,}(?=\()")
_NO_WORD = re.compile(r"\S{300,}")
"""Longer than any path or name: left out, for the patterns above take the square of a word's length."""
_ABOUT = 70
"""How alike a title and a sentence must be to speak of the same thing."""


class World:
    """What stands in the repository and the PRD."""

    def __init__(self, paths: Iterable[str], texts: Sequence[str]) -> None:
        self._paths = frozenset(paths)
        self._folders = frozenset(
            "/".join(path.split("/")[:end]) for path in self._paths for end in range(1, path.count("/") + 1)
        )
        self._names = frozenset(path.rpartition("/")[2] for path in self._paths)
        self._texts = tuple(texts)

    def has(self, path: str) -> bool:
        """Whether a file or folder of this path exists."""
        return path in self._paths or path in self._folders

    def shown_in(self, text: str) -> bool:
        """Whether `text` names something that is there: a path, or a name or quotation that stands in a text."""
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
    """Why a person should look at the task first; none when its file exists, or what is said of it can be found."""
    there = bool(task.file) and world.has(task.file)
    marks = [Mark.NO_SUCH_FILE] if task.file and not there else []
    if not there and not world.shown_in(f"{task.title}\n{task.description}") and not _said(task, stages, world):
        marks.append(Mark.NO_EVIDENCE)
    return tuple(marks)


def _said(task: ImprovementTask, stages: Sequence[StageResult], world: World) -> bool:
    """Whether a stage speaks of the task in its own text, and names something there."""
    texts = (text for stage in stages for text in (*stage.recommendations, *re.split(r"(?<=[.!?])\s", stage.summary)))
    about = same_title(task.title)
    return any(fuzz.token_set_ratio(about, same_title(text)) >= _ABOUT and world.shown_in(text) for text in texts)
