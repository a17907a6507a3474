"""The packages of Python projects: installed once for all who ask for the same, and joined to many environments."""

import asyncio
import ensurepip
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.free_disk import raise_if_full
from orchestrator.adapters.kept_folders import begin, is_used, put
from orchestrator.adapters.python_installer import Installer, options_of, uv_program
from orchestrator.adapters.python_requirements import Requirements
from orchestrator.adapters.python_venv import interpreter_folders, make_venv, packages_of
from orchestrator.domain.base import Value
from orchestrator.domain.sandbox import Access
from orchestrator.domain.testing import CommandResult
from orchestrator.errors import ConfigError
from orchestrator.ports import CommandRunner

_PYTEST = "pytest"
_COMPILER = Path(__file__).with_name("compile_packages.py")
_LOCKED = "locked.txt"
_LEFT_ASIDE = "lock_left_aside.txt"
_TOLD = 2000
"""Characters kept of what an installer printed at its end."""
_PIP = "#!python\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"


class NotInstalled(Value):
    """Why there is no layer."""

    problem: str
    """For people and personas."""
    output: str = ""
    """What the installer printed."""


class PythonLayers:
    """Makes and keeps layers in `folder`/<digest of what is asked for>."""

    def __init__(self, folder: Path, runner: CommandRunner, installer: Installer, timeout_s: float) -> None:
        self._folder, self._runner, self._installer, self._timeout_s = folder, runner, installer, timeout_s
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(self, wanted: Requirements) -> Path | NotInstalled:
        """Where the packages lie that are asked for. Of two processes that make the same, the first one's counts.

        Raises OSError where the disk is full.
        """
        digest = await asyncio.to_thread(_digest, wanted)
        layer = self._folder / digest
        async with self._locks.setdefault(digest, asyncio.Lock()):
            if await asyncio.to_thread(is_used, layer):
                return layer
            begun = await asyncio.to_thread(begin, self._folder)
            try:
                await asyncio.to_thread(_prepare, begun, wanted)
                failed = await self._fill(begun, layer, wanted)
                if failed is None:
                    await asyncio.to_thread(put, begun, layer)
            finally:
                await asyncio.to_thread(remove_tree, begun)
        return failed or layer

    async def refusal(self, wanted: Requirements) -> NotInstalled | None:
        """Why these packages cannot be had, None when they can; nothing is installed."""
        try:
            env = await asyncio.to_thread(self._installer.environment)
        except ConfigError as error:
            return NotInstalled(problem=str(error))
        begun = await asyncio.to_thread(begin, self._folder)
        try:
            await asyncio.to_thread(_prepare, begun, wanted)
            told = await self._run(
                [*self._listed(begun, wanted), "--dry-run"], begun, env, python=wanted.python, fetch=True
            )
        finally:
            await asyncio.to_thread(remove_tree, begun)
        return None if told.ok else _failure("The packages cannot be installed", told)

    def _listed(self, begun: Path, wanted: Requirements) -> list[str]:
        """The command line that installs what is wanted."""
        _, options = options_of(wanted.lines)
        listed = [*options, *self._limits(begun, wanted), "-r", str(begun / "requirements.txt")]
        return self._installer.install(begun / "venv" / "bin" / "python", *listed)

    def _limits(self, begun: Path, wanted: Requirements) -> list[str]:
        limits = ["-c", str(begun / "constraints.txt")] if wanted.constraints else []
        return [*limits, *(self._installer.leave_out(begun / "left_out.txt") if wanted.without else [])]

    async def _fill(self, begun: Path, layer: Path, wanted: Requirements) -> NotInstalled | None:
        """Packages are installed without running anything of them; they are compiled where there is no network."""
        installer, python = self._installer, begun / "venv" / "bin" / "python"
        try:
            env = await asyncio.to_thread(installer.environment)
        except ConfigError as error:
            return NotInstalled(problem=str(error))
        listed, limits = self._listed(begun, wanted), self._limits(begun, wanted)
        locked = ["-c", str(begun / _LOCKED)] if wanted.locked else []
        fetched = (
            await self._run([*listed, *locked], begun, env, python=wanted.python, fetch=True) if wanted.lines else None
        )
        if fetched is not None and not fetched.ok and locked and not fetched.limit:
            await asyncio.to_thread((begun / _LEFT_ASIDE).write_text, fetched.output[-_TOLD:], encoding="utf-8")
            locked = []
            fetched = await self._run(listed, begun, env, python=wanted.python, fetch=True)
        if fetched is not None and not fetched.ok:
            return _failure("The dependencies could not be installed; only ready-made ones (wheels) are", fetched)
        limits += locked
        own = _PYTEST if wanted.python or _names_pytest(wanted) else _own_pytest()
        if wanted.runner and (failed := await self._add_runner(begun, wanted, [*limits, own], env)):
            return failed
        packages = await asyncio.to_thread(packages_of, begun)
        argv = [str(python), "-I", str(_COMPILER), str(packages), str(begun), str(layer)]
        await self._run(argv, begun, {}, python=wanted.python)
        return None

    async def _add_runner(
        self, begun: Path, wanted: Requirements, runner: Sequence[str], env: dict[str, str]
    ) -> NotInstalled | None:
        """pytest and pip, where the packages bring none."""
        python = begun / "venv" / "bin" / "python"
        if not await asyncio.to_thread(_has, begun, _PYTEST):
            added = await self._run(
                self._installer.install(python, *runner), begun, env, python=wanted.python, fetch=True
            )
            if not added.ok:
                return _failure(f"{runner[-1]} could not be added", added)
        await asyncio.to_thread(_add_pip, begun)
        return None

    async def _run(
        self, argv: Sequence[str], begun: Path, env: dict[str, str], *, python: str, fetch: bool = False
    ) -> CommandResult:
        """`python`: the interpreter's program that the environment is made of; "" for ours."""
        access = Access(fetch=fetch, readable=(_COMPILER, *interpreter_folders(python)))
        result = await self._runner.run(argv, cwd=begun, env=env, timeout_s=self._timeout_s, access=access)
        if not result.ok:
            await asyncio.to_thread(raise_if_full, result.output, self._folder, Path(tempfile.gettempdir()))
        return result


