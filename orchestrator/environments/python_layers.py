"""Layers of Python packages: installed once per set of requirements, and joined to many environments."""

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

from orchestrator.core.event import activity
from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import LEFT_OUT, Access, CommandResult, NewPackages
from orchestrator.core.value import Value, listed
from orchestrator.environments.base_commit import NOTHING, YOUNGEST_DAYS, InstallScripts
from orchestrator.environments.kept import KeptFolders
from orchestrator.environments.python_installer import Installer, make_venv, options_of, packages_of
from orchestrator.environments.python_manifests import package_of
from orchestrator.environments.python_requirements import Requirements
from orchestrator.files.disk import raise_if_full
from orchestrator.sandbox.command_runner import scratch_folder

_PYTEST = "pytest"
_COMPILER = Path(__file__).with_name("compile_packages.py")
# Files for uv: requirements, the project's own constraints, a lock file's constraints, and packages never installed.
_WANTED, _CONSTRAINTS, _LOCKED, _NEVER = "requirements.txt", "constraints.txt", "locked.txt", "left_out.txt"
_NOTES = "told.json"
_MOST_ROUNDS = 4
"""Rounds that drop single lines from a list, then all: every round fetches, and many locked versions may be missing."""
_UNBUILT = re.compile(r"Wheels are required for `([\w.-]+)` because building from source is disabled")
_UNSOLVED = "No solution found"
"""uv's message for conflicting versions. Other failures say nothing about a lock file."""
_BROKEN = re.compile(r"Failed to (?:download and )?build `([\w.-]+)")
"""uv's message for a package that it failed to build."""
_TOLD = 2000
"""Characters kept of the end of an installer's output."""
_MAY_NOT = "no ready-made package (wheel) for this machine, and environment.install_scripts does not let it be built"
_PIP = "#!python\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"


class NotInstalled(Value):
    """Why there is no layer."""

    problem: str
    """For people and personas."""
    output: str = ""
    """Output of the installer."""


class Notes(Value):
    """Deviations of a layer's packages from the requirements, and their reasons."""

    locked: tuple[str, ...] = ()
    """Versions of the lock file that were ignored, with the installer's message."""
    besides: tuple[str, ...] = ()
    """Requirements for development that were ignored, likewise."""
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
                f"the {what} that conflict with other requirements were ignored: {'; '.join(aside)}"
                for what, aside in asides
                if aside
            ),
            *self.failed,
            *(f"`{name}` {LEFT_OUT}: it has {_MAY_NOT}" for name in self.no_wheels),
        ]


def notes_on(layer: Path) -> Notes:
    """Returns the notes on a layer. Blocks."""
    return Notes.model_validate_json((layer / _NOTES).read_text(encoding="utf-8"))


