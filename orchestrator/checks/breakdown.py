"""An architect's answer → Breakdown."""

from collections.abc import Collection, Mapping

from orchestrator.checks.breakdown_mend import mend
from orchestrator.checks.breakdown_missing import merge_missing
from orchestrator.checks.breakdown_notes import read_acceptance_tests, read_tests_to_change, read_todos
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.requirements import read_packages
from orchestrator.checks.tasks import read_tasks
from orchestrator.domain.breakdown import ArchitecturalConflict, Breakdown, Task
from orchestrator.domain.findings import Finding, Where, blocking, major, minor

__all__ = ["check_breakdown", "ignored_files", "mend", "merge_missing", "read_breakdown"]

_CONFLICT_TEXTS = ("current_architecture", "story_requirement", "conflict_reason", "recommended_action")
_FREE_FIELDS = ("database_design", "api_design", "code_patterns", "conventions", "tech_stack", "technical_notes")
_PASSING = frozenset({"breakdown.unsafe_path"})
"""Major findings of reading that leave a usable breakdown: the rules on paths, not on structure (A5)."""


def read_breakdown(value: object, story_id: str) -> tuple[Breakdown | None, list[Finding]]:
    """The breakdown of story `story_id` in an extracted value, with what was said about it.

    None when the structure is broken (a major finding says where). What could be corrected without guessing is, with
    a minor finding. A detected conflict needs no tasks. Rules on content are check_breakdown's.
    """
    if not isinstance(value, Mapping):
        fix = "Answer with one JSON object that has story_id, architectural_conflict and tasks."
        return None, [major("breakdown.shape", "the answer is no object", where=Where(story=story_id), fix=fix)]
    findings: list[Finding] = []
    conflict = _conflict(value.get("architectural_conflict"), story_id, findings)
    _story(value, story_id, findings)
    broken = bool(blocking(findings))
    if conflict is not None and conflict.detected:
        # nobody will build these tasks: what is wrong with them is nobody's work
        tasks = read_tasks(value.get("tasks"), story_id)[0]
    else:
        tasks, said = read_tasks(value.get("tasks"), story_id)
        broken = broken or any(finding.code not in _PASSING for finding in blocking(said))
        findings += said
    if conflict is None or broken:
        return None, findings
    return _assemble(value, story_id, conflict, tasks, findings), findings


def _conflict(value: object, story_id: str, findings: list[Finding]) -> ArchitecturalConflict | None:
    where = Where(story=story_id, field="architectural_conflict")
    fix = 'Give {"detected": false}, or {"detected": true} with the four texts.'
    if value is False:
        message = "architectural_conflict was `false` itself"
        findings.append(minor("breakdown.conflict", message, where=where, fix=fix))
        return ArchitecturalConflict(detected=False)
    detected = value.get("detected") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(detected, bool):
        message = "architectural_conflict is missing or no object that says whether one was `detected`"
        findings.append(major("breakdown.conflict", message, where=where, fix=fix))
        return None
    texts = {name: text.strip() for name in _CONFLICT_TEXTS if isinstance(text := value.get(name), str)}
    lacking = [name for name in _CONFLICT_TEXTS if not texts.get(name)]
    if detected and lacking:
        message = f"a conflict was detected, but it lacks {', '.join(lacking)}"
        findings.append(major("breakdown.conflict", message, where=where, fix=fix))
    return ArchitecturalConflict(detected=detected, **texts)


def _story(value: Mapping[str, object], story_id: str, findings: list[Finding]) -> None:
    where = Where(story=story_id, field="story_id")
    stated = value.get("story_id")
    if stated is None or stated == "":
        message = "story_id is missing"
        findings.append(major("breakdown.shape", message, where=where, fix=f'Give "story_id": "{story_id}".'))
    elif stated != story_id:
        message = f"story_id was {str(stated)[:80]!r} and is now {story_id!r}"
        fix = f'Give "story_id": "{story_id}".'
        findings.append(minor("breakdown.story_id", message, where=where, fix=fix))


def _assemble(
    value: Mapping[str, object],
    story_id: str,
    conflict: ArchitecturalConflict,
    tasks: tuple[Task, ...],
    findings: list[Finding],
) -> Breakdown:
    where = Where(story=story_id)
    count = value.get("task_count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        message = f"task_count was missing and is {len(tasks)}"
        findings.append(minor("breakdown.filled", message, where=where, fix="Give the number of tasks."))
        count = len(tasks)
    if value.get("dependencies") is None:
        message = "`dependencies` was missing: no packages"
        findings.append(minor("breakdown.filled", message, where=where, fix="Give the packages that are added, or {}."))
    packages, ignored = read_packages(value.get("dependencies"))
    for entry in ignored:
        message = f"`{entry}` names no package and was left out"
        findings.append(minor("breakdown.packages", message, where=where, fix="Write name → version."))
    free = {name: value.get(name) for name in _FREE_FIELDS}
    return Breakdown(
        story_id=story_id,
        architectural_conflict=conflict,
        task_count=count,
        tasks=tasks,
        dependencies=packages,
        acceptance_tests=read_acceptance_tests(value.get("acceptance_tests"), story_id, findings),
        tests_to_change=read_tests_to_change(value.get("tests_to_change"), story_id, findings),
        todos=read_todos(value.get("todos"), story_id, findings),
        **free,
    )


def ignored_files(breakdown: Breakdown, ignored: Collection[str], *, told: bool) -> list[Finding]:
    """Files of the plan that git ignores; those that no command of their task makes are major until it was told."""
    fix = (
        "Let command_to_run make it, which is then run again wherever it is needed; or take it off the list; or list "
        ".gitignore too, and say how it changes."
    )
    findings = []
    for task in breakdown.tasks:
        for path in sorted({*task.files_to_create} & {*ignored}):
            where = Where(story=breakdown.story_id, task=task.task_id, field="files_to_create", file=path)
            message = f"the repository's .gitignore leaves `{path}` out, so that no commit can have it"
            if task.command or told:
                findings.append(minor("breakdown.ignored_file", message, where=where, fix=fix))
            else:
                findings.append(major("breakdown.ignored_file", message, where=where, fix=fix))
    return findings
