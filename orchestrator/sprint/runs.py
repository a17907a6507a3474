"""One run of a story's suite as a durable step, its failed tests run once more alone."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum
from functools import partial

from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.decisions import Loop, Verdict, decided
from orchestrator.domain.events import Level
from orchestrator.domain.testing import CaseResult, ReportedCase, RunProblem, TestReport, TestSuite
from orchestrator.sprint.context import Stage, Trial
from orchestrator.sprint.flaky import counted_again, to_run_again
from orchestrator.sprint.record import recorded_stack
from orchestrator.sprint.routing import route_test
from orchestrator.sprint.run_telling import FAILING_CAP, OUTPUT_CAP, red_finding, summary

Once = Callable[[Sequence[ReportedCase]], Awaitable[TestReport]]
"""Runs these tests alone; with none, everything."""


async def run_suite(stage: Stage, plan: Breakdown, suite: TestSuite) -> TestReport:
    """The frozen suite on the story's branch. It shows nothing when its files are not what the tester wrote."""
    stack = recorded_stack(stage.brief.tech_stack, plan)

    async def once(only: Sequence[ReportedCase]) -> TestReport:
        async def work(_step_id: str) -> TestReport:
            # What commands left behind is swept out: a run sees the branch and nothing else, also when repeated.
            await stage.workspace.reset(stage.story_id)
            there = await stage.workspace.read(stage.story_id, suite.files)
            changed = [change.path for change in suite.changes if there.get(change.path) != change.content]
            if changed:
                told = f"the branch holds another text than the tester wrote: {', '.join(changed)}"
                return TestReport(problem=RunProblem.TAMPERED, output=told)
            return await stage.runner.run(
                stage.workspace.root(stage.story_id),
                files=suite.run_files,
                expected_names=() if only else suite.expected_names,
                only=only,
                stack=stack,
                key=stage.environment_key,
                reset=partial(stage.workspace.reset, stage.story_id),
            )

        return await stage.step.step("test", work, TestReport)

    return await twice(stage, await once(()), once)


async def twice(stage: Stage, report: TestReport, once: Once, among: Collection[str] | None = None) -> TestReport:
    """The run, with those of its failed tests (of `among`, or all) counted as passed that pass when run alone."""
    again = to_run_again(report, stage.policies.test.flaky_reruns, among)
    return counted_again(report, await once(again)) if again else report


async def run_again(stage: Stage, plan: Breakdown, trial: Trial) -> TestReport:
    """The frozen suite once more, on the branch as it is now: no attempt of its own, nothing is mended after it."""
    report = await run_suite(stage, plan, trial.suite)
    verdict = Verdict.GREEN if report.green else route_test(False, trial.attempts, trial.attempts)
    await tell_run(stage, report, verdict, trial.attempts, 0)
    return report


async def tell_run(
    stage: Stage, report: TestReport, verdict: StrEnum, attempt: int, left: int, *, of_older: bool = False
) -> None:
    """Record a run that decided something; `of_older`: it is tests that the story found there that fail."""
    failing = [case for case in report.cases if case.result in {CaseResult.FAILED, CaseResult.ERROR}]
    green, what = verdict is Verdict.GREEN, "older tests fail: " if of_older else ""
    await stage.step.emit(
        "older_tests_failed" if of_older else "tests_finished",
        f"attempt {attempt}: {what}{summary(report)}",
        level=Level.INFO if green else Level.WARN,
        green=green,
        problem=report.problem,
        duration_ms=round(report.duration_s * 1000),
        output="" if green else report.output[-OUTPUT_CAP:],
        failing=[case.model_dump(mode="json") for case in failing[:FAILING_CAP]],
        flaky=list(report.flaky[:FAILING_CAP]),
        ran_with=list(report.ran_with),
        **decided(
            Loop.TEST,
            verdict,
            findings=[] if green else [red_finding(report, attempt, of_older=of_older)],
            attempt=attempt,
            budget_left=left,
        ),
    )
