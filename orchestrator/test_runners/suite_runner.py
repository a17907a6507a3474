"""The SuiteRunner of a project that may hold Python tests, Node tests, or both."""

import asyncio
import re
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol

from orchestrator.code.manifests.manifest import is_lock
from orchestrator.core.contract import InstalledPackages
from orchestrator.core.delivery import FileChange, LockFiles
from orchestrator.core.event import activity
from orchestrator.core.finding import Finding
from orchestrator.core.paths import is_manifest
from orchestrator.core.suite import (
    OUTPUT_KEPT,
    CommandResult,
    NewPackages,
    ProjectEnvironment,
    ReportedCase,
    RunProblem,
    TestReport,
)
from orchestrator.core.value import counted, listed, shortened
from orchestrator.environments.installed import read_installed
from orchestrator.environments.lock_files import LockMaker
from orchestrator.environments.node import NodePackages
from orchestrator.environments.node_layers import linked
from orchestrator.environments.project import KEY, ProjectBuild, ProjectSetup, States, file_states
from orchestrator.files.safe_files import read_text, root_files
from orchestrator.sandbox.services import Services
from orchestrator.settings.model import TestSettings
from orchestrator.test_runners.choice import (
    CUSTOM,
    DJANGO,
    NODE,
    PYTEST,
    UNITTEST,
    choose_runner,
    kind_of,
    stated_runners,
)
from orchestrator.test_runners.custom import CustomRunner
from orchestrator.test_runners.node import NodeRunner
from orchestrator.test_runners.pytest_runner import PytestRunner
from orchestrator.test_runners.report import Selection, merged
from orchestrator.test_runners.tests_in_tree import files_of_tests, kinds_of_tests

