"""What a command changed in a tree. Blocks."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from orchestrator.adapters.tree_reading import read_text
from orchestrator.domain.delivery import FileChange

_NOT_LOOKED_AT = frozenset(
    {".git", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv", ".hypothesis"}
)
"""Folders of tools, which every tool makes anew."""
_MOST_ENTRIES = 200_000
States = Mapping[str, tuple[int, int, int]]
"""Of the files of a tree, each with what changes with its content."""


def states(root: Path) -> States:
    """As far as a bounded walk gets; no link is followed."""
    found: dict[str, tuple[int, int, int]] = {}
    seen = 0
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in _NOT_LOOKED_AT]
        seen += len(inner) + len(names)
        if seen > _MOST_ENTRIES:
            break
        base = os.path.relpath(folder, root)
        for name in names:
            path = name if base == "." else f"{base}/{name}"
            try:
                told = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            found[path] = (told.st_ino, told.st_size, told.st_mtime_ns)
    return found


def changed(root: Path, before: States, own: Collection[str]) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """The texts of those of `own` that are new or other than `before`, and the paths of what else is, sorted."""
    paths = sorted(path for path, state in states(root).items() if before.get(path) != state and path != ".git")
    texts = {path: text for path in paths if path in own and (text := read_text(root, path)) is not None}
    made = tuple(FileChange(path=path, content=text) for path, text in texts.items())
    return made, tuple(path for path in paths if path not in texts)
