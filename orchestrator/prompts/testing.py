"""Suites, test reports and fix instructions as prompt text."""

from collections.abc import Mapping, Sequence

from orchestrator.domain.testing import (
    CaseResult,
    FailureInstruction,
    ReportedCase,
    RunProblem,
    TestReport,
    TestSuite,
)
from orchestrator.prompts.budget import BUDGET_TOKENS, CHARS_PER_TOKEN, ContextBlock, cap_middle, fence, fit
from orchestrator.prompts.data import as_data
from orchestrator.prompts.project import render_files

_MESSAGE_CHARS = 3000
_NAMED = 40

PROBLEMS: Mapping[RunProblem, str] = {
    RunProblem.TIMEOUT: "the run took longer than allowed and was stopped",
    RunProblem.NO_TESTS: "no test was run",
    RunProblem.NO_REPORT: "the runner ended without a report: a crash, an early exit or a kill",
    RunProblem.MISSING_RUNNER: "the test runner is not there",
    RunProblem.NO_TYPESCRIPT: "the node that is there cannot run TypeScript",
    RunProblem.INSTALL_FAILED: "the dependencies could not be installed",
    RunProblem.SETUP_FAILED: "the project could not be set up",
    RunProblem.BUILD_FAILED: "the project could not be built",
    RunProblem.OUTPUT_LIMIT: "the run printed more than allowed and was stopped",
    RunProblem.MEMORY_LIMIT: "the run used more memory than allowed and was stopped",
    RunProblem.MISSING_NAMES: "tests of the suite are not in the report",
    RunProblem.TAMPERED: "a test file, or git's own file of the tree, was changed while it ran",
    RunProblem.FAKED: "in a second run, tests changed so that they must fail were not reported as failed",
}
"""What each problem of a run means, in words."""


def render_suite(suite: TestSuite, budget_tokens: int = BUDGET_TOKENS) -> str:
    """The test file's path and text."""
    return render_files({suite.test_file: suite.test_content}, budget_tokens)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _summary(report: TestReport) -> str:
    skipped = report.count(CaseResult.SKIPPED)
    lines = [f"{report.passed} passed, {report.failed} failed, {skipped} skipped."]
    if report.problem is not None:
        lines.insert(0, f"Problem ({report.problem}): {PROBLEMS[report.problem]}.")
    if report.missing_names:
        lines.append(f"Missing from the report: {_some(report.missing_names)}.")
    return "\n".join(lines)


def _failing(case: ReportedCase) -> ContextBlock:
    head = f"### {case.id} ({case.result})"
    message = cap_middle(case.message.strip(), _MESSAGE_CHARS)
    text = f"{head}\n\n{fence(message, 'text')}" if message else head
    return ContextBlock(name=case.id, text=text, weight=3)


def render_report(report: TestReport, budget_tokens: int = BUDGET_TOKENS) -> str:
    """Summary, failing tests with their messages, then passed names and printed text as far as they fit.

    The printed text is given only when the run had a problem or no failing test says why it failed.
    """
    ids = report.failing_ids
    failing = [case for case in report.cases if case.id in ids]
    passed = [case.name for case in report.cases if case.result is CaseResult.PASSED]
    blocks = [ContextBlock(name="summary", text=_summary(report), weight=4), *map(_failing, failing)]
    if passed:
        blocks.append(ContextBlock(name="passed tests", text=f"Passed: {_some(passed)}", weight=1))
    if report.output.strip() and (report.problem is not None or not failing):
        output = cap_middle(report.output.strip(), max(budget_tokens, 0) * CHARS_PER_TOKEN // 2)
        text = f"### Printed text\n\n{fence(output, 'text')}"
        blocks.append(ContextBlock(name="printed text", text=text, weight=2))
    return fit(blocks, budget_tokens)


def render_instructions(instructions: Sequence[FailureInstruction], output: str = "") -> str:
    """One bullet per instruction: place, issue, fix; without any the `output` that nobody could explain."""
    return "\n".join(_instruction(entry) for entry in instructions) or as_data(output, "output")


def _instruction(entry: FailureInstruction) -> str:
    place = f"{entry.file}, {entry.function}" if entry.function.strip() else entry.file
    return f"- {place}\n  Issue: {_indented(entry.issue)}\n  Fix: {_indented(entry.fix)}"


def _indented(text: str) -> str:
    return "\n  ".join(text.strip().split("\n"))


def render_history(
    attempts: Sequence[tuple[TestReport, Sequence[FailureInstruction]]], budget_tokens: int = BUDGET_TOKENS
) -> str:
    """Earlier runs with what was asked for after each; later attempts are served first when the room is short."""
    blocks = []
    for number, (report, instructions) in enumerate(attempts, start=1):
        lines = [f"### Attempt {number}", "", _summary(report)]
        if report.failing_ids:
            lines.append(f"Failing: {_some(sorted(report.failing_ids))}")
        if instructions:
            lines += ["Asked for:", render_instructions(instructions)]
        blocks.append(ContextBlock(name=f"attempt {number}", text="\n".join(lines), weight=number))
    return fit(blocks, budget_tokens)
