"""SuiteRunner's half for pytest: hostile code runs the tests, so only the report file and the expected names count."""

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from orchestrator.adapters.command_runner import scratch_folder
from orchestrator.adapters.pytest_settings import import_paths, settings_file
from orchestrator.adapters.python_environment import EnvironmentResult, PythonEnvironments
from orchestrator.adapters.python_parts import Part, parts
from orchestrator.adapters.python_venv import packages_of
from orchestrator.adapters.runner_choice import DJANGO, PYTEST, UNITTEST
from orchestrator.adapters.suite_report import judged, merged, read_report, reported
from orchestrator.adapters.tree_reading import read_text, root_files
from orchestrator.adapters.unittest_runner import REPORTER, Tool, tools_of, unittest_argv
from orchestrator.domain.project_environment import NewPackages
from orchestrator.domain.testing import CommandResult, ReportedCase, RunProblem, TestReport
from orchestrator.ports import CommandRunner
from orchestrator.settings.model import TestSettings

_COLLECTED = re.compile(r"^[= ]*(\d+)(?:/\d+)? tests? collected", re.MULTILINE)
"""Pytest's last line; with tests left out it is `12/15 tests collected (3 deselected)`; pytest-pretty indents it."""
_COMPLETE_EXITS = frozenset({0, 1})
"""All passed, some failed."""


