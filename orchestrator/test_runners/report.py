"""What a run of a test runner shows: its report file, the way it ended, and the names that had to be in the report."""

from collections.abc import Collection, Sequence
from pathlib import Path

from orchestrator.core.suite import CaseResult, CommandResult, ReportedCase, RunProblem, TestReport
from orchestrator.test_runners.choice import PYTEST
from orchestrator.test_runners.junit import MAX_BYTES, parse_junit

_NOTHING_COLLECTED = 5
"""With this exit code pytest says that no test was run, whatever stands in the report."""
_LIMITS = {
    "timeout": RunProblem.TIMEOUT,
    "memory": RunProblem.MEMORY_LIMIT,
    "output": RunProblem.OUTPUT_LIMIT,
}


def read_report(report: Path, runner: str) -> tuple[tuple[ReportedCase, ...] | None, str]:
    """The cases that `runner` wrote down, or None and why there are none. Blocks."""
    try:
        with report.open("rb") as file:
            return parse_junit(file.read(MAX_BYTES + 1), parameters=runner == PYTEST), ""
    except OSError:
        return None, f"{runner} ended without writing its report"
    except ValueError as error:
        return None, str(error)


def judged(
    result: CommandResult,
    cases: tuple[ReportedCase, ...] | None,
    trouble: str,
    expected: Sequence[str],
    *,
    runner: str,
    complete: Collection[int],
) -> TestReport:
    """The run as a value; `complete` are the exit codes with which a report without a failure may be believed."""
    if result.limit is not None:
        problem = _LIMITS.get(result.limit, RunProblem.NO_REPORT)
        return reported(result, problem, cases or (), f"ended by the limit on {result.limit}")
    if cases is None:
        return reported(result, RunProblem.NO_REPORT, trouble=trouble)
    if not cases or (runner == PYTEST and result.exit_code == _NOTHING_COLLECTED):
        return reported(result, RunProblem.NO_TESTS, cases, "no test was run")
    failed = any(case.result in {CaseResult.FAILED, CaseResult.ERROR} for case in cases)
    if result.exit_code not in complete and not failed:
        return reported(result, RunProblem.NO_REPORT, cases, f"{runner} broke off, its report is not complete")
    missing = unseen(cases, expected)
    if missing:
        return reported(result, RunProblem.MISSING_NAMES, cases, f"not run: {', '.join(missing)}", missing)
    return reported(result, None, cases)


def merged(titles: Sequence[str], reports: Sequence[TestReport], expected: Sequence[str]) -> TestReport:
    """One report of several runs: a problem of any is the whole's, except that one of them found no test."""
    counted = [report for report in reports if report.problem is not RunProblem.NO_TESTS]
    cases = tuple(case for report in reports for case in report.cases)
    problem = next((report.problem for report in counted if report.problem is not None), None)
    if not counted:
        problem = RunProblem.NO_TESTS
    missing = unseen(cases, expected) if problem is None else ()
    return TestReport(
        cases=cases,
        problem=RunProblem.MISSING_NAMES if missing else problem,
        missing_names=missing,
        exit_code=next((report.exit_code for report in counted if report.exit_code != 0), 0),
        output="".join(f"== {title} ==\n{report.output}\n" for title, report in zip(titles, reports, strict=True)),
        duration_s=round(sum(report.duration_s for report in reports), 3),
        ran_with=tuple(dict.fromkeys(one for report in counted for one in report.ran_with)),
    )


def unseen(cases: Sequence[ReportedCase], expected: Sequence[str]) -> tuple[str, ...]:
    """Expected names that no case stands for; one that was only skipped has shown nothing."""
    shown = {case.name for case in cases if case.result is not CaseResult.SKIPPED}
    return tuple(dict.fromkeys(name for name in expected if name not in shown))


def reported(
    result: CommandResult,
    problem: RunProblem | None,
    cases: tuple[ReportedCase, ...] = (),
    trouble: str = "",
    missing: tuple[str, ...] = (),
) -> TestReport:
    """A report from how the runner's command ended; `trouble` is added to its output for people."""
    return TestReport(
        cases=cases,
        problem=problem,
        missing_names=missing,
        exit_code=result.exit_code,
        output=f"{result.output}\n[{trouble}]\n" if trouble else result.output,
        duration_s=result.duration_s,
    )
