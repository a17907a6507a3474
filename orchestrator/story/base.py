"""The base commit is tried before the first call of a sprint: its dependencies are installed, its tests run."""

import time
from collections.abc import Collection
from pathlib import Path

from orchestrator.core.paths import is_manifest
from orchestrator.core.ports import SuiteRunner, Workspace
from orchestrator.core.suite import OUTPUT_KEPT, RunProblem, TestReport, TriedBase, trial_of
from orchestrator.story.older_tests import holds_tests

_NOTHING_TO_COLLECT = frozenset(
    {
        RunProblem.INSTALL_FAILED,
        RunProblem.SETUP_FAILED,
        RunProblem.BUILD_FAILED,
        RunProblem.MISSING_RUNNER,
        RunProblem.NO_TYPESCRIPT,
    }
)


def holds_something(files: Collection[str]) -> bool:
    """Whether a tree with these paths has anything that can be tried: tests, or a manifest in its root."""
    return holds_tests(files) or any("/" not in path and is_manifest(path) for path in files)


async def try_base(workspace: Workspace, runner: SuiteRunner, *, key: str, timeout_s: float) -> TriedBase:
    """Run the whole suite on the sprint's base commit, at most `timeout_s`; then it counts what can be collected.

    Without tests it counts that the dependencies can be installed. `key` names the environment.
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
        elif report.problem is not None and not report.cases and report.problem not in _NOTHING_TO_COLLECT:
            collected = await runner.collect(folder, key=key)
        trial = trial_of(report, collected=collected, seconds=seconds)
        return TriedBase(trial=trial, report=report.model_copy(update={"output": report.output[-OUTPUT_KEPT:]}))

    return await workspace.base_tree(work)
