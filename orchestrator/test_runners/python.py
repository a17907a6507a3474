"""Finds the file that configures pytest, and the project of a test in a repository with several projects.

pytest itself would climb out of the project to find a configuration; a story's tree lies below folders that are not its
own, so the file is chosen here.
"""

import configparser
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from orchestrator.code.parsers import parse_toml
from orchestrator.core.paths import is_test_file
from orchestrator.core.suite import ReportedCase
from orchestrator.files.safe_files import read_text, root_files
from orchestrator.test_runners.tests_in_tree import files_of_tests

_ALWAYS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_WHEN = {
    "pyproject.toml": re.compile(r"^\s*\[\s*tool\s*\.\s*[\"']?pytest\b", re.MULTILINE),
    "tox.ini": re.compile(r"^\[pytest\]", re.MULTILINE),
    "setup.cfg": re.compile(r"^\[tool:pytest\]", re.MULTILINE),
}


def settings_file(root_files: Collection[str], read: Callable[[str], str | None]) -> str | None:
    """Name of the file in the project's root that pytest would take there, in its order of precedence, or None."""
    for name in _ALWAYS:
        if name in root_files and read(name) is not None:
            return name
    for name, section in _WHEN.items():
        if name in root_files and section.search(read(name) or ""):
            return name
    return None


def import_paths(name: str, text: str) -> tuple[str, ...]:
    """The `pythonpath` entries of that file, relative to the root as written; none when it cannot be understood."""
    return _listed(name, text, "pythonpath")


def test_paths(name: str, text: str) -> tuple[str, ...]:
    """Returns the `testpaths` entries of that file, likewise."""
    return _listed(name, text, "testpaths")


def _listed(name: str, text: str, key: str) -> tuple[str, ...]:
    try:
        value = _from_toml(name, text, key) if name.endswith(".toml") else _from_ini(text, key)
        return tuple(shlex.split(value)) if isinstance(value, str) else tuple(str(entry) for entry in value)
    except (ValueError, TypeError, AttributeError, configparser.Error):  # pytest itself reports an invalid file
        return ()


def _from_toml(name: str, text: str, key: str) -> list[str] | str:
    data = parse_toml(text)
    table = data.get("tool", {}) if name == "pyproject.toml" else data
    section = table.get("pytest", {})
    found: list[str] | str = {**section, **section.get("ini_options", {})}.get(key, [])
    return found


def _from_ini(text: str, key: str) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    sections = ("pytest", "tool:pytest")
    return next((parser[name][key] for name in sections if parser.has_option(name, key)), "")


_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt")


class Part(NamedTuple):
    """What is run in one environment."""

    folder: str
    """Below the root, with the nearest manifest; "" for the root itself."""
    chosen: tuple[str, ...] = ()
    """Files or a folder, from the root; none: whatever pytest finds."""
    only: tuple[ReportedCase, ...] = ()
    ignored: tuple[str, ...] = ()
    """Folders of other parts."""

    @property
    def whole(self) -> bool:
        """Whether it is all that its folder holds."""
        return not self.only and self.chosen in {(), (self.folder,)}


def parts(root: Path, files: Sequence[str] | None, only: Sequence[ReportedCase]) -> list[Part]:
    """Returns the parts of a run; at least one.

    The whole suite of a repository whose root names its tests (`testpaths`) is run as its people run it: in one part.
    """
    if only:
        homes = {case.file: part_of(root, case.file) for case in only}
        return [
            Part(folder, only=tuple(case for case in only if homes[case.file] == folder))
            for folder in dict.fromkeys(homes.values())
        ]
    if files:
        homes = {file: part_of(root, file) for file in files}
        return [
            Part(folder, tuple(file for file in files if homes[file] == folder))
            for folder in dict.fromkeys(homes.values())
        ]
    names, read = root_files(root), partial(read_text, root)
    settings = settings_file(names, read)
    if settings is not None and test_paths(settings, read(settings) or ""):
        return [Part("")]
    one_each = {PurePosixPath(file).parent: file for file in files_of_tests(root) if file.endswith(".py")}
    folders = sorted({part_of(root, file) for file in one_each.values()}) or [""]
    return [Part(one, (one,) if one else (), (), tuple(_below(one, folders))) for one in folders]


def part_of(root: Path, file: str) -> str:
    """Returns the nearest folder above a test that has a manifest; manifests in folders of tests are the tests' own."""
    for parent in PurePosixPath(file).parents:
        folder = "" if str(parent) == "." else str(parent)
        if not folder or (not is_test_file(f"{folder}/x") and _has_manifest(root / folder)):
            return folder
    return ""


def _has_manifest(folder: Path) -> bool:
    return any(fnmatchcase(name, pattern) for name in root_files(folder) for pattern in _MANIFESTS)


def _below(folder: str, others: Iterable[str]) -> list[str]:
    return [one for one in others if one != folder and one.startswith(f"{folder}/" if folder else "")]
