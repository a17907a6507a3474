"""The block format that some prompts ask for: `STORY:`, then `TASK:`, `FILES:`, `DESCRIPTION:`, `END_TASK` per task.

It is read when the contract is of that kind (a list `tasks` of objects with an id, a description and files) and the
text holds no JSON answer. A task counts when it is ended: by END_TASK, or, as a repair, by the next TASK.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answers.json.choose import Choice
from orchestrator.answers.json.shape import Shape
from orchestrator.answers.result import Change, Extraction, Status, listed, text_place
from orchestrator.core.finding import major

_NAMES = {
    "STORY": "STORY", "STORY_ID": "STORY", "TASK_COUNT": "TASK_COUNT", "TASK": "TASK", "TASK_ID": "TASK",
    "FILE": "FILES", "FILES": "FILES", "FILES_TO_CREATE": "FILES", "DESCRIPTION": "DESCRIPTION",
    "COMMAND": "COMMAND", "COMMAND_TO_RUN": "COMMAND", "DEPENDENCIES": "DEPENDENCIES", "DEPENDS_ON": "DEPENDENCIES",
    "DEPENDENCY_REASON": "DEPENDENCY_REASON",
}  # fmt: skip
_KEY = re.compile(
    r"^[ \t>]{0,40}+(?:(?:[-*+•]|\d{1,3}[.)]|\#{1,6})[ \t]++)?+(?P<decor>[*_`]{1,3}+)?+"
    r"(?:(?P<name>[A-Z]+(?:[ _-](?:ID|COUNT|TO[ _-]CREATE|TO[ _-]RUN|ON|REASON|\d{1,3}))?)"
    r"(?(decor)[*_`]{0,3}+)[ \t]*+[:：](?(decor)[*_`]{0,3}+)|(?P<end>END[ _-]?TASK)[*_`.:]{0,4}+[ \t\r]*+$)",
    re.IGNORECASE,
)
"""A key at the start of a line, decorated or not."""
_BAR = re.compile(r"^[ \t>]{0,40}+(?:```|~~~)")
_THOUGHT_ENDS = re.compile(r"</(?:think|thinking|reasoning)\b[^<>\n]{0,80}>", re.IGNORECASE)
_GAP = re.compile(r"^[^\w\n]{0,8}?(?:\.{3}|…)")
_PARTIAL = re.compile(r"[\W_]*(?:T(?:A(?:S(?:K[ _]?)?)?)?|S(?:T(?:O(?:R(?:Y)?)?)?)?)[\W_]*")
_BULLET = re.compile(r"^[ \t]*+(?:[-*+•]|\d{1,3}[.)])[ \t]++")
_ID_TITLE = re.compile(r"(?=[\w.-]*?\d)([\w.-]++)[ \t]*(?:[:–—|]|-(?=\s))[ \t]*(\S.*)", re.DOTALL)
_NOTE = re.compile(r"(\S+)[ \t]+\((?:new|create|created|modify|modified|update|updated)\)", re.IGNORECASE)
_FENCE = re.compile(r"(?:```|~~~)[^\n]*\n(.*?)\n?(?:```|~~~)[ \t]*", re.DOTALL)
_TEMPLATE = re.compile(r"\s*(?:\.{3}|…|<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\})\s*")
_NOTHING = frozenset({"", "none", "(none)", "n/a", "null", "nothing", "-", "–", "—", "[]"})
_HINT = re.compile(r"END[ _-]?TASK|FILES?\b", re.IGNORECASE)
_TASK_NAMES = frozenset({"task_id", "description", "files_to_create"})


@dataclass(slots=True)
class _Task:
    """One task as its fields come in; `raw` holds what stands behind each key."""

    start: int
    spelled: str
    """Its key, with what stands before it."""
    raw: dict[str, list[str]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Returns what stands behind a key, "" without it."""
        return "\n".join(self.raw.get(name, ()))

    @property
    def capital(self) -> bool:
        """Whether its key is written in capitals."""
        return self.spelled == self.spelled.upper()

    @property
    def identity(self) -> tuple[str, str]:
        """Id and title; the figure of `TASK 2:` is the id when there is no other."""
        named, title = _identity(self.text("TASK"))
        figure = re.search(r"\d+(?=\W*$)", self.spelled)
        return named or (figure[0] if figure else ""), title


