"""Keys of the block format → tasks, and the drafts they belong to."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.answers import block_fields as fields
from orchestrator.answers.block_keys import Key
from orchestrator.answers.model import Change

_GAP = re.compile(r"^[^\w\n]{0,8}?(?:\.{3}|…)", re.MULTILINE)
_PARTIAL = re.compile(r"[\W_]*(?:T(?:A(?:S(?:K[ _]?)?)?)?|S(?:T(?:O(?:R(?:Y)?)?)?)?)[\W_]*")
_LONGEST_PARTIAL = 12


@dataclass(slots=True)
class BlockTask:
    """One task as its fields come in; `raw` holds what stands behind each key."""

    key: Key
    raw: dict[str, str] = field(default_factory=dict)

    @property
    def quoted(self) -> bool:
        """Whether quote markers stand before its lines."""
        return ">" in self.key.spelled

    @property
    def identity(self) -> fields.Identity:
        """Id and title; the figure of `TASK 2:` is the id when there is no other."""
        named = fields.identity(self.raw.get("TASK", ""))
        return named if named.id or not self.key.number else fields.Identity(self.key.number, named.title)

    @property
    def is_template(self) -> bool:
        """Whether it only shows the format, as `TASK: <task id>`."""
        return fields.is_template(self.raw.get("TASK", ""))


@dataclass(slots=True)
class BlockAnswer:
    """One draft: the tasks that ended, and whether something is missing behind them."""

    start: int
    story: str = ""
    announced: int | None = None
    tasks: list[BlockTask] = field(default_factory=list)
    ids: dict[str, None] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    cut_at: int = -1
    why: str = ""

    def cut(self, at: int, why: str) -> None:
        """Something is missing from `at` on; what was said first stays."""
        if self.cut_at < 0:
            self.cut_at, self.why = at, why


class BlockReader:
    """Goes over the keys in order; every character is looked at once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._answers: list[BlockAnswer] = []
        self._changes: list[Change] = []
        self._task: BlockTask | None = None
        self._field: Key | None = None
        self._story = ""
        """A STORY that no task has followed yet, and where it stands."""
        self._story_at = -1
        self._announced: int | None = None

    def read(self, keys: Sequence[Key]) -> list[BlockAnswer]:
        """All drafts in order, at least one; `keys` must not be empty."""
        self._answers.append(BlockAnswer(keys[0].start))
        outside = -1
        for key in keys:
            if not self._counts(key):
                continue
            if outside >= 0:
                self._look_for_gap(outside, key.start)
            self._end_field(key.start)
            self._take(key)
            outside = key.end if self._field is None else -1
        self._end_field(len(self._text))
        self._end(outside)
        last = self._answers[-1]
        last.changes = [change for change in self._changes if change.offset >= last.start]
        return self._answers

    def _counts(self, key: Key) -> bool:
        """Whether a key is one: a description may hold words that look like keys."""
        task, inside = self._task, self._field
        if task is None or key.name == "END_TASK" or inside is None or inside.name != "DESCRIPTION":
            return True
        in_code = (key.fences - inside.fences) % 2 == 1
        if key.inline or in_code or key.capital != task.key.capital:
            return False
        return key.name in ("TASK", "STORY") or key.name not in task.raw

    def _take(self, key: Key) -> None:
        if not key.plain:
            self._changes.append(Change("block_key", key.start, key.spelled.strip(), f"{key.name}:"))
        if key.name == "END_TASK":
            self._end_task()
            return
        self._field = key
        if key.name in ("TASK", "STORY") and self._task is not None:
            if self._names_open_task(key):
                return
            self._close_before(key)
        if key.name == "TASK":
            self._task = BlockTask(key)

    def _names_open_task(self, key: Key) -> bool:
        """`TASK: Build it`, then `TASK_ID: T-1`: one task."""
        named = self._task is not None and (len(self._task.raw) > 1 or self._task.identity.id)
        return not named and key.name == "TASK" and key.word[-2:].upper() == "ID"

    def _close_before(self, key: Key) -> None:
        """The next TASK ends a task that lacks its END_TASK; a heading alone is prose, or a gap when it has an id."""
        task = self._task
        if task is not None and len(task.raw) > 1:
            self._changes.append(Change("missing_closer", key.start, "", "END_TASK"))
            self._end_task()
        elif task is not None and task.identity.id and not task.is_template:
            self._answer_of(task).cut(task.key.start, f"task {task.identity.id} has no fields")
        self._task = None

    def _end_task(self) -> None:
        task, self._task = self._task, None
        if task is not None and (task.key.number or not task.is_template):
            answer = self._answer_of(task)
            answer.tasks.append(task)
            answer.ids.setdefault(task.identity.id)

    def _answer_of(self, task: BlockTask) -> BlockAnswer:
        """The draft a task belongs to. Models draft, then answer: what begins again with the first id, or with a STORY
        before a known id or another STORY, is another answer."""
        answer, named = self._answers[-1], task.identity.id
        retold = self._story and (named in answer.ids or self._story != answer.story)
        if answer.ids and named and (named == next(iter(answer.ids)) or (retold and answer.story)):
            answer = BlockAnswer(max(self._story_at, 0) if self._story else task.key.start, story=answer.story)
            self._answers.append(answer)
        answer.story, self._story = self._story or answer.story, ""
        if self._announced is not None:
            answer.announced, self._announced = self._announced, None
        return answer

    def _end_field(self, end: int) -> None:
        key, self._field = self._field, None
        if key is None:
            return
        raw = self._text[key.end : end]
        if key.name == "STORY":
            named = fields.identity(raw)
            self._story = "" if fields.is_template(raw) else named.id or named.title
            self._story_at = key.start
        elif key.name == "TASK_COUNT":
            count = re.search(r"\d{1,6}", raw)
            self._announced = int(count[0]) if count else None
        elif self._task is not None:
            before = self._task.raw.get(key.name)
            if before is not None:
                raw = f"{raw.strip()}: {before.strip()}" if key.name == "TASK" else f"{before.strip()}\n{raw.strip()}"
            self._task.raw[key.name] = raw

    def _look_for_gap(self, start: int, end: int) -> None:
        """An ellipsis between tasks stands for tasks."""
        gap = _GAP.search(self._text, start, end) if self._answers[-1].tasks else None
        if gap:
            self._answers[-1].cut(gap.start(), "an ellipsis stands for tasks")

    def _end(self, outside: int) -> None:
        """What is open at the end was cut off, and so is a key that breaks off."""
        if self._task is not None:
            self._answer_of(self._task).cut(self._task.key.start, "its last task has no END_TASK")
        elif self._story and self._answers[-1].tasks:
            self._answers[-1].cut(self._story_at, "no task follows its last STORY")
        elif outside >= 0:
            self._look_for_gap(outside, len(self._text))
            rest = self._text[outside:].strip()
            if len(rest) < _LONGEST_PARTIAL and _PARTIAL.fullmatch(rest):
                self._answers[-1].cut(outside, "it breaks off in a key")
        answer = self._answers[-1]
        answer.story = answer.story or self._story
        answer.announced = self._announced if self._announced is not None else answer.announced
