"""A breakdown as blocks of text: `STORY:`, then `TASK:`, `FILES:`, `DESCRIPTION:`, `END_TASK` per task.

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
from orchestrator.core.finding import Finding, major

_NAMES = {
    "STORY": "STORY", "STORY_ID": "STORY", "TASK_COUNT": "TASK_COUNT", "TASK": "TASK", "TASK_ID": "TASK",
    "FILE": "FILES", "FILES": "FILES", "FILES_TO_CREATE": "FILES", "DESCRIPTION": "DESCRIPTION",
    "COMMAND": "COMMAND", "COMMAND_TO_RUN": "COMMAND", "DEPENDENCIES": "DEPENDENCIES", "DEPENDS_ON": "DEPENDENCIES",
    "DEPENDENCY_REASON": "DEPENDENCY_REASON", "END_TASK": "END_TASK",
}  # fmt: skip
# A key at the start of a line, after quote and list marks, maybe in bold. Possessive: a line of marks costs no time.
_KEY = re.compile(
    r"^[ \t>]{0,40}+(?:(?:[-*+•]|\d{1,3}[.)]|\#{1,6})[ \t]++)?+(?P<decor>[*_`]{1,3}+)?+"
    r"(?:(?P<name>[A-Z]+(?:[ _-](?:ID|COUNT|TO[ _-]CREATE|TO[ _-]RUN|ON|REASON|\d{1,3}))?)"
    r"(?(decor)[*_`]{0,3}+)[ \t]*+[:：](?(decor)[*_`]{0,3}+)|(?P<end>END[ _-]?TASK)[*_`.:]{0,4}+[ \t\r]*+$)",
    re.IGNORECASE,
)
_BAR = re.compile(r"^[ \t>]{0,40}+(?:```|~~~)")
_THOUGHT_ENDS = re.compile(r"</(?:think|thinking|reasoning)\b[^<>\n]{0,80}>", re.IGNORECASE)
_GAP = re.compile(r"^[^\w\n]{0,8}?(?:\.{3}|…)")
_PARTIAL = re.compile(r"[\W_]*(?:T(?:A(?:S(?:K[ _]?)?)?)?|S(?:T(?:O(?:R(?:Y)?)?)?)?)[\W_]*")
_BULLET = re.compile(r"^[ \t]*+(?:[-*+•]|\d{1,3}[.)])[ \t]++")
# `US-1: title`; a bare `-` separates only before a blank, because ids contain it.
_ID_TITLE = re.compile(r"(?=[\w.-]*?\d)([\w.-]++)[ \t]*(?:[:–—|]|-(?=\s))[ \t]*(\S.*)", re.DOTALL)
# `src/a.py (new)`.
_NOTE = re.compile(r"(\S+)[ \t]+\((?:new|create|created|modify|modified|update|updated)\)", re.IGNORECASE)
_FENCE = re.compile(r"(?:```|~~~)[^\n]*\n(.*?)\n?(?:```|~~~)[ \t]*", re.DOTALL)
# An unfilled placeholder of the format: `...`, `<title>`, `[id]`.
_TEMPLATE = re.compile(r"\s*(?:\.{3}|…|<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\})\s*")
_NOTHING = frozenset({"", "none", "(none)", "n/a", "null", "nothing", "-", "–", "—", "[]"})
_HINT = re.compile(r"END[ _-]?TASK|FILES?\b", re.IGNORECASE)
_TASK_NAMES = frozenset({"task_id", "description", "files_to_create"})


@dataclass(slots=True)
class _Task:
    """One task as its fields come in."""

    start: int
    spelled: str
    """Its key as it was written, without marks."""
    raw: dict[str, list[str]] = field(default_factory=dict)
    """Key → the lines behind it."""

    def text(self, name: str) -> str:
        """Returns what stands behind a key, "" without it."""
        return "\n".join(self.raw.get(name, ()))

    @property
    def identity(self) -> tuple[str, str]:
        """Id and title; the figure of `TASK 2:` is the id when there is no other."""
        named, title = _identity(self.text("TASK"))
        figure = re.search(r"\d+(?=\W*$)", self.spelled)
        return named or (figure[0] if figure else ""), title

    @property
    def is_template(self) -> bool:
        """Whether it only says what ought to stand there, as in `TASK: <task id>`."""
        return _is_template(self.text("TASK")) and self.spelled.isalpha()


class _Reader:
    """Goes over the lines in order; a draft that another one follows is forgotten."""

    def __init__(self) -> None:
        self.tasks: list[_Task] = []
        """Those that ended."""
        self.story, self.announced = "", -1
        self.cut: tuple[int, str] | None = None
        """Where and why something is missing; what was said first stays."""
        self.start = 0
        self.changes: list[Change] = []
        self.keys: list[tuple[str, int]] = []
        """Names and places of the keys."""
        self._task: _Task | None = None
        self._field = ""
        """The key whose value is read."""
        self._in_code = False
        self._outside: list[tuple[int, str]] = []
        """Lines behind the last END_TASK."""
        self._waiting: tuple[int, str] | None = None
        """Place and value of a STORY that no task has followed yet."""

    def read(self, text: str) -> None:
        """Reads a text."""
        # What stands before the end of a thought was thought, also where a chat template swallowed its beginning.
        at = max((found.end() for found in _THOUGHT_ENDS.finditer(text)), default=0)
        for line in text[at:].split("\n"):
            self._line(line.rstrip("\r"), at)
            at += len(line) + 1
        self._finish(at - 1)

    def _line(self, line: str, at: int) -> None:
        match = _KEY.match(line)
        word = "" if match is None else re.sub(r"[ -]", "_", (match["name"] or "END_TASK").upper())
        name = _NAMES.get(re.sub(r"^TASK_\d+$", "TASK", word), "")
        if match is None or not name or not self._counts(name, match[0]):
            self._in_code ^= _BAR.match(line) is not None
            if self._field:
                self._put(line, at)
            else:
                self._outside.append((at, line))
            return
        self.keys.append((name, at))
        if (spelled := match[0].strip()) not in {f"{name}:", name}:
            self.changes.append(Change("block_key", at, spelled, f"{name}:"))
        value = line[match.end() :]
        if name == "TASK" and word == "TASK_ID" and self._task and set(self._task.raw) == {"TASK"}:
            # `TASK: title` and then `TASK_ID: T-1` are one task.
            title = "\n".join(self._task.raw.pop("TASK"))
            self._field, value = "TASK", f"{value.strip()}: {title.strip()}"
        elif name in {"TASK", "STORY", "END_TASK"}:
            self._end_task(at, is_closed=name == "END_TASK")
            self._field = ""
        if name == "END_TASK":
            return
        self._look_for_gap()
        self._in_code, self._field = False, name
        if name == "STORY":
            self._waiting = None
        if name == "TASK" and self._task is None:
            self._task = _Task(at, match["name"])
        self._put(value, at)

    def _counts(self, name: str, spelled: str) -> bool:
        """Returns whether a key is one: a description may hold words that look like keys."""
        if self._task is None or self._field != "DESCRIPTION" or name == "END_TASK":
            return True
        is_capital = self._task.spelled == self._task.spelled.upper()
        if self._in_code or (spelled == spelled.upper()) is not is_capital:
            return False
        return name in {"TASK", "STORY"} or name not in self._task.raw

    def _put(self, text: str, at: int) -> None:
        if self._field == "STORY":
            self._waiting = self._waiting or (at, text)
        elif self._field == "TASK_COUNT":
            count = re.search(r"\d{1,6}", text)
            self.announced = int(count[0]) if count else self.announced
        elif self._task is not None:
            self._task.raw.setdefault(self._field, []).append(text)

    def _end_task(self, at: int, is_closed: bool) -> None:
        """Ends the open task; one with a heading alone is prose, or a gap when it has an id."""
        task, self._task = self._task, None
        if is_closed:
            self._outside = []
        if task is None or task.is_template:
            return
        if not is_closed and len(task.raw) < 2:
            if task.identity[0]:
                self._begin_draft(task)
                self._miss(task.start, f"task {task.identity[0]} has no fields")
            return
        if not is_closed:
            self.changes.append(Change("missing_closer", at, "", "END_TASK"))
        self._begin_draft(task)
        self.tasks.append(task)

    def _begin_draft(self, task: _Task) -> None:
        """Forgets what was read when the task begins another answer: its story, or the first task once more."""
        place, story = self._waiting or (task.start, "")
        story = "" if _is_template(story) else next(filter(None, _identity(story)), "")
        ids, named = [one.identity[0] for one in self.tasks], task.identity[0]
        retold = story and self.story and (named in ids or story != self.story)
        if ids and named and (named == ids[0] or retold):
            self.tasks, self.cut, self.announced, self.start = [], None, -1, place if story else task.start
        self.story, self._waiting = story or self.story, None

    def _miss(self, at: int, why: str) -> None:
        self.cut = self.cut or (at, why)

    def _look_for_gap(self) -> None:
        """An ellipsis between tasks stands for tasks."""
        gap = next((at for at, line in self._outside if _GAP.match(line)), -1)
        if gap >= 0 and self.tasks:
            self._miss(gap, "an ellipsis stands for tasks")
        self._outside = []

    def _finish(self, end: int) -> None:
        """What is open at the end was cut off, and so is a key that breaks off."""
        rest = "\n".join(line for _, line in self._outside).strip()
        if self._task is not None:
            self._begin_draft(self._task)
            self._miss(self._task.start, "its last task has no END_TASK")
        elif self._waiting and self._waiting[1] and self.tasks:
            self._miss(self._waiting[0], "no task follows its last STORY")
        elif not self._field and len(rest) < 12 and _PARTIAL.fullmatch(rest):
            self._miss(end, "it breaks off in a key")
        self._look_for_gap()
        self.story = self.story or _identity((self._waiting or (0, ""))[1])[0]
        if len(self.tasks) < self.announced:
            self._miss(end, f"{self.announced} tasks were announced, {len(self.tasks)} are there")


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
    changes = [change for change in reader.changes if change.offset >= reader.start]
    value: dict[str, Any] = {}
    if reader.story and "story_id" in shape.props:
        value["story_id"] = reader.story
    if reader.tasks:
        value["tasks"] = [_task_value(task, tasks.items, changes) for task in reader.tasks]
    if not value:
        return None
    if reader.announced >= 0 and "task_count" in shape.props:
        value["task_count"] = reader.announced
    problems: list[Finding] = []
    if reader.cut is not None:
        at, why = reader.cut
        message, fix = f"The answer is not whole: {why}.", "Send it again, whole and shorter."
        problems.append(major("answer.truncated", message, where=text_place(text, at), fix=fix))
    return Extraction(
        value=value,
        status=Status.TRUNCATED if problems else Status.REPAIRED if changes else Status.OK,
        layer="blocks",
        repairs=listed(changes),
        complete=not problems,
        candidates=1,
        problems=tuple(problems),
    )


def _task_value(task: _Task, item: Shape, changes: list[Change]) -> dict[str, Any]:
    """Returns what is there, under the contract's names; nothing is filled in."""
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
    """Returns `raw` without Markdown decoration and quotes around it."""
    text = raw.strip(" \t\r\n*_`")
    return text[1:-1] if len(text) > 1 and text[0] in "\"'“”‘’" and text[-1] in "\"'“”‘’" else text


def _is_template(raw: str) -> bool:
    """Returns whether a field only says what ought to stand there, as in `<task id>`."""
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
    """Returns the command without fence, backticks or bullet; None when the text says that there is none."""
    text = _BULLET.sub("", raw).strip()
    fenced = _FENCE.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = text.strip("`").strip()
    return None if text.lower() in _NOTHING else text


def _prose(raw: str) -> str:
    """Returns a text without the quote marks before its lines."""
    return "\n".join(re.sub(r"^[ \t]*>[ ]?", "", line).rstrip() for line in raw.strip().split("\n"))
