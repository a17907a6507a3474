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
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import LEFT_OUT, Access, CommandResult, NewPackages
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import NOTHING, YOUNGEST_DAYS, InstallScripts
from orchestrator.environments.kept import KeptFolders
from orchestrator.environments.python_installer import Installer, make_venv, options_of, packages_of
from orchestrator.environments.python_manifests import package_of
from orchestrator.environments.python_requirements import Requirements
from orchestrator.files.disk import raise_if_full
from orchestrator.sandbox.command_runner import scratch_folder

_PYTEST = "pytest"
_COMPILER = Path(__file__).with_name("compile_packages.py")
# What uv reads: what is wanted, limits of the project's own, limits of a lock file, and what is never installed.
_WANTED, _CONSTRAINTS, _LOCKED, _NEVER = "requirements.txt", "constraints.txt", "locked.txt", "left_out.txt"
_NOTES = "told.json"
_MOST_ROUNDS = 4
"""In which single lines are taken out of a list; an index that lacks many versions of a lock has each round fetch."""
_UNBUILT = re.compile(r"Wheels are required for `([\w.-]+)` because building from source is disabled")
_UNSOLVED = "No solution found"
"""What uv says where versions do not go together. Whatever else happened says nothing about a lock file."""
_BROKEN = re.compile(r"Failed to (?:download and )?build `([\w.-]+)")
"""What uv says of a package that it was to build."""
_TOLD = 2000
"""Characters kept of what an installer printed at its end."""
_MAY_NOT = "no ready-made package (wheel) for this machine, and environment.install_scripts does not let it be built"
_PIP = "#!python\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"


class NotInstalled(Value):
    """Why there is no layer."""

    problem: str
    """For people and personas."""
    output: str = ""
    """What the installer printed."""


class Notes(Value):
    """What of a layer's packages is not as it was asked for, and why."""

    locked: tuple[str, ...] = ()
    """Versions of the lock file that were left aside, with the installer's words."""
    besides: tuple[str, ...] = ()
    """Requirements for development that were left aside, likewise."""
    failed: tuple[str, ...] = ()
    """Sentences on packages that could not be built."""
    no_wheels: tuple[str, ...] = ()
    """Packages that have no wheel and may not be built."""

    @property
    def told(self) -> list[str]:
        """Sentences for people and personas."""
        asides = (("versions of the lock file", self.locked), ("requirements for development", self.besides))
        return [
            *(
                f"the {what} were left aside, where they do not go together with the others: {'; '.join(aside)}"
                for what, aside in asides
                if aside
            ),
            *self.failed,
            *(f"`{name}` {LEFT_OUT}: it has {_MAY_NOT}" for name in self.no_wheels),
        ]


def notes_on(layer: Path) -> Notes:
    """Returns what is to be told of it. Blocks."""
    return Notes.model_validate_json((layer / _NOTES).read_text(encoding="utf-8"))


