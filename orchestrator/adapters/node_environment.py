"""Packages of Node projects: installed per key outside the tree, and linked into it while something runs."""

import asyncio
import contextlib
import functools
import hashlib
import json
import os
import platform
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator.adapters.command_runner import remove_tree, scratch_folder
from orchestrator.adapters.fetch.npm_settings import npm_variables
from orchestrator.adapters.npm_requirements import MANIFEST, REGISTRY, NpmRequirements, gather
from orchestrator.adapters.package_rules import refused_packages
from orchestrator.adapters.tree_reading import read_text, root_files
from orchestrator.domain.base import Value
from orchestrator.domain.sandbox import Access
from orchestrator.ports import CommandRunner
from orchestrator.settings.model import CommandSettings, SandboxSettings

MODULES = "node_modules"
_MARKER = "ready.json"
_KEY = re.compile(r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")


class NodePackages(Value):
    """Where a project's packages lie, or why they could not be installed."""

    modules: Path | None = None
    """The folder to stand in for `node_modules`; None when nothing is asked for, or on a problem."""
    key: str = ""
    """Names the packages: the same ones have the same key."""
    problem: str | None = None
    """For people and personas."""
    output: str = ""
    """What npm printed."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """What must be readable where they are used."""
        return () if self.modules is None else (self.modules,)


class NodeEnvironments:
    """Makes and keeps `folder`/<key>/node_modules; `variables` is where the allowed install variables come from.

    No script of a package is run, neither at installation nor later. What is asked for must be allowed by `rules`, and
    is fetched from the registry they name.
    """

    def __init__(
        self,
        folder: Path,
        runner: CommandRunner,
        settings: CommandSettings,
        variables: Mapping[str, str],
        rules: SandboxSettings | None = None,
    ) -> None:
        rules = rules or SandboxSettings()
        self._registry = rules.registries.npm
        self._variables = variables
        self._packages = rules.packages
        self._folder = folder.absolute()
        self._runner = runner
        self._timeout_s = settings.install_timeout_s
        self._handed_on = {name: variables[name] for name in settings.install_env if name in variables}
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(self, root: Path, key: str) -> NodePackages:
        """The packages of the project at `root`, installed anew when package.json or its lock file changed.

        Never raises for what the project holds; one call per key at a time, others wait. ValueError: `key` is no plain
        name.
        """
        if not _KEY.match(key):
            raise ValueError(f"{key!r} cannot name an environment")
        async with self._locks.setdefault(key, asyncio.Lock()):
            env = await asyncio.to_thread(self._environment)
            wanted = await asyncio.to_thread(_wanted, root, _hosts(env))
            refusals = (*wanted.refusals, *refused_packages(wanted.names, self._packages))
            if refusals:
                return NodePackages(problem="Packages were not installed. " + "; ".join(refusals))
            if not wanted.wanted:
                return NodePackages()
            home, digest = self._folder / key, _digest(wanted)
            if not await asyncio.to_thread(_is_ready, home, digest):
                failed = await self._install(home, wanted, env)
                if failed is not None:
                    return failed
                # Written last: an installation that was cut half-way has no marker and starts again.
                await asyncio.to_thread(_write_marker, home, digest)
            return NodePackages(modules=home / MODULES, key=digest[:32])

    async def refusal(self, root: Path, packages: Mapping[str, str]) -> NodePackages | None:
        """Why these packages (name → version) cannot be had beside those of the project at `root`; None: they can."""
        env = await asyncio.to_thread(self._environment)
        wanted = await asyncio.to_thread(_wanted, root, _hosts(env))
        new = {name: version for name, version in packages.items() if name not in wanted.names}
        if wanted.refusals or (packages and not new):
            return None
        if refusals := tuple(refused_packages(new, self._packages)):
            return NodePackages(problem="; ".join(refusals))
        async with scratch_folder() as home:
            await asyncio.to_thread(_prepare, home, wanted.model_copy(update={"manifest": _with(wanted.manifest, new)}))
            argv, access = ["npm", "install", "--package-lock-only", *_OPTIONS], Access(fetch=True)
            told = await self._runner.run(argv, cwd=home, env=env, timeout_s=self._timeout_s, access=access)
        return None if told.ok else NodePackages(problem="The packages cannot be installed.", output=told.output)

    async def _install(self, home: Path, wanted: NpmRequirements, env: dict[str, str]) -> NodePackages | None:
        await asyncio.to_thread(_prepare, home, wanted)
        verb = "install" if wanted.lock_name is None else "ci"
        argv, access = ["npm", verb, *_OPTIONS], Access(fetch=True)
        result = await self._runner.run(argv, cwd=home, env=env, timeout_s=self._timeout_s, access=access)
        if result.ok:
            return None
        how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
        return NodePackages(problem=f"`npm {verb}` could not install the packages ({how}).", output=result.output)

    def _environment(self) -> dict[str, str]:
        """npm's variables. Blocks."""
        registry = {} if self._registry is None else {"NPM_CONFIG_REGISTRY": self._registry}
        return {**npm_variables(self._variables), **self._handed_on, **registry}


def _with(manifest: str, packages: Mapping[str, str]) -> str:
    """The text of package.json with these packages too."""
    told = json.loads(manifest.removeprefix("\ufeff") or "{}")
    return json.dumps({**told, "dependencies": {**(told.get("dependencies") or {}), **packages}})


def _hosts(env: Mapping[str, str]) -> frozenset[str]:
    """Hosts that a lock file may name: the public registry's and those of the registries that are configured."""
    configured = (urlsplit(value) for name, value in env.items() if name.upper().endswith("REGISTRY"))
    return frozenset({REGISTRY, *(url.netloc.rpartition("@")[2] for url in configured)})


@contextlib.asynccontextmanager
async def linked(root: Path, modules: Path | None) -> AsyncIterator[None]:
    """`root`/node_modules leads to `modules` meanwhile (None: nothing is done); the tree is left as it was.

    A folder or link of that name in the tree is the project's own and stays in place. A link it must be: what is
    imported with `import` is looked up beside the importing file and nowhere else.
    """
    link = root / MODULES
    made = modules is not None and await asyncio.to_thread(_link, link, modules)
    try:
        yield
    finally:
        if made and modules is not None:
            await asyncio.shield(asyncio.to_thread(_unlink, link, modules))


def _link(link: Path, modules: Path) -> bool:
    _unlink(link, modules)  # one that a killed process left
    try:
        link.symlink_to(modules, target_is_directory=True)
    except FileExistsError:
        return False
    return True


def _unlink(link: Path, modules: Path) -> None:
    with contextlib.suppress(OSError):
        if os.readlink(link) == str(modules):
            link.unlink()


def _wanted(root: Path, hosts: frozenset[str]) -> NpmRequirements:
    return gather(root_files(root), functools.partial(read_text, root), hosts=hosts)


def _digest(wanted: NpmRequirements) -> str:
    content = [wanted.model_dump(mode="json"), platform.system(), platform.machine()]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _is_ready(home: Path, digest: str) -> bool:
    try:
        marker = json.loads((home / _MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return marker == {"sha256": digest} and (home / MODULES).is_dir()


def _write_marker(home: Path, digest: str) -> None:
    (home / MODULES).mkdir(exist_ok=True)  # npm makes none when every package was optional
    beside = home / f"{_MARKER}.new"
    beside.write_text(json.dumps({"sha256": digest}), encoding="utf-8")
    beside.replace(home / _MARKER)


def _prepare(home: Path, wanted: NpmRequirements) -> None:
    """An empty folder with our own copies of what npm reads: nothing else of the tree is in its reach."""
    remove_tree(home)
    home.mkdir(parents=True)
    (home / MANIFEST).write_text(wanted.manifest, encoding="utf-8")
    (home / ".npmrc").write_text("".join(f"{line}\n" for line in wanted.settings), encoding="utf-8")
    if wanted.lock_name is not None:
        (home / wanted.lock_name).write_text(wanted.lock, encoding="utf-8")
