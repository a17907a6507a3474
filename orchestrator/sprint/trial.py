"""The story's suite: written once, frozen, run, analysed, mended for a bounded number of attempts (spec 1 C)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from orchestrator.checks.suite_older import check_older
from orchestrator.checks.suite_project import SETTINGS_FILES
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.decisions import Loop, Verdict, decided
from orchestrator.domain.delivery import FileChange
from orchestrator.domain.events import Level
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.domain.outcome import CaseOutcome, TestsOutcome
from orchestrator.domain.stages import Analysed, FailureBrief, SuiteBrief
from orchestrator.domain.status import StoryStatus
from orchestrator.domain.surface import Surface
from orchestrator.domain.testing import NO_RUNNER, CaseResult, FailureInstruction, RunProblem, TestReport, TestSuite
from orchestrator.domain.words import counted
from orchestrator.sprint.context import Progress, Stage, StoryStopped, Trial
from orchestrator.sprint.record import recorded_stack
from orchestrator.sprint.routing import TestRoute, route_test
from orchestrator.sprint.task import Order

OUTPUT_CAP = 6000
"""Characters of a failed run's output that are handed on (its end)."""
FAILING_CAP = 50
"""Failed tests that an event lists: there may be a hundred thousand."""
PROBLEMS = {
    RunProblem.TIMEOUT: "it was ended after test.timeout_s",
    RunProblem.NO_TESTS: "no test was run",
    RunProblem.NO_REPORT: "the runner ended without a whole report (a crash, an early exit or a kill)",
    RunProblem.MISSING_RUNNER: "there is no test runner for it",
    RunProblem.NO_TYPESCRIPT: "node here cannot run TypeScript tests: install Node 22.18 or newer (22.6 will do)",
    RunProblem.INSTALL_FAILED: "the dependencies could not be installed",
    RunProblem.OUTPUT_LIMIT: "it printed more than commands.output_killed_kb",
    RunProblem.MEMORY_LIMIT: "it needed more than commands.memory_mb",
    RunProblem.MISSING_NAMES: "expected tests did not run",
    RunProblem.TAMPERED: "a test file was changed while it ran",
    RunProblem.FAKED: "a test that must fail, run beside them, was not reported as failed",
}
"""What a problem means, for people."""


Redo = Callable[[Order], Awaitable[object]]
"""Asks the developer for one task again."""


async def write_suite(stage: Stage, progress: Progress, plan: Breakdown, surface: Surface) -> TestSuite:
    """A committed suite. Raises StoryStopped (failed) when no valid one came."""

    async def read(_step_id: str) -> dict[str, str]:
        return await stage.workspace.read(stage.story_id, [*story_files(plan), *SETTINGS_FILES])

    texts = await stage.step.step("read", read, dict[str, str])
    files = {path: texts[path] for path in story_files(plan) if path in texts}
    settings = {path: texts[path] for path in SETTINGS_FILES if path in texts}
    brief = SuiteBrief(breakdown=plan, surface=surface, files=files, settings=settings)
    written = await stage.tester.suite(brief, partial(_judge, stage, plan, surface))
    suite = written.suite
    if suite is None:
        raise StoryStopped(StoryStatus.FAILED, written.findings)
    progress.note_findings(written.findings)

    async def commit(step_id: str) -> str:
        change = FileChange(path=suite.test_file, content=suite.test_content)
        note = stage.note(f"{stage.story_id}: tests", step_id)
        return await stage.workspace.commit(stage.story_id, [change], note)

    done = await stage.step.step("commit", commit, str)
    about = f"{suite.test_file} with {counted(len(suite.expected_names), 'test')}"
    await stage.step.emit("suite_committed", about, commit=done, files=[suite.test_file])
    return suite


async def _judge(stage: Stage, plan: Breakdown, surface: Surface, suite: TestSuite) -> list[Finding]:
    """Older tests change only where the plan says so."""
    path = suite.test_file
    if path not in surface.files or path in {change.file for change in plan.tests_to_change}:
        return []

    async def read(_step_id: str) -> dict[str, str]:
        return await stage.workspace.read(stage.story_id, [path])

    older = await stage.step.step("read", read, dict[str, str])
    return check_older(suite, older.get(path))


async def run_trial(stage: Stage, progress: Progress, plan: Breakdown, suite: TestSuite, redo: Redo) -> Trial:
    """Run the frozen suite; while it is red and attempts remain, analyse and mend."""
    history: list[str] = []
    attempt = 0
    while True:
        attempt += 1
        report = await _run(stage, plan, suite)
        attempts = attempt if report.problem in NO_RUNNER else stage.policies.test.max_attempts
        route = route_test(report.green, attempt, attempts)
        await _tell(stage, report, route, attempt, attempts - attempt)
        if route is not TestRoute.MEND:
            return Trial(suite=suite, report=report, attempts=attempt)
        analysed = await _analyse(stage, plan, suite, report, history)
        await _tell_analysed(stage, analysed, attempt, attempts - attempt)
        progress.note_findings(unassigned(plan, analysed.instructions))
        history.append(f"attempt {attempt}: {summary(report)}")
        for order in orders(plan, analysed, report):
            await redo(replace(order, attempt=attempt + 1))


async def run_again(stage: Stage, plan: Breakdown, trial: Trial) -> TestReport:
    """The frozen suite once more, on the branch as it is now: no attempt of its own, nothing is mended after it."""
    report = await _run(stage, plan, trial.suite)
    await _tell(stage, report, route_test(report.green, trial.attempts, trial.attempts), trial.attempts, 0)
    return report


