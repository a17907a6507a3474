"""Answers judged by hand, whatever they are: what `check` prints with `--json`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.sprint.by_hand import Judged, suite_of_file
from orchestrator.sprint.task_plan_by_hand import PlanKind, judge_no_plan, kind_of, mixed
from orchestrator.wiring.check import CheckOptions, check, check_task_plan
from orchestrator.wiring.plans import check_plan

TEST_SOURCES = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Files that are a suite themselves and no answer with one."""


def check_any_plan(
    text: str, path: str, *, story: str | None, repo: Path | None, context: tuple[str, ...] | None
) -> tuple[PlanKind, Judged]:
    """Which plan a text holds, and what the checks say about it. Raises ConfigError. Blocks."""
    kind = kind_of(text)
    if kind is PlanKind.TASKS:
        return kind, check_task_plan(text, path, CheckOptions(story=story, repo=repo))
    if kind is PlanKind.ACTIONS:
        return kind, check_plan(text, repo, context, story).judged
    return kind, mixed(path) if kind is PlanKind.BOTH else judge_no_plan(text, path)


def check_text(
    kind: str, text: str, *, story: str | None, context: Sequence[str] | None, plan: str | None, file: str
) -> dict[str, Any]:
    """An answer of this kind, or `plan`, held against no folder. Raises ConfigError. Blocks."""
    if kind == "plan":
        given = None if context is None else tuple(context)
        which, judged = check_any_plan(text, file, story=story, repo=None, context=given)
        return {"kind": which.value, **judged_json(judged)}
    if kind == "suite" and file.lower().endswith(TEST_SOURCES):
        text = suite_of_file(file, text)
    return judged_json(check(kind, text, CheckOptions(story=story, context=tuple(context or ()), plan=plan)))


def judged_json(judged: Judged) -> dict[str, Any]:
    """What was said, for programs."""
    return {
        "valid": judged.valid,
        "severity": judged.severity.value,
        "findings": [finding.model_dump(mode="json") for finding in judged.findings],
    }
