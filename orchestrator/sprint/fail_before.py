"""Whether the suite notices the story: its tests on the tree without the story's change.

A test that passes there as well says nothing about the change; SWE-bench calls the others FAIL_TO_PASS. Where the code
under test is a new module or name, every test fails for want of it, whatever it asserts: that is not judged here, but
by a second run, on a hollow tree (see `hollow`).
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.events import Level
from orchestrator.domain.findings import Finding, minor
from orchestrator.domain.outcome import CaseOutcome
from orchestrator.domain.testing import CaseResult, TestReport, TestSuite
from orchestrator.sprint.context import Stage
from orchestrator.sprint.coverage import Covered, coverage
from orchestrator.sprint.record import recorded_stack
from orchestrator.sprint.run_telling import tests_outcome

_NOT_THERE = re.compile(
    r"^(?:E\s+)?(?:ModuleNotFoundError|ImportError|NameError)\b|\b(?:ERR_)?MODULE_NOT_FOUND\b"
    r"|^(?:E\s+)?AttributeError: .*has no attribute|\bis not (?:defined|a function|a constructor)\b"
    r"|does not provide an export named",
    re.MULTILINE,
)
_NAMED = 5
"""Tests that a reason names per criterion."""


class Ended(StrEnum):
    """How a test ended on another tree: without the story's change, or with functions that return nothing."""

    FAILED = "failed"
    PASSED = "passed"
    NOT_JUDGED = "not judged"


async def run_before(stage: Stage, plan: Breakdown, suite: TestSuite) -> dict[str, str]:
    """Result of each test of the suite, by name, where the story's branch began, as a durable step."""
    stack = recorded_stack(stage.brief.tech_stack, plan)

    async def run(folder: Path) -> TestReport:
        key = f"{stage.brief.sprint}-base"
        return await stage.runner.run(folder, files=suite.run_files, stack=stack, key=key)

    async def work(_step_id: str) -> dict[str, str]:
        report = await stage.workspace.start_tree(stage.story_id, suite.changes, run)
        return {name: result.value for name, result in results_before(suite, report).items()}

    results = await stage.step.step("tests_before", work, dict[str, str])
    counts = {result: sum(found == result for found in results.values()) for result in Ended}
    await stage.step.emit(
        "tests_run_before",
        "tests without the story's change: "
        + ", ".join(f"{count} {result}" for result, count in counts.items() if count),
        results=results,
    )
    return results


def test_names(suite: TestSuite) -> tuple[str, ...]:
    """The tests that are judged."""
    return suite.expected_names or tuple(case.name for case in suite.test_cases)


test_names.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def results_before(suite: TestSuite, report: TestReport) -> dict[str, Ended]:
    """By name of the suite's tests; what was skipped, not reached, or failed for want of a name is not judged."""
    found: dict[str, Ended] = dict.fromkeys(test_names(suite), Ended.NOT_JUDGED)
    for case in report.cases:
        if case.name not in found or case.result is CaseResult.SKIPPED:
            continue
        if case.result is CaseResult.PASSED:
            if found[case.name] is Ended.NOT_JUDGED:
                found[case.name] = Ended.PASSED
        elif not _NOT_THERE.search(case.message):
            found[case.name] = Ended.FAILED
    return found


class Unnoticed(NamedTuple):
    """A criterion, and why its tests show nothing: keys of `_WHY`."""

    row: Covered
    why: tuple[str, ...]


_WHY = {
    "test.passes_before": "pass without the story's change as well",
    "test.passes_hollow": "pass with functions that return nothing as well",
    "test.skipped": "are skipped",
}


def unnoticed(
    criteria: Sequence[str], suite: TestSuite, after: TestReport, before: Mapping[str, str], hollow: Mapping[str, str]
) -> tuple[Unnoticed, ...]:
    """Criteria none of whose tests shows anything, with why."""
    covered, _ = coverage(criteria, tests_outcome(suite, after).cases)
    rows = ((row, [_silence(case, before, hollow) for case in row.cases]) for row in covered)
    return tuple(Unnoticed(row, tuple(dict.fromkeys(why))) for row, why in rows if row.cases and all(why))


def _silence(case: CaseOutcome, before: Mapping[str, str], hollow: Mapping[str, str]) -> str:
    """Why a test shows nothing, "" when it shows something or failed."""
    if case.result == CaseResult.SKIPPED:
        return "test.skipped"
    if case.result != CaseResult.PASSED or before.get(case.name) == Ended.FAILED:
        return ""
    if before.get(case.name) == Ended.PASSED:
        return "test.passes_before"
    return "test.passes_hollow" if hollow.get(case.name) == Ended.PASSED else ""


def reason_to_ask(rows: Sequence[Unnoticed]) -> str:
    """Why the tester is asked for the suite once more."""
    listed = "\n".join(f"- {one.row.criterion}: {_tests(one.row)} {_why(one)}" for one in rows)
    return (
        f"The tests of these criteria show nothing about the story's change:\n{listed}\nFor each of these criteria, "
        "write at least one test that fails without the change and passes with it, and that a function which does "
        "nothing and returns nothing would not pass; keep the other tests. Where a criterion only asks that something "
        "stays as it was, or that nothing comes back, keep its test."
    )


def unnoticed_findings(rows: Sequence[Unnoticed]) -> list[Finding]:
    """One per criterion, for the report: advice, because a criterion may ask for what a test of its kind shows."""
    return [_finding(one.why[0], f"the criterion {one.row.criterion!r} is shown by {_tests(one.row)}") for one in rows]


def _finding(why: str, shown: str) -> Finding:
    fix = "look whether the criterion asks for something new that code does; if so, add a test that fails without it"
    if why == "test.passes_before":
        return minor("test.passes_before", f"{shown}, passing without the story's change as well", fix=fix)
    if why == "test.passes_hollow":
        return minor("test.passes_hollow", f"{shown}, passing with functions that return nothing as well", fix=fix)
    return minor("test.skipped", f"{shown}, which was skipped", fix=fix)


def _why(one: Unnoticed) -> str:
    return ", or ".join(_WHY[code] for code in one.why)


def _tests(row: Covered) -> str:
    names = list(dict.fromkeys(case.name for case in row.cases))
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


async def tell_not_stronger(stage: Stage, why: str) -> None:
    """Record that the suite stays as it is."""
    await stage.step.emit("suite_kept", f"the suite stays as it is: {why}", level=Level.WARN)
