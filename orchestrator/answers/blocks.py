"""The block format that some prompts ask for: `STORY:`, then `TASK:`, `FILES:`, `DESCRIPTION:`, `END_TASK` per task.

It is read when the contract is of that kind (a list `tasks` of objects with an id, a description and files) and the
text holds no JSON answer. A task counts when it is ended: by END_TASK, or, as a repair, by the next TASK.
"""

import re
from typing import Any

from orchestrator.answers import block_fields as fields
from orchestrator.answers.block_keys import find_keys
from orchestrator.answers.block_tasks import BlockAnswer, BlockReader, BlockTask
from orchestrator.answers.choose import Choice
from orchestrator.answers.model import Change, Extraction, Status, listed, place
from orchestrator.answers.shape import Shape
from orchestrator.domain.findings import major

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
    told = [named.title, fields.prose(raw.get("DESCRIPTION", ""), task.quoted)]
    if any(told):
        value["description"] = "\n".join(part for part in told if part)
    for key, name in _LISTS:
        if key in raw:
            value[name], notes = fields.entries(fields.prose(raw[key], task.quoted))
            changes.extend(Change("note", task.key.start, note, "") for note in notes)
    if "COMMAND" in raw:
        value["command_to_run"] = fields.command(fields.prose(raw["COMMAND"], task.quoted))
    if "DEPENDENCY_REASON" in raw:
        value["dependency_reason"] = fields.prose(raw["DEPENDENCY_REASON"], task.quoted)
    return {name: entry for name, entry in value.items() if name in item.props}


def _extraction(text: str, answer: BlockAnswer, value: dict[str, Any], seen: int) -> Extraction:
    told = len(answer.tasks)
    if answer.cut_at < 0 and answer.announced is not None and told < answer.announced:
        answer.cut(len(text), f"{answer.announced} tasks were announced, {told} are there")
    cut = answer.cut_at >= 0
    problem = major(
        "answer.truncated",
        f"The answer is not whole: {answer.why}.",
        where=place(text, answer.cut_at),
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
