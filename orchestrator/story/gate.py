"""The human gate of a story: when a person is asked, the question's text, and the meaning of an answer."""

from collections.abc import Sequence
from typing import Any

from orchestrator.core.breakdown import Breakdown, PlanValidationResult
from orchestrator.core.command import (
    DONE_AS,
    GATE_OPENED,
    GATE_SETTLED,
    Choice,
    Gate,
    GateAnswer,
    GateKind,
    Loop,
    Verdict,
)
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Severity, Where, major, minor
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.value import counted
from orchestrator.story.context import Stage, StoryStopped

NOT_TO_BE_CARRIED_OUT = frozenset(
    {
        *("breakdown.unsafe_path", "breakdown.package_source", "breakdown.undeclared_package"),
        *("breakdown.test_file", "breakdown.binary_file", "breakdown.unwritable"),
        *("breakdown.task_id", "breakdown.dependency", "breakdown.cycle"),
    }
)
"""Findings that no one can override: the contract would refuse the results of such a plan.

A task without work is not among them: it does nothing, and the tests judge the rest.
"""
COMMENT = "gate.rejected"
"""Code of a person's comment as feedback."""


def plan_gate(
    plan: Breakdown,
    result: PlanValidationResult,
    *,
    iteration: int,
    plan_file: str,
    changes: Sequence[Finding] = (),
) -> Gate:
    """Returns the question about a plan; a person's own plan (`plan_file`) never returns to the architect.

    `changes` were made by mending what the architect wrote.
    """
    problem = cannot_be_carried_out(plan, result)
    choices = [Choice.EDIT, Choice.REPLAN, Choice.CANCEL]
    if not plan_file:
        choices.insert(0, Choice.REJECT)
    if not problem:
        choices.insert(0, Choice.APPROVE)
    return Gate(
        kind=GateKind.PLAN,
        reason=_why(result, changes),
        choices=tuple(choices),
        barred=problem,
        valid=result.valid,
        issues=result.issues,
        notes=result.notes,
        mended=tuple(changes),
        plan=plan,
        plan_file=plan_file,
        iteration=iteration,
    )


def _why(result: PlanValidationResult, changes: Sequence[Finding]) -> str:
    if not result.valid:
        return f"the plan is invalid: {counted(len(result.issues), 'issue')}"
    if changes:
        return "the plan was invalid to the last; approving it builds its mended form"
    return "each plan is shown to a person"


def conflict_gate(plan: Breakdown, *, iteration: int, plan_file: str) -> Gate:
    """Returns the question about a conflict; approving overrides it."""
    return Gate(
        kind=GateKind.CONFLICT,
        reason=f"the architect sees a conflict: {plan.architectural_conflict.conflict_reason}",
        choices=(Choice.APPROVE, Choice.REJECT, Choice.REPLAN, Choice.CANCEL),
        valid=False,
        plan=plan,
        plan_file=plan_file,
        iteration=iteration,
    )


def merge_gate(plan: Breakdown, refused: Finding, *, branch: str, iteration: int, vanished: bool, asked: bool) -> Gate:
    """Returns the question about a refused merge.

    A person can approve only vanished tests, because they may be gone on purpose; a conflict or a red tree cannot be
    approved. `asked`: whether the developer can be asked about it at all.
    """
    choices = [Choice.CANCEL]
    if asked:
        choices.insert(0, Choice.REJECT)
    if vanished:
        choices.insert(0, Choice.APPROVE)
    return Gate(
        kind=GateKind.MERGE,
        reason=f"the story is finished and could not be merged: {refused.message.partition(chr(10))[0]}",
        choices=tuple(choices),
        barred="" if vanished else "nothing is merged with a conflict or a red suite",
        valid=False,
        issues=(refused,),
        plan=plan,
        iteration=iteration,
        branch=branch,
    )


