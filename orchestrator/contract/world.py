"""A contract made ready for many look-ups."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from posixpath import basename, dirname, splitext

from orchestrator.domain.contract import ArchitectureContract

PYTHON_SUFFIXES = (".py", ".pyi")
_PYTHON_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_PYTHON_PROJECT = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})


def spelling(path: str) -> str:
    """What a file system without case, or with its own Unicode form, makes of a path: equal ones are one file there."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


class World:
    """The allowed files and dependencies of one contract as sets, each built once."""

    def __init__(self, contract: ArchitectureContract) -> None:
        self.contract = contract
        self.story_id = contract.story_id
        self.files = contract.allowed_files
        self.baseline = frozenset(contract.baseline_files)
        self.dependencies = contract.allowed_dependencies

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """`spelling` of a path → the allowed path; one that was there already goes before a new one."""
        ordered = (*sorted(self.files - self.baseline, reverse=True), *sorted(self.baseline, reverse=True))
        return {spelling(path): path for path in ordered}

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder above an allowed file."""
        parts = (path.split("/") for path in self.files)
        return frozenset("/".join(names[:end]) for names in parts for end in range(1, len(names)))

    def tests_below(self, folders: Sequence[str]) -> bool:
        """Whether every Python test that was there lies below one of `folders`."""
        prefixes = tuple("" if folder in {".", "./"} else f"{folder.rstrip('/')}/" for folder in folders)
        return all(path.startswith(prefixes) for path in self.contract.baseline_files if _PYTHON_TEST.search(path))

    @cached_property
    def python_folders(self) -> frozenset[str]:
        """Folders that hold a Python file somewhere below: packages, also those without `__init__`."""
        found: set[str] = set()
        for path in self.files:
            if splitext(path)[1] in PYTHON_SUFFIXES:
                parts = path.split("/")
                found.update("/".join(parts[:end]) for end in range(1, len(parts)))
        return frozenset(found)

    @cached_property
    def python_roots(self) -> tuple[str, ...]:
        """Folders of Python projects inside the repository, with the `/` behind them; "" is the repository itself."""
        homes = {dirname(path) for path in self.baseline if basename(path) in _PYTHON_PROJECT}
        return tuple(sorted(f"{home}/" if home else "" for home in homes))

    def is_local_name(self, module: str) -> bool:
        """Whether one of the project's own names or aliases covers this JavaScript module."""
        return any(
            module.startswith(name[:-1]) if name.endswith("*") else module == name or module.startswith(f"{name}/")
            for name in self.contract.local_names
        )
