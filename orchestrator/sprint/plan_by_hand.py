"""An action plan judged and carried out outside a run: the checks of a run, against a folder's files."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from orchestrator.answers import Status
from orchestrator.answers.action_plan import PlanExtraction, parse_plan
from orchestrator.checks.action_plan import Applied, PlanWorld, apply_plan, delivery_of, named_paths
from orchestrator.domain.action_plan import Action, ActionPlan, Execute, Prune, Read
from orchestrator.domain.execution import ActionResult, ActionState, ExecutionReport
from orchestrator.domain.findings import Finding, Where, minor
from orchestrator.domain.testing import CommandResult
from orchestrator.errors import WorkspaceError
from orchestrator.sprint.by_hand import Judged, Surroundings, judge_delivery
from orchestrator.syntax.shell_chain import failed_step


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