@dataclass(slots=True)
class _Answer:
    """One draft: the tasks that ended, and whether something is missing behind them."""

    start: int = 0
    story: str = ""
    announced: int | None = None
    tasks: list[_Task] = field(default_factory=list)
    ids: dict[str, None] = field(default_factory=dict)
    cut_at: int = -1
    why: str = ""

    def cut(self, at: int, why: str) -> None:
        """Notes that something is missing from `at` on; what was said first stays."""
        if self.cut_at < 0:
            self.cut_at, self.why = at, why


class _Reader:
    """Goes over the lines in order."""

    def __init__(self) -> None:
        self.answers = [_Answer()]
        self.changes: list[Change] = []
        self.keys: list[tuple[str, int]] = []
        """Names and places of the keys."""
        self._task: _Task | None = None
        self._field = ""
        """The key whose value is read."""
        self._in_code = False
        self._story = ""
        """A STORY that no task has followed yet."""
        self._story_at = 0
        self._outside: list[tuple[int, str]] = []
        """Lines behind the last END_TASK."""

    def read(self, text: str) -> None:
        """Reads a text."""
        # What stands before the end of a thought was thought, also where a chat template swallowed its beginning.
        at = max((found.end() for found in _THOUGHT_ENDS.finditer(text)), default=0)
        for line in text[at:].split("\n"):
            self._line(line.rstrip("\r"), at)
            at += len(line) + 1
        self._end(at - 1)

    def _line(self, line: str, at: int) -> None:
        match = _KEY.match(line)
        name = "END_TASK" if match and match["end"] else self._name(match["name"]) if match else ""
        if match is None or not name or not self._counts(name, match[0]):
            if _BAR.match(line):
                self._in_code = not self._in_code
            if self._field:
                self._put(line)
            else:
                self._outside.append((at, line))
            return
        self.keys.append((name, at))
        spelled = match[0].strip()
        if spelled not in {f"{name}:", name}:
            self.changes.append(Change("block_key", at, spelled, f"{name}:"))
        if name == "END_TASK":
            self._end_task()
            self._field, self._outside = "", []
            return
        if name in {"TASK", "STORY"} and self._task is not None:
            task_id = match["name"].upper().endswith("ID") and set(self._task.raw) == {"TASK"}
            if not (name == "TASK" and task_id and not self._task.identity[0]):
                self._close_before(at)
            else:
                title = "\n".join(self._task.raw.pop("TASK"))
                self._field = "TASK"
                self._put(f"{line[match.end() :].strip()}: {title.strip()}")
                return
        self._look_for_gap()
        self._in_code, self._field = False, name
        if name == "TASK":
            self._task = _Task(at, match["name"])
        elif name == "STORY":
            self._story, self._story_at = "", at
        self._put(line[match.end() :])

    def _name(self, word: str) -> str:
        name = re.sub(r"[ -]", "_", word.upper())
        return "TASK" if re.fullmatch(r"TASK_\d{1,3}", name) else _NAMES.get(name, "")

    def _counts(self, name: str, spelled: str) -> bool:
        """Returns whether a key is one: a description may hold words that look like keys."""
        if self._task is None or self._field != "DESCRIPTION" or name == "END_TASK":
            return True
        if self._in_code or (spelled == spelled.upper()) is not self._task.capital:
            return False
        return name in {"TASK", "STORY"} or name not in self._task.raw

    def _put(self, text: str) -> None:
        if self._field == "STORY":
            self._story += text if not self._story else ""
        elif self._field == "TASK_COUNT":
            count = re.search(r"\d{1,6}", text)
            self.answers[-1].announced = int(count[0]) if count else self.answers[-1].announced
        elif self._task is not None:
            self._task.raw.setdefault(self._field, []).append(text)

    def _close_before(self, at: int) -> None:
        """The next TASK ends a task that lacks its END_TASK; a heading alone is prose, or a gap when it has an id."""
        task = self._task
        if task is not None and len(task.raw) > 1:
            self.changes.append(Change("missing_closer", at, "", "END_TASK"))
            self._end_task()
        elif task is not None and task.identity[0] and not _is_template(task.text("TASK")):
            self._answer_of(task).cut(task.start, f"task {task.identity[0]} has no fields")
        self._task = None

    def _end_task(self) -> None:
        task, self._task = self._task, None
        if task is not None and not (_is_template(task.text("TASK")) and task.spelled.isalpha()):
            answer = self._answer_of(task)
            answer.tasks.append(task)
            answer.ids.setdefault(task.identity[0])

    def _answer_of(self, task: _Task) -> _Answer:
        """The draft a task belongs to: what begins again with the first id is another answer."""
        answer, named = self.answers[-1], task.identity[0]
        story = "" if _is_template(self._story) else _identity(self._story)[0] or _identity(self._story)[1]
        retold = bool(story) and bool(answer.story) and (named in answer.ids or story != answer.story)
        if answer.ids and named and (named == next(iter(answer.ids)) or retold):
            answer = _Answer(self._story_at if story else task.start, answer.story)
            self.answers.append(answer)
        answer.story, self._story = story or answer.story, ""
        return answer

    def _look_for_gap(self) -> None:
        """An ellipsis between tasks stands for tasks."""
        gap = next((at for at, line in self._outside if _GAP.match(line)), -1)
        if gap >= 0 and self.answers[-1].tasks:
            self.answers[-1].cut(gap, "an ellipsis stands for tasks")
        self._outside = []

    def _end(self, end: int) -> None:
        """What is open at the end was cut off, and so is a key that breaks off."""
        answer = self.answers[-1]
        rest = "\n".join(line for _, line in self._outside).strip()
        if self._task is not None:
            self._answer_of(self._task).cut(self._task.start, "its last task has no END_TASK")
        elif self._story and answer.tasks:
            answer.cut(self._story_at, "no task follows its last STORY")
        elif not self._field and len(rest) < 12 and _PARTIAL.fullmatch(rest):
            answer.cut(end, "it breaks off in a key")
        self._look_for_gap()
        answer = self.answers[-1]
        answer.story = answer.story or _identity(self._story)[0]
        if answer.announced is not None and len(answer.tasks) < answer.announced:
            answer.cut(end, f"{answer.announced} tasks were announced, {len(answer.tasks)} are there")


