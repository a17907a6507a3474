"""Which tests a tree holds, by name and first look: no link is followed, and the walk is bounded."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from orchestrator.adapters.javascript_tools import tool_of
from orchestrator.adapters.runner_choice import NODE, PYTEST, PYTHON_MANIFESTS, SUITES
from orchestrator.adapters.tree_reading import read_text, root_files

_NO_TESTS_THERE = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_MOST_ENTRIES = 200_000
_IN_FOLDER = re.compile(r"(^|/)(__tests__|tests?)/([^/]+/)*[^/.]+\.[cm]?[jt]sx?$")
"""Where jest and mocha look for tests of any name."""
_UNITTESTS = re.compile(r"^(tests?.*|.*_tests)\.py$")
"""What only unittest and Django look for."""
_TYPESCRIPT = (".ts", ".mts", ".cts")


def kinds_of_tests(root: Path) -> tuple[str, ...]:
    """Runners that the whole suite needs; pytest when there is no test at all, which it will say. Blocks.

    A JavaScript or TypeScript test counts when it imports `node:test`, or when a manifest above it names what runs it.
    """
    names = root_files(root)
    python = any(fnmatchcase(name, pattern) for name in names for pattern in PYTHON_MANIFESTS)
    node = False
    for path in files_of_tests(root):
        python = python or path.endswith(".py")
        node = node or is_nodes(root, path) or (not path.endswith(".py") and tool_of(root, path) is not None)
        if python and node:
            break
    return (PYTEST, NODE) if python and node else (NODE,) if node else (PYTEST,)


def typescript_tests(root: Path) -> tuple[str, ...]:
    """Node's own tests below `root` that are written in TypeScript, sorted. Blocks."""
    return tuple(sorted(path for path in files_of_tests(root) if is_typescript(path) and is_nodes(root, path)))


def is_typescript(path: str) -> bool:
    """Whether node has to leave types out to run it."""
    return path.endswith(_TYPESCRIPT)


def is_nodes(root: Path, path: str) -> bool:
    """Whether it is for `node --test`: it imports `node:test`. Blocks."""
    return not path.endswith(".py") and "node:test" in (read_text(root, path) or "")


def files_of_tests(root: Path) -> Iterator[str]:
    """Paths below `root` that are named like tests, no link followed. Blocks."""
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NO_TESTS_THERE]
        seen += len(files) + len(folders)
        if seen > _MOST_ENTRIES:
            return
        base = os.path.relpath(folder, root)
        for name in files:
            path = name if base == "." else f"{base}/{name}"
            named = any(pattern.search(name) for pattern in (*SUITES.values(), _UNITTESTS))
            if named or _IN_FOLDER.search(path):
                yield path
