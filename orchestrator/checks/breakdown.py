"""An architect's answer → Breakdown (spec 1 A2), and the tasks that came later (A4)."""

from collections.abc import Mapping

from orchestrator.checks.breakdown_mend import mend
from orchestrator.checks.breakdown_notes import read_acceptance_tests, read_tests_to_change, read_todos
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.requirements import read_packages
from orchestrator.checks.tasks import read_tasks
from orchestrator.domain.breakdown import TASK_ID, ArchitecturalConflict, Breakdown, PackageDependencies, Task
from orchestrator.domain.findings import Finding, Where, blocking, major, minor

__all__ = ["check_breakdown", "mend", "merge_missing", "read_breakdown"]

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


def merge_missing(breakdown: Breakdown, value: object) -> tuple[Breakdown, list[Finding]]:
    """`breakdown` with the tasks of a `breakdown_missing` answer: an object with tasks, or the list itself.

    A task whose id, or whose description and files, are known already is left out. Order is by number, else as they
    came. Packages declared with the new tasks are added. `task_count` never shrinks. Never raises.
    """
    answer = value if isinstance(value, Mapping) else {"tasks": value}
    came, findings = read_tasks(answer.get("tasks"), breakdown.story_id)
    known = {task.task_id for task in breakdown.tasks}
    works = {_work(task) for task in breakdown.tasks}
    merged = list(breakdown.tasks)
    for task in came:
        if task.task_id in known or _work(task) in works:
            continue
        merged.append(task)
        known.add(task.task_id)
        works.add(_work(task))
    packages, _ = read_packages(answer.get("dependencies"))
    stated = answer.get("task_count")
    counted = stated if isinstance(stated, int) and not isinstance(stated, bool) else 0
    return breakdown.model_copy(
        update={
            "tasks": _by_number(merged),
            "task_count": max(breakdown.task_count, counted),
            "dependencies": PackageDependencies(
                dependencies={**packages.dependencies, **breakdown.dependencies.dependencies},
                devDependencies={**packages.devDependencies, **breakdown.dependencies.devDependencies},
            ),
        }
    ), findings


def _work(task: Task) -> tuple[str, tuple[str, ...]]:
    return " ".join(task.description.lower().split()), tuple(sorted(task.files_to_create))


def _by_number(tasks: list[Task]) -> tuple[Task, ...]:
    matches = [TASK_ID.match(task.task_id) for task in tasks]
    if not all(matches):
        return tuple(tasks)
    return tuple(sorted(tasks, key=lambda task: int(task.task_id.rsplit("-", 1)[1])))


def _conflict(value: object, story_id: str, findings: list[Finding]) -> ArchitecturalConflict | None:
    where = Where(story=story_id, field="architectural_conflict")
    fix = 'Give {"detected": false}, or {"detected": true} with the four texts.'
    if value is False:
        findings.append(minor("breakdown.conflict", "architectural_conflict was `false` itself", where=where))
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
        findings.append(minor("breakdown.story_id", message, where=where))


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
        findings.append(minor("breakdown.filled", f"task_count was missing and is {len(tasks)}", where=where))
        count = len(tasks)
    if value.get("dependencies") is None:
        findings.append(minor("breakdown.filled", "`dependencies` was missing: no packages", where=where))
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
