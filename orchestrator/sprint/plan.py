"""The plan loop: plans judged, revised, mended; then the contract is frozen (spec 1 A3-A6, spec 3)."""

from collections.abc import Callable
from functools import partial

from orchestrator.checks.breakdown import check_breakdown, mend
from orchestrator.contract.freeze import freeze, worth_freezing
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.events import Level
from orchestrator.domain.findings import Finding, Severity, Where, blocking, critical, major
from orchestrator.domain.stages import Planned
from orchestrator.domain.status import StoryStatus
from orchestrator.domain.words import counted
from orchestrator.sprint.context import Progress, Stage, StoryStopped
from orchestrator.sprint.history import CONFLICT
from orchestrator.sprint.routing import PlanRoute, route_plan

MISSING_TASKS = "breakdown.missing_tasks"


async def plan_story(stage: Stage, progress: Progress) -> Breakdown:
    """An accepted breakdown. Raises StoryStopped: failed (no answer), conflicted, or needs_attention (escalated)."""
    check = partial(
        check_breakdown,
        existing_files=frozenset(progress.surface.files),
        known_packages=frozenset(progress.surface.dependencies),
    )
    iteration, feedback = 0, ""
    while True:
        iteration += 1
        planned = await stage.architect.breakdown(progress.surface, feedback)
        plan = _structured(planned)
        progress.note_findings([finding for finding in planned.findings if not finding.severity.blocks])
        if plan.architectural_conflict.detected:
            await _settle_conflict(stage, plan, iteration)
            feedback = stage.architect.revision(planned, [_overridden(stage)])
            continue
        findings = check(plan)
        route = route_plan(findings, iteration, stage.policies.plan.max_iterations)
        await _tell(stage, plan, route, iteration, findings)
        if route is PlanRoute.APPROVED:
            progress.note_findings(findings)
            return plan
        if route is PlanRoute.ESCALATE:
            return await _mended(stage, progress, plan, check)
        feedback = stage.architect.revision(planned, findings)


async def freeze_contract(stage: Stage, progress: Progress, plan: Breakdown) -> ArchitectureContract:
    """Freeze the closed world of the story and tell it."""

    async def work(_step_id: str) -> ArchitectureContract:
        files = await stage.workspace.files(stage.story_id)
        manifests = await stage.workspace.read(stage.story_id, [path for path in files if worth_freezing(path)])
        return freeze(breakdown=plan, base_commit=progress.branch.base, files=files, manifests=manifests)

    contract = await stage.step.step("freeze", work, ArchitectureContract)
    await stage.step.emit(
        "contract_frozen",
        f"allowed beside what is there: {counted(len(contract.declared_files), 'file')} and "
        f"{counted(len(contract.declared_dependencies), 'new package')}",
        contract=contract.model_dump(mode="json"),
    )
    return contract


async def _settle_conflict(stage: Stage, plan: Breakdown, iteration: int) -> None:
    """Raises StoryStopped, but where a person has overridden the conflict and the architect may still plan anew."""
    overridden = stage.brief.replan is not None and stage.brief.replan.overridden_conflict != ""
    if overridden and iteration < stage.policies.plan.max_iterations:
        await _tell(stage, plan, PlanRoute.REVISE, iteration, [_overridden(stage)])
        return
    await stage.step.emit(
        CONFLICT,
        f"the architect sees a conflict: {plan.architectural_conflict.conflict_reason}",
        level=Level.WARN,
        conflict=plan.architectural_conflict.model_dump(mode="json"),
    )
    raise StoryStopped(StoryStatus.CONFLICTED, [_conflict(stage, plan)])


def _overridden(stage: Stage) -> Finding:
    message = "the conflict was overridden by a person and counts as settled"
    fix = "Set detected to false and plan the story as the person's comment says."
    where = Where(story=stage.story_id, field="architectural_conflict")
    return major("breakdown.conflict_overridden", message, where=where, fix=fix)


def _structured(planned: Planned) -> Breakdown:
    if planned.breakdown is None:
        raise StoryStopped(StoryStatus.FAILED, planned.findings)
    return planned.breakdown


async def _mended(
    stage: Stage, progress: Progress, plan: Breakdown, check: Callable[[Breakdown], list[Finding]]
) -> Breakdown:
    mended, said = mend(plan, frozenset(progress.surface.files))
    progress.note_findings(said)
    left = [_softened(finding) for finding in check(mended)]
    if blocking(left):
        raise StoryStopped(StoryStatus.NEEDS_ATTENTION, left)
    progress.note_findings(left)
    await stage.step.emit(
        "plan_mended", "the plan's budget is used up; what could be mended was", level=Level.WARN,
        findings=[finding.model_dump(mode="json") for finding in said], plan=mended.model_dump(mode="json"),
    )  # fmt: skip
    return mended


def _softened(finding: Finding) -> Finding:
    """Tasks that did not come in spite of all revisions are told and missed no more (spec 1 A4)."""
    return finding.model_copy(update={"severity": Severity.MINOR}) if finding.code == MISSING_TASKS else finding


async def _tell(stage: Stage, plan: Breakdown, route: PlanRoute, iteration: int, findings: list[Finding]) -> None:
    blocked = blocking(findings)
    about = f"plan {iteration} with {counted(len(plan.tasks), 'task')}: {route}"
    await stage.step.emit(
        "plan_judged",
        about if not blocked else f"{about} ({blocked[0].message})",
        level=Level.WARN if blocked else Level.INFO,
        attempt=iteration,
        route=route,
        findings=[finding.model_dump(mode="json") for finding in findings],
        plan=plan.model_dump(mode="json"),
    )


def _conflict(stage: Stage, plan: Breakdown) -> Finding:
    return critical(
        "breakdown.conflict",
        f"a conflict was detected: {plan.architectural_conflict.told}",
        fix=f"decide what gives way: override it with `orchestrator replan {stage.story_id} --comment TEXT`, "
        "or change the story or the architecture and `reset` the story; then give the same command again",
    )