class PythonLayers:
    """Makes and keeps layers in `folder`/<digest of what is asked for>.

    One without what could not be built is for this object alone: what was missing may be there for the next one.
    """

    def __init__(self, folder: Path, runner: CommandRunner, installer: Installer, timeout_s: float) -> None:
        self._runner, self._installer, self._timeout_s = runner, installer, timeout_s
        self._kept = KeptFolders(folder)

    async def ensure(self, wanted: Requirements, scripts: InstallScripts = NOTHING) -> Path | NotInstalled:
        """Returns where the packages lie that are asked for.

        Raises OSError where the disk is full, ConfigError for settings of pip that uv cannot have.
        """

        async def make(begun: Path, layer: Path) -> NotInstalled | None:
            return await self._fill(await asyncio.to_thread(_Attempt, begun, wanted), layer, scripts)

        digest = await asyncio.to_thread(_digest, wanted, self._installer, scripts)
        return await self._kept.ensure(digest, make, lambda begun: notes_on(begun).failed)

    async def check_new(self, base: Requirements, wanted: Requirements, scripts: InstallScripts) -> NewPackages:
        """Returns whether `wanted`, which is `base` and new packages, can be had.

        Where some of them have to be built and may be, that is done. Raises as `ensure`.
        """
        told, closed, built = await self._try(wanted, scripts)
        if not told.ok:
            refused = _failure("The packages cannot be installed", told)
            return NewPackages(refusal=f"{refused.problem}\n{refused.output}".strip())
        if not (closed or built):
            return NewPackages()
        _, closed_before, built_before = await self._try(base, scripts)
        brought = {*closed, *built} - {*closed_before, *built_before}
        if closed := [name for name in closed if name in brought]:
            return NewPackages(closed=tuple(closed), listed=scripts.listed)
        if not brought:
            return NewPackages()
        layer = await self.ensure(wanted, scripts)
        if isinstance(layer, NotInstalled):
            return NewPackages(refusal=f"{layer.problem}\n{layer.output}")
        return NewPackages(failed="\n".join((await asyncio.to_thread(notes_on, layer)).failed))

    async def _try(self, wanted: Requirements, scripts: InstallScripts) -> tuple[CommandResult, list[str], list[str]]:
        """Chooses versions alone; returns how that ended, and which packages have no wheel: those that may not be
        built, and others."""
        env = await asyncio.to_thread(self._installer.environment)
        async with scratch_folder() as begun:
            attempt = await asyncio.to_thread(_Attempt, begun, wanted)
            told = await self._fetch(attempt, env, scripts, *attempt.words, "--dry-run")
            return told, attempt.no_wheels, attempt.built

    async def _fill(self, attempt: "_Attempt", layer: Path, scripts: InstallScripts) -> NotInstalled | None:
        """Fetches what is wanted, then compiles it where there is no network."""
        begun, wanted = attempt.begun, attempt.wanted
        env = await asyncio.to_thread(self._installer.environment)
        if wanted.lines and not (fetched := await self._fetch(attempt, env, scripts, *attempt.words)).ok:
            return _failure("The dependencies could not be installed", fetched)
        if wanted.runner:
            # The version that runs in our own interpreter, unless the project names one or has another interpreter.
            runner = _PYTEST if wanted.python is not None or _names_pytest(wanted) else _own_pytest()
            if not await asyncio.to_thread(_has, begun, _PYTEST):
                added = await self._fetch(attempt, env, NOTHING, runner)
                if not added.ok:
                    return _failure(f"{runner} could not be added", added)
            await asyncio.to_thread(_add_pip, begun)
        await asyncio.to_thread(attempt.write_notes)
        packages = await asyncio.to_thread(packages_of, begun)
        argv = [str(attempt.python), "-I", str(_COMPILER), str(packages), str(begun), str(layer)]
        await self._run(argv, attempt, {})
        return None

    async def _fetch(
        self, attempt: "_Attempt", env: dict[str, str], scripts: InstallScripts, *what: str
    ) -> CommandResult:
        """Installs `what`, building what has no wheel and may be built.

        Does without what keeps it all from being had: a package that cannot be built, versions of a lock that
        contradict the manifests.
        """
        building = list[str]()
        while True:
            await asyncio.to_thread(attempt.write_lists)
            sources = [word for name in building for word in ("--no-binary", name)]
            sources += self._installer.older(filter(scripts.young, building), YOUNGEST_DAYS)
            argv = self._installer.install(attempt.python, *attempt.limits, *sources, *what)
            fetched = await self._run(argv, attempt, env, fetch=True)
            if fetched.ok or fetched.limit:
                return fetched
            lacking, broken = _UNBUILT.search(fetched.output), _BROKEN.search(fetched.output)
            if lacking and lacking[1] not in attempt.built and scripts.allowed(lacking[1]):
                building.append(lacking[1])
                attempt.built.append(lacking[1])
            elif broken and broken[1] in building:
                building.remove(broken[1])
                attempt.failed.append(
                    f"`{broken[1]}` {LEFT_OUT}: it could not be built: {fetched.output[-_TOLD:].strip()}"
                )
            elif not attempt.does_without(fetched.output):
                return fetched

    async def _run(
        self, argv: Sequence[str], attempt: "_Attempt", env: dict[str, str], *, fetch: bool = False
    ) -> CommandResult:
        python = attempt.wanted.python
        access = Access(fetch=fetch, readable=(_COMPILER, *map(Path, python.readable if python is not None else ())))
        result = await self._runner.run(argv, cwd=attempt.begun, env=env, timeout_s=self._timeout_s, access=access)
        if not result.ok:
            await asyncio.to_thread(raise_if_full, result.output, attempt.begun.parent, Path(tempfile.gettempdir()))
        return result


