"""An action plan judged and carried out outside a run: the checks of a run, against a folder's files.

A plan in Markdown judged outside a run: which kind it is, and what the checks say of a plan of tasks. Pure.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from orchestrator.answers import Status
from orchestrator.answers.action_plan import PlanExtraction, parse_plan
from orchestrator.answers.task_plan import read_task_plan
from orchestrator.checks.action_plan import Applied, apply_plan, delivery_of, named_paths
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.checks.task_plan import breakdown_of, check_length, check_planned, check_task_plan
from orchestrator.code.shell import failed_step
from orchestrator.core.action_plan import (
    Action,
    ActionPlan,
    ActionResult,
    ActionState,
    Execute,
    ExecutionReport,
    Prune,
    Read,
)
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.suite import CommandResult
from orchestrator.settings import Settings
from orchestrator.sprint.judge import UNNAMED, Judged, Surroundings, judge_delivery, known_packages


class JudgedPlan(NamedTuple):
    """A plan with what is said of it; `applied` is None where no files were given to hold it against."""

    extraction: PlanExtraction
    world: PlanWorld | None
    applied: Applied | None
    judged: Judged


def paths_of(text: str) -> tuple[str, ...]:
    """The safe paths that a plan in a text names: what a caller reads as the world's texts."""
    plan = parse_plan(text).plan
    return named_paths(plan) if plan is not None else ()


def judge_plan(text: str, world: PlanWorld | None, story: str | None = None) -> JudgedPlan:
    """What the checks of a run say about a plan, stage by stage; with `story` also its contents and the contract.

    Without a world its actions are held against nothing, which is told. Never raises.
    """
    found = parse_plan(text)
    findings = found.findings
    applied = None
    if found.status in {Status.OK, Status.REPAIRED} and found.plan is not None:
        if world is None:
            findings = (*findings, _unknown(found.plan))
        else:
            applied = apply_plan(found.plan, world)
            findings = (*findings, *applied.findings)
            if applied.valid and story is not None and applied.changes:
                findings = (*findings, *_as_delivery(applied, world, story))
    return JudgedPlan(found, world, applied, Judged(found.status, findings))


def _unknown(plan: ActionPlan) -> Finding:
    where = Where(line=plan.actions[0].line or None) if plan.actions else Where()
    message = "what the actions would do could not be checked: no folder was given"
    return minor("plan.unchecked", message, where=where, fix="Name the folder with --repo.")


def _as_delivery(applied: Applied, world: PlanWorld, story: str) -> tuple[Finding, ...]:
    around = Surroundings(story=story, files=tuple(sorted(world.paths)), texts=world.texts)
    return tuple(judge_delivery(delivery_of(applied, story, ""), around))


Run = Callable[[Execute], Awaitable[CommandResult]]


@dataclass(frozen=True, kw_only=True)
class Hands:
    """What carries a plan out: `write` does all changes or none (WorkspaceError), `run` is None when nobody may."""

    write: Callable[[Mapping[str, str | None]], Awaitable[None]]
    run: Run | None
    token: str
    """By which `run`'s scripts name the step that failed."""


async def carry_out(plan: ActionPlan, applied: Applied, hands: Hands) -> ExecutionReport:
    """Files first, all or none, then the commands in their order; behind the first failure all is skipped."""
    why = ""
    broken = ""
    try:
        await hands.write(applied.changes)
    except WorkspaceError as error:
        broken = error.message
    results: list[ActionResult] = []
    for number, action in enumerate(plan.actions, start=1):
        if why:
            result = _result(number, action, ActionState.SKIPPED, why)
        elif isinstance(action, Read | Prune):
            result = _result(number, action, ActionState.SKIPPED, "means something in a conversation only")
        elif broken:
            result = _result(number, action, ActionState.FAILED, f"nothing was written: {broken}")
        elif isinstance(action, Execute):
            result = await _executed(number, action, hands)
        else:
            result = _result(number, action, ActionState.DONE)
        if result.state is ActionState.FAILED:
            why = f"action {number} ({action.verb} {action.subject[:80]}) failed"
        results.append(result)
    return ExecutionReport(title=plan.title, actions=tuple(results))


def _result(number: int, action: Action, state: ActionState, reason: str = "", output: str = "") -> ActionResult:
    return ActionResult(
        number=number,
        verb=action.verb,
        subject=action.subject,
        line=action.line,
        state=state,
        reason=reason,
        output=output,
    )


async def _executed(number: int, action: Execute, hands: Hands) -> ActionResult:
    if hands.run is None:
        return _result(number, action, ActionState.SKIPPED, "commands were not confirmed")
    done = await hands.run(action)
    step, output = failed_step(action.command, hands.token, done.output)
    if done.ok:
        return _result(number, action, ActionState.DONE, "", output)
    ended = "was ended by a signal" if done.exit_code is None else f"ended with exit code {done.exit_code}"
    how = f"hit its {done.limit} limit" if done.limit else ended
    reason = f"`{step or action.subject}` {how}"
    if action.allow_failure:
        return _result(number, action, ActionState.DONE, f"{reason}, which is allowed", output)
    return _result(number, action, ActionState.FAILED, reason, output)


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