def read_blocks(text: str, shape: Shape, json: Choice) -> Extraction | None:
    """Returns what the blocks of `text` say; None without any, for other contracts, and where JSON goes first.

    JSON goes first when it has all that the contract requires, and when it is an answer that holds the blocks or
    follows them; an example before them or inside a description is none. Never raises; linear.
    """
    tasks = shape.props.get("tasks")
    if json.certain or json.refused == "answer.too_many" or tasks is None or tasks.items is None:
        return None
    if not tasks.lists_objects or not tasks.items.props.keys() >= _TASK_NAMES or not _HINT.search(text):
        return None
    reader = _Reader()
    reader.read(text)
    names = {name for name, _ in reader.keys}
    if "TASK" not in names or names.isdisjoint({"END_TASK", "FILES"}):
        return None
    first, last = reader.keys[0][1], reader.keys[-1][1]
    found = json.reading if json.refused != "answer.unfit" else None
    if found is not None and not first <= found.start < last and found.end > first:
        return None
    answer = reader.answers[-1]
    changes = [change for change in reader.changes if change.offset >= answer.start]
    value: dict[str, Any] = {}
    if answer.story and "story_id" in shape.props:
        value["story_id"] = answer.story
    if answer.tasks:
        value["tasks"] = [_task_value(task, tasks.items, changes) for task in answer.tasks]
    if not value:
        return None
    if answer.announced is not None and "task_count" in shape.props:
        value["task_count"] = answer.announced
    cut = answer.cut_at >= 0
    problem = major(
        "answer.truncated",
        f"The answer is not whole: {answer.why}.",
        where=text_place(text, answer.cut_at),
        fix="Send what is missing; what came whole was kept.",
    )
    return Extraction(
        value=value,
        status=Status.TRUNCATED if cut else Status.REPAIRED if changes else Status.OK,
        layer="blocks",
        repairs=listed(changes),
        complete=not cut,
        candidates=len(reader.answers),
        problems=(problem,) if cut else (),
    )


