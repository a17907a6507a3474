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
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import LEFT_OUT, Access, CommandResult, NewPackages
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import NOTHING, YOUNGEST_DAYS, InstallScripts
from orchestrator.environments.kept import KeptFolders, begin
from orchestrator.environments.python_installer import Installer, make_venv, options_of, packages_of
from orchestrator.environments.python_manifests import package_of
from orchestrator.environments.python_requirements import Requirements
from orchestrator.files.disk import raise_if_full
from orchestrator.sandbox.command_runner import remove_tree

_PYTEST = "pytest"
_CONSTRAINTS = "constraints.txt"
_COMPILER = Path(__file__).with_name("compile_packages.py")
_LOCKED = "locked.txt"
_LEFT_OUT = "left_out.txt"
_NO_WHEELS = "no_wheels.txt"
_NOT_BUILT = "not_built.txt"
_WANTED = "requirements.txt"
_ASIDE = ".aside"
"""Behind the name of a list, for what was taken out of it and why."""
_UNSOLVED_END = "\n\n"
_MOST_ROUNDS = 4
"""In which single lines are taken out of a list; an index that lacks many versions of a lock has each round fetch."""
_UNBUILT = re.compile(r"Wheels are required for `([\w.-]+)` because building from source is disabled")
_UNSOLVED = "No solution found"
"""What uv says where versions do not go together. Whatever else happened says nothing about a lock file."""
_BROKEN = re.compile(r"Failed to (?:download and )?build `([\w.-]+)")
"""What uv says of a package that it was to build."""
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
    """Makes and keeps layers in `folder`/<digest of what is asked for>.

    One without what could not be built is for this object alone: what was missing may be there for the next one.
    """

    def __init__(self, folder: Path, runner: CommandRunner, installer: Installer, timeout_s: float) -> None:
        self._folder, self._runner, self._installer, self._timeout_s = folder, runner, installer, timeout_s
        self._kept = KeptFolders(folder)

    async def ensure(self, wanted: Requirements, scripts: InstallScripts = NOTHING) -> Path | NotInstalled:
        """Returns where the packages lie that are asked for.

        Raises OSError where the disk is full, ConfigError for settings of pip that uv cannot have.
        """

        async def make(begun: Path, layer: Path) -> NotInstalled | None:
            await asyncio.to_thread(_prepare, begun, wanted)
            return await self._fill(begun, layer, wanted, scripts)

        digest = await asyncio.to_thread(_digest, wanted, self._installer, scripts)
        return await self._kept.ensure(digest, make, not_built)

    async def check_new(self, base: Requirements, wanted: Requirements, scripts: InstallScripts) -> NewPackages:
        """Whether `wanted`, which is `base` and new packages, can be had. Where some of them have to be built and may
        be, that is done. Raises as `ensure`.
        """
        told, closed, built = await self._try(wanted, scripts)
        if not told.ok:
            return _refusal(told)
        if not (closed or built):
            return NewPackages()
        _, closed_before, built_before = await self._try(base, scripts)
        brought = {*closed, *built} - {*closed_before, *built_before}
        if closed := tuple(name for name in closed if name in brought):
            return NewPackages(closed=closed, listed=scripts.listed)
        layer = await self.ensure(wanted, scripts) if brought else None
        if isinstance(layer, NotInstalled):
            return NewPackages(refusal=f"{layer.problem}\n{layer.output}")
        return NewPackages(failed=await asyncio.to_thread(not_built, layer) if layer is not None else "")

    async def _try(
        self, wanted: Requirements, scripts: InstallScripts
    ) -> tuple[CommandResult, tuple[str, ...], tuple[str, ...]]:
        """How choosing versions ended, and the packages that have no wheel: those that may not be built, and others."""
        env = await asyncio.to_thread(self._installer.environment)
        begun = await asyncio.to_thread(begin, self._folder)
        try:
            await asyncio.to_thread(_prepare, begun, wanted)
            told, built = await self._fetch(begun, wanted, env, scripts, *_listed(begun, wanted), "--dry-run")
            return told, tuple(await asyncio.to_thread(_unbuilt, begun)), tuple(built)
        finally:
            await asyncio.to_thread(remove_tree, begun)

    async def _fetch(
        self, begun: Path, wanted: Requirements, env: dict[str, str], scripts: InstallScripts, *what: str
    ) -> tuple[CommandResult, list[str]]:
        """Install `what`; build what has no wheel and may be built, and do without what keeps it all from being had: a
        package that cannot be built, a lock that does not go together with the manifests any more. Also the names of
        those that were to be built."""
        limits = ["-c", str(begun / _CONSTRAINTS), "-c", str(begun / _LOCKED), "--override", str(begun / _LEFT_OUT)]
        python, built, failed = begun / "venv" / "bin" / "python", list[str](), set[str]()
        while True:
            sources = [word for name in built for word in ("--no-binary", name)]
            sources += self._installer.older(filter(scripts.young, built), YOUNGEST_DAYS)
            argv = self._installer.install(python, *limits, *sources, *what)
            fetched = await self._run(argv, begun, wanted, env, fetch=True)
            if fetched.ok or fetched.limit:
                return fetched, [*built, *failed]
            lacking, broken = _UNBUILT.search(fetched.output), _BROKEN.search(fetched.output)
            if lacking and lacking[1] not in {*built, *failed} and scripts.allowed(lacking[1]):
                built.append(lacking[1])
            elif broken and broken[1] in built:
                built.remove(broken[1])
                failed.add(broken[1])
                await asyncio.to_thread(
                    _append,
                    begun / _NOT_BUILT,
                    f"`{broken[1]}` {LEFT_OUT}: it could not be built: {fetched.output[-_TOLD:]}\n",
                )
            elif not await asyncio.to_thread(_does_without, begun, fetched.output, wanted):
                return fetched, [*built, *failed]

    async def _fill(
        self, begun: Path, layer: Path, wanted: Requirements, scripts: InstallScripts
    ) -> NotInstalled | None:
        """Packages are compiled where there is no network."""
        python, env = begun / "venv" / "bin" / "python", await asyncio.to_thread(self._installer.environment)
        what = _listed(begun, wanted)
        fetched = (await self._fetch(begun, wanted, env, scripts, *what))[0] if wanted.lines else None
        if fetched is not None and not fetched.ok:
            return _failure("The dependencies could not be installed", fetched)
        own = _PYTEST if wanted.python is not None or _names_pytest(wanted) else _own_pytest()
        if wanted.runner and (failed := await self._add_runner(begun, wanted, own, env)):
            return failed
        packages = await asyncio.to_thread(packages_of, begun)
        argv = [str(python), "-I", str(_COMPILER), str(packages), str(begun), str(layer)]
        await self._run(argv, begun, wanted, {})
        return None

    async def _add_runner(
        self, begun: Path, wanted: Requirements, runner: str, env: dict[str, str]
    ) -> NotInstalled | None:
        """pytest and pip, where the packages bring none."""
        if not await asyncio.to_thread(_has, begun, _PYTEST):
            added, _ = await self._fetch(begun, wanted, env, NOTHING, runner)
            if not added.ok:
                return _failure(f"{runner} could not be added", added)
        await asyncio.to_thread(_add_pip, begun)
        return None

    async def _run(
        self, argv: Sequence[str], begun: Path, wanted: Requirements, env: dict[str, str], *, fetch: bool = False
    ) -> CommandResult:
        readable = wanted.python.readable if wanted.python is not None else ()
        access = Access(fetch=fetch, readable=(_COMPILER, *map(Path, readable)))
        result = await self._runner.run(argv, cwd=begun, env=env, timeout_s=self._timeout_s, access=access)
        if not result.ok:
            await asyncio.to_thread(raise_if_full, result.output, self._folder, Path(tempfile.gettempdir()))
        return result


