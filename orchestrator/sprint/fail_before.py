"""Whether the suite notices the story: its tests on the tree without the story's change (spec 1 C6).

A test that passes there as well says nothing about the change; SWE-bench calls the others FAIL_TO_PASS. Where the code
under test is a new module, every test fails for want of it, whatever it asserts: that is not judged.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.events import Level
from orchestrator.domain.findings import Finding, minor
from orchestrator.domain.outcome import CaseOutcome
from orchestrator.domain.testing import CaseResult, TestReport, TestSuite
from orchestrator.sprint.context import Stage
from orchestrator.sprint.coverage import Covered, coverage
from orchestrator.sprint.record import recorded_stack
from orchestrator.sprint.run_telling import tests_outcome

_NOT_THERE = re.compile(r"^(?:E\s+)?(?:ModuleNotFoundError|ImportError)\b|\b(?:ERR_)?MODULE_NOT_FOUND\b", re.MULTILINE)
_NAMED = 5
"""Tests that a reason names per criterion."""


class Before(StrEnum):
    """How a test ended on the tree without the story's change."""

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
    counts = {result: sum(found == result for found in results.values()) for result in Before}
    await stage.step.emit(
        "tests_run_before",
        "tests without the story's change: "
        + ", ".join(f"{count} {result}" for result, count in counts.items() if count),
        results=results,
    )
    return results


def results_before(suite: TestSuite, report: TestReport) -> dict[str, Before]:
    """By name of the suite's tests; what was skipped, not reached, or failed for want of a module is not judged."""
    names = suite.expected_names or tuple(case.name for case in suite.test_cases)
    found: dict[str, Before] = dict.fromkeys(names, Before.NOT_JUDGED)
    for case in report.cases:
        if case.name not in found or case.result is CaseResult.SKIPPED:
            continue
        if case.result is CaseResult.PASSED:
            if found[case.name] is Before.NOT_JUDGED:
                found[case.name] = Before.PASSED
        elif not _NOT_THERE.search(case.message):
            found[case.name] = Before.FAILED
    return found


def unnoticed(
    criteria: Sequence[str], suite: TestSuite, after: TestReport, before: Mapping[str, str]
) -> tuple[Covered, ...]:
    """Criteria whose tests all pass with and without the story's change."""
    covered, _ = coverage(criteria, tests_outcome(suite, after).cases)
    return tuple(row for row in covered if row.cases and all(_passes_both(case, before) for case in row.cases))


def _passes_both(case: CaseOutcome, before: Mapping[str, str]) -> bool:
    return case.result == CaseResult.PASSED and before.get(case.name) == Before.PASSED


def reason_to_ask(rows: Sequence[Covered]) -> str:
    """Why the tester is asked for the suite once more."""
    listed = "\n".join(f"- {row.criterion}: {_tests(row)}" for row in rows)
    return (
        "These tests pass on the project as it was before the story, too, so they show nothing about its change:\n"
        f"{listed}\nFor each of these criteria, write at least one test that fails without the change and passes with "
        "it; keep the other tests. Where a criterion only asks that something stays as it was, keep its test."
    )


def unnoticed_findings(rows: Sequence[Covered]) -> list[Finding]:
    """One per criterion, for the report: advice, because a criterion may ask that something stays as it was."""
    return [
        minor(
            "test.passes_before",
            f"the criterion {row.criterion!r} is shown by tests that pass without the story's change as well: "
            f"{_tests(row)}",
            fix="look whether the criterion asks for something new; if so, add a test that fails without it",
        )
        for row in rows
    ]


def _tests(row: Covered) -> str:
    names = list(dict.fromkeys(case.name for case in row.cases))
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


async def tell_not_stronger(stage: Stage, why: str) -> None:
    """Record that the suite stays as it is."""
    await stage.step.emit("suite_kept", f"the suite stays as it is: {why}", level=Level.WARN)
