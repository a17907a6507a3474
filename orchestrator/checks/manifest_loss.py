"""What a manifest says of the project and loses: dependencies, scripts, and the entries that tools start by."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from posixpath import basename
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from orchestrator.domain.delivery import FileChange
from orchestrator.domain.findings import Finding, Where, minor
from orchestrator.syntax.manifest import read_manifest

CODE = "delivery.manifest_loss"
_KEPT = {
    "package.json": ("name", "version", "type", "main", "module", "exports", "bin", "engines", "workspaces", "files"),
    "pyproject.toml": ("build-system", "project.name", "project.version", "project.requires-python", "project.readme"),
}
"""Entries by dotted name whose loss is told; their values may change."""
_FIX = "Keep what nobody asked to take away."


def manifest_losses(change: FileChange, before: str, task: str = "") -> Iterator[Finding]:
    """Findings on a manifest that `before` was and `change` makes poorer; never raises.

    Major where it cannot be read any more. Minor for a dependency, script or entry point that is gone, wherever it
    stood, unless `task` names it: what still imports a package is the contract's to say. Minor, too, for entries such
    as `type`, `main` or `requires-python`, for a package pinned to an older version, and for a key of package.json
    given twice.
    """
    old, new = read_manifest(change.path, before), read_manifest(change.path, change.content)
    where = Where(file=change.path)
    yield from (problem.model_copy(update={"code": "delivery.syntax"}) for problem in new.problems if not old.problems)
    if new.problems:
        return
    for what, gone in (
        ("dependency", sorted(old.dependencies - new.dependencies)),
        ("script", sorted(old.scripts - new.scripts)),
    ):
        if gone := [name for name in gone if not _is_named(name, task)]:
            message = f"the manifest lost the {what} {', '.join(f'`{name}`' for name in gone)}"
            yield minor(CODE, message, where=where.model_copy(update={"field": what}), fix=_FIX)
    for entry in _entries_lost(change, before):
        yield minor(CODE, f"the manifest lost its `{entry}`", where=where, fix=_FIX)
    for name, was, now in _lowered(change, before):
        yield minor(CODE, f"`{name}` went back from {was} to {now}", where=where, fix="Keep the newer version.")
    for key in _doubled(change):
        yield minor(CODE, f"`{key}` is given twice: the first one is lost", where=where, fix="Give each key once.")


def _is_named(name: str, task: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", task, re.IGNORECASE))


def _read(path: str, text: str) -> Mapping[str, Any]:
    name = basename(path).lower()
    try:
        if name == "package.json":
            found = json.loads(text.removeprefix("\ufeff"))
        else:
            found = tomllib.loads(text) if name == "pyproject.toml" else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _value(data: object, dotted: str) -> object:
    for part in dotted.split("."):
        data = data.get(part) if isinstance(data, Mapping) else None
    return data


def _entries_lost(change: FileChange, before: str) -> Iterator[str]:
    old, new = _read(change.path, before), _read(change.path, change.content)
    for entry in _KEPT.get(basename(change.path).lower(), ()):
        dynamic = _value(new, "project.dynamic")
        named = isinstance(dynamic, list) and entry.removeprefix("project.") in dynamic
        if _value(old, entry) not in (None, "", [], {}) and _value(new, entry) is None and not named:
            yield entry


def _lowered(change: FileChange, before: str) -> Iterator[tuple[str, str, str]]:
    """Packages whose plain version (`1.2`, `^1.2`, `==1.2`, `>=1.2`) is older than it was."""
    old, new = _versions(change.path, before), _versions(change.path, change.content)
    for name, was in old.items():
        now = new.get(name, was)
        try:
            if Version(now) < Version(was):
                yield name, was, now
        except InvalidVersion:
            continue


def _versions(path: str, text: str) -> dict[str, str]:
    """Package → its version without the sign before it; ranges and addresses are left out."""
    data = _read(path, text)
    pairs: list[tuple[str, object]] = []
    for group in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        held = data.get(group)
        pairs += held.items() if isinstance(held, Mapping) else ()
    listed = text.splitlines() if path.lower().endswith((".txt", ".in")) else _value(data, "project.dependencies")
    for line in listed if isinstance(listed, list) else ():
        name, sign, version = _parted(str(line))
        pairs += [(str(canonicalize_name(name)), version)] if sign else []
    plain = ((name, str(spec).strip().lstrip("^~=v>").strip()) for name, spec in pairs)
    return {
        name: version for name, version in plain if version[:1].isdigit() and " " not in version and "," not in version
    }


def _parted(line: str) -> tuple[str, str, str]:
    """`flask[async]>=2.0 ; marker  # note` → (flask, >=, 2.0); no sign for what has none of these."""
    plain = line.split("#")[0].split(";")[0].strip()
    sign = next((sign for sign in ("==", ">=", "~=") if sign in plain), "")
    name, _, version = plain.partition(sign) if sign else (plain, "", "")
    return name.split("[")[0].strip(), sign, version.strip()


def _doubled(change: FileChange) -> list[str]:
    """Keys that one object of package.json gives twice, in order; TOML's parser refuses them itself."""
    if basename(change.path).lower() != "package.json":
        return []
    found: list[str] = []

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in items]
        found.extend(key for key in dict.fromkeys(keys) if keys.count(key) > 1)
        return dict(items)

    try:
        json.loads(change.content.removeprefix("\ufeff"), object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return []
    return found