def cannot_be_carried_out(plan: Breakdown, result: PlanValidationResult) -> str:
    """Returns why this plan cannot be approved, "" when it can."""
    if not plan.tasks:
        return "it has no tasks"
    hard = [issue for issue in result.issues if issue.code in NOT_TO_BE_CARRIED_OUT]
    return hard[0].message if hard else ""


async def ask(stage: Stage, gate: Gate, plans_left: int) -> GateAnswer:
    """Opens the gate, waits, and reports the answer; `plans_left` more plans are allowed without a person."""
    story, policy = stage.story_id, stage.policies.gate
    opened = await stage.step.open_gate(gate, policy.timeout_s)
    until = f", until {opened.deadline:%Y-%m-%d %H:%M:%S} UTC" if opened.deadline else ""
    counts: dict[str, Any] = {"findings": gate.issues, "attempt": gate.iteration, "left": plans_left}
    await stage.decide(
        GATE_OPENED,
        f"{story} waits for a person{until}: {gate.reason}; see `orchestrator show {story}`, then "
        f"`orchestrator {' | '.join(gate.choices)} {story}`",
        Loop.GATE,
        Verdict.ASKED,
        level=Level.WARN,
        gate=opened.model_dump(mode="json"),
        **counts,
    )
    answer = await stage.step.answer(opened)
    by = f" by {answer.by}" if answer.choice is not Choice.TIME_OUT else ""
    said = f"the {gate.kind} is {DONE_AS[answer.choice]}{by}" + (f": {answer.comment}" if answer.comment else "")
    await stage.decide(GATE_SETTLED, said, Loop.GATE, answer.choice, by=answer.by, **counts)
    return answer


def comment_finding(story: str, answer: GateAnswer) -> Finding:
    """Returns a person's comment as feedback for the next plan."""
    message = f"{answer.by} turned it down: {answer.comment or 'without a word'}"
    return major(COMMENT, message, where=Where(story=story), fix="Do what the person says; it goes first.")


def approved_findings(story: str, gate: Gate, by: str) -> list[Finding]:
    """Returns a finding on the issues that a person approved."""
    if gate.valid:
        return []
    message = f"{by} approved the plan in spite of {counted(len(gate.issues), 'issue')}"
    told = minor(
        "gate.approved_invalid", message, where=Where(story=story), fix="Look at the result with these in mind."
    )
    return [told, *(issue.model_copy(update={"severity": Severity.MINOR}) for issue in gate.issues)]


def stopped(stage: Stage, gate: Gate, answer: GateAnswer) -> StoryStopped:
    """Returns the end of a story that was cancelled or not answered in time; a merge's work stays."""
    merging, cancelled = gate.kind is GateKind.MERGE, answer.choice is Choice.CANCEL
    again = f"`orchestrator replan {stage.story_id} --comment TEXT`"
    fix = f"{again} or `reset` it; then give the same command again"
    if merging:
        fix = f"merge {gate.branch} by hand, or {again} to build it again"
    where, said = Where(story=stage.story_id), f": {answer.comment}" if answer.comment else ""
    if cancelled and merging:
        finding = major("gate.unmerged", f"{answer.by} left the story unmerged{said}", where=where, fix=fix)
    elif cancelled:
        finding = major("gate.cancelled", f"{answer.by} gave the story up{said}", where=where, fix=fix)
    else:
        finding = major("gate.unanswered", f"nobody answered in time: {gate.reason}", where=where, fix=fix)
    ends = cancelled or stage.policies.gate.on_timeout == "cancel"
    status = StoryStatus.CANCELLED if ends and not merging else StoryStatus.NEEDS_ATTENTION
    return StoryStopped(status, [finding] if cancelled and not merging else [*gate.issues, finding])


def approves(stage: Stage, gate: Gate, answer: GateAnswer) -> bool:
    """Returns whether to build the plan: a person approved, or a timeout approves (by setting) a valid one."""
    if answer.choice is Choice.TIME_OUT:
        return stage.policies.gate.on_timeout == "approve" and gate.kind is GateKind.PLAN and gate.valid
    return answer.choice is Choice.APPROVE and Choice.APPROVE in gate.choices
