"""Runs a story's suite as a durable step: detects flaky tests, and records runs."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, minor
from orchestrator.core.suite import CaseResult, ReportedCase, RunProblem, TestReport, TestSuite
from orchestrator.core.value import counted
from orchestrator.story.context import FAILING_CAP, OUTPUT_CAP, Stage, Trial, red_finding, summary

MOST = 50
"""Limit on failed tests for a second run: more failures are not flaky."""
NAMED = 20


def to_run_again(report: TestReport, among: Collection[str] | None = None) -> tuple[ReportedCase, ...]:
    """Returns the failed tests to run again, limited to ids in `among` (None: all); () for no second run.

    Excludes runs with a problem, and errors that are not tests, such as a file that could not be loaded: neither is
    flaky.
    """
    failed = [case for case in report.failing if among is None or case.id in among]
    if report.problem is not None or not 0 < len(failed) <= MOST:
        return ()
    whole = [case for case in failed if not case.file or case.id.startswith("::") or case.name == case.file]
    return () if whole else tuple(failed)


DEPENDS = (
    "It fails in the run of all, also when that is repeated, and passes when run alone: it depends on the order of the "
    "tests or on the state that others leave."
)
"""Stands before the message of such a test."""


def counted_again(report: TestReport, second: TestReport, among: Collection[str] | None = None) -> TestReport:
    """Returns the run in which failed tests (of `among`, or all) that passed in the second one count as passed.

    Ignores a second run with a problem.
    """
    passed = frozenset(case.id for case in second.cases if case.result is CaseResult.PASSED)
    passed = passed if among is None else passed.intersection(among)
    if second.problem is not None or not passed & report.failing_ids:
        return report
    flaky = {case.id: None for case in report.failing if case.id in passed}
    cases = tuple(
        case.model_copy(update={"result": CaseResult.PASSED, "message": ""}) if case.id in flaky else case
        for case in report.cases
    )
    return report.model_copy(update={"cases": cases, "flaky": (*report.flaky, *flaky)})


def dependent(report: TestReport, alone: TestReport) -> TestReport:
    """Returns the run in which the messages of tests that passed `alone` say what they depend on."""
    passed = {case.id for case in alone.cases if case.result is CaseResult.PASSED} & report.failing_ids
    if alone.problem is not None or not passed:
        return report
    cases = tuple(
        case.model_copy(update={"message": f"{DEPENDS}\n{case.message}"}) if case.id in passed else case
        for case in report.cases
    )
    return report.model_copy(update={"cases": cases})


def flaky_findings(ids: Sequence[str]) -> list[Finding]:
    """Returns a finding on tests that failed in one run of all and passed in the next, if there are any."""
    if not ids:
        return []
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return [
        minor(
            "test.flaky",
            f"{counted(len(ids), 'flaky test')}, failed once and passed in the same run repeated: "
            f"{', '.join(ids[:NAMED])}{more}",
            fix="look for what they depend on beside the code: time, order, ports, files left behind",
        )
    ]


Once = Callable[[Sequence[ReportedCase]], Awaitable[TestReport]]
"""Runs these tests alone; with none, everything once more."""


async def run_suite(stage: Stage, plan: Breakdown, suite: TestSuite) -> TestReport:
    """Runs the frozen suite on the story's branch; the run is invalid if its files differ from the tester's."""
    rewritten = suite.test_file in {change.file for change in plan.tests_to_change}
    before = None if rewritten else stage.older.base

    async def once(only: Sequence[ReportedCase]) -> TestReport:
        async def work(_step_id: str) -> TestReport:
            # Leftovers of commands are removed, so that each run, also a repeated one, sees only the branch.
            await stage.workspace.reset(stage.story_id)
            there = await stage.workspace.read(stage.story_id, suite.files)
            changed = [change.path for change in suite.changes if there.get(change.path) != change.content]
            if changed:
                told = f"the branch holds another text than the tester wrote: {', '.join(changed)}"
                return TestReport(problem=RunProblem.TAMPERED, output=told)
            report = await stage.runner.run(
                stage.workspace.root(stage.story_id),
                files=suite.run_files,
                expected_names=() if only else suite.expected_names,
                only=only,
                key=stage.environment_key,
            )
            return of_story(suite, report, before)

        return await stage.step.step("test", work, TestReport)

    return await twice(stage, await once(()), once)


def of_story(suite: TestSuite, report: TestReport, base: TestReport | None = None) -> TestReport:
    """Returns the run without the tests that the suite's file held before: whether they still pass, the run of all
    tests shows, which knows how they were at the base.

    Names that a loop or a table computes are known from the run at the `base` alone.
    """
    ran = (case.name for case in (base.cases if base is not None else ()) if case.file == suite.test_file)
    older = {*suite.older_names, *ran} - {*suite.expected_names}
    held = {case.id: case.name for case in report.cases if case.name in older and case.file in {"", suite.test_file}}
    if not held:
        return report
    failing = tuple(dict.fromkeys(held[case.id] for case in report.failing if case.id in held))
    cases = tuple(case for case in report.cases if case.id not in held)
    return report.model_copy(update={"cases": cases, "older_failing": failing})


async def twice(
    stage: Stage,
    report: TestReport,
    once: Once,
    among: Collection[str] | None = None,
    unsteady: Collection[str] = (),
) -> TestReport:
    """Returns the run with failed tests (of `among`, or all) counted as passed if they pass in the same run repeated.

    Those that fail again are run alone: `unsteady` ones, which failed at the base already, count as passed if they pass
    then; the messages of others say what they depend on.
    """
    if not to_run_again(report, among):
        return report
    again = await once(())
    report = counted_again(report, again, among)
    report = report.model_copy(update={"duration_s": report.duration_s + again.duration_s})
    left = to_run_again(report, among)
    if not left:
        return report
    alone = await once(left)
    report = report.model_copy(update={"duration_s": report.duration_s + alone.duration_s})
    return dependent(counted_again(report, alone, unsteady), alone)


async def run_again(stage: Stage, plan: Breakdown, trial: Trial) -> TestReport:
    """Runs the frozen suite again on the current branch, without counting an attempt and without repairs."""
    report = await run_suite(stage, plan, trial.suite)
    verdict = Verdict.GREEN if report.green else Verdict.GIVE_UP
    await tell_run(stage, report, verdict, trial.attempts, 0, merged=True)
    return report


async def tell_run(
    stage: Stage,
    report: TestReport,
    verdict: StrEnum,
    attempt: int,
    left: int,
    *,
    of_older: bool = False,
    merged: bool = False,
) -> None:
    """Records a decisive run; with `of_older` the failures are older tests. One on the branch with what was `merged`
    before is no further attempt."""
    green, what = verdict is Verdict.GREEN, "older tests fail: " if of_older else ""
    await stage.decide(
        "older_tests_failed" if of_older else "tests_finished",
        f"{'with what was merged before' if merged else f'attempt {attempt}'}: {what}{summary(report)}",
        Loop.TEST,
        verdict,
        findings=[] if green else [red_finding(report, attempt, of_older=of_older)],
        attempt=attempt,
        left=left,
        level=Level.INFO if green and not report.flaky else Level.WARN,
        green=green,
        problem=report.problem,
        duration_ms=round(report.duration_s * 1000),
        output="" if green else report.output[-OUTPUT_CAP:],
        failing=[case.model_dump(mode="json") for case in report.failing[:FAILING_CAP]],
        flaky=list(report.flaky[:FAILING_CAP]),
        ran_with=list(report.ran_with),
    )
