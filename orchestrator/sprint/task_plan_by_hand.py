"""A plan in Markdown judged outside a run: which kind it is, and what the checks say of a plan of tasks. Pure."""

from enum import StrEnum

from orchestrator.answers import Status
from orchestrator.answers.action_plan import parse_plan
from orchestrator.answers.task_plan import read_task_plan
from orchestrator.checks.task_plan import breakdown_of, check_length, check_planned, check_task_plan
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.settings import Settings
from orchestrator.sprint.by_hand import UNNAMED, Judged, Surroundings, known_packages

NO_PLAN = frozenset({"plan.none", "plan.encoding", "plan.too_many"})
"""What is said of a text in which there is no action plan to be judged."""


class PlanKind(StrEnum):
    """What a text with a plan is."""

    ACTIONS = "action plan"
    TASKS = "task plan"
    BOTH = "action plan and task plan"
    NEITHER = "no plan"


def kind_of(text: str) -> PlanKind:
    """Which plan a text holds; one that has a goal or nearly a task's heading is meant as a plan of tasks."""
    found, reading = parse_plan(text), read_task_plan(text)
    acts = found.plan is not None or any(finding.code not in NO_PLAN for finding in found.findings)
    if acts:
        return PlanKind.BOTH if reading.plan.tasks else PlanKind.ACTIONS
    meant = reading.plan.tasks or reading.plan.goal or reading.findings
    return PlanKind.TASKS if meant else PlanKind.NEITHER


def judge_task_plan(text: str, path: str, around: Surroundings) -> Judged:
    """What a run says about a person's plan before anything is built, by deterministic reading alone. Never raises."""
    reading = read_task_plan(text, path)
    plan = reading.plan
    breakdown = breakdown_of(plan, around.story or UNNAMED)
    findings = [
        *reading.findings,
        *check_task_plan(plan, around.story or ""),
        *check_length(text, path, Settings().plan.min_chars),
        *check_planned(plan, breakdown, frozenset(around.files or ()), known_packages(around)),
    ]
    return Judged(Status.OK, tuple(sorted(findings, key=lambda finding: finding.where.line or 0)), is_plan=True)


def judge_no_plan(text: str, path: str) -> Judged:
    """What is said of a text that holds no plan of either kind."""
    plan = read_task_plan(text, path).plan
    length = check_length(text, path, Settings().plan.min_chars)
    said = [*parse_plan(text).findings, *check_task_plan(plan, ""), *length]
    return Judged(Status.REFUSED, tuple(said), is_plan=True)


def mixed(path: str) -> Judged:
    """What is said of a text that holds both."""
    message = "the text holds an action plan (`## Action Plan`) and tasks (`### Task N`)"
    fix = "Keep one: actions are carried out by `apply`, tasks are built by `run --plan`."
    said: Finding = major("task_plan.mixed", message, where=Where(file=path or None), fix=fix)
    return Judged(Status.OK, (said,))
