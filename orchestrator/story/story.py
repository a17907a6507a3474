"""One story, from its text to a merged branch or an honest outcome. The main loop of the product."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from orchestrator.checks.environment import BASE, PREFIX
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.contract import ArchitectureContract, Surface
from orchestrator.core.delivery import Branch, DiffEntry
from orchestrator.core.errors import BudgetExceeded, OrchestratorError, ProviderError, WorkspaceError
from orchestrator.core.finding import Finding, Where, critical, major
from orchestrator.core.sprint import StoryOutcome, StoryStatus, TaskStatus, TestsOutcome
from orchestrator.core.story import topological
from orchestrator.story.context import Progress, Stage, StoryStopped, Trial, red_finding, tell_record, tests_outcome
from orchestrator.story.fail_before import uncovered_finding
from orchestrator.story.merging import Merging, ask_person, check_final_diff, merge_notes, stop_on
from orchestrator.story.planning import freeze_contract, plan_story
from orchestrator.story.project_scan import scan_tree
from orchestrator.story.review import task_outcomes, unapproved
from orchestrator.story.suite import write_suite
from orchestrator.story.suite_loop import run_trial
from orchestrator.story.task import Order, TaskRun


async def run_story(stage: Stage) -> StoryOutcome:
    """Runs the story and returns its outcome; a failure of the story is also an outcome, never an exception."""
    result = await work_through(stage)
    if result.branch is not None and result.commit is None:
        head = await stage.do("head", str, stage.workspace.head, stage.story_id)
        result = result.model_copy(update={"commit": head})
    if result.branch is not None:
        with suppress(OrchestratorError):  # a report without its files is no reason to fail a story
            diff = await stage.do("changed", tuple[DiffEntry, ...], stage.workspace.diff, stage.story_id)
            result = result.model_copy(update={"changed": {one.path: one.status for one in diff}})
    # All steps are recorded and the tree equals its branch, so it is removed: a sprint of many stories must not keep
    # a tree for each. A tree that cannot be removed now is removed with the sprint's others.
    with suppress(WorkspaceError, OSError):
        await stage.workspace.leave(stage.story_id)
    return result


async def work_through(stage: Stage) -> StoryOutcome:
    """Plans, freezes the contract, builds, tests and merges."""
    progress: Progress | None = None
    try:
        progress = await begin(stage)
        plan = await plan_story(stage, progress)
        contract = await freeze_contract(stage, progress, plan)
        progress.tasks = dict.fromkeys((task.task_id for task in plan.tasks), TaskStatus.PENDING)
        tasks = TaskRun(stage, progress, plan, contract)
        await build(plan, tasks)
        suite = await write_suite(stage, progress, plan, await scan(stage, shown=False))
        trial = await run_trial(stage, progress, plan, suite, tasks)
        found = await check_final_diff(stage, progress, tasks.contract, frozenset(trial.suite.files))
        stop_on(found)
        return await conclude(stage, progress, tasks.contract, trial, found)
    except StoryStopped as stopped:
        return outcome(
            stage,
            progress,
            StoryStatus(stopped.status),
            extra=stopped.findings,
            stop_sprint=_concerns_all(stage, stopped.findings),
        )
    except OrchestratorError as error:
        return outcome(
            stage,
            progress,
            StoryStatus.FAILED,
            extra=[*_still_red(progress), _as_finding(error), *error.findings],
        )


async def build(plan: Breakdown, tasks: TaskRun) -> None:
    """Runs the tasks, each after its dependencies, else as the plan has them.

    Raises StoryStopped at the first one that is not accepted: the story cannot be merged without it, so nothing more is
    paid for. What earlier tasks committed stays on the branch.
    """
    by_id = {task.task_id: task for task in plan.tasks}
    for task_id in topological(by_id, {task.task_id: task.dependencies for task in plan.tasks}):
        if await tasks.run(Order(task=by_id[task_id])) is TaskStatus.FAILED:
            raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [_unfinished(task_id, tasks.refused.get(task_id, ()))])


async def begin(stage: Stage) -> Progress:
    """Opens branch and worktree at the result branch, and scans the project there."""
    branch = await stage.do("open", Branch, stage.workspace.open, stage.story_id)
    progress = Progress(branch=branch, surface=await scan(stage))
    progress.note_findings(stage.brief.findings)
    return progress


async def scan(stage: Stage, *, shown: bool = True) -> Surface:
    """Returns the Surface of the story's current branch; without what only prompts show where it is not `shown`."""
    files, read = partial(stage.workspace.files, stage.story_id), partial(stage.workspace.read, stage.story_id)
    return await scan_tree(stage, files, read, shown=shown)


