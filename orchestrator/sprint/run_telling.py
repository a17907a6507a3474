"""A run of tests in words, as a finding, and as what the report keeps of it (pure)."""

from orchestrator.domain.findings import Finding, major, minor
from orchestrator.domain.outcome import CaseOutcome, TestsOutcome
from orchestrator.domain.testing import NO_RUNNER, RunProblem, TestReport, TestSuite
from orchestrator.domain.words import counted

OUTPUT_CAP = 6000
"""Characters of a failed run's output that are handed on (its end)."""
FAILING_CAP = 50
"""Failed tests that an event lists: there may be a hundred thousand."""
NAMED = 20
"""Tests that a finding names."""
PROBLEMS = {
    RunProblem.TIMEOUT: "it was ended after test.timeout_s",
    RunProblem.NO_TESTS: "no test was run",
    RunProblem.NO_REPORT: "the runner ended without a whole report (a crash, an early exit or a kill)",
    RunProblem.MISSING_RUNNER: "there is no test runner for it",
    RunProblem.NO_TYPESCRIPT: "node here cannot run TypeScript tests: install Node 22.18 or newer (22.6 will do)",
    RunProblem.INSTALL_FAILED: "the dependencies could not be installed",
    RunProblem.SETUP_FAILED: "a command of environment.setup failed",
    RunProblem.BUILD_FAILED: "a command of environment.build failed",
    RunProblem.OUTPUT_LIMIT: "it printed more than commands.output_killed_kb",
    RunProblem.MEMORY_LIMIT: "it needed more than commands.memory_mb",
    RunProblem.MISSING_NAMES: "expected tests did not run",
    RunProblem.TAMPERED: "a test file, or git's own file of the tree, was changed while it ran",
    RunProblem.FAKED: "in a second run, tests changed so that they must fail were not reported as failed",
}
"""What a problem means, for people."""


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
    flaky = f", {len(report.flaky)} of them flaky" if report.flaky else ""
    return f"{report.passed} passed{flaky}, {report.failed} failed"


def red_finding(report: TestReport, attempts: int, *, of_older: bool = False) -> Finding:
    """Why a story whose suite stays red, or that breaks older tests (`of_older`), needs a person."""
    after = f"after {counted(attempts, 'attempt')}"
    if of_older:
        return major(
            "test.regression",
            f"{after}, tests that the story found there fail: {', '.join(sorted(report.failing_ids)[:NAMED])}",
            fix="look whether the story means to change what they assert: its plan then lists their files under "
            "tests_to_change (`replan` with a comment); else mend the branch by hand, or `reset` the story",
        )
    code = f"test.{report.problem}" if report.problem else "test.failed"
    return major(
        code,
        f"{after}: {summary(report)}",
        fix="install what is missing, then `reset` the story and give the same command again"
        if report.problem in NO_RUNNER
        else "the output of the failing tests says why (`show`); `reset` the story to try again",
    )


def unproved_findings(report: TestReport) -> list[Finding]:
    """That it was not tried whether the tests of a green run can fail; none where it was."""
    if not report.green or not report.not_proved:
        return []
    return [
        minor(
            "test.not_proved",
            f"the tests pass, and it was not tried whether they can fail: {report.not_proved}",
            fix="read the story's tests: nothing but a reviewer stands behind what they assert",
        )
    ]


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
