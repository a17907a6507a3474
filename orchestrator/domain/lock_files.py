"""Lock files that follow their manifests: which of them, when, and what came of it. Pure."""

import json
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from posixpath import basename, dirname

from orchestrator.domain.base import Value
from orchestrator.domain.delivery import FileChange
from orchestrator.domain.file_kinds import LOCKS

_READ = frozenset({"package.json", "pyproject.toml", "Pipfile", ".npmrc", "pnpm-workspace.yaml", *LOCKS})
_OF_PACKAGE = (
    *("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta"),
    *("overrides", "resolutions", "pnpm", "workspaces"),
)


class LockFiles(Value):
    """What became of lock files whose manifests changed."""

    files: tuple[FileChange, ...] = ()
    """Those that are others now."""
    told: tuple[str, ...] = ()
    """Sentences about those that could not be made."""


def is_read(path: str) -> bool:
    """Whether a tool reads the file to make a lock file."""
    return basename(path) in _READ


def is_lock(path: str) -> bool:
    """Whether the file follows manifests."""
    return basename(path) in LOCKS


def locks_to_follow(changed: Mapping[str, str], before: Mapping[str, str], paths: Collection[str]) -> tuple[str, ...]:
    """Those lock files among `paths` whose manifests ask for something else in `changed` than they did `before`."""
    other = [path for path, text in changed.items() if _asked(path, text) != _asked(path, before.get(path, ""))]
    return tuple(
        lock
        for lock in sorted(path for path in paths if is_lock(path))
        if any(basename(path) in LOCKS[basename(lock)] and _is_below(path, dirname(lock)) for path in other)
    )


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _asked(path: str, text: str) -> object:
    """What a manifest asks for; the whole text where that cannot be told."""
    with suppress(ValueError, AttributeError):
        if basename(path) == "package.json":
            told = json.loads(text)
            return [told.get(key) or {} for key in _OF_PACKAGE]
        if basename(path) == "pyproject.toml":
            told = tomllib.loads(text)
            tools = told.get("tool", {})
            return [
                told.get("project"),
                told.get("dependency-groups"),
                *(tools.get(key) for key in ("uv", "poetry", "pdm")),
            ]
    return text
