"""The projects of one repository that a Python project is installed with: workspaces, paths, `-e ../other`. Blocks."""

import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from orchestrator.adapters.python_locked import locked_versions
from orchestrator.adapters.python_project import BuildSystem, build_system
from orchestrator.adapters.python_requirements import FOLDERS, Chosen, Member, Requirements, gather, left_out
from orchestrator.adapters.tree_reading import read_text, root_files

_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")
_NONSENSE = (ValueError, TypeError, AttributeError, LookupError, NotImplementedError, RuntimeError, OSError)
"""What manifests raise that say nonsense: no text where one must be, a path with a NUL, links in a circle."""


class LocalProject(NamedTuple):
    """A project that is installed from its folder."""

    folder: str
    """From the repository's root, "" for itself."""
    extras: tuple[str, ...]
    """That are asked for."""
    system: BuildSystem | None
    """None: it is no package, only what it needs is installed."""


def gather_all(
    root: Path, folder: str, setups: Mapping[str, str], chosen: Chosen, built: Mapping[str, Sequence[str]] = {}
) -> tuple[Requirements, list[LocalProject]]:
    """What the project in `folder` of the repository at `root` needs; it and all projects that it is installed with.

    Of those only what they need at run time counts. Without a lock file of its own the repository's counts. `built` is
    what builds told that their projects need, by folder.
    """
    wanted = _read(root / folder, setups, chosen, built.get(folder, ()))
    found, missing, waiting = {folder: wanted}, list[str](), [(folder, one) for one in wanted.members]
    while waiting:
        base, member = waiting.pop(0)
        place = _place(root, base, member)
        if place is None:
            missing.append(left_out(member.told))
        elif place not in found:
            files = [name for name in root_files(root / place) if name in _MANIFESTS]
            read, only = functools.partial(read_text, root / place), Chosen(member.extras, ())
            found[place] = gather(files, read, {}, only, built.get(place, ()))
            waiting += [(place, one) for one in found[place].members]
    projects = [LocalProject(place, one.extras, build_system(root / place)) for place, one in found.items()]
    all_of, packages = list(found.values()), {one.folder for one in projects if one.system is not None}
    update = {
        "lines": tuple(dict.fromkeys(line for one in all_of for line in one.lines)),
        "refusals": tuple(line for one in all_of for line in one.refusals),
        "left_out": tuple(dict.fromkeys([*(line for one in all_of for line in one.left_out), *missing])),
        "without": tuple(name for place, one in found.items() if place in packages for name in one.without),
        "locked": wanted.locked or (locked_versions(functools.partial(read_text, root)) if folder else ()),
    }
    return wanted.model_copy(update=update), projects


def _read(root: Path, setups: Mapping[str, str], chosen: Chosen, built: Sequence[str]) -> Requirements:
    below = [f"{folder}/{name}" for folder in FOLDERS for name in root_files(root / folder)]
    return gather([*root_files(root), *below], functools.partial(read_text, root), setups, chosen, built)


def _place(root: Path, base: str, member: Member) -> str | None:
    """The folder of a project of the repository, "" for its root; None where there is no such project."""
    with suppress(*_NONSENSE):
        named = normpath(f"{base}/{member.folder}" if base else member.folder)
        for place in (named,) if member.folder else _workspace(root, base):
            if not (root / place).resolve().is_relative_to(root.resolve()):
                continue
            if (member.folder or _name(root / place) == member.name) and any(
                name in _MANIFESTS for name in root_files(root / place)
            ):
                return "" if place == "." else place
    return None


def _workspace(root: Path, base: str) -> Iterator[str]:
    """Folders of the nearest workspace (https://docs.astral.sh/uv/concepts/projects/workspaces/) around a project."""
    for parent in (PurePosixPath(base), *PurePosixPath(base).parents):
        workspace = _pyproject(root / parent).get("tool", {}).get("uv", {}).get("workspace")
        if workspace is not None:
            yield str(parent)
            for pattern in map(normpath, workspace.get("members", ())):
                # `**` would be looked for in packages too, and through links.
                found = () if pattern.startswith(("/", "..")) or "**" in pattern else (root / parent).glob(pattern)
                yield from (path.relative_to(root).as_posix() for path in sorted(found) if path.is_dir())
            return


def _name(folder: Path) -> str:
    return canonicalize_name(str(_pyproject(folder).get("project", {}).get("name", "")))


def _pyproject(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(folder, "pyproject.toml") or "")
    except ValueError:
        return {}