class PythonLayers:
    """Makes and keeps layers in `folder`/<digest of the requirements>.

    A layer with failed builds is used by this object only: what was missing may be available to the next one.
    """

    def __init__(self, folder: Path, runner: CommandRunner, installer: Installer, timeout_s: float) -> None:
        self._runner, self._installer, self._timeout_s = runner, installer, timeout_s
        self._kept = KeptFolders(folder)

    async def ensure(self, wanted: Requirements, scripts: InstallScripts = NOTHING) -> Path | NotInstalled:
        """Returns the folder with the required packages.

        Raises OSError when the disk is full, ConfigError for settings of pip that uv does not support.
        """

        async def make(scratch: Path, layer: Path) -> NotInstalled | None:
            return await self._fill(await asyncio.to_thread(_Attempt, scratch, wanted), layer, scripts)

        digest = await asyncio.to_thread(_digest, wanted, self._installer, scripts)
        what = f"installing Python packages: {_named(wanted)}"
        return await self._kept.ensure(digest, make, lambda scratch: notes_on(scratch).failed, what=what)

    async def check_new(self, base: Requirements, wanted: Requirements, scripts: InstallScripts) -> NewPackages:
        """Returns whether `wanted`, which is `base` and new packages, can be installed.

        Builds packages that have to be built, where that is allowed. Raises as `ensure`.
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
        """Only resolves versions; returns the result, and the packages without a wheel: those that may not be built,
        and the others."""
        env = await asyncio.to_thread(self._installer.environment)
        async with scratch_folder() as scratch, activity(f"resolving Python packages: {_named(wanted)}"):
            attempt = await asyncio.to_thread(_Attempt, scratch, wanted)
            told = await self._fetch(attempt, env, scripts, *attempt.words, "--dry-run")
            return told, attempt.no_wheels, attempt.built

    async def _fill(self, attempt: "_Attempt", layer: Path, scripts: InstallScripts) -> NotInstalled | None:
        """Fetches the packages, then compiles them without network access."""
        scratch, wanted = attempt.scratch, attempt.wanted
        env = await asyncio.to_thread(self._installer.environment)
        if wanted.lines and not (fetched := await self._fetch(attempt, env, scripts, *attempt.words)).ok:
            return _failure("The dependencies could not be installed", fetched)
        if wanted.runner:
            # Our own version of pytest, unless the project names one, has another interpreter, or takes older releases.
            other = wanted.python is not None or _names_pytest(wanted) or "UV_EXCLUDE_NEWER" in env
            runner = _PYTEST if other else _own_pytest()
            if not await asyncio.to_thread(_has, scratch, _PYTEST):
                added = await self._fetch(attempt, env, NOTHING, runner)
                if not added.ok:
                    return _failure(f"{runner} could not be added", added)
            await asyncio.to_thread(_add_pip, scratch)
        await asyncio.to_thread(attempt.write_notes)
        packages = await asyncio.to_thread(packages_of, scratch)
        argv = [str(attempt.python), "-I", str(_COMPILER), str(packages), str(scratch), str(layer)]
        await self._run(argv, attempt, {})
        return None

    async def _fetch(
        self, attempt: "_Attempt", env: dict[str, str], scripts: InstallScripts, *what: str
    ) -> CommandResult:
        """Installs `what`, building packages that have no wheel and may be built.

        Drops what prevents the installation: a package that cannot be built, locked versions that contradict the
        manifests.
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
        result = await self._runner.run(argv, cwd=attempt.scratch, env=env, timeout_s=self._timeout_s, access=access)
        if not result.ok:
            await asyncio.to_thread(raise_if_full, result.output, attempt.scratch.parent, Path(tempfile.gettempdir()))
        return result


