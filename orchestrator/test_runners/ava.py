"""Reads the report of AVA: TAP, in which the titles of tests begin with what is left of their files' paths."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from orchestrator.core.suite import CaseResult, ReportedCase
from orchestrator.test_runners.failures import mendable

_RESULT = re.compile(r"(?P<failed>not )?ok \d+ - (?P<title>.*?)(?P<skipped> # (?:SKIP|TODO).*)?")
_PLAN = re.compile(r"1\.\.\d+")
_CRASHED = re.compile(r"(?:No tests found in )?(?P<file>\S+\.[cm]?[jt]sx?)(?: exited .*|, make sure .*)?")
"""Titles that stand for a file which could not be loaded."""
_BETWEEN = " › "


def read_tap(text: str, files: Sequence[str], root: Path) -> tuple[ReportedCase, ...]:
    """Returns the cases of a report in its order; `files` are the test files that may have run, from `root`.

    Raises ValueError when the report breaks off.
    """
    lines = text.splitlines()
    if not any(map(_PLAN.fullmatch, lines)):
        raise ValueError("the report of AVA breaks off: it does not tell how many tests there are")
    found: dict[str, ReportedCase] = {}
    for result, details in _results(lines):
        file, title = _file_of(result["title"], files)
        state = CaseResult.FAILED if result["failed"] else CaseResult.PASSED
        if result["skipped"]:
            state = CaseResult.SKIPPED
        elif result["failed"] and (crashed := _CRASHED.fullmatch(result["title"])) is not None:
            title, state = crashed["file"], CaseResult.ERROR
            file = next((one for one in files if f"/{one}".endswith(f"/{title}")), title)
        message = mendable("\n".join(details).strip(), root)
        case = ReportedCase(name=title, id=f"{file}::{title}", file=file, result=state, message=message)
        if case.id not in found or state is not CaseResult.PASSED:
            found[case.id] = case
    return tuple(found.values())


def _results(lines: Sequence[str]) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Yields each result with the lines that tell its error."""
    result, details = None, list[str]()
    for line in lines:
        if (found := _RESULT.fullmatch(line)) is not None:
            if result is not None:
                yield result, details
            result, details = found, []
        elif line.startswith("  ") and line not in {"  ---", "  ..."}:
            details.append(line[2:])
    if result is not None:
        yield result, details


def _file_of(title: str, files: Sequence[str]) -> tuple[str, str]:
    """Returns the file of a test, and its title without what AVA puts before it where there are several files."""
    if len(files) == 1:
        return files[0], title
    parts = title.split(_BETWEEN)
    for count in range(len(parts) - 1, 0, -1):
        told = [file for file in files if _is_told(file, parts[:count])]
        if told:
            return min(told, key=lambda file: file.count("/")), _BETWEEN.join(parts[count:])
    return "", title


def _is_told(file: str, parts: Sequence[str]) -> bool:
    """Returns whether AVA tells a path by these parts: it leaves out a beginning that all files share, and the suffix;
    AVA 3 only that of `.js`."""
    path = PurePosixPath(file.replace(".spec", "", 1).replace(".test", "", 1).replace("test-", ""))
    folders = [part for part in path.parts[:-1] if part != "__tests__"]
    return [*parts] in ([*folders, path.stem][-len(parts) :], [*folders, path.name][-len(parts) :])
