"""The block format that some prompts ask for: `STORY:`, then `TASK:`, `FILES:`, `DESCRIPTION:`, `END_TASK` per task.

It is read when the contract is of that kind (a list `tasks` of objects with an id, a description and files) and the
text holds no JSON answer. A task counts when it is ended: by END_TASK, or, as a repair, by the next TASK.

What stands behind the keys of the block format: ids, paths, commands, descriptions.

The keys of the block format, where the lines of a text say them.

Keys of the block format → tasks, and the drafts they belong to.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from orchestrator.answers.json.choose import Choice
from orchestrator.answers.json.shape import Shape
from orchestrator.answers.result import Change, Extraction, Status, listed, text_place
from orchestrator.core.finding import major

_BULLET = re.compile(r"^[ \t]*+(?:[-*+•]|\d{1,3}[.)])[ \t]++")
_ID_TITLE = re.compile(r"(?=[\w.-]*?\d)([\w.-]++)[ \t]*(?:[:–—|]|-(?=\s))[ \t]*(\S.*)", re.DOTALL)
_NOTE = re.compile(r"(\S+)[ \t]+\((?:new|create|created|modify|modified|update|updated)\)", re.IGNORECASE)
_FENCE = re.compile(r"(?:```|~~~)[^\n]*\n(.*?)\n?(?:```|~~~)[ \t]*", re.DOTALL)
_DECORATION = " \t\r\n*_`"
_QUOTES = "\"'“”‘’"
_NOTHING = frozenset({"", "none", "(none)", "n/a", "null", "nothing", "-", "–", "—", "[]"})
_TEMPLATE = re.compile(r"\s*(?:\.{3}|…|<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\})\s*")


class Identity(NamedTuple):
    """Id and title as they stand behind TASK or STORY."""

    id: str
    title: str


def plain(raw: str) -> str:
    """`raw` without Markdown decoration and quotes around it."""
    text = raw.strip(_DECORATION)
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        text = text[1:-1]
    return text


def is_template(raw: str) -> bool:
    """Whether a field only says what ought to stand there, as in `<task id>`."""
    return _TEMPLATE.fullmatch(plain(raw)) is not None


def identity(raw: str) -> Identity:
    """`T-1: Build it` → id and title; words without an id are a title."""
    text = plain(raw)
    if not re.search(r"\s", text):
        return Identity(text, "")
    split = _ID_TITLE.fullmatch(text)
    if split is None:
        return Identity("", text)
    return Identity(split[1].strip("-"), split[2])


def entries(raw: str) -> tuple[list[str], list[str]]:
    """(paths or ids, notes that were left out) of a list with commas, of bullets, or of a JSON list."""
    text = raw.strip()
    if plain(text).lower() in _NOTHING:
        return [], []
    listed = _json_list(text)
    if listed is not None:
        return listed, []
    if text[:1] == "[" and text[-1:] == "]" and "," in text:
        text = text[1:-1]
    found: list[str] = []
    notes: list[str] = []
    for line in text.split("\n"):
        for piece in re.split(r"[,;]", _BULLET.sub("", line)):
            name = plain(piece)
            noted = _NOTE.fullmatch(name)
            if noted:
                notes.append(name)
                name = plain(noted[1])
            if name and name.lower() not in _NOTHING:
                found.append(name)
    return found, notes


def _json_list(text: str) -> list[str] | None:
    if text[:1] != "[":
        return None
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else None


def command(raw: str) -> str | None:
    """The command without fence, backticks or bullet; None when the text says that there is none."""
    text = _BULLET.sub("", raw).strip()
    fenced = _FENCE.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = text.strip("`").strip()
    return None if text.lower() in _NOTHING else text


def prose(raw: str, quoted: bool) -> str:
    """A description as it stands, without the quote markers that stand before its lines when its key has one."""
    text = re.sub(r"(?m)^[ \t]*>[ ]?", "", raw) if quoted else raw
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))


_NAMES = {
    "STORY": "STORY", "STORY_ID": "STORY", "TASK_COUNT": "TASK_COUNT", "TASK": "TASK", "TASK_ID": "TASK",
    "FILE": "FILES", "FILES": "FILES", "FILES_TO_CREATE": "FILES", "DESCRIPTION": "DESCRIPTION",
    "COMMAND": "COMMAND", "COMMAND_TO_RUN": "COMMAND", "DEPENDENCIES": "DEPENDENCIES", "DEPENDS_ON": "DEPENDENCIES",
    "DEPENDENCY_REASON": "DEPENDENCY_REASON", "END_TASK": "END_TASK", "ENDTASK": "END_TASK",
}  # fmt: skip
_WORDS = (
    r"(?:STORY(?:[ _-]?ID)?|TASK(?:[ _-]ID|[ _-]COUNT|[ _-]?\d{1,3})?|FILES?(?:[ _-]TO[ _-]CREATE)?|DESCRIPTION"
    r"|COMMAND(?:[ _-]TO[ _-]RUN)?|DEPENDENCIES|DEPENDS[ _-]ON|DEPENDENCY[ _-]REASON)"
)
_END = r"END[ _-]?TASK(?![A-Za-z0-9])"
_TOKEN = re.compile(
    r"^[ \t>]{0,40}+(?:(?:[-*+•]|\d{1,3}[.)]|\#{1,6})[ \t]++)?+(?P<decor>[*_`]{1,3}+)?+"
    rf"(?:(?P<name>{_WORDS})(?(decor)[*_`]{{0,3}}+)[ \t]*+[:：](?(decor)[*_`]{{0,3}}+)"
    rf"|(?P<end>{_END})[*_`.:]{{0,4}}+[ \t\r]*+$)"
    rf"|(?<=[ \t])(?-i:(?P<inline>{_WORDS}):(?=[ \t])|(?P<close>{_END})(?=[ \t\r]*+(?:$|TASK[ :_])))"
    r"|^(?P<fence>[ \t>]{0,40}+(?:```|~~~))|(?P<thought></?(?:think|thinking|reasoning)\b[^<>\n]{0,80}>)",
    re.IGNORECASE | re.MULTILINE,
)
"""A key at the start of a line, decorated or not; a key in capitals further on; a code fence; a reasoning tag."""


class Key(NamedTuple):
    """A key of the format, where its line says it."""

    name: str
    """Its name in the format, whatever the text calls it."""
    word: str
    """Its name as the text has it."""
    start: int
    end: int
    spelled: str
    """All of it: markers, decoration, colon."""
    inline: bool
    """Whether other words stand before it on its line."""
    fences: int
    """How many code fences begin or end before it."""

    @property
    def capital(self) -> bool:
        """Whether it is written in capitals."""
        return self.word == self.word.upper()

    @property
    def plain(self) -> bool:
        """Whether it is written exactly as the format says."""
        return self.spelled.strip() in (f"{self.name}:", self.name)

    @property
    def number(self) -> str:
        """The figure in `TASK 2:`, else ""."""
        return self.word[4:].strip(" _-") if self.name == "TASK" and self.word[-1].isdigit() else ""


def find_keys(text: str) -> list[Key]:
    """The keys of the format in order, outside thoughts. Linear.

    Where one TASK is written in capitals, the `Task:` of prose is none.
    """
    found: list[Key] = []
    thought, fences = -1, 0
    for match in _TOKEN.finditer(text):
        if match["thought"]:
            if match["thought"][1] != "/":
                thought = match.start() if thought < 0 else thought
                continue
            # A thought whose beginning is missing (some chat templates swallow it) began with the text.
            while found and found[-1].start >= thought:
                found.pop()
            thought = -1
        elif match["fence"]:
            fences += 1
        else:
            found.append(_key(match, fences))
    capitals = any(key.name == "TASK" and key.capital for key in found)
    return [key for key in found if key.capital or not capitals or key.name not in ("TASK", "STORY")]


def _key(match: re.Match[str], fences: int) -> Key:
    inline = match["inline"] or match["close"]
    word = inline or match["name"] or match["end"]
    name = re.sub(r"[ -]", "_", word.upper())
    name = "TASK" if name[-1].isdigit() else _NAMES[name]
    return Key(name, word, match.start(), match.end(), match.group(), inline is not None, fences)


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
    def identity(self) -> Identity:
        """Id and title; the figure of `TASK 2:` is the id when there is no other."""
        named = identity(self.raw.get("TASK", ""))
        return named if named.id or not self.key.number else Identity(self.key.number, named.title)

    @property
    def is_template(self) -> bool:
        """Whether it only shows the format, as `TASK: <task id>`."""
        return is_template(self.raw.get("TASK", ""))


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
            named = identity(raw)
            self._story = "" if is_template(raw) else named.id or named.title
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


_TASK_NAMES = frozenset({"task_id", "description", "files_to_create"})
_HINT = re.compile(r"[EeFf](?i:(?<=E)ND[ _-]?TASK|(?<=F)ILES?\b)")
_LISTS = (("FILES", "files_to_create"), ("DEPENDENCIES", "dependencies"))


def read_blocks(text: str, shape: Shape, json: Choice) -> Extraction | None:
    """What the blocks of `text` say; None when it has none, the contract is of another kind, or the JSON goes first.

    JSON goes first when it has all that the contract requires, and when it is an answer that holds the blocks or
    follows them; an example before them or inside a description is none. Never raises; linear.
    """
    tasks = shape.props.get("tasks")
    if json.certain or json.refused == "answer.too_many" or tasks is None or tasks.items is None:
        return None
    if not tasks.lists_objects or not tasks.items.props.keys() >= _TASK_NAMES or not _HINT.search(text):
        return None
    keys = find_keys(text)
    names = {key.name for key in keys}
    if "TASK" not in names or names.isdisjoint({"END_TASK", "FILES"}):
        return None
    found = json.reading if json.refused != "answer.unfit" else None
    if found is not None and not keys[0].start <= found.start < keys[-1].end and found.end > keys[0].start:
        return None
    answers = BlockReader(text).read(keys)
    value = _value(answers[-1], shape, tasks.items)
    return _extraction(text, answers[-1], value, len(answers)) if value else None


def _value(answer: BlockAnswer, shape: Shape, item: Shape) -> dict[str, Any]:
    """What is there, under the contract's names; nothing is filled in."""
    value: dict[str, Any] = {}
    if answer.story and "story_id" in shape.props:
        value["story_id"] = answer.story
    if answer.tasks:
        value["tasks"] = [_task_value(task, item, answer.changes) for task in answer.tasks]
    if value and answer.announced is not None and "task_count" in shape.props:
        value["task_count"] = answer.announced
    return value


