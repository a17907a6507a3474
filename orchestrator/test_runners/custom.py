"""SuiteRunner's half for any language: the command of `test.custom`, and the JUnit files that it writes."""

import asyncio
from collections.abc import Awaitable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from orchestrator.core.errors import WorkspaceError
from orchestrator.core.suite import CommandResult, ReportedCase, RunProblem, TestReport
from orchestrator.files.safe_files import read_text, walk_files, write_below
from orchestrator.settings.model import CustomTests
from orchestrator.test_runners.choice import CUSTOM
from orchestrator.test_runners.report import MAX_BYTES, Selection, judged, parse_junit

WHY = f"{CUSTOM}: the settings name test.custom"


class Command(Protocol):
    """Runs a shell command at `root` in the project's environment."""

    def __call__(self, root: Path, command: str, *, key: str, timeout_s: float | None) -> Awaitable[CommandResult]:
        """Runs it within the time limit."""
        ...


class CustomRunner:
    """Runs the whole command, whatever is asked for, and reports those tests that are."""

    def __init__(self, settings: CustomTests, command: Command, timeout_s: float) -> None:
        self._settings, self._command, self._timeout_s = settings, command, timeout_s

    async def run(self, root: Path, asked: Selection) -> TestReport:
        """See `ports.SuiteRunner.run`. Reports from before are removed first: only what this run writes counts."""
        try:
            await asyncio.to_thread(self._remove_reports, root)
            limit = asked.timeout_s or self._timeout_s
            result = await self._command(root, self._settings.command, key=asked.key, timeout_s=limit)
            cases, trouble = await asyncio.to_thread(self._read, root)
            await asyncio.to_thread(self._remove_reports, root)
        except WorkspaceError as error:
            return TestReport(problem=RunProblem.NO_REPORT, output=str(error), ran_with=(WHY,))
        names = () if asked.only else asked.expected
        report = judged(result, cases, trouble, names, runner="the command of test.custom", complete=(0,))
        return report.model_copy(update={"cases": _asked(report.cases, asked), "ran_with": (WHY,)})

    async def collect(self, root: Path, *, key: str) -> int:
        """See `ports.SuiteRunner.collect`: nothing can be known without running the command."""
        return 0

    def _reports(self, root: Path) -> Iterator[str]:
        for place, names in walk_files(root, ".git".__eq__):
            for name in names:
                if any(fnmatchcase(place + name, pattern) for pattern in self._settings.junit):
                    yield place + name

    def _remove_reports(self, root: Path) -> None:
        if found := [*self._reports(root)]:
            write_below(root, (), found)

    def _read(self, root: Path) -> tuple[tuple[ReportedCase, ...] | None, str]:
        found, cases = sorted(self._reports(root)), list[ReportedCase]()
        for path in found:
            text = read_text(root, path, MAX_BYTES)
            try:
                cases += parse_junit((text or "").encode(), parameters=False, root=root)
            except ValueError as error:
                return None, f"{path}: {error}"
        if not found:
            return None, f"the command wrote none of {', '.join(self._settings.junit)}"
        return tuple(cases), ""


def _asked(cases: tuple[ReportedCase, ...], asked: Selection) -> tuple[ReportedCase, ...]:
    """Returns the tests of these files, as far as the report names files; else those with these names; else all."""
    if asked.only or asked.files is None:
        return asked.those(cases) or ()
    there = tuple(case for case in cases if case.file in asked.files)
    return there or tuple(case for case in cases if case.name in asked.expected) or cases
