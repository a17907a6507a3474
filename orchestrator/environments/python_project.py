"""Builds a project with its own backend as an editable wheel for one worktree (PEP 517, PEP 660).

Tests of real projects need its metadata (`importlib.metadata.version("itself")`), its entry points, and files that only
its backend writes, such as a `_version.py`. The build sees the sources and has no network."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.code.parsers import parse_json, parse_toml
from orchestrator.core.event import activity
from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import Access, CommandResult
from orchestrator.core.value import Value
from orchestrator.environments.interpreters import Interpreter, refused_packages
from orchestrator.environments.project import States, file_states, put_back
from orchestrator.environments.python_installer import join
from orchestrator.environments.python_layers import NotInstalled, PythonLayers
from orchestrator.environments.python_manifests import for_development, for_tests, is_tool
from orchestrator.environments.python_requirements import Requirements
from orchestrator.files.disk import raise_if_full
from orchestrator.files.safe_files import MAX_BYTES, read_text, root_files
from orchestrator.sandbox.command_runner import remove_tree, scratch_folder

_SCRIPT = Path(__file__).with_name("build_backend.py")
_NO_VERSION = "0.0.0"
_VERSIONS = (
    *("SETUPTOOLS_SCM_PRETEND_VERSION", "PDM_BUILD_SCM_VERSION", "UV_DYNAMIC_VERSIONING_BYPASS"),
    *("POETRY_DYNAMIC_VERSIONING_BYPASS", "PBR_VERSION"),
)
"""Variables with a version for projects that derive theirs from git tags, which a worktree lacks."""
_GIT = "[safe]\n\tdirectory = *\n"
"""setuptools-scm lists files with git, and fails the build when git refuses a folder of another user: a build may run
as a separate user. It passes no GIT_… variables on."""
_INPUTS = ("pyproject.toml", "setup.py", "setup.cfg", "MANIFEST.in", "hatch_build.py", "build.py", "meson.build")
_COMPILED = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".pyx", ".pxd", ".rs", ".f", ".f90")
_KNOWN_BY_BACKEND = frozenset({"dependencies", "optional-dependencies"})
_BUILT = "built.json"
_ASKED = {"hatchling.build": ("editables~=0.3",)}
"""Known extra requirements of a backend: fetching them with the rest saves a layer and a process."""
_ROUNDS = 3
"""How often a backend is called; its additional requirements are fetched in between."""
_NONSENSE = (zipfile.BadZipFile, ValueError, LookupError, NotImplementedError, zlib.error, EOFError, RuntimeError)
"""Errors of reading an invalid wheel: a build may leave anything."""
_CAUSES = (
    (
        r"Could not resolve host|[Nn]ame resolution|Network is unreachable|failed to download from",
        "its build fetches something, and a build has no network: have environment.setup fetch it into the tree",
    ),
    (r"fatal error: ([\w./+-]+): No such file", "this machine has no `{}`, which it is compiled with: install it"),
    (
        r"command '([^']+)' failed: No such file|No such file or directory: '([\w.+-]+)'|linker `([\w.+-]+)` not found"
        r"|([\w.+-]+): (?:command )?not found|Unknown compiler\(s\): \[\['([\w.+-]+)'",
        "this machine has no `{}`, which its build calls: install it",
    ),
)
"""Error messages of compilers and build tools, with a remedy for each."""
_TOLD = 2000
"""Characters kept of the end of a build's output."""


class BuildSystem(Value):
    """A project's `build-system` table."""

    requires: tuple[str, ...]
    backend: str
    path: tuple[str, ...] = ()
    dynamic: bool = False
    """True when only the backend knows the dependencies."""


class Built(Value):
    """The project's editable wheel."""

    wheel: Path | None = None
    """None when the build failed; `problem` says why."""
    requires: tuple[str, ...] = ()
    """Requirements that only the backend knew."""
    tag: str = ""
    """Changes with the wheel."""
    problem: str = ""