_NOT_LOOKED_AT = frozenset(
    {".git", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv", ".hypothesis"}
)
"""Folders of tools, which every tool makes again."""


def _states(root: Path) -> States:
    return file_states(root, _NOT_LOOKED_AT.__contains__, hidden=True)


def changed(root: Path, before: States, own: Collection[str]) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """The texts of those of `own` that are new or other than `before`, and the paths of what else is, sorted."""
    paths = sorted(path for path, state in _states(root).items() if before.get(path) != state and path != ".git")
    texts = {path: text for path in paths if path in own and (text := read_text(root, path)) is not None}
    made = tuple(FileChange(path=path, content=text) for path, text in texts.items())
    return made, tuple(path for path in paths if path not in texts)


class Runner(Protocol):
    """Runs tests of one kind."""

    async def run(self, root: Path, asked: Selection) -> TestReport:
        """See `ports.SuiteRunner.run`."""
        ...

    async def collect(self, root: Path, *, key: str) -> int:
        """See `ports.SuiteRunner.collect`."""
        ...


class ProjectRunner:
    """Runs a suite with the runner it belongs to, and the whole suite with every runner it has tests for.

    `settings.command` names the only runner to be used. `path` is where commands are looked up.
    """

    def __init__(
        self,
        pytest: PytestRunner,
        node: NodeRunner,
        settings: TestSettings,
        path: str,
        setup: ProjectSetup | None = None,
        build: ProjectBuild | None = None,
        services: Services | None = None,
        locks: LockMaker | None = None,
        *,
        more: Mapping[str, Runner] | None = None,
        tries: bool = True,
    ) -> None:
        """`more` are runners of other kinds. Without `tries`, nothing is found out about new packages."""
        self._setup, self._build, self._services, self._tries = setup, build, services or Services(), tries
        python: dict[str, Runner] = dict.fromkeys((PYTEST, UNITTEST, DJANGO), pytest)
        self._runners: dict[str, Runner] = {**python, NODE: node, **(more or {})}
        self._packaged: dict[str, PytestRunner | NodeRunner] = {PYTEST: pytest, NODE: node}
        self._pytest, self._packages = pytest, node.environments
        self._custom: CustomRunner | None = None
        if settings.custom is not None:
            self._custom = CustomRunner(settings.custom, self._command, settings.timeout_s)
        self._settings = settings
        self._path = path
        self._lock_maker = locks

    async def run(
        self,
        root: Path,
        *,
        files: Sequence[str] | None = None,
        expected_names: Sequence[str] = (),
        only: Sequence[ReportedCase] = (),
        key: str,
        timeout_s: float | None = None,
    ) -> TestReport:
        """See `ports.SuiteRunner.run`."""
        root = await asyncio.to_thread(root.resolve)
        kinds = await self._kinds(root, files, only)
        if isinstance(kinds, Finding):
            return TestReport(problem=RunProblem.MISSING_RUNNER, output=f"{kinds.message} {kinds.fix}")
        if failed := await self._ready(root, key):
            return failed
        before = await asyncio.to_thread(lambda: _texts(root, files_of_tests(root) if files is None else files))
        asked = Selection(key, files, expected_names, only, timeout_s)
        async with activity(f"running {_what(asked)}"):
            report = await self._by(kinds, root, asked)
        if not report.green and (names := await asyncio.to_thread(_submodules, root)):
            left = f"submodules are not fetched: {', '.join(names)}; environment.setup can make what tests need of them"
            report = report.model_copy(update={"output": f"[{left}]\n{report.output}"})
        after = await asyncio.to_thread(_texts, root, before)
        if changed := [file for file, text in before.items() if after.get(file) != text]:
            told = f"{report.output}\n[changed while they ran: {', '.join(changed)}]\n"
            return report.model_copy(update={"problem": RunProblem.TAMPERED, "output": told})
        return report

    async def _kinds(
        self, root: Path, files: Sequence[str] | None, only: Sequence[ReportedCase]
    ) -> tuple[str, ...] | Finding:
        """Returns the runners that are needed, or why there is none."""
        if self._custom is not None:
            return (CUSTOM,)
        if only and not self._only:
            return tuple(dict.fromkeys(kind_of(case.file) for case in only))
        if files is None and not self._only:
            return await asyncio.to_thread(kinds_of_tests, root)
        choice = choose_runner(self._settings.command, files or ())
        return choice if isinstance(choice, Finding) else (choice,)

    async def _by(self, kinds: Sequence[str], root: Path, asked: Selection) -> TestReport:
        if len(kinds) == 1:
            return await self._runner(kinds[0]).run(root, asked)
        reports = []
        for kind in kinds:
            mine = asked._replace(expected=(), only=[case for case in asked.only if kind_of(case.file) == kind])
            reports.append(await self._runner(kind).run(root, mine))
        return merged(kinds, reports, asked.expected)

    def _runner(self, kind: str) -> Runner:
        return self._custom if kind == CUSTOM and self._custom is not None else self._runners[kind]

    async def collect(self, root: Path, *, key: str) -> int:
        """See `ports.SuiteRunner.collect`."""
        root = await asyncio.to_thread(root.resolve)
        kinds = await self._kinds(root, None, ())
        if await self._ready(root, key):
            return 0
        if isinstance(kinds, Finding):
            return 0
        async with activity("collecting the tests"):
            return sum([await self._runner(kind).collect(root, key=key) for kind in kinds])

    async def new_packages(self, root: Path, packages: Mapping[str, str], files: Sequence[str]) -> NewPackages:
        """See `ports.SuiteRunner.new_packages`. In a project of both kinds a package may be of either."""
        root = await asyncio.to_thread(root.resolve)
        kinds = await asyncio.to_thread(self._stated, root, files)
        if len(kinds) == 1:
            asked = [await self._check_new(kinds, root, packages)]
        else:
            asked = [await self._check_new(kinds, root, {name: packages[name]}) for name in packages if kinds]
        told = [one for one in asked if not one.had]
        refusal = "\n".join(filter(None, (one.refusal for one in told)))[-OUTPUT_KEPT:]
        return NewPackages(
            refusal=refusal,
            base_too=bool(refusal) and not (await self._check_new(kinds, root, {})).had,
            closed=tuple(name for one in told for name in one.closed),
            listed=next((one.listed for one in told if one.closed), ()),
            failed="\n".join(filter(None, (one.failed for one in told))),
        )

    async def installed(self, root: Path, packages: Mapping[str, str], files: Sequence[str]) -> InstalledPackages:
        """See `ports.SuiteRunner.installed`. In a project of both kinds a package that one has is enough."""
        root = await asyncio.to_thread(root.resolve)
        kinds = await asyncio.to_thread(self._stated, root, files)
        mine = packages if len(kinds) == 1 else {}
        site = await self._pytest.environments.site(root, mine) if PYTEST in kinds else None
        modules = await self._packages.modules(root, mine) if NODE in kinds else None
        return await asyncio.to_thread(read_installed, [site] if site else [], [modules] if modules else [])

    def _stated(self, root: Path, files: Sequence[str]) -> list[str]:
        """Returns the kinds of packages that manifests there and among `files` ask for, as far as they can be tried."""
        names = [*root_files(root), *(PurePosixPath(file).name for file in files)]
        npm = shutil.which("npm", path=self._path) is not None
        return [kind for kind in stated_runners(names) if self._tries and (kind == PYTEST or (kind == NODE and npm))]

    async def _check_new(self, kinds: Sequence[str], root: Path, packages: Mapping[str, str]) -> NewPackages:
        """Returns what the first of these says that has the packages, else what the last one lacks."""
        found = NewPackages()
        refusals = list[str]()
        for kind in kinds:
            found = await self._packaged[kind].environments.check_new(root, packages)
            if found.had:
                return found
            refusals += [found.refusal] if found.refusal else []
        return found.model_copy(update={"refusal": "\n".join(refusals)})

    async def follow_locks(self, texts: Mapping[str, str], locks: Sequence[str]) -> LockFiles:
        """See `ports.SuiteRunner.follow_locks`."""
        return LockFiles() if self._lock_maker is None else await self._lock_maker.follow(texts, tuple(locks))

    async def environment(self, root: Path, *, key: str) -> ProjectEnvironment:
        """Installs what the manifests in `root` ask for, returns what came of it. Never raises for what they hold."""
        root = await asyncio.to_thread(root.resolve)
        began = time.monotonic()
        failed = await self._ready(root, key)
        python = await self._pytest.environments.ensure(root, key)
        node = await self._packages_for(root)
        seconds = round(time.monotonic() - began, 1)
        names = await asyncio.to_thread(root_files, root)
        manifests = [name for name in names if is_manifest(name) or is_lock(name)]
        layers = [layer for layer in (python.layer, node.modules) if layer is not None]
        problems = [
            problem
            for problem in (python.problem, node.problem, failed.output.rpartition("\n")[2] if failed else "")
            if problem
        ]
        silent = await self._services.unreachable()
        return ProjectEnvironment(
            key="+".join(layer.name if layer == python.layer else node.key for layer in layers),
            seconds=seconds,
            megabytes=await asyncio.to_thread(_megabytes, layers),
            because=(*manifests, *filter(None, (python.note, node.note)), *silent, *problems),
            problem="; ".join(problems),
            failed="\n".join(filter(None, (python.failed, node.failed))),
            output_end=f"{python.output}\n{node.output}\n{failed.output if failed else ''}".strip()[-OUTPUT_KEPT:],
        )

    async def command(
        self, root: Path, command: str, *, key: str, timeout_s: float | None = None, own: Sequence[str] | None = None
    ) -> CommandResult:
        """See `ports.SuiteRunner.command`. When the project cannot be set up, it is not run: exit code 1."""
        root = await asyncio.to_thread(root.resolve)
        if failed := await self._ready(root, key):
            text = f"The command was not run.\n{failed.output}"
            return CommandResult(argv=("/bin/sh", "-c", command), exit_code=1, output=text)
        before = await asyncio.to_thread(_states, root) if own is not None else {}
        async with activity(f"running {shortened(command)}"):
            result = await self._command(root, command, key=key, timeout_s=timeout_s)
        if own is None:
            return result
        made, left = await asyncio.to_thread(changed, root, before, own)
        return result.model_copy(update={"made": made, "left": left})

    async def _ready(self, root: Path, key: str) -> TestReport | None:
        """Has in the tree what setup and build make; returns the report of a run for which that could not be had."""
        if self._setup is not None and (failed := await self._setup.ensure(root, partial(self._command, key=KEY))):
            return TestReport(problem=RunProblem.SETUP_FAILED, output=failed)
        if self._build is not None and self._build.has_work:
            made = await self._pytest.environments.ensure(root, key)  # with what the project's own build makes
            failed = "" if made.problem else await self._build.ensure(root, key, partial(self._command, key=key))
            if failed:
                return TestReport(problem=RunProblem.BUILD_FAILED, output=failed)
        return None

    async def _command(
        self,
        root: Path,
        command: str,
        *,
        key: str,
        timeout_s: float | None = None,
        fetch: Mapping[str, str] | None = None,
    ) -> CommandResult:
        packages = await self._packages_for(root)
        if packages.problem is not None:
            text = f"The command was not run.\n{packages.problem}\n{packages.output}"
            return CommandResult(argv=("/bin/sh", "-c", command), exit_code=1, output=text)
        async with linked(root, packages.modules):
            return await self._pytest.command(
                root, command, key=key, modules=packages.modules, timeout_s=timeout_s, fetch=fetch
            )

    @property
    def _only(self) -> str:
        return (self._settings.command or "").strip()

    async def _packages_for(self, root: Path) -> NodePackages:
        """A machine without npm runs the commands of Python projects that happen to have a package.json as well."""
        if self._only == PYTEST or await asyncio.to_thread(shutil.which, "npm", path=self._path) is None:
            return NodePackages()
        return await self._packages.ensure(root)


def _texts(root: Path, files: Iterable[str]) -> dict[str, str]:
    """Returns what these files hold, as far as they are there. Blocks."""
    return {file: text for file in files if (text := read_text(root, file)) is not None}


def _submodules(root: Path) -> list[str]:
    """Returns the folders of other repositories that nothing has filled. Blocks."""
    named = re.findall(r'^[ \t]*path[ \t]*=[ \t]*"?([^"\n]+)', read_text(root, ".gitmodules") or "", re.MULTILINE)
    return [path.strip() for path in named if not any((root / path.strip()).glob("*"))]


def _what(asked: Selection) -> str:
    """Returns which tests are run, for people."""
    if asked.only:
        return f"{counted(len(asked.only), 'test')} again"
    return "the whole suite" if asked.files is None else f"the tests of {listed(asked.files, 3)}"


def _megabytes(folders: Sequence[Path]) -> float:
    files = (file.lstat() for folder in folders for file in folder.rglob("*"))
    return round(sum(told.st_size for told in files if stat.S_ISREG(told.st_mode)) / 1e6, 1)