def _listed(begun: Path, wanted: Requirements) -> list[str]:
    """What is wanted, for a command line."""
    _, options = options_of(wanted.lines)
    return [*options, "-r", str(begun / _WANTED)]


def notes_on(layer: Path) -> list[str]:
    """What of the packages is not as it was asked for, and why. Blocks."""
    notes = []
    for name, what in ((_LOCKED, "versions of the lock file"), (_WANTED, "requirements for development")):
        with suppress(OSError):
            aside = (layer / name).with_suffix(_ASIDE).read_text(encoding="utf-8").strip()
            notes.append(f"the {what} were left aside, where they do not go together with the others: {aside}")
    if failed := not_built(layer):
        notes.append(failed)
    may_not = "no ready-made package (wheel) for this machine, and environment.install_scripts does not let it be built"
    return notes + [f"`{name}` {LEFT_OUT}: it has {may_not}" for name in _unbuilt(layer)]


def not_built(layer: Path) -> str:
    """Packages that could not be built, and why. Blocks."""
    with suppress(OSError):
        return (layer / _NOT_BUILT).read_text(encoding="utf-8")
    return ""


def _unbuilt(layer: Path) -> list[str]:
    """Packages that were left out because they have no wheel."""
    with suppress(OSError):
        return (layer / _NO_WHEELS).read_text(encoding="utf-8").split()
    return []