def _task_value(task: _Task, item: Shape, changes: list[Change]) -> dict[str, Any]:
    """What is there, under the contract's names; nothing is filled in."""
    raw = {name: _prose(task.text(name)) for name in task.raw}
    named, title = task.identity
    value: dict[str, Any] = {"task_id": named} if named else {}
    if told := [part for part in (title, raw.get("DESCRIPTION", "")) if part]:
        value["description"] = "\n".join(told)
    for key, name in (("FILES", "files_to_create"), ("DEPENDENCIES", "dependencies")):
        if key in raw:
            value[name], notes = _entries(raw[key])
            changes.extend(Change("note", task.start, note, "") for note in notes)
    if "COMMAND" in raw:
        value["command_to_run"] = _command(raw["COMMAND"])
    if "DEPENDENCY_REASON" in raw:
        value["dependency_reason"] = raw["DEPENDENCY_REASON"]
    return {name: entry for name, entry in value.items() if name in item.props}


def _plain(raw: str) -> str:
    """`raw` without Markdown decoration and quotes around it."""
    text = raw.strip(" \t\r\n*_`")
    return text[1:-1] if len(text) > 1 and text[0] in "\"'“”‘’" and text[-1] in "\"'“”‘’" else text


def _is_template(raw: str) -> bool:
    """Whether a field only says what ought to stand there, as in `<task id>`."""
    return _TEMPLATE.fullmatch(_plain(raw)) is not None


def _identity(raw: str) -> tuple[str, str]:
    """`T-1: Build it` → id and title; words without an id are a title."""
    text = _plain(raw)
    if not re.search(r"\s", text):
        return text, ""
    split = _ID_TITLE.fullmatch(text)
    return (split[1].strip("-"), split[2]) if split is not None else ("", text)


def _entries(raw: str) -> tuple[list[str], list[str]]:
    """(paths or ids, notes that were left out) of a list with commas, of bullets, or of a JSON list."""
    text = raw.strip()
    try:
        value = json.loads(text) if text[:1] == "[" else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return value, []
    if text[:1] == "[" and text[-1:] == "]" and "," in text:
        text = text[1:-1]
    found: list[str] = []
    notes: list[str] = []
    for piece in (piece for line in text.split("\n") for piece in re.split(r"[,;]", _BULLET.sub("", line))):
        name = _plain(piece)
        noted = _NOTE.fullmatch(name)
        notes += [name] if noted else []
        name = _plain(noted[1]) if noted else name
        if name and name.lower() not in _NOTHING:
            found.append(name)
    return found, notes


def _command(raw: str) -> str | None:
    """The command without fence, backticks or bullet; None when the text says that there is none."""
    text = _BULLET.sub("", raw).strip()
    fenced = _FENCE.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = text.strip("`").strip()
    return None if text.lower() in _NOTHING else text


def _prose(raw: str) -> str:
    """A text without the quote marks before its lines."""
    return "\n".join(re.sub(r"^[ \t]*>[ ]?", "", line).rstrip() for line in raw.strip().split("\n"))