def lock_left_aside(layer: Path) -> str:
    """Why the lock file's versions are not the layer's, in the installer's words; "" when they are. Blocks."""
    with suppress(OSError):
        return (layer / _LEFT_ASIDE).read_text(encoding="utf-8")
    return ""


def _names_pytest(wanted: Requirements) -> bool:
    """Whether its version is the project's to choose."""
    return any(re.match(rf"{_PYTEST}\b(?!-)", line) for line in (*wanted.constraints, *wanted.locked))


@functools.cache
def _own_pytest() -> str:
    """Blocks the first time."""
    return f"{_PYTEST}=={importlib.metadata.version(_PYTEST)}"


def _digest(wanted: Requirements) -> str:
    """Changes with the requirements, the interpreter, the test runner that is added, and what installs them."""
    content = [
        wanted.model_dump(mode="json", exclude={"extras", "left_out", "members", "requires_python"}),
        sys.version,
        platform.machine(),
        os.path.realpath(sys.executable),
        _own_pytest(),
        uv_program() is None,
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _prepare(begun: Path, wanted: Requirements) -> None:
    """An environment, and our own copy of what to install: the tree may change meanwhile."""
    plain, _ = options_of(wanted.lines)
    (begun / "requirements.txt").write_text("\n".join(plain) + "\n", encoding="utf-8")
    limits = [_constraint(line) for line in wanted.constraints]
    (begun / "constraints.txt").write_text("\n".join(limits) + "\n", encoding="utf-8")
    (begun / _LOCKED).write_text("\n".join(wanted.locked) + "\n", encoding="utf-8")
    left_out = [f"{name} ; python_version < '0'\n" for name in wanted.without]
    (begun / "left_out.txt").write_text("".join(left_out), encoding="utf-8")
    make_venv(begun / "venv", wanted.python)


def _has(layer: Path, name: str) -> bool:
    return any(canonicalize_name(path.name.split("-", 1)[0]) == name for path in packages_of(layer).glob("*.dist-info"))


def _add_pip(begun: Path) -> None:
    """The pip that comes with Python, where the packages bring none: as it is, packed, for few commands call it."""
    found = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"), None)
    if found is None or _has(begun, "pip"):
        return
    packages, programs = packages_of(begun), begun / "venv" / "bin"
    wheel = shutil.copy(found, begun)
    (packages / "pip.pth").write_text(f"{os.path.relpath(wheel, packages)}\n", encoding="utf-8")
    for name in ("pip", "pip3"):
        (programs / name).write_text(_PIP, encoding="utf-8")
        (programs / name).chmod(0o755)


def _constraint(line: str) -> str:
    """Constraints may not name extras; the version is what they are for."""
    try:
        parsed = Requirement(line)
    except InvalidRequirement:  # it has hashes behind it and is passed on as it is
        return line
    return f"{parsed.name}{parsed.specifier}" + (f" ; {parsed.marker}" if parsed.marker else "")


def _failure(what: str, result: CommandResult) -> NotInstalled:
    how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
    return NotInstalled(problem=f"{what} ({how}).", output=result.output)
