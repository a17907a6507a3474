"""Python environments: one per key for projects with dependencies, our own interpreter for those without."""

import asyncio
import functools
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.adapters.base_commit import BaseCommit, BaseFacts
from orchestrator.adapters.package_rules import refused_packages
from orchestrator.adapters.python_installer import Installer
from orchestrator.adapters.python_interpreters import Interpreter, choose_python
from orchestrator.adapters.python_layers import NotInstalled, PythonLayers, is_joined, join, mark_joined
from orchestrator.adapters.python_project import Built, PythonProject, build_system
from orchestrator.adapters.python_requirements import FOLDERS, Chosen, Requirements, gather
from orchestrator.adapters.tree_reading import read_text, root_files
from orchestrator.domain.base import Value
from orchestrator.domain.sandbox import Access
from orchestrator.ports import CommandRunner
from orchestrator.settings.environment import EnvironmentSettings
from orchestrator.settings.model import CommandSettings, SandboxSettings

_KEY = re.compile(r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")


class EnvironmentResult(Value):
    """Which interpreter runs a project's code, or why there is none."""

    python: Path | None
    """None exactly when `problem` is set."""
    own: bool = False
    """True when it is the interpreter of this process, whose packages nothing may change."""
    problem: str | None = None
    """Why the dependencies could not be installed, for people and personas."""
    output: str = ""
    """What the installer printed."""
    note: str = ""
    """Why the project itself is not installed, though it says how it is built; its dependencies are."""
    because: str = ""
    """Why its interpreter is not ours."""
    layer: Path | None = None
    """Folder of the packages, named by their key; None where there are none."""
    access: Access = Access()
    """What the interpreter needs beyond what every command may read."""


class PythonEnvironments:
    """Makes and keeps environments in `folder`/<key>; their packages lie in `layers`, for all that ask for the same.

    `variables` is where pip's settings and the allowed install variables come from. What is asked for must be allowed
    by `rules`, and is fetched from the registry they name. What tox, nox, hatch and pipelines install for tests counts
    as they are at `base`: a contract closes manifests, not these files, and a story may write them. `own` is what
    people say about the project.
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
        self._python, self._path = own.python, variables.get("PATH", "")
        self._base, self._chosen = base, Chosen(own.extras, own.groups)
        self._packages = rules.packages
        self._folder = folder.absolute()
        handed_on = {name: variables[name] for name in settings.install_env if name in variables}
        self._runner = runner
        self._installer = Installer(variables, handed_on, rules.registries.pip)
        self._layers = PythonLayers(layers.absolute(), runner, self._installer, settings.install_timeout_s)
        self._project = PythonProject(
            runner, self._layers, rules.packages, settings.install_timeout_s, variables=own.env
        )
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(self, root: Path, key: str, part: str = "") -> EnvironmentResult:
        """The environment for the project at `root`, joined anew when its manifests ask for something else.

        `part` is the folder below `root` whose manifests count; "" for its own. Never raises for what the project
        holds; one call per key at a time, others wait. ValueError: `key` is no plain name.
        """
        if not _KEY.match(key):
            raise ValueError(f"{key!r} cannot name an environment")
        facts = BaseFacts() if self._base is None else await self._base.facts()
        place = self._folder / key / f"part..{part.replace('/', '..')}" if part else self._folder / key
        async with self._locks.setdefault(str(place), asyncio.Lock()):
            return await self._ensure(root / part, place, facts.below(part), facts.version)

    async def _ensure(self, root: Path, place: Path, setups: Mapping[str, str], version: str) -> EnvironmentResult:
        chosen = await asyncio.to_thread(choose_python, self._python, root, self._path)
        if chosen.problem:
            return EnvironmentResult(python=None, problem=chosen.problem)
        made = await self._made(root, place, setups, version, chosen.python)
        return made.model_copy(update={"because": chosen.because})

    async def _made(
        self, root: Path, place: Path, setups: Mapping[str, str], version: str, python: Interpreter
    ) -> EnvironmentResult:
        wanted = await asyncio.to_thread(_wanted, root, setups, self._chosen)
        wanted = wanted.model_copy(update={"python": None if python.own else python.path})
        if refusals := (*wanted.refusals, *refused_packages(_names(wanted.lines), self._packages)):
            return _refused(refusals)
        system, layer = await asyncio.to_thread(build_system, root), None
        if system is None:
            built, wanted = Built(), wanted.model_copy(update={"without": ""})
        else:
            build = self._project.built(
                root, place / "build", system, version=version, extras=wanted.extras, python=python
            )
            if system.dynamic or not wanted.lines:
                built = await build
            else:  # at once: none needs the other
                built, layer = await asyncio.gather(build, self._layers.ensure(wanted))
        if not wanted.lines and built.wheel is None and python.own:
            return EnvironmentResult(python=Path(sys.executable), own=True, note=_note(built))
        if refusals := tuple(refused_packages(_names(built.requires), self._packages)):
            return _refused(refusals)
        if layer is None:
            lines = tuple(dict.fromkeys([*wanted.lines, *built.requires]))
            own = wanted.without or ("" if built.wheel is None else built.wheel.name.partition("-")[0])
            layer = await self._layers.ensure(wanted.model_copy(update={"lines": lines, "without": own}))
        if isinstance(layer, NotInstalled):
            return EnvironmentResult(python=None, problem=layer.problem, output=layer.output)
        venv = place / "venv"
        note = await self._installed(place, venv, layer, built)
        access = Access(readable=(venv, layer))
        return EnvironmentResult(python=venv / "bin" / "python", layer=layer, access=access, note=note)

    async def _installed(self, place: Path, venv: Path, layer: Path, built: Built) -> str:
        """The environment with the layer's packages and the project, made when it is another one; what is missing."""
        if not await asyncio.to_thread(is_joined, venv, layer, built.tag):
            await asyncio.to_thread(join, venv, layer)
            if built.wheel is not None:
                argv = self._installer.install(venv / "bin" / "python", "--no-deps", str(built.wheel), offline=True)
                installed = await self._runner.run(argv, cwd=place, env=self._installer.alone())
                if not installed.ok:
                    return f"the project itself could not be installed: {installed.output[-2000:]}"
            await asyncio.to_thread(mark_joined, venv, layer, built.tag)
        return _note(built)


def _note(built: Built) -> str:
    return f"the project itself could not be built: {built.problem}" if built.problem else ""


def _refused(refusals: Sequence[str]) -> EnvironmentResult:
    return EnvironmentResult(python=None, problem="Dependencies were not installed. " + "; ".join(refusals))


def _wanted(root: Path, setups: Mapping[str, str], chosen: Chosen) -> Requirements:
    below = [f"{folder}/{name}" for folder in FOLDERS for name in root_files(root / folder)]
    return gather([*root_files(root), *below], functools.partial(read_text, root), setups, chosen)


def _names(lines: Sequence[str]) -> tuple[str, ...]:
    """What is asked for; behind a name come extras, a version, a marker, hashes. Options name nothing."""
    return tuple(re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0] for line in lines if line[:1] != "-")