class _Attempt:
    """An environment in the making: what is asked for, less what keeps it all from being had. Its methods block."""

    def __init__(self, begun: Path, wanted: Requirements) -> None:
        self.begun, self.wanted = begun, wanted
        self.python = begun / "venv" / "bin" / "python"
        self._lines, options = options_of(wanted.lines)
        self.words = [*options, "-r", str(begun / _WANTED)]
        """What is wanted, for a command line."""
        self.limits = ["-c", str(begun / _CONSTRAINTS), "-c", str(begun / _LOCKED), "--override", str(begun / _NEVER)]
        self._locked = [*wanted.locked]
        self._locked_aside, self._besides_aside = list[str](), list[str]()
        self.no_wheels, self.built, self.failed = list[str](), list[str](), list[str]()
        make_venv(begun / "venv", wanted.python.program if wanted.python is not None else "")

    def write_lists(self) -> None:
        """Writes what uv reads: our own copies, for the tree may change meanwhile."""
        never = [f"{name} ; python_version < '0'" for name in (*self.wanted.without, *self.no_wheels)]
        lists = {_WANTED: self._lines, _CONSTRAINTS: map(_constraint, self.wanted.constraints)}
        for name, lines in {**lists, _LOCKED: self._locked, _NEVER: never}.items():
            (self.begun / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def write_notes(self) -> None:
        """Writes what `notes_on` reads."""
        notes = Notes(
            locked=tuple(self._locked_aside),
            besides=tuple(self._besides_aside),
            failed=tuple(self.failed),
            no_wheels=tuple(self.no_wheels),
        )
        (self.begun / _NOTES).write_text(notes.model_dump_json(), encoding="utf-8")

    def does_without(self, told: str) -> bool:
        """Returns whether what an installer says can be mended by taking something away, which is then done."""
        unbuilt = _UNBUILT.search(told)
        if unbuilt is None:
            return _UNSOLVED in told and (
                _leave_aside(self._locked, self._locked, self._locked_aside, told)
                or _leave_aside(self._lines, self.wanted.besides, self._besides_aside, told)
            )
        # The version that is locked may be what has no wheel: another one counts before the package is given up.
        kept = [line for line in self._locked if package_of(line) != canonicalize_name(unbuilt[1])]
        if len(kept) < len(self._locked):
            self._locked = kept
            return True
        if unbuilt[1] in self.no_wheels:
            return False
        self.no_wheels.append(unbuilt[1])
        return True


def _leave_aside(lines: list[str], which: Sequence[str], aside: list[str], told: str) -> bool:
    """Takes out of `lines` those of `which` that an installer names as in each other's way; returns whether any was.

    All of them, where it names none, or where it has said so often enough.
    """
    there = [line for line in lines if line in {*which}]
    named = [line for line in there if re.search(rf"(?<![\w.-]){re.escape(package_of(line))}(?![\w-])", told, re.I)]
    gone = {*(named if len(aside) < _MOST_ROUNDS else there)} or {*there}
    if gone:
        lines[:] = [line for line in lines if line not in gone]
        aside.append(f"{', '.join(sorted(gone))}: {told[-_TOLD:].strip()}")
    return bool(gone)


def _names_pytest(wanted: Requirements) -> bool:
    """Returns whether its version is the project's to choose."""
    return any(package_of(line) == _PYTEST for line in (*wanted.constraints, *wanted.locked))


@functools.cache
def _own_pytest() -> str:
    """Blocks the first time."""
    return f"{_PYTEST}=={importlib.metadata.version(_PYTEST)}"


def _digest(wanted: Requirements, installer: Installer, scripts: InstallScripts) -> str:
    """Changes with the requirements, the interpreter, the test runner that is added, what installs them from where."""
    asked = wanted.model_dump(mode="json", exclude={"extras", "left_out", "members", "requires_python"})
    content = [
        *(_NOTES, asked, scripts.digest(json.dumps(asked))),
        *(sys.version, platform.machine(), os.path.realpath(sys.executable)),
        *(_own_pytest(), installer.sources()),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _has(layer: Path, name: str) -> bool:
    return any(canonicalize_name(path.name.split("-", 1)[0]) == name for path in packages_of(layer).glob("*.dist-info"))


def _add_pip(begun: Path) -> None:
    """Adds the pip that comes with Python where the packages bring none: packed as it is, for few commands call it."""
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
    """Returns it without extras, which constraints may not name; the version is what they are for."""
    try:
        parsed = Requirement(line)
    except InvalidRequirement:  # it has hashes behind it and is passed on as it is
        return line
    return f"{parsed.name}{parsed.specifier}" + (f" ; {parsed.marker}" if parsed.marker else "")


def _failure(what: str, result: CommandResult) -> NotInstalled:
    how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
    return NotInstalled(problem=f"{what} ({how}).", output=result.output)
