"""Raw tasks of an answer → Task values."""

from collections.abc import Mapping

from orchestrator.checks.file_paths import tidy
from orchestrator.domain.breakdown import Task
from orchestrator.domain.findings import Finding, Where, major, minor

_ALIASES = {"task_id": ("task_id", "taskId", "id"), "description": ("description", "title")}
_SHAPE_FIX = "Give every task task_id, description and files_to_create."


def read_tasks(value: object, story_id: str) -> tuple[tuple[Task, ...], list[Finding]]:
    """Tasks of a list of objects, in order. A major finding for each that is none; it is left out.

    Missing `dependencies` and `dependency_reason` are filled in, told by one minor finding each. Entries of
    `files_to_create` that are no strings are dropped with a major `breakdown.unsafe_path`.
    """
    where = Where(story=story_id, field="tasks")
    if not isinstance(value, list) or not value:
        said = "`tasks` is empty" if value == [] else "`tasks` is no list"
        return (), [major("breakdown.tasks", said, where=where, fix="Give a non-empty list of task objects.")]
    findings: list[Finding] = []
    filled: dict[str, list[str]] = {}
    tasks = [_task(entry, place, story_id, findings, filled) for place, entry in enumerate(value)]
    for field, ids in filled.items():
        message = f"`{field}` was missing in {', '.join(ids)} and is empty"
        findings.append(minor("breakdown.filled", message, where=where, fix=f"Give every task `{field}`."))
    return tuple(task for task in tasks if task is not None), findings


def _task(
    entry: object, place: int, story_id: str, findings: list[Finding], filled: dict[str, list[str]]
) -> Task | None:
    where = Where(story=story_id, field=f"tasks[{place}]")
    if not isinstance(entry, Mapping):
        findings.append(major("breakdown.tasks", "a task is no object", where=where, fix=_SHAPE_FIX))
        return None
    texts = {field: _text(entry, field) for field in _ALIASES}
    lacking = [field for field, text in texts.items() if not text]
    files = entry.get("files_to_create")
    if not isinstance(files, list):
        lacking.append("files_to_create (a list)")
    if lacking or not isinstance(files, list):
        message = f"a task lacks {' and '.join(lacking)}"
        findings.append(major("breakdown.tasks", message, where=where, fix=_SHAPE_FIX))
        return None
    where = where.model_copy(update={"task": texts["task_id"]})
    return Task(
        task_id=texts["task_id"],
        description=texts["description"],
        files_to_create=_files(files, where, findings),
        command_to_run=_command(entry.get("command_to_run"), where, findings),
        dependencies=_dependencies(entry, texts["task_id"], where, findings, filled),
        dependency_reason=_reason(entry, texts["task_id"], filled),
    )


def _text(entry: Mapping[str, object], field: str) -> str:
    for name in _ALIASES[field]:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _files(entries: list[object], where: Where, findings: list[Finding]) -> tuple[str, ...]:
    kept: dict[str, None] = {}
    for entry in entries:
        if isinstance(entry, str):
            kept[tidy(entry)] = None
        else:
            message = f"`{str(entry)[:80]}` is no path: files_to_create holds strings only"
            findings.append(major("breakdown.unsafe_path", message, where=where, fix="Write the path as a string."))
    return tuple(kept)


def _command(value: object, where: Where, findings: list[Finding]) -> str | None:
    if value is None or isinstance(value, str):
        return (value or "").strip() or None
    fix = "Write the command as one string, or leave it out."
    findings.append(major("breakdown.command", "command_to_run is no string", where=where, fix=fix))
    return None


def _dependencies(
    entry: Mapping[str, object], task_id: str, where: Where, findings: list[Finding], filled: dict[str, list[str]]
) -> tuple[str, ...]:
    value = entry.get("dependencies")
    if value is None:
        filled.setdefault("dependencies", []).append(task_id)
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        fix = "List the ids of tasks of this story."
        findings.append(major("breakdown.dependency", "`dependencies` is no list of task ids", where=where, fix=fix))
        return ()
    return tuple(dict.fromkeys(item.strip() for item in values if item.strip()))


def _reason(entry: Mapping[str, object], task_id: str, filled: dict[str, list[str]]) -> str:
    value = entry.get("dependency_reason")
    if not isinstance(value, str):
        filled.setdefault("dependency_reason", []).append(task_id)
        return ""
    return value.strip()