async def conclude(
    stage: Stage, progress: Progress, contract: ArchitectureContract, trial: Trial, found: Sequence[Finding]
) -> StoryOutcome:
    """Merges a green and approved story, once a person allows what is `found` in its diff; others wait on their branch.

    The person is asked last: not about a story that is not merged anyway.
    """
    plan = trial.plan
    if trial.red is not None or any(status is not TaskStatus.DONE for status in progress.tasks.values()):
        return outcome(stage, progress, StoryStatus.NEEDS_ATTENTION, extra=_still_red(progress))
    await ask_person(stage, progress, plan, found)
    merged = await Merging(stage, progress, plan, contract, trial).run()
    progress.note_findings(merge_notes(merged))
    await tell_record(stage, plan, merged.commit)
    return outcome(stage, progress, StoryStatus.DONE, commit=merged.commit)


def _concerns_all(stage: Stage, findings: Sequence[Finding]) -> bool:
    """Returns whether the environment lacks something that every story needs."""
    codes = {finding.code for finding in findings if finding.code.startswith(PREFIX)}
    return bool(codes) and (stage.brief.story.foundation or BASE in codes)


def outcome(
    stage: Stage,
    progress: Progress | None,
    status: StoryStatus,
    *,
    extra: Sequence[Finding] = (),
    commit: str | None = None,
    stop_sprint: bool = False,
) -> StoryOutcome:
    """Returns the story's result as a value."""
    trial = progress.trial if progress else None
    if progress is not None:
        criteria = stage.brief.story.acceptance_criteria
        uncovered = uncovered_finding(criteria, trial.suite, trial.report) if trial else []
        progress.note_findings([*uncovered, *extra, *unapproved(progress)])
    return StoryOutcome(
        id=stage.story_id,
        status=status,
        attempts=trial.attempts if trial else 0,
        tasks=task_outcomes(progress) if progress else (),
        tests=tests_outcome(trial.suite, trial.report) if trial else TestsOutcome(),
        before=trial.before if trial else {},
        hollow=trial.hollow if trial else {},
        findings=tuple(progress.findings) if progress else tuple(extra),
        branch=progress.branch.name if progress else None,
        commit=commit,
        stop_sprint=stop_sprint,
    )


def _unfinished(task: str, refused: Sequence[Finding]) -> Finding:
    """Returns the finding on a task that was not accepted, with the first of the reasons."""
    why = next((f": {finding.message}" for finding in refused), "")
    fix = "see what was answered (`show`); a stronger model or a smaller story may help, `reset` it then"
    told = f"no delivery of {task} was accepted, so no later task and no tests were asked for{why}"
    return major("story.unfinished", told, where=Where(task=task), fix=fix)


def _still_red(progress: Progress | None) -> list[Finding]:
    """Returns a finding if the last run of the tests was red."""
    trial = progress.trial if progress else None
    if trial is None or trial.red is None:
        return []
    return [red_finding(trial.red, trial.attempts, of_older=trial.of_older)]


def _as_finding(error: OrchestratorError) -> Finding:
    code = error.code if isinstance(error, ProviderError) else f"story.{type(error).__name__.lower()}"
    fix = "remove the cause, then reset the story so that it can be run again"
    if isinstance(error, BudgetExceeded):
        fix = "see in its path what the calls went into; make the story smaller or raise the budget, then reset it"
    return critical(code, error.message, fix=fix)
