"""Chooses the runner of a suite by setting, else by the language of its files; never by default."""

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from orchestrator.core.finding import Finding, Where, major

PYTEST = "pytest"
UNITTEST = "unittest"
DJANGO = "django"
NODE = "node"
CUSTOM = "custom"
"""The command of `test.custom`."""


class Kind(NamedTuple):
    """Marks of one kind of tests."""

    manifests: tuple[str, ...]
    """Files in the root of its projects."""
    runs: re.Pattern[str]
    """Paths that its runner can run at all."""
    suites: re.Pattern[str]
    """File names that tell the runner by themselves."""


KINDS: Mapping[str, Kind] = {
    PYTEST: Kind(
        manifests=("pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "pytest.ini", "tox.ini"),
        runs=re.compile(r"\.py$"),
        suites=re.compile(r"^(test_.*|.*_test)\.py$"),
    ),
    NODE: Kind(
        manifests=("package.json",),
        runs=re.compile(r"\.[cm]?[jt]sx?$"),
        suites=re.compile(r"\.(test|spec)\.[cm]?[jt]sx?$"),
    ),
}
"""Runner → its kind. A new one is a row here and in `app.runners`, and a class; see docs/development/extending.md."""
RUNNERS = (PYTEST, UNITTEST, DJANGO, *(name for name in KINDS if name != PYTEST))
"""Values of `test.command`. unittest's and Django's tests count as pytest's when the language decides."""


def choose_runner(command: str | None, suite_files: Collection[str]) -> str | Finding:
    """Returns the name of the runner for `suite_files`, or the finding `test.no_runner`; `command` is the setting."""
    if command is not None and command.strip():
        name = command.strip()
        return name if name in RUNNERS else _none(f"`test.command` names `{name}`", suite_files)
    able = [name for name, kind in KINDS.items() if all(map(kind.runs.search, suite_files))]
    if len(able) == 1:
        return able[0]
    return _none(f"no known runner runs {', '.join(f'`{file}`' for file in suite_files)}", suite_files)


def stated_runners(root_files: Collection[str]) -> list[str]:
    """Returns the runners whose manifests are among these."""
    return [
        name
        for name, kind in KINDS.items()
        if any(fnmatchcase(file, pattern) for file in root_files for pattern in kind.manifests)
    ]


def kind_of(path: str) -> str:
    """Returns the runner for tests in a file; pytest's are also doctests in files of any name."""
    return next((name for name, kind in KINDS.items() if kind.runs.search(path)), PYTEST)


def _none(reason: str, files: Collection[str]) -> Finding:
    return major(
        "test.no_runner",
        f"No test runner could be chosen: {reason}.",
        where=Where(file=next(iter(files), None), field="test.command"),
        fix=f"Name the suite test_*.py, *.test.js or *.test.ts, or set test.command to one of: {', '.join(RUNNERS)}.",
    )
