"""A contract made ready for many look-ups."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from posixpath import splitext

from orchestrator.domain.contract import ArchitectureContract

PYTHON_SUFFIXES = (".py", ".pyi")
_PYTHON_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")


class World:
    """The allowed files and dependencies of one contract as sets, each built once."""

    def __init__(self, contract: ArchitectureContract) -> None:
        self.contract = contract
        self.story_id = contract.story_id
        self.files = contract.allowed_files
        self.dependencies = contract.allowed_dependencies

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """Case-folded path → the allowed path."""
        return {path.casefold(): path for path in sorted(self.files, reverse=True)}

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
