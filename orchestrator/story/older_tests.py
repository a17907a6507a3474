"""Compares tests before and after a merge: a test that ran before must still run."""

import time
from collections import OrderedDict
from collections.abc import Collection, Mapping
from pathlib import Path

from orchestrator.core.paths import is_manifest, is_test_file
from orchestrator.core.ports import SuiteRunner, Workspace
from orchestrator.core.suite import (
    OUTPUT_KEPT,
    CaseResult,
    ReportedCase,
    RunProblem,
    TestReport,
    TriedBase,
    trial_of,
)

NAMED = 20
"""Limit on the vanished tests that a finding names; the rest is counted."""
Tests = Mapping[str, str]
"""Name of each test with its group, without parameters → its file, "" if unknown."""


_KEPT = 100
"""Runs that are kept: more than stories are at work."""


class OlderTests:
    """Runs of the whole suite by the content that they ran on, as `Workspace.content_of` names it; shared by the
    stories of one run of a sprint, which have its environment."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, TestReport] = OrderedDict()
        self.base: TestReport | None = None
        """Run at the sprint's base commit, once known."""

    def know_base(self, content: str, report: TestReport) -> None:
        """Stores the run at the sprint's base commit, where the result branch starts."""
        self.base = report
        if report.problem is RunProblem.NO_TESTS:
            self._runs[content] = report
        self.note(content, report)

    def note(self, content: str, report: TestReport) -> None:
        """Stores a run, unless it shows nothing."""
        if report.problem is None or report.broke_off:
            self._runs[content] = report
        if len(self._runs) > _KEPT:
            self._runs.popitem(last=False)

    def find(self, content: str) -> TestReport | None:
        """Returns the run on this content, if there was one."""
        if content in self._runs:
            self._runs.move_to_end(content)
        return self._runs.get(content)

    async def at_result(self, workspace: Workspace, runner: SuiteRunner, *, key: str) -> TestReport:
        """Returns the run on the result branch as it is, which may show nothing."""
        content = await workspace.content_of(await workspace.result_head())
        report = self.find(content)
        if report is None:

            async def run(folder: Path) -> TestReport:
                return await runner.run(folder, files=None, key=key)

            report = await workspace.result_tree(run)
            self.note(content, report)
        return report


def ran(report: TestReport) -> dict[str, str]:
    """Returns the tests with a result. An error does not count: it may be a file that could not be loaded."""
    shown = (case for case in report.cases if case.result in {CaseResult.PASSED, CaseResult.FAILED})
    return {_key(case): case.file for case in shown}


def vanished(before: Tests, after: TestReport, changed: Collection[str]) -> tuple[str, ...]:
    """Returns tests of `before` missing or skipped in `after`, sorted; tests of `changed` files may vanish."""
    there = {_key(case) for case in after.cases if case.result is not CaseResult.SKIPPED}
    return tuple(sorted(test for test, file in before.items() if test not in there and file not in changed))


def _key(case: ReportedCase) -> str:
    return f"{case.id.partition('::')[0]}::{case.name}"


def holds_tests(files: Collection[str]) -> bool:
    """Returns whether a tree with these paths can have tests."""
    return any(is_test_file(path) for path in files)


NOT_SET_UP = frozenset(
    {
        RunProblem.INSTALL_FAILED,
        RunProblem.SETUP_FAILED,
        RunProblem.BUILD_FAILED,
        RunProblem.MISSING_RUNNER,
        RunProblem.NO_TYPESCRIPT,
    }
)


def holds_something(files: Collection[str]) -> bool:
    """Returns whether a tree with these paths has tests, or a manifest in its root."""
    return holds_tests(files) or any("/" not in path and is_manifest(path) for path in files)


async def try_base(workspace: Workspace, runner: SuiteRunner, *, key: str, timeout_s: float) -> TriedBase:
    """Runs the whole suite on the sprint's base commit; after `timeout_s` only checks that tests can be collected.

    A run in which no test passed or failed, as of a runner that crashes, makes the trial unusable.

    Without tests, checks that the dependencies can be installed. `key` names the environment.
    """

    async def work(folder: Path) -> TriedBase:
        began = time.monotonic()
        report = await runner.run(folder, files=None, key=key, timeout_s=timeout_s)
        seconds = report.duration_s or time.monotonic() - began
        collected = 0
        if report.problem is RunProblem.NO_TESTS:
            made = await runner.command(folder, "true", key=key)
            if not made.ok:
                report = TestReport(problem=RunProblem.INSTALL_FAILED, output=made.output)
            seconds = time.monotonic() - began
        elif report.problem is RunProblem.TIMEOUT and not report.cases:
            collected = await runner.collect(folder, key=key)
        trial = trial_of(report, collected=collected, seconds=seconds)
        if trial.problem is not None and report.problem not in NOT_SET_UP:
            installed = await runner.installed(folder, {}, ())
            trial = trial_of(report, collected=collected, seconds=seconds, installed=installed)
        return TriedBase(trial=trial, report=report.model_copy(update={"output": report.output[-OUTPUT_KEPT:]}))

    return await workspace.base_tree(work)