class _Attempt:
    """An environment in progress: the requirements, without those that prevent the installation. Its methods block."""

    def __init__(self, scratch: Path, wanted: Requirements) -> None:
        self.scratch, self.wanted = scratch, wanted
        self.python = scratch / "venv" / "bin" / "python"
        self._lines, options = options_of(wanted.lines)
        self.words = [*options, "-r", str(scratch / _WANTED)]
        """The requirements, as arguments of uv."""
        self.limits = [
            "-c",
            str(scratch / _CONSTRAINTS),
            "-c",
            str(scratch / _LOCKED),
            "--override",
            str(scratch / _NEVER),
        ]
        self._locked = [*wanted.locked]
        self._locked_aside, self._besides_aside = list[str](), list[str]()
        self.no_wheels, self.built, self.failed = list[str](), list[str](), list[str]()
        make_venv(scratch / "venv", wanted.python.program if wanted.python is not None else "")

    def write_lists(self) -> None:
        """Writes the files for uv: our own copies, because the tree may change meanwhile."""
        never = [f"{name} ; python_version < '0'" for name in (*self.wanted.without, *self.no_wheels)]
        lists = {_WANTED: self._lines, _CONSTRAINTS: map(_constraint, self.wanted.constraints)}
        for name, lines in {**lists, _LOCKED: self._locked, _NEVER: never}.items():
            (self.scratch / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def write_notes(self) -> None:
        """Writes the file that `notes_on` reads."""
        notes = Notes(
            locked=tuple(self._locked_aside),
            besides=tuple(self._besides_aside),
            failed=tuple(self.failed),
            no_wheels=tuple(self.no_wheels),
        )
        (self.scratch / _NOTES).write_text(notes.model_dump_json(), encoding="utf-8")

    def does_without(self, told: str) -> bool:
        """Drops the requirement that caused an installer's error; returns whether there was one to drop."""
        unbuilt = _UNBUILT.search(told)
        if unbuilt is None:
            return _UNSOLVED in told and (
                _leave_aside(self._locked, self._locked, self._locked_aside, told)
                or _leave_aside(self._lines, self.wanted.besides, self._besides_aside, told)
            )
        # Only the locked version may lack a wheel: other versions are tried before the package is dropped.
        kept = [line for line in self._locked if package_of(line) != canonicalize_name(unbuilt[1])]
        if len(kept) < len(self._locked):
            self._locked = kept
            return True
        if unbuilt[1] in self.no_wheels:
            return False
        self.no_wheels.append(unbuilt[1])
        return True


def _leave_aside(lines: list[str], which: Sequence[str], aside: list[str], told: str) -> bool:
    """Removes from `lines` those of `which` that an installer names as conflicting; returns whether any was.

    Removes all of them if it names none, or after too many rounds.
    """
    there = [line for line in lines if line in {*which}]
    named = [line for line in there if re.search(rf"(?<![\w.-]){re.escape(package_of(line))}(?![\w-])", told, re.I)]
    gone = {*(named if len(aside) < _MOST_ROUNDS else there)} or {*there}
    if gone:
        lines[:] = [line for line in lines if line not in gone]
        aside.append(f"{', '.join(sorted(gone))}: {told[-_TOLD:].strip()}")
    return bool(gone)


def _named(wanted: Requirements) -> str:
    """Returns what is asked for, for people."""
    names = dict.fromkeys(package_of(line) for line in wanted.lines if not line.startswith("-"))
    return listed(names, 5) or "what tests are run with"


def _names_pytest(wanted: Requirements) -> bool:
    """Returns whether the project chooses the version of pytest."""
    return any(package_of(line) == _PYTEST for line in (*wanted.constraints, *wanted.locked))


@functools.cache
def _own_pytest() -> str:
    """Returns the requirement of our own pytest. Blocks the first time."""
    return f"{_PYTEST}=={importlib.metadata.version(_PYTEST)}"


def _digest(wanted: Requirements, installer: Installer, scripts: InstallScripts) -> str:
    """Returns a digest of the requirements, interpreter, added test runner, installer, sources and allowed builds."""
    asked = wanted.model_dump(mode="json", exclude={"extras", "left_out", "members", "requires_python"})
    content = [
        *(_NOTES, asked, scripts.digest(json.dumps(asked))),
        *(sys.version, platform.machine(), os.path.realpath(sys.executable)),
        *(_own_pytest(), installer.sources()),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _has(layer: Path, name: str) -> bool:
    return any(canonicalize_name(path.name.split("-", 1)[0]) == name for path in packages_of(layer).glob("*.dist-info"))


def _add_pip(scratch: Path) -> None:
    """Adds Python's bundled pip unless the packages include one; it stays zipped, because few commands call it."""
    found = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"), None)
    if found is None or _has(scratch, "pip"):
        return
    packages, programs = packages_of(scratch), scratch / "venv" / "bin"
    wheel = shutil.copy(found, scratch)
    (packages / "pip.pth").write_text(f"{os.path.relpath(wheel, packages)}\n", encoding="utf-8")
    for name in ("pip", "pip3"):
        (programs / name).write_text(_PIP, encoding="utf-8")
        (programs / name).chmod(0o755)


def _constraint(line: str) -> str:
    """Returns the requirement without extras, which constraints may not have."""
    try:
        parsed = Requirement(line)
    except InvalidRequirement:  # it ends with hashes and is passed on unchanged
        return line
    return f"{parsed.name}{parsed.specifier}" + (f" ; {parsed.marker}" if parsed.marker else "")


def _failure(what: str, result: CommandResult) -> NotInstalled:
    how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
    return NotInstalled(problem=f"{what} ({how}).", output=result.output)
