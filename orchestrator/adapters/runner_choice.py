"""Which runner runs a suite (spec 1 C3): the setting, else the manifests, else the suite's name; never a default."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from orchestrator.domain.findings import Finding, Where, major

PYTEST = "pytest"
RUNNERS = (PYTEST,)
"""Runners this version knows."""
_PYTHON_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "pytest.ini", "tox.ini")
_PYTEST_NAMES = ("test_*.py", "*_test.py")


def choose_runner(command: str | None, root_files: Collection[str], suite_files: Collection[str]) -> str | Finding:
    """The runner's name for `suite_files` (none: the whole suite), or the finding `test.no_runner`.

    `command` is the setting `test.command`, `root_files` the names of the files in the project's root.
    """
    if command is not None and command.strip():
        name = command.strip()
        return name if name in RUNNERS else _none(f"`test.command` names `{name}`", suite_files)
    odd = [file for file in suite_files if not file.endswith(".py")]
    if odd:
        return _none(f"no known runner runs `{odd[0]}`", odd)
    if any(fnmatchcase(name, pattern) for name in root_files for pattern in _PYTHON_MANIFESTS):
        return PYTEST
    names = [PurePosixPath(file).name for file in suite_files]
    if names and all(any(fnmatchcase(name, pattern) for pattern in _PYTEST_NAMES) for name in names):
        return PYTEST
    return _none("neither a manifest nor the name of the suite tells the runner", suite_files)


def _none(reason: str, files: Collection[str]) -> Finding:
    return major(
        "test.no_runner",
        f"No test runner could be chosen: {reason}.",
        where=Where(file=next(iter(files), None), field="test.command"),
        fix=f"Name the suite test_*.py, or set test.command to one of: {', '.join(RUNNERS)}.",
    )
