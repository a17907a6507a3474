"""package.json: every group that brings a package, and what puts another in the place of one."""

import json
import re
from collections.abc import Mapping

from orchestrator.syntax.manifest_found import Found, table
from orchestrator.syntax.npm_specs import extensions, groups, leaves, modules, plain_name, replaced, spec, workspaces

_REPLACING = ("overrides", "resolutions")
_MANAGER = re.compile(r"^(npm|pnpm|yarn|bun)@[\w.+-]+$")


def read_package_json(text: str, folder: str = "") -> Found:
    """What package.json declares; `folder` is the one it stands in. Raises ValueError for what is no such file."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    found = Found()
    groups(data, found, folder)
    pnpm = table(data, "pnpm")
    for held in (*(data.get(key) for key in _REPLACING), pnpm.get("overrides")):
        replaced(held, found)
    extensions(pnpm.get("packageExtensions"), found)
    for name, wanted in table(pnpm, "configDependencies").items():
        found.names.add(plain_name(name))
        spec(plain_name(name), wanted, found)
    for key in ("bundleDependencies", "bundledDependencies"):
        held = data.get(key)
        names = held if isinstance(held, list) else ()
        found.pinned.update(plain_name(name) for name in names if isinstance(name, str))
    workspaces(data.get("workspaces"), found, folder)
    _manager(data, found)
    modules(data.get("imports"), found)
    modules(data.get("browser") if isinstance(data.get("browser"), Mapping) else None, found)
    _outside(data, found, folder)
    found.scripts = {name: str(command) for name, command in table(data, "scripts").items()}
    if isinstance(data.get("name"), str) and data["name"].strip():
        found.local.add(plain_name(data["name"]))
    return found


def _manager(data: Mapping[str, object], found: Found) -> None:
    """The package manager that is fetched and run for this project: one that is known, by its version."""
    wanted = data.get("packageManager")
    if isinstance(wanted, str) and not _MANAGER.match(wanted.strip()):
        found.sources.add(f"packageManager {wanted}".lower())


def _outside(data: Mapping[str, object], found: Found, folder: str) -> None:
    """Entry points that are no files of the package."""
    for key in ("main", "module", "types"):
        entry = data.get(key)
        if isinstance(entry, str) and leaves(entry, folder):
            found.sources.add(f"{key} {entry}".lower())
