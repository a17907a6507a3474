"""Packages of Node projects: installed once outside the tree, and linked into it while a command runs."""

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from orchestrator.code.parsers import parse_json
from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import Access, CommandResult, NewPackages
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import NPM, BaseCommit, BaseFacts, InstallScripts
from orchestrator.environments.interpreters import refused_packages
from orchestrator.environments.node_layers import INSTALLS, MODULES, NodeLayers, notes_on, write_files
from orchestrator.environments.node_requirements import MANIFEST, NodeRequirements, gather
from orchestrator.environments.python_installer import handed_on
from orchestrator.sandbox.command_runner import scratch_folder
from orchestrator.sandbox.fetch_sources import npm_variables
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import EnvironmentSettings, SandboxSettings


class NodePackages(Value):
    """The folder of a project's packages, or why they could not be installed."""

    modules: Path | None = None
    """The folder that `node_modules` links to; None when no package is needed, or on a problem."""
    key: str = ""
    """Identifies the set of packages."""
    problem: str | None = None
    """For people and personas."""
    output: str = ""
    """Output of the package manager."""
    failed: str = ""
    """Packages whose install script failed, with its output."""
    note: str = ""
    """Deviations and their reasons: packages left out, a lock file ignored, scripts not run."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that a command must be able to read to use the packages."""
        return () if self.modules is None else (self.modules.parent,)


class NodeEnvironments:
    """Keeps packages in `folder`/<digest>, shared by all projects with the same requirements.

    `variables` are the machine's: npm's settings, the allowed install variables and PATH come from there. Packages
    must be allowed by `rules`, and are fetched from the registry they name. Install scripts run where `own` and the
    packages of the `base` commit allow it, confined like the installation.
    """

    def __init__(
        self,
        folder: Path,
        runner: CommandRunner,
        settings: CommandSettings,
        variables: Mapping[str, str],
        rules: SandboxSettings | None = None,
        base: BaseCommit | None = None,
        own: EnvironmentSettings | None = None,
    ) -> None:
        rules = rules or SandboxSettings()
        self._packages, self._path = rules.packages, variables.get("PATH", os.defpath)
        self._environment = partial(npm_environment, variables, settings, rules)
        self._base, self._scripts = base, (own or EnvironmentSettings()).install_scripts
        self._runner, self._timeout_s = runner, settings.install_timeout_s
        self._layers = NodeLayers(folder.absolute(), runner, settings.install_timeout_s)
        self._node: str | None = None

    async def ensure(self, root: Path) -> NodePackages:
        """Returns the packages of the project at `root`. Never raises for what the project holds."""
        wanted = await asyncio.to_thread(lambda: gather(root, self._managers()))
        if refusals := (*wanted.refusals, *refused_packages(wanted.names, self._packages)):
            return NodePackages(problem="Packages were not installed. " + "; ".join(refusals))
        if not wanted.wanted:
            return NodePackages(note="\n".join(wanted.left_out))
        env, node = await asyncio.to_thread(self._environment), await self._version(root)
        layer = await self._layers.ensure(wanted, await self._install_scripts(), env, node)
        if not isinstance(layer, Path):
            how = f"limit: {layer.limit}" if layer.limit else f"exit code {layer.exit_code}"
            problem = f"`{' '.join(INSTALLS[wanted.manager][:2])}` could not install the packages ({how})."
            return NodePackages(problem=problem, output=layer.output)
        notes = await asyncio.to_thread(notes_on, layer)
        ignored = wanted.manager != "npm" and "NPM_CONFIG_BEFORE" in env
        newest = [f"{wanted.manager} knows nothing of environment.exclude_newer"] if ignored else []
        told = "\n".join([*wanted.left_out, *newest, *notes.told])
        return NodePackages(modules=layer / MODULES, key=layer.name, failed=notes.failed, note=told)

    async def check_new(self, root: Path, packages: Mapping[str, str]) -> NewPackages:
        """Returns whether these packages (name → version) can be installed with those of the project at `root`.
        Packages with install scripts are actually installed, where that is allowed."""
        wanted = await asyncio.to_thread(gather, root)  # npm resolves what any manager installs
        new = {name: version for name, version in packages.items() if name not in wanted.names}
        if wanted.refusals or (packages and not new):
            return NewPackages()
        if refusals := tuple(refused_packages(new, self._packages)):
            return NewPackages(refusal="; ".join(refusals))
        with_new = wanted.model_copy(update={"wanted": True, "files": _with(wanted, new)})
        resolved = await self._resolve(with_new)
        if isinstance(resolved, CommandResult):
            return NewPackages(refusal=f"The packages cannot be installed.\n{resolved.output}")
        there = await self._resolve(wanted) if new and resolved and wanted.wanted else set[str]()
        added = resolved - there if new and isinstance(there, set) else set[str]()
        scripts = await self._install_scripts()
        if closed := sorted(name for name in added if not scripts.allowed(name)):
            return NewPackages(closed=tuple(closed), listed=scripts.listed)
        return await self._build(root, with_new, scripts) if added else NewPackages()

    async def _resolve(self, wanted: NodeRequirements) -> set[str] | CommandResult:
        """Returns the names of required packages that run install scripts, or npm's failed resolution of versions."""
        env = await asyncio.to_thread(self._environment)
        async with scratch_folder() as home:
            await asyncio.to_thread(write_files, home, wanted.files)
            argv = [*INSTALLS["npm"], "--package-lock-only"]
            told = await self._runner.run(argv, cwd=home, env=env, timeout_s=self._timeout_s, access=Access(fetch=True))
            return await asyncio.to_thread(_scripted, home) if told.ok else told

    async def _build(self, root: Path, wanted: NodeRequirements, scripts: InstallScripts) -> NewPackages:
        env, node = await asyncio.to_thread(self._environment), await self._version(root)
        layer = await self._layers.ensure(wanted, scripts, env, node)
        if isinstance(layer, CommandResult):
            return NewPackages(refusal=f"The packages cannot be installed.\n{layer.output}")
        notes = await asyncio.to_thread(notes_on, layer)
        young = tuple(one.partition(" ")[0] for one in notes.young)
        return NewPackages(closed=young, listed=scripts.listed, failed=notes.failed)

    async def modules(self, root: Path, packages: Mapping[str, str]) -> Path | None:
        """Returns the folder with the project's packages and these, None when they cannot be installed."""
        wanted = await asyncio.to_thread(lambda: gather(root, self._managers()))
        new = {name: version for name, version in packages.items() if name not in wanted.names}
        names = (*wanted.names, *new)
        if wanted.refusals or not names or any(refused_packages(names, self._packages)):
            return None
        asked = wanted.model_copy(update={"files": _with(wanted, new)}) if new else wanted
        env = await asyncio.to_thread(self._environment)
        try:
            layer = await self._layers.ensure(asked, await self._install_scripts(), env, await self._version(root))
        except OSError:  # the test run meets the same error and reports it
            return None
        return layer / MODULES if isinstance(layer, Path) else None

    def _managers(self) -> frozenset[str]:
        """Returns the installed managers; a corepack shim, which would fetch one first, does not count. Blocks."""
        found = {name: shutil.which(name, path=self._path) for name in INSTALLS}
        real = {name: os.path.realpath(path) for name, path in found.items() if path}
        return frozenset({"npm", *(name for name, path in real.items() if "/corepack/" not in path)})

    async def _install_scripts(self) -> InstallScripts:
        facts = BaseFacts() if self._base is None else await self._base.facts()
        return InstallScripts(self._scripts, facts.node, NPM)

    async def _version(self, root: Path) -> str:
        """Returns the version of node, read once; "" when there is none."""
        if self._node is None:
            told = await self._runner.run(["node", "--version"], cwd=root)
            self._node = told.output.strip().removeprefix("v") if told.ok else ""
        return self._node