def build_system(root: Path) -> BuildSystem | None:
    """Returns how the project at `root` is built; None when nothing declares it a package. Blocks."""
    names = root_files(root)
    text = read_text(root, "pyproject.toml") if "pyproject.toml" in names else None
    try:
        data = parse_toml(text or "")
        table, project = data.get("build-system"), data.get("project", {})
        if table is not None:
            backend = table.get("build-backend", "setuptools.build_meta:__legacy__")
            return BuildSystem(
                requires=(*table.get("requires", ()), *_ASKED.get(backend, ())),
                backend=backend,
                path=tuple(table.get("backend-path", ())),
                dynamic=not project or not _KNOWN_BY_BACKEND.isdisjoint(project.get("dynamic", ())),
            )
    except (ValueError, TypeError, AttributeError):  # the requirements' reader reports the error
        return None
    if "setup.py" in names:
        return BuildSystem(requires=("setuptools",), backend="setuptools.build_meta:__legacy__", dynamic=True)
    return None


class BuildJob(NamedTuple):
    """The project to build."""

    root: Path
    folder: Path
    """The folder of this project's wheel."""
    system: BuildSystem
    version: str
    """Version for projects that derive theirs from git tags; "" for none."""
    extras: Sequence[str]
    """Requested extras besides those for tests."""
    python: Interpreter | None
    """The target interpreter; None for ours."""


class PythonProject:
    """Builds projects, each in its own folder; keeps a build until its inputs change."""

    def __init__(
        self,
        runner: CommandRunner,
        layers: PythonLayers,
        allowed: Sequence[str],
        timeout_s: float,
        variables: Mapping[str, str],
    ) -> None:
        """`allowed` is the allowlist for `refused_packages`; `variables` are those that `runner` gives to builds."""
        self._runner, self._layers, self._allowed, self._timeout_s = runner, layers, allowed, timeout_s
        self._variables = json.dumps(dict(variables), sort_keys=True)

    async def built(self, job: BuildJob) -> Built:
        """Returns the wheel; files that the build makes are left in the tree."""
        tag = await asyncio.to_thread(_tag, job, self._variables)
        found = await asyncio.to_thread(_kept, job.folder, tag)
        if found is None:
            found = await self._build(job, tag)
        await asyncio.to_thread(put_back, job.folder / "generated", job.root, folders=False)
        return found

    async def _build(self, job: BuildJob, tag: str) -> Built:
        venv, system = job.folder / "venv", job.system
        await asyncio.to_thread(_begin, job.folder)
        before = await asyncio.to_thread(file_states, job.root)
        async with scratch_folder() as scratch:
            for _ in range(_ROUNDS):
                refused = _refused(system.requires, self._allowed)
                wanted = Requirements(lines=system.requires, python=job.python, runner=False)
                layer = refused or await self._layers.ensure(wanted)
                if isinstance(layer, NotInstalled):
                    return Built(tag=tag, problem=f"{layer.problem}\n{layer.output[-_TOLD:]}")
                await asyncio.to_thread(join, venv, layer)
                async with activity("building the project itself"):
                    asked = await self._ask(job, system, venv, layer, scratch)
                if not asked.ok:
                    await asyncio.to_thread(raise_if_full, asked.output, job.root, scratch)
                answer = await asyncio.to_thread(_answer, scratch) if asked.ok else None
                if not isinstance(answer, list):
                    break
                requires = dict.fromkeys([*system.requires, *(str(line) for line in answer)])
                system = system.model_copy(update={"requires": tuple(requires)})
            if isinstance(answer, str):
                built = await asyncio.to_thread(_taken, job, scratch, answer, tag)
            else:
                told = f"{_cause(asked.output)}{asked.output[-_TOLD:]}"
                built = Built(tag=tag, problem=told or "its build backend keeps requiring more packages")
        await asyncio.to_thread(_keep, built, job, before)
        return built

    async def _ask(self, job: BuildJob, system: BuildSystem, venv: Path, layer: Path, scratch: Path) -> CommandResult:
        readable = map(Path, job.python.readable if job.python is not None else ())
        told = (json.dumps(system.path), json.dumps(system.requires))
        argv = [str(venv / "bin" / "python"), "-I", str(_SCRIPT), system.backend, *told, str(scratch)]
        await asyncio.to_thread(_write, scratch / "git" / "config", _GIT)
        return await self._runner.run(
            argv,
            cwd=job.root,
            env={**dict.fromkeys(_VERSIONS, job.version or _NO_VERSION), "XDG_CONFIG_HOME": str(scratch)},
            timeout_s=self._timeout_s,
            scratch=scratch,
            access=Access(readable=(_SCRIPT, venv, layer, *readable)),
        )


