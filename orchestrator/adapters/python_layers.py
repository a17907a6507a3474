"""The packages of Python projects: installed once for all who ask for the same, and joined to many environments.

A layer is made beside its place and put there whole, so one that is there is finished, whatever was killed meanwhile.
"""

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
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.leftovers import leftovers, named
from orchestrator.adapters.python_installer import Installer, options_of, uv_program
from orchestrator.adapters.python_requirements import Requirements
from orchestrator.domain.base import Value
from orchestrator.domain.sandbox import Access
from orchestrator.domain.testing import CommandResult
from orchestrator.errors import ConfigError
from orchestrator.ports import CommandRunner

_PYTEST = "pytest"
_MADE = "made.json"
_LOCKED = "locked.txt"
_LEFT_ASIDE = "lock_left_aside.txt"
_BEGUN = ".begun-"
_SCRIPT = re.compile(rb"#!(?:/bin/sh\n'''exec' .*\n' '''|\S*python.*)\n")
"""How a script of a package begins: with its interpreter, or, where that path is too long, with a shell for it."""
_SHELL = b"#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n"
_TOLD = 2000
"""Characters kept of what an installer printed at its end."""
UNUSED_S = 30 * 24 * 3600
"""A layer that nobody asked for this long is removed when another one is made."""
MOST_BYTES = 5 * 1024**3
"""Of all layers together; when another one is made, those go that were not asked for longest."""
_IN_USE_S = 24 * 3600
"""One that was asked for within this time stays, however large they all are: a suite may run with it."""


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
        """Where the packages lie that are asked for. Of two processes that make the same, the first one's counts."""
        digest = await asyncio.to_thread(_digest, wanted)
        layer = self._folder / digest
        async with self._locks.setdefault(digest, asyncio.Lock()):
            if await asyncio.to_thread(is_used, layer):
                return layer
            begun = await asyncio.to_thread(_begin, self._folder, wanted)
            try:
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
        begun = await asyncio.to_thread(_begin, self._folder, wanted)
        try:
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
        # A file that cannot be compiled (a template, say) is no error here: it is one for whoever imports it.
        moved = ("-s", str(begun), "-p", str(layer))
        # Nor is pip worth its second, which few commands call.
        argv = [str(python), "-I", "-m", "compileall", "-qq", "-j", "0", "-x", r"site-packages/pip/", *moved]
        argv.append(str(await asyncio.to_thread(_packages, begun)))
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
        if (pip := await asyncio.to_thread(_bundled_pip, begun)) is not None:
            argv = self._installer.install(python, str(pip), offline=True)
            await self._run(argv, begun, self._installer.alone(), python=wanted.python)
        return None

    async def _run(
        self, argv: Sequence[str], begun: Path, env: dict[str, str], *, python: str, fetch: bool = False
    ) -> CommandResult:
        """`python`: the interpreter's program that the environment is made of; "" for ours."""
        access = Access(fetch=fetch, readable=interpreter_folders(python))
        return await self._runner.run(argv, cwd=begun, env=env, timeout_s=self._timeout_s, access=access)


def lock_left_aside(layer: Path) -> str:
    """Why the lock file's versions are not the layer's, in the installer's words; "" when they are. Blocks."""
    with suppress(OSError):
        return (layer / _LEFT_ASIDE).read_text(encoding="utf-8")
    return ""


def is_joined(environment: Path, layer: Path, tag: str) -> bool:
    """Whether it is the environment that `mark_joined` was told of. Blocks."""
    with suppress(OSError, ValueError):
        made = json.loads((environment / _MADE).read_text(encoding="utf-8"))
        return bool(made == {"layer": str(layer), "project": tag})
    return False


def mark_joined(environment: Path, layer: Path, tag: str) -> None:
    """The environment has the layer's packages and the project's wheel of this tag. Blocks."""
    (environment / _MADE).write_text(json.dumps({"layer": str(layer), "project": tag}), encoding="utf-8")


def join(environment: Path, layer: Path) -> None:
    """Make the virtual environment that has the layer's packages and programs. Blocks."""
    remove_tree(environment)
    environment.parent.mkdir(parents=True, exist_ok=True)
    python = os.path.realpath(layer / "venv" / "bin" / "python")
    _make_venv(environment, "" if python == os.path.realpath(sys.executable) else python)
    # `addsitedir` also heeds the files of paths that packages bring. `!`: it is the first of the files of paths, so
    # that what lies in the project's own folders does not stand in for a package.
    line = f"import site; site.addsitedir({str(_packages(layer))!r})\n"
    (_site(environment) / "!layer.pth").write_text(line, encoding="utf-8")
    for program in sorted((layer / "venv" / "bin").iterdir()):
        _add_program(program, environment / "bin" / program.name)


