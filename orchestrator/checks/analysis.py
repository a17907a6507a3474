"""The analyst's answers: findings of a stage as they may stand in a plan."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.core.analysis import ImprovementTask, StageReading, TaskPriority
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import tidy, unsafe_reason
from orchestrator.core.value import MAX_TITLE, one_line, printable

_FOUR = ", ".join(TaskPriority)
_NO_FILE = frozenset({"", "-", "none", "null", "nil", "n/a", "na", "tbd", "unknown", "various", "multiple", "all"})
# `a.py:12-20`, `a.py#L3`, `a.py (lines 3-9)`: models add them to paths.
_LINES = re.compile(r"(:\d+([-:,]\d+)*|#L\d+(-L?\d+)?|\s+\((lines?|l\.)\s[^)]*\))$", re.IGNORECASE)
_SAID = 80
"""Characters of what an answer says that a message repeats."""


def read_stage(value: object, stage: str) -> tuple[StageReading | None, list[Finding]]:
    """What stands in the extracted `value`; None when it is no object. Tasks without a title are dropped and told."""
    if not isinstance(value, Mapping):
        return None, [_shape(stage, "the answer is no JSON object")]
    entries = value.get("tasks")
    findings: list[Finding] = []
    if not isinstance(entries, list):
        findings.append(_shape(stage, "`tasks` is no list"))
        entries = []
    tasks = []
    for number, entry in enumerate(entries, start=1):
        task, said = _task(entry, Where(task=stage, field=f"tasks[{number - 1}]"), stage)
        findings += said
        tasks += [task] if task is not None else []
    if entries and not tasks:
        message = f"{stage}: none of the {len(entries)} tasks has a title"
        fix = "Give every task a title: a short sentence, as a JSON string."
        findings.append(major("stage.no_titles", message, where=Where(task=stage), fix=fix))
    elif not tasks and not findings:
        findings.append(no_tasks(stage))
    reading = StageReading(
        summary=_text(value.get("summary")),
        recommendations=tuple(_recommendations(value.get("recommendations"))),
        tasks=tuple(tasks),
    )
    return reading, findings


def no_tasks(stage: str) -> Finding:
    """What is said of a stage that gives no task in so many words."""
    fix = "nothing, when there is none; else ask a more specific prompt, or another model"
    return minor("stage.no_tasks", f"{stage} names no task", where=Where(task=stage), fix=fix)


def _shape(stage: str, message: str) -> Finding:
    fix = "Answer with one JSON object that has summary, recommendations and a list of tasks."
    return major("stage.shape", f"{stage}: {message}", where=Where(task=stage), fix=fix)


def _task(entry: object, where: Where, stage: str) -> tuple[ImprovementTask | None, list[Finding]]:
    raw = entry if isinstance(entry, Mapping) else {}
    told = raw.get("title")
    title = one_line(told) if isinstance(told, str) else ""
    if not title:
        held = "no text" if told is not None and not isinstance(told, str) else "missing or empty"
        what = f"its title is {held}" if isinstance(entry, Mapping) else "it is no object"
        message = f"{stage}: a task is dropped, {what}: {_spelled(entry)}"
        return None, [minor("stage.no_title", message, where=where, fix="Give every task a title of its own.")]
    priority, stated, findings = _priority(raw.get("priority"), title, where, stage)
    file, said = _file(raw.get("file"), title, where, stage)
    task = ImprovementTask(
        title=title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1].rstrip()}…",
        description=_text(raw.get("description")),
        priority=priority,
        priority_stated=stated,
        file=file,
        stage=stage,
        acceptance_criteria=tuple(_lines(raw.get("acceptance_criteria"))),
        depends_on=tuple(_lines(raw.get("depends_on"))),
    )
    return task, [*findings, *said]


def _priority(value: object, title: str, where: Where, stage: str) -> tuple[TaskPriority, str, list[Finding]]:
    """Returns the priority, the word that stood in its place, and what is said of that."""
    word = one_line(value) if isinstance(value, str) else "" if value is None else _spelled(value)
    known = word.casefold() if isinstance(value, str) else ""
    if known in set(TaskPriority):
        return TaskPriority(known), "", []
    held = f"the priority {word[:_SAID]!r}" if word else "no priority"
    message = f"{stage}: {title[:_SAID]!r} has {held}, which counts as medium"
    fix = f"Write one of {_FOUR}."
    return TaskPriority.MEDIUM, word, [minor("stage.priority", message, where=where, fix=fix)]


def _file(value: object, title: str, where: Where, stage: str) -> tuple[str, list[Finding]]:
    """Returns the path without what models put around it, or "" and why it is dropped."""
    if value is None:
        return "", []
    if isinstance(value, str):
        path = tidy(_LINES.sub("", value.strip().strip("`'\"").strip()).strip("`")).rstrip("/")
        if path.casefold() in _NO_FILE:
            return "", []
        reason = unsafe_reason(path)
        if reason is None:
            return path, []
    else:
        reason = "it is no text"
    message = f"{stage}: the file of {title[:_SAID]!r} is dropped: {reason} ({_spelled(value)})"
    fix = "Name one file by its path from the top of the repository, or leave it out."
    return "", [minor("stage.file", message, where=where, fix=fix)]


def _lines(told: object) -> Iterator[str]:
    """Returns the texts of a list, or a single one, each on one line."""
    for text in told if isinstance(told, list) else [told]:
        if isinstance(text, str) and (line := one_line(storable(text))):
            yield line


def _recommendations(value: object) -> Iterator[str]:
    parts: Sequence[object] = value if isinstance(value, list) else [value]
    for part in parts:
        text = _text(part)
        if isinstance(part, Mapping):  # {"title": …, "description": …}: its texts, in order
            text = ": ".join(held.strip() for held in part.values() if isinstance(held, str) and held.strip())
        if text:
            yield text


def _text(value: object) -> str:
    """Returns a text trimmed; a list of texts line by line; "" for anything else."""
    if isinstance(value, list):
        value = "\n".join(part for part in value if isinstance(part, str))
    return storable(value).strip() if isinstance(value, str) else ""


def storable(text: str) -> str:
    """Returns the text as files and terminals take it: no half characters, no orders to a terminal, line ends `\\n`."""
    sound = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return printable(sound.replace("\r\n", "\n").replace("\r", "\n"))


def _spelled(value: object) -> str:
    return one_line(json.dumps(value, ensure_ascii=False, default=str))[:_SAID]
