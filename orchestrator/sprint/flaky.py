"""Failed tests run once more by themselves: one that passes then is flaky, and that is told (pure)."""

from collections.abc import Collection, Sequence

from orchestrator.domain.findings import Finding, minor
from orchestrator.domain.testing import CaseResult, ReportedCase, TestReport

MOST = 50
"""Failed tests up to which a second run is worth it: where more fail, it is no coincidence."""
NAMED = 20
_RED = frozenset({CaseResult.FAILED, CaseResult.ERROR})


def to_run_again(report: TestReport, reruns: int, among: Collection[str] | None = None) -> tuple[ReportedCase, ...]:
    """The failed tests of a run to be run once more, of those with an id in `among` (None: all); () for no second run.

    A run with a problem has none: what did not come about cannot be flaky. Nor has what is no test: a file that could
    not be loaded.
    """
    failed = [case for case in report.cases if case.result in _RED and (among is None or case.id in among)]
    if not reruns or report.problem is not None or not 0 < len(failed) <= MOST:
        return ()
    whole = [case for case in failed if not case.file or case.id.startswith("::") or case.name == case.file]
    return () if whole else tuple(failed)


def counted_again(report: TestReport, second: TestReport) -> TestReport:
    """The run with what the second run of its failed tests showed; one with a problem shows nothing."""
    passed = frozenset(case.id for case in second.cases if case.result is CaseResult.PASSED)
    if second.problem is not None or not passed & report.failing_ids:
        return report
    flaky = tuple(case.id for case in report.cases if case.result in _RED and case.id in passed)
    cases = tuple(
        case.model_copy(update={"result": CaseResult.PASSED, "message": ""}) if case.id in flaky else case
        for case in report.cases
    )
    return report.model_copy(update={"cases": cases, "flaky": (*report.flaky, *flaky)})


def flaky_findings(ids: Sequence[str]) -> list[Finding]:
    """What is said of tests that failed once and passed by themselves; one finding, none for no test."""
    if not ids:
        return []
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return [
        minor(
            "test.flaky",
            f"failed once and passed when run again alone: {', '.join(ids[:NAMED])}{more}",
            fix="look for what they depend on beside the code: time, order, ports, files left behind",
        )
    ]