def _does_without(begun: Path, told: str, wanted: Requirements) -> bool:
    """Whether what an installer says can be mended by taking something away, which is then done."""
    unbuilt = _UNBUILT.search(told)
    if unbuilt is None:
        return _UNSOLVED in told and (
            _leave_aside(begun / _LOCKED, _read_lines(begun / _LOCKED), told)
            or _leave_aside(begun / _WANTED, wanted.besides, told)
        )
    locked = _read_lines(begun / _LOCKED)
    kept = [line for line in locked if not re.match(rf"{re.escape(unbuilt[1])}\b(?![-.])", line)]
    if len(kept) < len(locked):
        _write_lines(begun / _LOCKED, kept)
        return True
    if unbuilt[1] in _unbuilt(begun):
        return False
    _append(begun / _NO_WHEELS, f"{unbuilt[1]}\n")
    _append(begun / _LEFT_OUT, f"{_never(unbuilt[1])}\n")
    return True


def _leave_aside(path: Path, which: Collection[str], told: str) -> bool:
    """Take out of a file those lines of `which` that an installer names as in each other's way, else, or where it has
    said so often enough, all of them; whether there was any."""
    lines, aside = _read_lines(path), path.with_suffix(_ASIDE)
    there = [line for line in lines if line in {*which}]
    named = [line for line in there if re.search(rf"(?<![\w.-]){re.escape(package_of(line))}(?![\w-])", told, re.I)]
    rounds = aside.read_text(encoding="utf-8").count(_UNSOLVED_END) if aside.exists() else 0
    gone = {*(named if rounds < _MOST_ROUNDS else there)} or {*there}
    if gone:
        _write_lines(path, [line for line in lines if line not in gone])
        _append(aside, f"{', '.join(sorted(gone))}: {told[-_TOLD:].strip()}{_UNSOLVED_END}")
    return bool(gone)


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _never(name: str) -> str:
    return f"{name} ; python_version < '0'"


def _names_pytest(wanted: Requirements) -> bool:
    """Whether its version is the project's to choose."""
    return any(re.match(rf"{_PYTEST}\b(?!-)", line) for line in (*wanted.constraints, *wanted.locked))


@functools.cache
def _own_pytest() -> str:
    """Blocks the first time."""
    return f"{_PYTEST}=={importlib.metadata.version(_PYTEST)}"


def _digest(wanted: Requirements, installer: Installer, scripts: InstallScripts) -> str:
    """Changes with the requirements, the interpreter, the test runner that is added, what installs them from where."""
    asked = wanted.model_dump(mode="json", exclude={"extras", "left_out", "members", "requires_python"})
    content = [
        asked,
        scripts.digest(json.dumps(asked)),
        sys.version,
        platform.machine(),
        os.path.realpath(sys.executable),
        _own_pytest(),
        installer.sources(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _prepare(begun: Path, wanted: Requirements) -> None:
    """An environment, and our own copy of what to install: the tree may change meanwhile."""
    plain, _ = options_of(wanted.lines)
    _write_lines(begun / _WANTED, plain)
    _write_lines(begun / _CONSTRAINTS, map(_constraint, wanted.constraints))
    _write_lines(begun / _LOCKED, wanted.locked)
    _write_lines(begun / _LEFT_OUT, map(_never, wanted.without))
    make_venv(begun / "venv", wanted.python.program if wanted.python is not None else "")


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


def _refusal(result: CommandResult) -> NewPackages:
    found = _failure("The packages cannot be installed", result)
    return NewPackages(refusal=f"{found.problem}\n{found.output}".strip())
