"""Reads the packages of an environment from their metadata, without running their code."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.code.parsers import parse_json
from orchestrator.core.contract import Installed, InstalledPackages
from orchestrator.core.errors import ConfigError

_USUAL = (".venv", "venv", "env", ".env")
_MODULES = (".py", ".pyi", ".so", ".pyd")
_OPTIONAL = ("peerDependencies", "optionalDependencies")
_MOST_BYTES = 1_000_000
"""Size limit of one package.json; larger ones are ignored."""


def read_environment(asked: str, repo: Path | None) -> InstalledPackages:
    """Returns the packages of `--environment`: `none`, `auto` (those inside the project), or those of a folder.

    A folder is a virtual environment, or one that has `node_modules`. Raises ConfigError for a folder without packages.
    """
    if asked == "none" or (asked == "auto" and repo is None):
        return InstalledPackages()
    if asked == "auto" and repo is not None:
        environments = (repo / name for name in _USUAL)
        return read_installed([site for one in environments for site in site_packages(one)], [repo / "node_modules"])
    folder = Path(asked)
    found = read_installed(site_packages(folder), [folder / "node_modules"])
    if not found.python and not found.node:
        raise ConfigError(f"--environment {asked} has no packages: neither site-packages nor node_modules")
    return found


def site_packages(environment: Path) -> list[Path]:
    """Returns the folders of packages of a virtual environment."""
    inside = [*environment.glob("lib/python*/site-packages"), environment / "Lib" / "site-packages"]
    return [site for site in inside if site.is_dir()]


def read_installed(sites: Sequence[Path], node_modules: Iterable[Path] = ()) -> InstalledPackages:
    """Returns the packages in site-packages folders and in `node_modules`; leaves out unreadable ones."""
    python: dict[str, Installed] = {}
    for one in distributions(path=[str(site) for site in sites]) if sites else ():
        with suppress(OSError, ValueError, TypeError):  # broken metadata of one package must not hide the others
            if name := one.metadata["Name"]:
                python.setdefault(str(canonicalize_name(name)), _distribution(one))
    node = {name: _package(folder) for modules in node_modules for name, folder in _packages(modules)}
    return InstalledPackages(python=dict(sorted(python.items())), node=dict(sorted(node.items())))


def _distribution(one: Distribution) -> Installed:
    requires: set[str] = set()
    extras: set[str] = set()
    for line in one.requires or ():
        with suppress(InvalidRequirement):  # one invalid line must not hide the others
            asked = Requirement(line)
            (extras if "extra" in str(asked.marker) else requires).add(str(canonicalize_name(asked.name)))
    return Installed(
        modules=tuple(sorted(_modules(one))),
        requires=tuple(sorted(requires)),
        extras=tuple(sorted(extras - requires)),
        version=one.version,
    )


def _modules(one: Distribution) -> set[str]:
    """Returns import names: a folder with `__init__` counts as one name, a folder without as the names inside it."""
    files = [PurePosixPath(str(file)) for file in one.files or ()]
    files = [file for file in files if ".." not in file.parts and file.suffix in _MODULES]
    packages = {file.parent.parts for file in files if file.name in {"__init__.py", "__init__.pyi"}}
    names: set[str] = set()
    for file in files:
        parts = (*file.parts[:-1], file.name.split(".")[0])
        whole = next((parts[:end] for end in range(1, len(parts)) if parts[:end] in packages), parts)
        if all(part.removesuffix("-stubs").isidentifier() for part in whole):
            names.add(".".join(part.removesuffix("-stubs") for part in whole))
    return names


def _packages(modules: Path) -> Iterator[tuple[str, Path]]:
    with suppress(OSError), os.scandir(modules) as entries:  # no such folder
        for entry in entries:
            if entry.name.startswith("@"):
                with suppress(OSError), os.scandir(entry.path) as inner:  # a file, or unreadable
                    yield from ((f"{entry.name}/{one.name}".lower(), Path(one.path)) for one in inner)
            elif not entry.name.startswith("."):
                yield entry.name.lower(), Path(entry.path)


def _package(folder: Path) -> Installed:
    with suppress(OSError, ValueError, AttributeError):  # missing or invalid package.json
        if (folder / "package.json").stat().st_size <= _MOST_BYTES:
            told = parse_json((folder / "package.json").read_text(encoding="utf-8"))
            requires, extras = _names(told, ("dependencies",)), _names(told, _OPTIONAL)
            return Installed(requires=requires, extras=extras, version=str(told.get("version", "")))
    return Installed()


def _names(told: Mapping[str, object], keys: Sequence[str]) -> tuple[str, ...]:
    held = [told.get(key) for key in keys]
    return tuple(sorted({str(name).lower() for one in held if isinstance(one, dict) for name in one}))
