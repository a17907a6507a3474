"""Which part of a repository with several Python projects a test belongs to. Blocks."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from orchestrator.adapters.pytest_settings import settings_file, test_paths
from orchestrator.adapters.tests_in_tree import files_of_tests
from orchestrator.adapters.tree_reading import read_text, root_files
from orchestrator.domain.file_kinds import is_test_file
from orchestrator.domain.testing import ReportedCase

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
    """The parts of a run; at least one.

    The whole suite of a repository whose root names its tests (`testpaths`) is run as its people run it: in one part.
    """
    if only:
        homes = {case.file: part_of(root, case.file) for case in only}
        return [
            Part(folder, only=tuple(case for case in only if homes[case.file] == folder)) for folder in _unique(homes)
        ]
    if files:
        homes = {file: part_of(root, file) for file in files}
        return [Part(folder, tuple(file for file in files if homes[file] == folder)) for folder in _unique(homes)]
    names, read = root_files(root), partial(read_text, root)
    settings = settings_file(names, read)
    if settings is not None and test_paths(settings, read(settings) or ""):
        return [Part("")]
    one_each = {PurePosixPath(file).parent: file for file in files_of_tests(root) if file.endswith(".py")}
    folders = sorted({part_of(root, file) for file in one_each.values()}) or [""]
    return [Part(one, (one,) if one else (), (), tuple(_below(one, folders))) for one in folders]


def part_of(root: Path, file: str) -> str:
    """The nearest folder above a test that has a manifest; manifests in folders of tests are the tests' own."""
    for parent in PurePosixPath(file).parents:
        folder = "" if str(parent) == "." else str(parent)
        if not folder or (not is_test_file(f"{folder}/x") and _has_manifest(root / folder)):
            return folder
    return ""


def _has_manifest(folder: Path) -> bool:
    return any(fnmatchcase(name, pattern) for name in root_files(folder) for pattern in _MANIFESTS)


def _below(folder: str, others: Iterable[str]) -> list[str]:
    return [one for one in others if one != folder and one.startswith(f"{folder}/" if folder else "")]


def _unique(homes: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(homes.values()))