def _refused(requires: Sequence[str], allowed: Sequence[str]) -> NotInstalled | None:
    try:
        needed = [Requirement(line) for line in requires]
    except InvalidRequirement as error:
        return NotInstalled(problem=f"the build requirements cannot be parsed: {error}")
    named = [f"`{one}` names a URL" for one in needed if one.url is not None]
    refusals = [*named, *refused_packages([one.name for one in needed], allowed)]
    return NotInstalled(problem="; ".join(refusals)) if refusals else None


def _tag(job: BuildJob, variables: str) -> str:
    """Returns a digest of the job, its place, the build's files, compiled sources, and the folders with modules."""
    asked = f"{job.version or _NO_VERSION}\0{[*job.extras]}\0{job.python}\0{variables}"
    root = job.root
    found = hashlib.sha256(f"{root}\0{job.system.model_dump_json()}\0{asked}".encode())
    for path in sorted(file_states(root)):
        name = path.rpartition("/")[2]
        if name in _INPUTS or name.endswith(_COMPILED) or name == "__init__.py":
            found.update(f"\0{path}\0{'' if name == '__init__.py' else read_text(root, path)}".encode())
    return found.hexdigest()


def _cause(output: str) -> str:
    """Returns a sentence on what this machine lacks, and a line break; "" when the output does not say."""
    for pattern, sentence in _CAUSES:
        if found := re.search(pattern, output):
            return sentence.format(next(filter(None, found.groups()), "")) + "\n"
    return ""


def _begin(folder: Path) -> None:
    (folder / _BUILT).unlink(missing_ok=True)  # comes first, so that a half-removed build does not count as kept
    remove_tree(folder)
    (folder / "generated").mkdir(parents=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _answer(scratch: Path) -> object:
    """Returns a wheel's name, or a list of further requirements; None for none. A build may leave anything here."""
    with suppress(ValueError, RecursionError):  # a build may leave anything here
        return parse_json(read_text(scratch, "answer.json") or "")
    return None


def _taken(job: BuildJob, scratch: Path, name: str, tag: str) -> Built:
    source = scratch / os.path.basename(name)
    if not source.is_file() or source.is_symlink():
        return Built(tag=tag, problem=f"the build left no {name}")
    wheel = Path(shutil.copyfile(source, job.folder / source.name))
    try:
        requires = _required(wheel, job.extras, job.python) if job.system.dynamic else ()
    except _NONSENSE as error:
        return Built(tag=tag, problem=f"the build made a wheel whose metadata cannot be read: {error!r}")
    return Built(wheel=wheel, tag=tag, requires=requires)


def _required(wheel: Path, extras: Sequence[str], python: Interpreter | None) -> tuple[str, ...]:
    """Returns the requirements in the wheel's metadata, with these extras and those for tests and development."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        with archive.open(names[0]) as file:
            told = Parser().parsestr(file.read(MAX_BYTES).decode("utf-8", "replace"))
    offered = [str(canonicalize_name(one)) for one in told.get_all("Provides-Extra") or []]
    chosen = [*for_tests(offered), *(one for one in offered if one in extras)]
    development, own = for_development(offered), canonicalize_name(told.get("Name", ""))
    found = []
    for needed in map(Requirement, told.get_all("Requires-Dist") or []):
        kept = _holds(needed, ["", *chosen], python)
        kept = kept or (_holds(needed, development, python) and not is_tool(needed.name))
        if kept and needed.url is None and canonicalize_name(needed.name) != own:
            needed.marker = None
            found.append(str(needed))
    return tuple(found)


def _holds(needed: Requirement, extras: Sequence[str], python: Interpreter | None) -> bool:
    asked = python.markers if python is not None else {}
    return needed.marker is None or any(needed.marker.evaluate({**asked, "extra": one}) for one in extras)


def _keep(built: Built, job: BuildJob, before: States) -> None:
    if built.wheel is not None:
        for path, state in file_states(job.root).items():
            source, target = job.root / path, job.folder / "generated" / path
            # A file that existed before may be left by a killed build and completed by this one.
            if before.get(path) != state and source.is_file() and not source.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    (job.folder / _BUILT).write_text(built.model_dump_json(), encoding="utf-8")


def _kept(folder: Path, tag: str) -> Built | None:
    with suppress(OSError, ValueError):  # missing or damaged: built again
        built = Built.model_validate_json((folder / _BUILT).read_text(encoding="utf-8"))
        return built if built.tag == tag else None
    return None
