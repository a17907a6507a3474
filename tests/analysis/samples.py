"""Stages, tasks and plans for the tests of this folder."""

from datetime import UTC, datetime
from typing import Any

from orchestrator.core.analysis import (
    Codebase,
    ImprovementPlan,
    ImprovementTask,
    StageReport,
    StageResult,
    StageStatus,
    TaskPriority,
)


def task(title: str, priority: str = "medium", stage: str = "security", **fields: Any) -> ImprovementTask:
    return ImprovementTask(title=title, priority=TaskPriority(priority), stage=stage, **fields)


def stage(name: str, *tasks: ImprovementTask, **fields: Any) -> StageResult:
    held = tuple(one.model_copy(update={"stage": name}) for one in tasks)
    return StageResult(id=name, tasks=held, **{"status": StageStatus.ANSWERED, **fields})


def plan(*tasks: ImprovementTask, **fields: Any) -> ImprovementPlan:
    numbered = tuple(one.model_copy(update={"number": n}) for n, one in enumerate(tasks, start=1))
    stages = (StageReport(id="security", goal="Security review", status=StageStatus.ANSWERED, tasks=len(tasks)),)
    held = {"stages": stages, "tasks": numbered, "codebase": Codebase(files=3, shown=3), **fields}
    when = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
    return ImprovementPlan(analysis="AN-001", generated=when, profile="quick_review", repo="/srv/app", **held)
