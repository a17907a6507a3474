"""Python environments: one per key for projects with dependencies, our own interpreter for the others."""

import asyncio
import functools
import os
import re
import sys
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from orchestrator.code.parsers import parse_toml
from orchestrator.core.errors import ConfigError, says_full
from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import NO_ROOM, Access, NewPackages
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import BaseCommit, BaseFacts, InstallScripts
from orchestrator.environments.interpreters import (
    Interpreter,
    chosen_interpreter,
    fitting_interpreter,
    our_interpreter,
    refused_packages,
)
from orchestrator.environments.python_installer import installer_for, is_joined, join, mark_joined, packages_of
from orchestrator.environments.python_layers import Notes, NotInstalled, PythonLayers, notes_on
from orchestrator.environments.python_manifests import locked_versions, package_of
from orchestrator.environments.python_project import BuildJob, BuildSystem, Built, PythonProject, build_system
from orchestrator.environments.python_requirements import (
    FOLDERS,
    Chosen,
    Member,
    Requirements,
    gather,
    left_out,
    requirement_line,
)
from orchestrator.files.disk import raise_if_full
from orchestrator.files.safe_files import read_text, root_files
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import EnvironmentSettings, SandboxSettings

_DEEPEST = 5
"""How often manifests are read again after builds: a workspace's members may turn out to need others."""
_KEY = re.compile(r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")
_NONSENSE = (ValueError, TypeError, AttributeError, LookupError, NotImplementedError, RuntimeError, OSError)
"""Errors that invalid manifests cause: a value of the wrong type, a path with a NUL, circular links."""


class LocalProject(NamedTuple):
    """A project installed from its folder."""

    folder: str
    """Relative to the repository's root, "" for the root."""
    extras: tuple[str, ...]
    """Requested extras."""
    system: BuildSystem | None
    """None: it is not a package, so only its requirements are installed."""


class EnvironmentResult(Value):
    """The interpreter that runs a project's code, or why there is none."""

    python: Path | None
    """None exactly when `problem` is set."""
    own: bool = False
    """True for the interpreter of this process, whose packages must not change."""
    problem: str | None = None
    """Why the dependencies could not be installed, for people and personas."""
    output: str = ""
    """Output of the installer."""
    failed: str = ""
    """Packages that could not be built, and why."""
    note: str = ""
    """Deviations and their reasons: the project not built, packages left out, a lock file ignored."""
    layer: Path | None = None
    """Folder of the packages, named by their key; None when there are none."""
    access: Access = Access()
    """Paths that the interpreter needs beyond what every command may read."""


class PythonEnvironments:
    """Makes and keeps environments in `folder`/<key>; their packages are in shared `layers`.

    `variables` supplies pip's settings and the allowed install variables. Packages must be allowed by `rules`, and are
    fetched from the registry they name. The files of tox, nox, hatch and pipelines are read at `base`: a contract
    closes manifests but not these files, so a story may change them. `own` is the configuration of the project.
    """

    def __init__(
        self,
        folder: Path,
        layers: Path,
        runner: CommandRunner,
        settings: CommandSettings,
        variables: Mapping[str, str],
        rules: SandboxSettings | None = None,
        base: BaseCommit | None = None,
        own: EnvironmentSettings | None = None,
    ) -> None:
        rules = rules or SandboxSettings()
        own = own or EnvironmentSettings()
        self._base, self._chosen = base, Chosen(own.extras, own.groups)
        self._python, self._path = own.python, variables.get("PATH", os.defpath)
        self._packages, self._may_build = rules.packages, own.install_scripts
        self._folder = folder.absolute()
        self._runner, self._installer = runner, installer_for(variables, settings, rules)
        self._layers = PythonLayers(layers.absolute(), runner, self._installer, settings.install_timeout_s)
        self._project = PythonProject(
            runner, self._layers, rules.packages, settings.install_timeout_s, variables=own.env
        )
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(self, root: Path, key: str, part: str = "") -> EnvironmentResult:
        """Returns the environment for the project at `root`, joined again when its requirements have changed.

        `part` is the folder below `root` whose manifests count; "" for `root`. Never raises for the project's content.
        Runs one call per key at a time. Raises ValueError when `key` is not a plain name.
        """
        if not _KEY.match(key):
            raise ValueError(f"{key!r} cannot name an environment")
        facts = BaseFacts() if self._base is None else await self._base.facts()
        place = self._folder / key / f"part..{part.replace('/', '..')}" if part else self._folder / key
        async with self._locks.setdefault(str(place), asyncio.Lock()):
            try:
                return await self._ensure(root, part, place, facts)
            except ConfigError as error:
                return EnvironmentResult(python=None, problem=str(error))
            except OSError as error:
                if not says_full(error):
                    raise
                where = error.filename or self._folder
                return EnvironmentResult(python=None, problem=f"{NO_ROOM} `{where}`: {error.strerror}.")

    async def check_new(self, root: Path, packages: Mapping[str, str]) -> NewPackages:
        """Returns whether these packages (name → version) can be installed with those of the project at `root`."""
        try:
            base, asked, scripts = await self._with(root, packages)
            new = [package_of(line) for line in asked.lines[len(base.lines) :]]
            if base.refusals or (packages and not new):
                return NewPackages()
            if refusals := tuple(refused_packages(new, self._packages)):
                return NewPackages(refusal="; ".join(refusals))
            unlocked = {"locked": ()}  # the lock file lacks new packages, and is regenerated with them
            base, asked = base.model_copy(update=unlocked), asked.model_copy(update=unlocked)
            return await self._layers.check_new(base, asked, scripts)
        except ConfigError as error:
            return NewPackages(refusal=str(error))

    async def site(self, root: Path, packages: Mapping[str, str]) -> Path | None:
        """Returns the folder with the project's packages and these, None when they cannot be installed."""
        try:
            _, wanted, scripts = await self._with(root, packages)
            if wanted.refusals or not wanted.lines or any(refused_packages(_names(wanted), self._packages)):
                return None
            layer = await self._layers.ensure(wanted, scripts)
        except (ConfigError, OSError):  # the test run meets the same error and reports it
            return None
        return None if isinstance(layer, NotInstalled) else await asyncio.to_thread(packages_of, layer)

    async def _with(self, root: Path, packages: Mapping[str, str]) -> tuple[Requirements, Requirements, InstallScripts]:
        """Returns the requirements of the project at `root`, the same with the packages that are new, and which
        packages may be built. Raises ConfigError."""
        facts = BaseFacts() if self._base is None else await self._base.facts()
        found, _ = await asyncio.to_thread(gather_all, root, "", facts.setups, self._chosen)
        base = found.model_copy(update={"python": await asyncio.to_thread(self._other_python, found.requires_python)})
        there = {*_names(base), *sys.stdlib_module_names}
        new = [requirement_line(name, packages[name]) for name in packages if canonicalize_name(name) not in there]
        return base, base.model_copy(update={"lines": (*base.lines, *new)}), self._scripts(facts)

    async def _ensure(self, root: Path, part: str, place: Path, facts: BaseFacts) -> EnvironmentResult:
        scripts, told = self._scripts(facts), dict[str, tuple[str, ...]]()
        for _ in range(_DEEPEST):
            setups = facts.below(part)
            wanted, projects = await asyncio.to_thread(gather_all, root, part, setups, self._chosen, told)
            if refusals := (*wanted.refusals, *refused_packages(_names(wanted), self._packages)):
                problem = "Dependencies were not installed. " + "; ".join(refusals)
                return EnvironmentResult(python=None, problem=problem)
            python = await asyncio.to_thread(self._other_python, wanted.requires_python)
            wanted = wanted.model_copy(update={"python": python})
            build, layer = self._built(root, place, projects, facts.version, python), None
            systems = [one.system for one in projects if one.system is not None]
            if not any(one.dynamic for one in systems) and (wanted.lines or wanted.python or systems):
                built, layer = await _both(build, self._layers.ensure(wanted, scripts))  # independent, so concurrent
                break
            built, known = await build, told
            told = {folder: one.requires for folder, one in built.items() if one.requires}
            if told == known:
                break
        wheels = [one.wheel for one in built.values() if one.wheel is not None]
        if not wanted.lines and not wheels and python is None:
            return EnvironmentResult(python=Path(sys.executable), own=True, note=_note(wanted, built))
        if layer is None:
            own = tuple(dict.fromkeys([*wanted.without, *(wheel.name.partition("-")[0] for wheel in wheels)]))
            layer = await self._layers.ensure(wanted.model_copy(update={"without": own}), scripts)
        if isinstance(layer, NotInstalled):
            return EnvironmentResult(python=None, problem=layer.problem, output=layer.output)
        venv = place / "venv"
        access = Access(readable=(venv, layer, *map(Path, python.readable if python is not None else ())))
        problem = await self._installed(place, venv, layer, built, access)
        notes = await asyncio.to_thread(notes_on, layer)
        return EnvironmentResult(
            python=venv / "bin" / "python",
            layer=layer,
            access=access,
            failed="\n".join(notes.failed),
            note="\n".join(filter(None, (problem, _note(wanted, built, notes)))),
        )

    def _scripts(self, facts: BaseFacts) -> InstallScripts:
        return InstallScripts(self._may_build, facts.python)

    def _other_python(self, requires: str) -> Interpreter | None:
        """Returns the configured interpreter or one the project allows; None for ours. Blocks; raises ConfigError."""
        if self._python:
            found = chosen_interpreter(self._python, self._path)
        else:
            found = fitting_interpreter(requires, self._path) or our_interpreter()
        return None if found.ours else found

    async def _built(
        self, root: Path, place: Path, projects: Sequence[LocalProject], version: str, python: Interpreter | None
    ) -> dict[str, Built]:
        """Builds the projects and returns results by folder. Sequential: a build makes files in the tree."""
        found = {}
        for number, one in enumerate(projects):
            if one.system is not None:
                folder = place / (f"build-{number}" if number else "build")
                job = BuildJob(root / one.folder, folder, one.system, version, one.extras, python)
                found[one.folder] = await self._project.built(job)
        return found

    async def _installed(self, place: Path, venv: Path, layer: Path, built: Mapping[str, Built], access: Access) -> str:
        """Joins the layer's packages and the projects if they have changed; returns what is missing."""
        tag = " ".join(one.tag for one in built.values())
        wheels = [str(one.wheel) for one in built.values() if one.wheel is not None]
        if not await asyncio.to_thread(is_joined, venv, layer, tag):
            await asyncio.to_thread(join, venv, layer)
            if wheels:
                argv = self._installer.install(venv / "bin" / "python", "--no-deps", *wheels, offline=True)
                installed = await self._runner.run(argv, cwd=place, env=self._installer.alone(), access=access)
                if not installed.ok:
                    await asyncio.to_thread(raise_if_full, installed.output, place)
                    return f"the project itself could not be installed: {installed.output[-2000:]}"
            await asyncio.to_thread(mark_joined, venv, layer, tag)
        return ""


async def _both(
    build: Awaitable[dict[str, Built]], packages: Awaitable[Path | NotInstalled]
) -> tuple[dict[str, Built], Path | NotInstalled]:
    """Awaits both concurrently and returns both results. If one raises, still waits for the other first."""
    built, layer = await asyncio.gather(build, packages, return_exceptions=True)
    if isinstance(built, BaseException):
        raise built
    if isinstance(layer, BaseException):
        raise layer
    return built, layer


def _note(wanted: Requirements, built: Mapping[str, Built], notes: Notes | None = None) -> str:
    told = [f"the project itself could not be built: {one.problem}" for one in built.values() if one.problem]
    if wanted.python is not None:
        told.append(f"run with {wanted.python.program}, as the project or environment.python asks")
    elif not our_interpreter().fits(wanted.requires_python):
        told.append(f"run with Python {our_interpreter().number}, though the project is for {wanted.requires_python}")
    return "\n".join([*told, *(notes.told if notes is not None else ()), *wanted.left_out])


def _names(wanted: Requirements) -> list[str]:
    """Returns the names of the required packages, without options."""
    return [package_of(line) for line in wanted.lines if not line.startswith("-")]


def gather_all(
    root: Path, folder: str, setups: Mapping[str, str], chosen: Chosen, built: Mapping[str, Sequence[str]] = {}
) -> tuple[Requirements, list[LocalProject]]:
    """Returns the requirements of the project in `folder` of the repository, and all projects installed with it.

    Of those others only run-time requirements count. Without its own lock file the repository's counts. `built` has
    the requirements that builds reported, by folder.
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
    """Returns the folder of a project of the repository, "" for its root; None where there is no such project."""
    with suppress(*_NONSENSE):  # hostile or invalid paths name no project
        named = normpath(f"{base}/{member.folder}" if base else member.folder)
        for place in (named,) if member.folder else _workspace(root, base):
            if not (root / place).resolve().is_relative_to(root.resolve()):
                continue
            name = "" if member.folder else str(_pyproject(root / place).get("project", {}).get("name", ""))
            named_so = bool(member.folder) or canonicalize_name(name) == member.name
            if named_so and any(one in _MANIFESTS for one in root_files(root / place)):
                return "" if place == "." else place
    return None


def _workspace(root: Path, base: str) -> Iterator[str]:
    """Yields folders of the nearest workspace (https://docs.astral.sh/uv/concepts/projects/workspaces/)."""
    for parent in (PurePosixPath(base), *PurePosixPath(base).parents):
        workspace = _pyproject(root / parent).get("tool", {}).get("uv", {}).get("workspace")
        if workspace is not None:
            yield str(parent)
            for pattern in map(normpath, workspace.get("members", ())):
                # `**` would also search packages, and follow links.
                found = () if pattern.startswith(("/", "..")) or "**" in pattern else (root / parent).glob(pattern)
                yield from (path.relative_to(root).as_posix() for path in sorted(found) if path.is_dir())
            return


def _pyproject(folder: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_text(folder, "pyproject.toml") or "")
    except ValueError:  # the requirements' reader reports the error
        return {}