def _add_program(program: Path, target: Path) -> None:
    """A script in Python runs with the interpreter of its environment; what is none is linked to."""
    if os.path.lexists(target) or not program.is_file():
        return
    content = program.read_bytes()
    script = _SCRIPT.match(content)
    if script is None:
        target.symlink_to(program)
        return
    python = os.fsencode(target.with_name("python"))
    target.write_bytes(_SHELL % python + content[script.end() :])
    target.chmod(0o755)


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


def is_used(layer: Path) -> bool:
    """Whether it is there; if so, somebody wants it now. Blocks."""
    try:
        os.utime(layer / _MADE)
    except OSError:
        return False
    return True


def begin(folder: Path) -> Path:
    """A new folder beside those that are kept; what was left half-made, and what nobody needs, is removed. Blocks."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in (*leftovers(folder, _BEGUN), *_unused(folder)):
        remove_tree(left)
    begun = folder / f"{named(_BEGUN)}{time.monotonic_ns()}"
    begun.mkdir()
    return begun


def _begin(folder: Path, wanted: Requirements) -> Path:
    """A new folder with an environment and our own copy of what to install: the tree may change meanwhile."""
    begun = begin(folder)
    plain, _ = options_of(wanted.lines)
    (begun / "requirements.txt").write_text("\n".join(plain) + "\n", encoding="utf-8")
    limits = [_constraint(line) for line in wanted.constraints]
    (begun / "constraints.txt").write_text("\n".join(limits) + "\n", encoding="utf-8")
    (begun / _LOCKED).write_text("\n".join(wanted.locked) + "\n", encoding="utf-8")
    left_out = [f"{name} ; python_version < '0'\n" for name in wanted.without]
    (begun / "left_out.txt").write_text("".join(left_out), encoding="utf-8")
    _make_venv(begun / "venv", wanted.python)
    return begun


def _unused(folder: Path) -> list[Path]:
    """Layers that nobody asked for long enough, and of the others as many as are too many."""
    found = []
    for made in folder.glob(f"*/{_MADE}"):
        with suppress(OSError, ValueError):  # another process removes it, or is older and wrote no size
            found.append((made.stat().st_mtime, int(made.read_text(encoding="utf-8") or 0), made.parent))
    now, total, unused = time.time(), 0, []
    for used, size, layer in sorted(found, reverse=True):
        total += size
        if now - used > UNUSED_S or (total > MOST_BYTES and now - used > _IN_USE_S):
            unused.append(layer)
    return unused


def put(begun: Path, layer: Path) -> None:
    """Move what is finished into its place, where `is_used` finds it. Blocks."""
    size = sum(path.lstat().st_size for path in begun.rglob("*"))
    (begun / _MADE).write_text(str(size), encoding="utf-8")
    try:
        begun.rename(layer)
    except OSError:
        if not is_used(layer):  # else another process was first
            raise


def interpreter_folders(python: str) -> tuple[Path, ...]:
    """What must be readable for an interpreter that is not ours, by its program; "" for ours."""
    return (Path(python).parent.parent,) if python else ()


def _packages(layer: Path) -> Path:
    return _site(layer / "venv")


def _site(environment: Path) -> Path:
    return next((environment / "lib").glob("python3.*/site-packages"))


def _make_venv(folder: Path, python: str) -> None:
    """With our interpreter, or with another one's program."""
    if python:
        argv = [python, "-I", "-m", "venv", "--without-pip", "--symlinks", str(folder)]
        subprocess.run(argv, check=True, capture_output=True, timeout=60)
    else:
        venv.EnvBuilder(symlinks=True).create(folder)


def _has(layer: Path, name: str) -> bool:
    return any(canonicalize_name(path.name.split("-", 1)[0]) == name for path in _packages(layer).glob("*.dist-info"))


def _bundled_pip(begun: Path) -> Path | None:
    """Our own copy of the pip that comes with Python, where the packages bring none."""
    found = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"), None)
    return None if found is None or _has(begun, "pip") else Path(shutil.copy(found, begun))


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
