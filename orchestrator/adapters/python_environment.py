"""Python environments: one venv per key for projects with dependencies, our own interpreter for those without."""

import asyncio
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.package_rules import refused_packages
from orchestrator.adapters.python_requirements import Requirements, gather
from orchestrator.adapters.tree_reading import read_text, root_files
from orchestrator.domain.base import Value
from orchestrator.domain.sandbox import Access
from orchestrator.domain.testing import CommandResult
from orchestrator.ports import CommandRunner
from orchestrator.settings.model import CommandSettings, SandboxSettings

_PYTEST = "pytest"
_WHEELS = "wheels"
_PIP = ("-m", "pip")
_QUIET = ("--no-input", "--disable-pip-version-check")
_MARKER = "ready.json"
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
    access: Access = Access()
    """What the interpreter needs beyond what every command may read."""


class PythonEnvironments:
    """Makes and keeps environments in `folder`/<key>; `variables` is where the allowed install variables come from.

    What is asked for must be allowed by `rules`, and is fetched from the registry they name.
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
        self._registry = rules.registries.pip
        self._packages = rules.packages
        self._folder = folder.absolute()
        self._runner = runner
        self._timeout_s = settings.install_timeout_s
        self._env = {name: variables[name] for name in settings.install_env if name in variables}
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(self, root: Path, key: str) -> EnvironmentResult:
        """The environment for the project at `root`, built or rebuilt when its manifests ask for something else.

        Never raises for what the project holds; one call per key at a time, others wait. ValueError: `key` is no plain
        name.
        """
        if not _KEY.match(key):
            raise ValueError(f"{key!r} cannot name an environment")
        async with self._locks.setdefault(key, asyncio.Lock()):
            wanted = await asyncio.to_thread(_wanted, root)
            refusals = (*wanted.refusals, *refused_packages(_names(wanted.lines), self._packages))
            if refusals:
                text = "Dependencies were not installed. " + "; ".join(refusals)
                return EnvironmentResult(python=None, problem=text)
            if not wanted.lines:
                return EnvironmentResult(python=Path(sys.executable), own=True)
            home = self._folder / key
            python = home / "venv" / "bin" / "python"
            digest = await asyncio.to_thread(_digest, wanted)
            if await asyncio.to_thread(_is_ready, home, digest):
                return _usable(python)
            failed = await self._build(home, python, wanted)
            if failed is not None:
                return failed
            # Written last: a build that was cut half-way has no marker and starts again.
            await asyncio.to_thread(_write_marker, home, digest)
            return _usable(python)

    async def _build(self, home: Path, python: Path, wanted: Requirements) -> EnvironmentResult | None:
        """Packages are fetched by a pip that has met none of them, and installed where there is no network."""
        await asyncio.to_thread(_prepare, home, wanted)
        made = await self._offline([sys.executable, "-I", "-m", "venv", str(home / "venv")], home)
        if not made.ok:
            return _failure("The environment could not be made", made)
        listed = ("-r", str(home / "requirements.txt"))
        fetched = await self._fetch(python, home, *listed)
        if not fetched.ok:
            return _failure("The dependencies could not be fetched; only ready-made ones (wheels) are", fetched)
        wheels: list[tuple[str, ...]] = [listed]
        if not await asyncio.to_thread(_brings_pytest, home):
            version = await asyncio.to_thread(importlib.metadata.version, _PYTEST)
            wheels.append((f"{_PYTEST}=={version}",))
            added = await self._fetch(python, home, *wheels[-1])
            if not added.ok:
                return _failure(f"pytest {version} could not be added", added)
        for names in wheels:
            local = ("--no-index", "--find-links", str(home / _WHEELS), *_constrained(home))
            installed = await self._offline([str(python), "-I", *_PIP, "install", *_QUIET, *local, *names], home)
            if not installed.ok:
                return _failure("The dependencies could not be installed", installed)
        await asyncio.to_thread(remove_tree, home / _WHEELS)
        return None

    async def _fetch(self, python: Path, home: Path, *names: str) -> CommandResult:
        """Nothing of a package is run while it is fetched: what must be built first cannot be had."""
        registry = () if self._registry is None else ("--index-url", self._registry)
        argv = [
            *(str(python), "-I", *_PIP, "download", *_QUIET, "--only-binary", ":all:", "--dest", str(home / _WHEELS)),
            *(*registry, *_constrained(home), *names),
        ]
        access = Access(fetch=True)
        return await self._runner.run(argv, cwd=home, env=self._env, timeout_s=self._timeout_s, access=access)

    async def _offline(self, argv: Sequence[str], home: Path) -> CommandResult:
        env = {"PIP_CONFIG_FILE": os.devnull}
        return await self._runner.run(argv, cwd=home, env=env, timeout_s=self._timeout_s)


def _constrained(home: Path) -> tuple[str, ...]:
    return ("-c", str(home / "constraints.txt"))


def _usable(python: Path) -> EnvironmentResult:
    return EnvironmentResult(python=python, access=Access(readable=(python.parent.parent,)))


def _failure(what: str, result: CommandResult) -> EnvironmentResult:
    how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
    return EnvironmentResult(python=None, problem=f"{what} ({how}).", output=result.output)


def _wanted(root: Path) -> Requirements:
    return gather(root_files(root), functools.partial(read_text, root))


def _digest(wanted: Requirements) -> str:
    """Changes with the requirements, the interpreter and the test runner that is added."""
    content = [
        wanted.model_dump(mode="json"),
        sys.version,
        platform.machine(),
        os.path.realpath(sys.executable),
        importlib.metadata.version(_PYTEST),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _is_ready(home: Path, digest: str) -> bool:
    try:
        marker = json.loads((home / _MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return marker == {"sha256": digest} and (home / "venv" / "bin" / "python").exists()


def _write_marker(home: Path, digest: str) -> None:
    beside = home / f"{_MARKER}.new"
    beside.write_text(json.dumps({"sha256": digest}), encoding="utf-8")
    beside.replace(home / _MARKER)


def _prepare(home: Path, wanted: Requirements) -> None:
    """An empty folder with our own copy of what to install: the tree may change while pip reads."""
    remove_tree(home)
    home.mkdir(parents=True)
    (home / "requirements.txt").write_text("\n".join(wanted.lines) + "\n", encoding="utf-8")
    constraints = [_constraint(line) for line in wanted.constraints]
    (home / "constraints.txt").write_text("\n".join(constraints) + "\n", encoding="utf-8")


def _names(lines: Sequence[str]) -> tuple[str, ...]:
    """What is asked for; behind a name come extras, a version, a marker, hashes. Options name nothing."""
    return tuple(re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0] for line in lines if line[:1] != "-")


def _constraint(line: str) -> str:
    """Constraints may not name extras; the version is what they are for."""
    try:
        parsed = Requirement(line)
    except InvalidRequirement:  # it has hashes behind it and is passed on as it is
        return line
    return f"{parsed.name}{parsed.specifier}" + (f" ; {parsed.marker}" if parsed.marker else "")


def _brings_pytest(home: Path) -> bool:
    return any(canonicalize_name(path.name.split("-", 1)[0]) == _PYTEST for path in (home / _WHEELS).glob("*.whl"))