async def _run(stage: Stage, plan: Breakdown, suite: TestSuite) -> TestReport:
    stack = recorded_stack(stage.brief.tech_stack, plan)

    async def work(_step_id: str) -> TestReport:
        # What commands left behind is swept out, so that a run sees the branch and nothing else, also when repeated.
        await stage.workspace.reset(stage.story_id)
        root = stage.workspace.root(stage.story_id)
        return await stage.runner.run(
            root,
            files=[suite.test_file],
            expected_names=suite.expected_names,
            stack=stack,
            key=stage.environment_key,
        )

    return await stage.step.step("test", work, TestReport)


async def _tell(stage: Stage, report: TestReport, route: TestRoute, attempt: int, left: int) -> None:
    failing = [case for case in report.cases if case.result in {CaseResult.FAILED, CaseResult.ERROR}]
    await stage.step.emit(
        "tests_finished",
        f"attempt {attempt}: {summary(report)}",
        level=Level.INFO if report.green else Level.WARN,
        green=report.green,
        problem=report.problem,
        duration_ms=round(report.duration_s * 1000),
        output="" if report.green else report.output[-OUTPUT_CAP:],
        failing=[case.model_dump(mode="json") for case in failing[:FAILING_CAP]],
        **decided(
            Loop.TEST,
            Verdict.GREEN if report.green else route,
            findings=[] if report.green else [red_finding(report, attempt)],
            attempt=attempt,
            budget_left=left,
        ),
    )


async def _analyse(stage: Stage, plan: Breakdown, suite: TestSuite, report: TestReport, history: list[str]) -> Analysed:
    async def work(_step_id: str) -> dict[str, str]:
        return await stage.workspace.read(stage.story_id, story_files(plan))

    files = await stage.step.step("read", work, dict[str, str])
    return await stage.tester.analyse(
        FailureBrief(
            suite=suite,
            report=report,
            files=files,
            task_files={task.task_id: task.files_to_create for task in plan.tasks},
            history=tuple(history),
        )
    )


async def _tell_analysed(stage: Stage, analysed: Analysed, attempt: int, left: int) -> None:
    told = "; ".join(f"{i.file}: {i.issue}" for i in analysed.instructions) or "no usable analysis"
    verdict = Verdict.ANALYSED if analysed.instructions else Verdict.NOT_ANALYSED
    await stage.step.emit(
        "failure_analysed", f"the failure was analysed: {told}",
        instructions=[instruction.model_dump(mode="json") for instruction in analysed.instructions],
        **decided(Loop.TEST, verdict, findings=analysed.findings, attempt=attempt, budget_left=left),
    )  # fmt: skip


def orders(plan: Breakdown, analysed: Analysed, report: TestReport) -> list[Order]:
    """Which tasks are asked for again: each gets the instructions for its own files only (C4).

    Without a usable instruction the tasks whose files occur in the output are asked for, or else all with files; they
    get the output itself.
    """
    result = []
    for task in plan.tasks:
        mine = tuple(i for i in analysed.instructions if i.file in task.files_to_create)
        if mine:
            result.append(Order(task=task, instructions=mine))
    if result:
        return result
    output = f"The tests failed:\n{failure_text(report)}"
    with_files = [task for task in plan.tasks if task.files_to_create]
    named = [task for task in with_files if any(path in output for path in task.files_to_create)]
    return [Order(task=task, failure_output=output) for task in named or with_files]


def unassigned(plan: Breakdown, instructions: tuple[FailureInstruction, ...]) -> list[Finding]:
    """Instructions for files outside every task."""
    owned = {path for task in plan.tasks for path in task.files_to_create}
    return [
        minor(
            "analysis.outside_tasks",
            f"an instruction for {i.file} belongs to no task",
            where=Where(file=i.file),
            fix="look whether the plan lacks this file; no task may change it",
        )
        for i in instructions
        if i.file not in owned
    ]


def story_files(plan: Breakdown) -> list[str]:
    """All files of the tasks, once each, in task order."""
    return list(dict.fromkeys(path for task in plan.tasks for path in task.files_to_create))


def failure_text(report: TestReport) -> str:
    """The failing tests' messages, else the end of the output."""
    ids = report.failing_ids
    failing = [f"{case.id}: {case.message}" for case in report.cases if case.id in ids]
    return "\n".join(failing)[:OUTPUT_CAP] or f"{report.problem}: {report.output[-OUTPUT_CAP:]}"


def summary(report: TestReport) -> str:
    """One line for people."""
    if report.problem is RunProblem.MISSING_NAMES:
        return f"expected tests did not run: {', '.join(report.missing_names)}"
    if report.problem is not None:
        return f"the run shows nothing: {PROBLEMS[report.problem]}"
    return f"{report.passed} passed, {report.failed} failed"


def red_finding(report: TestReport, attempts: int) -> Finding:
    """Why a story whose suite stays red needs a person."""
    code = f"test.{report.problem}" if report.problem else "test.failed"
    return major(
        code,
        f"after {attempts} attempt{'s' * (attempts > 1)}: {summary(report)}",
        fix="install what is missing, then `reset` the story and give the same command again"
        if report.problem in NO_RUNNER
        else "the output of the failing tests says why (`show`); `reset` the story to try again",
    )


def tests_outcome(suite: TestSuite, report: TestReport) -> TestsOutcome:
    """The suite's cases with their results; a case named in the suite and absent from the report is `missing`."""
    criteria = {case.name: case.criterion for case in suite.test_cases}
    seen = {case.name for case in report.cases}
    cases = [
        CaseOutcome(name=case.name, criterion=criteria.get(case.name, ""), result=case.result) for case in report.cases
    ]
    cases += [
        CaseOutcome(name=name, criterion=criteria.get(name, ""), result="missing")
        for name in suite.expected_names
        if name not in seen
    ]
    return TestsOutcome(run=len(report.cases), passed=report.passed, failed=report.failed, cases=tuple(cases))
