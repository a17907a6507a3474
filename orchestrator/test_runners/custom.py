"""SuiteRunner's half for any language: the command of `test.custom`, and the JUnit files that it writes."""

import asyncio
import re
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
        texts = await asyncio.to_thread(self._texts, root, asked)
        shown = report.model_copy(update={"cases": _asked(report.cases, asked, texts), "ran_with": (WHY,)})
        if shown.cases or not report.cases or report.problem is not None or asked.only:
            return shown
        told = f"{report.output}\n[none of the reported tests is one of {', '.join(asked.files or ())}]\n"
        return shown.model_copy(update={"problem": RunProblem.NO_TESTS, "output": told})

    async def collect(self, root: Path, *, key: str) -> int:
        """See `ports.SuiteRunner.collect`: nothing can be known without running the command."""
        return 0

    def _texts(self, root: Path, asked: Selection) -> str:
        """Returns the texts of the files that were asked for."""
        return "\n".join(read_text(root, path, MAX_BYTES) or "" for path in asked.files or ())

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


# A test's name as languages define it: `func TestX(`, `fn x(`, `def test_x`, `void x(`, `test "x"`, `TEST(Suite, X)`.
_DEFINED = r"(?:\b(?:func|fn|def|fun|function|void|sub|proc)\s+`?|[\"'`]|\bTEST\w*\(\w+,\s*){name}(?!\w)"


def _asked(cases: tuple[ReportedCase, ...], asked: Selection, texts: str) -> tuple[ReportedCase, ...]:
    """Returns the tests of these files, as far as the report names files; else those with these names.

    Else those that the files define by their `texts`; none where nothing of the report is theirs.
    """
    if asked.only or asked.files is None:
        return asked.those(cases) or ()
    return (
        tuple(case for case in cases if case.file in asked.files)
        or tuple(case for case in cases if case.name in asked.expected)
        or tuple(case for case in cases if not case.file and _defines(texts, case.name))
    )


def _defines(texts: str, name: str) -> bool:
    """Returns whether a test of this name stands in the texts; Go names a part of one behind a slash."""
    own = name.partition("/")[0].partition("(")[0].strip()
    return bool(own) and re.search(_DEFINED.format(name=re.escape(own)), texts) is not None