class PytestRunner:
    """Runs suites with the environment of their key and reads what pytest reported.

    `path` is the PATH that commands get behind the environment's own folder.
    """

    def __init__(
        self, runner: CommandRunner, environments: PythonEnvironments, settings: TestSettings, path: str
    ) -> None:
        self._runner = runner
        self._environments = environments
        self._settings = settings
        self._path = path

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
        """See `ports.SuiteRunner.run`.

        An expected test that was only skipped (or expected to fail) has shown nothing: it counts as missing. Tests of
        several projects in one repository run in the environments of their nearest manifests, one after the other.
        """
        root = await asyncio.to_thread(root.resolve)
        found = await asyncio.to_thread(parts, root, files, only)
        if len(found) == 1:
            return await self._run(root, found[0], expected_names, key, timeout_s)
        reports = [await self._run(root, part, (), key, timeout_s) for part in found]
        return merged([part.folder or "." for part in found], reports, expected_names)

    async def _run(
        self, root: Path, part: Part, expected_names: Sequence[str], key: str, timeout_s: float | None
    ) -> TestReport:
        environment = await self._environments.ensure(root, key, part.folder)
        if environment.python is None:
            return TestReport(problem=RunProblem.INSTALL_FAILED, output=_install_text(environment))
        jobs = await asyncio.to_thread(self._jobs, root, part, environment)
        if len(jobs) == 1:
            return await self._by(*jobs[0], root, environment, expected_names, timeout_s)
        reports = [await self._by(tool, some, root, environment, (), timeout_s) for tool, some in jobs]
        return merged([tool.name for tool, _ in jobs], reports, expected_names)

    def _jobs(self, root: Path, part: Part, environment: EnvironmentResult) -> list[tuple[Tool, Part]]:
        command = (self._settings.command or "").strip()
        packages = packages_of(environment.layer) if environment.layer is not None else None
        return tools_of(root, part, packages, command if command in {PYTEST, UNITTEST, DJANGO} else "")

    async def _by(
        self,
        tool: Tool,
        part: Part,
        root: Path,
        environment: EnvironmentResult,
        expected_names: Sequence[str],
        timeout_s: float | None,
    ) -> TestReport:
        assert environment.python is not None
        async with scratch_folder() as scratch:
            report = scratch / "report.xml"
            argv = await asyncio.to_thread(_argv, tool, environment.python, root, part, scratch)
            result = await self._pytest(argv, root, environment, scratch, timeout_s)
            cases, trouble = await asyncio.to_thread(read_report, report, tool.name)
        if (
            tool.name == PYTEST
            and cases is None
            and result.limit is None
            and await self._lacks_pytest(environment, root)
        ):
            return reported(result, RunProblem.MISSING_RUNNER, trouble="pytest cannot be imported")
        complete = _COMPLETE_EXITS if tool.name == PYTEST else {0}
        shown = judged(result, cases, trouble, expected_names, runner=tool.name, complete=complete)
        told = "" if shown.green or not environment.note else f"[{environment.note}]\n"
        by = f"{tool.name}: {tool.why}"
        return shown.model_copy(update={"output": f"{told}{shown.output}", "ran_with": (by,)})

    async def environment(self, root: Path, key: str) -> EnvironmentResult:
        """What the project's Python manifests came to."""
        return await self._environments.ensure(root, key)

    async def check_new(self, root: Path, packages: Mapping[str, str]) -> NewPackages:
        """Whether these packages can be had beside those of the project."""
        return await self._environments.check_new(root, packages)

    async def site(self, root: Path, packages: Mapping[str, str]) -> Path | None:
        """Returns the folder in which the project's Python packages and these lie, None where there is none."""
        return await self._environments.site(root, packages)

    async def collect(self, root: Path, *, key: str) -> int:
        """See `ports.SuiteRunner.collect`; what pytest prints is believed: nothing is decided by how many there are."""
        root = await asyncio.to_thread(root.resolve)
        found = await asyncio.to_thread(parts, root, None, ())
        return sum([await self._collect(root, part, key) for part in found])

    async def _collect(self, root: Path, part: Part, key: str) -> int:
        environment = await self._environments.ensure(root, key, part.folder)
        if environment.python is None:
            return 0
        jobs, found = await asyncio.to_thread(self._jobs, root, part, environment), 0
        for tool, some in jobs:
            async with scratch_folder() as scratch:
                argv = await asyncio.to_thread(_argv, tool, environment.python, root, some, scratch, collect=True)
                result = await self._pytest(argv, root, environment, scratch, None)
            counts = _COLLECTED.findall(result.output)
            found += int(counts[-1]) if counts else 0
        return found

    async def _pytest(
        self, argv: Sequence[str], root: Path, environment: EnvironmentResult, scratch: Path, timeout_s: float | None
    ) -> CommandResult:
        assert environment.python is not None
        env = {"PATH": self._path_with(environment.python)}
        if environment.own:
            # Plugins that happen to be installed beside us are none of the project's.
            env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        limit = timeout_s or self._settings.timeout_s
        access = environment.access.also(REPORTER)
        return await self._runner.run(argv, cwd=root, env=env, timeout_s=limit, scratch=scratch, access=access)

    async def command(
        self,
        root: Path,
        command: str,
        *,
        key: str,
        modules: Path | None = None,
        timeout_s: float | None = None,
        fetch: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """See `ports.SuiteRunner.command`. When dependencies cannot be installed, it is not run: exit code 1.

        `modules` are a Node project's packages; their programs come right behind the environment's own on PATH. With
        `fetch`, the variables that installers read, it reaches what they reach.
        """
        root = await asyncio.to_thread(root.resolve)
        argv = ("/bin/sh", "-c", command)
        environment = await self._environments.ensure(root, key)
        if environment.python is None:
            text = f"The command was not run.\n{_install_text(environment)}"
            return CommandResult(argv=argv, exit_code=1, output=text)
        async with scratch_folder() as scratch:
            tools = () if modules is None else (modules / ".bin",)
            env = {**(fetch or {}), "PATH": self._path_with(environment.python, *tools)}
            access = environment.access.also(*(() if modules is None else (modules,)))
            access = access.model_copy(update={"fetch": fetch is not None})
            if environment.own:
                # What a command installs goes nowhere near the packages this process runs with.
                env["PIP_TARGET"] = str(scratch / "installed")
            return await self._runner.run(argv, cwd=root, env=env, timeout_s=timeout_s, scratch=scratch, access=access)

    def _path_with(self, python: Path, *tools: Path) -> str:
        return ":".join([str(python.parent), *map(str, tools), *([self._path] if self._path else [])])

    async def _lacks_pytest(self, environment: EnvironmentResult, root: Path) -> bool:
        argv = [str(environment.python), "-I", "-c", "import pytest"]
        result = await self._runner.run(argv, cwd=root, access=environment.access)
        return not result.ok


def _argv(tool: Tool, python: Path, root: Path, part: Part, scratch: Path, *, collect: bool = False) -> list[str]:
    report = scratch / "report.xml"
    if tool.name != PYTEST:
        return unittest_argv(tool, python, root, part, report, collect=collect)
    argv = pytest_argv(python, root, part, scratch, report)
    last = argv.index("--")
    return [*argv[:last], *(("--collect-only", "-q") if collect else ()), *argv[last:]]


def pytest_argv(python: Path, root: Path, part: Part, scratch: Path, report: Path) -> list[str]:
    """The command line, run at `root`; `-P` and the absolute `pythonpath` let the project be imported but not stand in
    for pytest. Blocks."""
    home = root / part.folder
    settings = _settings(root, home) or scratch / "pytest.ini"
    if settings.parent == scratch:
        settings.write_text("", encoding="utf-8")
    own = import_paths(settings.name, read_text(settings.parent, settings.name) or "")
    paths = dict.fromkeys([home, home / "src", root, root / "src", *(settings.parent / entry for entry in own)])
    chosen = [_node_id(case) for case in part.only] or part.chosen
    # People run the tests of a part in its folder.
    return [
        *(("/bin/sh", "-c", 'cd "$0" && exec "$@"', str(home)) if part.folder else ()),
        *(str(python), "-P", "-m", "pytest"),
        *("-o", f"pythonpath={' '.join(shlex.quote(str(path)) for path in paths)}"),
        *("-o", "junit_family=xunit1", "-p", "no:cacheprovider", "--color=no"),
        *("-c", str(settings), f"--rootdir={root}", f"--confcutdir={root}", f"--junitxml={report}"),
        # What the project's own options choose by words or marks is no matter of tests that are named one by one.
        *(("-k", "", "-m", "", "--maxfail=0") if part.only else ()),
        # One file that cannot be loaded must not keep the whole suite from running.
        *(("--continue-on-collection-errors",) if part.whole else ()),
        *(f"--ignore={root / folder}" for folder in part.ignored),
        *("--", *(f"{root}/{one}" for one in chosen)),
    ]


def _settings(root: Path, home: Path) -> Path | None:
    """The nearest file with pytest's settings."""
    for folder in dict.fromkeys((home, root)):
        if (name := settings_file(root_files(folder), partial(read_text, folder))) is not None:
            return folder / name
    return None


def _node_id(case: ReportedCase) -> str:
    """`file::Class::name[parameters]`: the report has the classes behind the file's dotted name."""
    place, _, name = case.id.partition("::")
    classes = place.removeprefix(case.file.removesuffix(".py").replace("/", "."))
    return "::".join([case.file, *(part for part in classes.split(".") if part), name])


def _install_text(environment: EnvironmentResult) -> str:
    return f"{environment.problem}\n{environment.output}"
