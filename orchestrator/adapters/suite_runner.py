"""The SuiteRunner of a project that may hold Python tests, Node tests, or both."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from orchestrator.adapters.node_environment import NodeEnvironments, NodePackages, linked
from orchestrator.adapters.node_runner import NodeRunner
from orchestrator.adapters.pytest_runner import PytestRunner
from orchestrator.adapters.runner_choice import NODE, PYTEST, choose_runner
from orchestrator.adapters.suite_report import unseen
from orchestrator.adapters.tests_in_tree import kinds_of_tests
from orchestrator.adapters.tree_reading import root_files
from orchestrator.domain.findings import Finding
from orchestrator.domain.testing import CommandResult, RunProblem, TestReport
from orchestrator.settings.model import TestSettings


class ProjectRunner:
    """Runs a suite with the runner it belongs to, and the whole suite with every runner it has tests for.

    `settings.command` names the only runner to be used. `path` is where commands are looked up.
    """

    def __init__(
        self, pytest: PytestRunner, node: NodeRunner, packages: NodeEnvironments, settings: TestSettings, path: str
    ) -> None:
        self._runners: dict[str, PytestRunner | NodeRunner] = {PYTEST: pytest, NODE: node}
        self._pytest = pytest
        self._packages = packages
        self._settings = settings
        self._path = path

    async def run(
        self,
        root: Path,
        *,
        files: Sequence[str] | None = None,
        expected_names: Sequence[str] = (),
        stack: Sequence[str] = (),
        key: str,
    ) -> TestReport:
        """See `ports.SuiteRunner.run`."""
        if files is None and not self._only:
            kinds = await asyncio.to_thread(kinds_of_tests, root)
        else:
            names = await asyncio.to_thread(root_files, root)
            choice = choose_runner(self._settings.command, names, files or (), stack)
            if isinstance(choice, Finding):
                return TestReport(problem=RunProblem.MISSING_RUNNER, output=f"{choice.message} {choice.fix}")
            kinds = (choice,)
        if len(kinds) == 1:
            return await self._runners[kinds[0]].run(root, files=files, expected_names=expected_names, key=key)
        reports = [await self._runners[kind].run(root, files=files, key=key) for kind in kinds]
        return merged(kinds, reports, expected_names)

    async def command(self, root: Path, command: str, *, key: str, timeout_s: float | None = None) -> CommandResult:
        """See `ports.SuiteRunner.command`. When dependencies cannot be installed, it is not run: exit code 1."""
        packages = await self._packages_for(root, key)
        if packages.problem is not None:
            text = f"The command was not run.\n{packages.problem}\n{packages.output}"
            return CommandResult(argv=("/bin/sh", "-c", command), exit_code=1, output=text)
        tools = () if packages.modules is None else (packages.modules / ".bin",)
        async with linked(root, packages.modules):
            return await self._pytest.command(root, command, key=key, tools=tools, timeout_s=timeout_s)

    @property
    def _only(self) -> str:
        return (self._settings.command or "").strip()

    async def _packages_for(self, root: Path, key: str) -> NodePackages:
        """A machine without npm runs the commands of Python projects that happen to have a package.json as well."""
        if self._only == PYTEST or await asyncio.to_thread(shutil.which, "npm", path=self._path) is None:
            return NodePackages()
        return await self._packages.ensure(root, key)


def merged(kinds: Sequence[str], reports: Sequence[TestReport], expected: Sequence[str]) -> TestReport:
    """One report of several runners: a problem of any is the whole's, except that one of them found no test."""
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
        output="".join(f"== {kind} ==\n{report.output}\n" for kind, report in zip(kinds, reports, strict=True)),
        duration_s=round(sum(report.duration_s for report in reports), 3),
    )