def npm_environment(variables: Mapping[str, str], commands: CommandSettings, rules: SandboxSettings) -> dict[str, str]:
    """Returns npm's variables, which pnpm and yarn also read; the settings' registry replaces the machine's. Blocks."""
    registry = rules.registries.npm
    own = {} if registry is None else {"NPM_CONFIG_REGISTRY": registry}
    return {**npm_variables(variables), **handed_on(variables, commands), **own, "COREPACK_ENABLE_NETWORK": "0"}


def _with(wanted: NodeRequirements, packages: Mapping[str, str]) -> dict[str, str]:
    """Returns the files of the project, with these packages added to its manifest."""
    told = parse_json(wanted.files.get(MANIFEST, "{}"))
    told["dependencies"] = {**(told.get("dependencies") or {}), **packages}
    return {**wanted.files, MANIFEST: json.dumps(told)}


def _scripted(home: Path) -> set[str]:
    """Returns required packages with install scripts, by the lock file; optional packages may be missing."""
    lock = home / "package-lock.json"
    packages = parse_json(lock.read_text(encoding="utf-8")).get("packages", {}) if lock.exists() else {}
    return {
        str(one.get("name") or place.rpartition(f"{MODULES}/")[2])
        for place, one in packages.items()
        if one.get("hasInstallScript") and MODULES in place and not (one.get("optional") or one.get("devOptional"))
    }