def _task_value(task: BlockTask, item: Shape, changes: list[Change]) -> dict[str, Any]:
    raw, named = task.raw, task.identity
    value: dict[str, Any] = {"task_id": named.id} if named.id else {}
    told = [named.title, prose(raw.get("DESCRIPTION", ""), task.quoted)]
    if any(told):
        value["description"] = "\n".join(part for part in told if part)
    for key, name in _LISTS:
        if key in raw:
            value[name], notes = entries(prose(raw[key], task.quoted))
            changes.extend(Change("note", task.key.start, note, "") for note in notes)
    if "COMMAND" in raw:
        value["command_to_run"] = command(prose(raw["COMMAND"], task.quoted))
    if "DEPENDENCY_REASON" in raw:
        value["dependency_reason"] = prose(raw["DEPENDENCY_REASON"], task.quoted)
    return {name: entry for name, entry in value.items() if name in item.props}


def _extraction(text: str, answer: BlockAnswer, value: dict[str, Any], seen: int) -> Extraction:
    told = len(answer.tasks)
    if answer.cut_at < 0 and answer.announced is not None and told < answer.announced:
        answer.cut(len(text), f"{answer.announced} tasks were announced, {told} are there")
    cut = answer.cut_at >= 0
    problem = major(
        "answer.truncated",
        f"The answer is not whole: {answer.why}.",
        where=text_place(text, answer.cut_at),
        fix="Send what is missing; what came whole was kept.",
    )
    return Extraction(
        value=value,
        status=Status.TRUNCATED if cut else Status.REPAIRED if answer.changes else Status.OK,
        layer="blocks",
        repairs=listed(answer.changes),
        complete=not cut,
        candidates=seen,
        problems=(problem,) if cut else (),
    )
