"""SuiteRunner for pytest: hostile code runs the tests, so only the report file and the expected names count."""

import asyncio
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from orchestrator.adapters.command_runner import scratch_folder
from orchestrator.adapters.junit import MAX_BYTES, parse_junit
from orchestrator.adapters.pytest_settings import import_paths, settings_file
from orchestrator.adapters.python_environment import EnvironmentResult, PythonEnvironments
from orchestrator.adapters.runner_choice import choose_runner
from orchestrator.adapters.tree_reading import read_text, root_files
from orchestrator.domain.findings import Finding
from orchestrator.domain.testing import CaseResult, CommandResult, ReportedCase, RunProblem, TestReport
from orchestrator.ports import CommandRunner
from orchestrator.settings.model import TestSettings

_NO_TESTS_EXIT = 5
_COMPLETE_EXITS = {0, 1}
_LIMITS = {
    "timeout": RunProblem.TIMEOUT,
    "memory": RunProblem.MEMORY_LIMIT,
    "output": RunProblem.OUTPUT_LIMIT,
}


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
        self, root: Path, *, files: Sequence[str] | None = None, expected_names: Sequence[str] = (), key: str
    ) -> TestReport:
        """See `ports.SuiteRunner.run`.

        An expected test that was only skipped (or expected to fail) has shown nothing: it counts as missing.
        """
        root = await asyncio.to_thread(root.resolve)
        reason = await asyncio.to_thread(self._no_runner, root, files)
        if reason is not None:
            return TestReport(problem=RunProblem.MISSING_RUNNER, output=reason)
        environment = await self._environments.ensure(root, key)
        if environment.python is None:
            return TestReport(problem=RunProblem.INSTALL_FAILED, output=_install_text(environment))
        async with scratch_folder() as scratch:
            report = scratch / "report.xml"
            argv = await asyncio.to_thread(_argv, environment.python, root, files, scratch, report)
            env = {"PATH": self._path_with(environment.python)}
            if environment.own:
                # Plugins that happen to be installed beside us are none of the project's.
                env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            result = await self._runner.run(argv, cwd=root, env=env, timeout_s=self._settings.timeout_s)
            cases, trouble = await asyncio.to_thread(_read_report, report)
        if cases is None and result.limit is None and await self._lacks_pytest(environment.python, root):
            return _report(result, RunProblem.MISSING_RUNNER, trouble="pytest cannot be imported")
        return _judged(result, cases, trouble, expected_names)

    async def command(self, root: Path, command: str, *, key: str) -> CommandResult:
        """See `ports.SuiteRunner.command`. When dependencies cannot be installed, it is not run: exit code 1."""
        root = await asyncio.to_thread(root.resolve)
        argv = ("/bin/sh", "-c", command)
        environment = await self._environments.ensure(root, key)
        if environment.python is None:
            text = f"The command was not run.\n{_install_text(environment)}"
            return CommandResult(argv=argv, exit_code=1, output=text)
        async with scratch_folder() as scratch:
            env = {"PATH": self._path_with(environment.python)}
            if environment.own:
                # What a command installs goes nowhere near the packages this process runs with.
                env["PIP_TARGET"] = str(scratch / "installed")
            return await self._runner.run(argv, cwd=root, env=env, scratch=scratch)

    def _path_with(self, python: Path) -> str:
        return f"{python.parent}:{self._path}" if self._path else str(python.parent)

    def _no_runner(self, root: Path, files: Sequence[str] | None) -> str | None:
        # A whole-suite run without a manifest is no question of choice: it runs what earlier stories left.
        if files is None and not self._settings.command:
            return None
        choice = choose_runner(self._settings.command, root_files(root), files or ())
        return f"{choice.message} {choice.fix}" if isinstance(choice, Finding) else None

    async def _lacks_pytest(self, python: Path, root: Path) -> bool:
        result = await self._runner.run([str(python), "-I", "-c", "import pytest"], cwd=root)
        return not result.ok


def _argv(python: Path, root: Path, files: Sequence[str] | None, scratch: Path, report: Path) -> list[str]:
    """The command line; `-P` and the absolute `pythonpath` let the project be imported but not stand in for pytest."""
    names, read = root_files(root), partial(read_text, root)
    name = settings_file(names, read)
    settings = scratch / "pytest.ini" if name is None else root / name
    if name is None:
        settings.write_text("", encoding="utf-8")
    own = import_paths(name, read(name) or "") if name is not None else ()
    paths = [root, root / "src", *(root / entry for entry in own)]
    return [
        *(str(python), "-P", "-m", "pytest"),
        *("-o", f"pythonpath={' '.join(shlex.quote(str(path)) for path in paths)}"),
        *("-o", "junit_family=xunit1", "-p", "no:cacheprovider", "--color=no"),
        *("-c", str(settings), f"--rootdir={root}", f"--confcutdir={root}", f"--junitxml={report}"),
        *("--", *(str(root / file) for file in files or ())),
    ]


def _read_report(report: Path) -> tuple[tuple[ReportedCase, ...] | None, str]:
    """The cases, or None and why there are none."""
    try:
        with report.open("rb") as file:
            return parse_junit(file.read(MAX_BYTES + 1)), ""
    except OSError:
        return None, "pytest ended without writing its report"
    except ValueError as error:
        return None, str(error)


def _judged(
    result: CommandResult, cases: tuple[ReportedCase, ...] | None, trouble: str, expected: Sequence[str]
) -> TestReport:
    if result.limit is not None:
        return _report(
            result,
            _LIMITS.get(result.limit, RunProblem.NO_REPORT),
            cases or (),
            f"ended by the limit on {result.limit}",
        )
    if cases is None:
        return _report(result, RunProblem.NO_REPORT, trouble=trouble)
    if not cases or result.exit_code == _NO_TESTS_EXIT:
        return _report(result, RunProblem.NO_TESTS, cases, "no test was run")
    failed = any(case.result in {CaseResult.FAILED, CaseResult.ERROR} for case in cases)
    if result.exit_code not in _COMPLETE_EXITS and not failed:
        return _report(result, RunProblem.NO_REPORT, cases, "pytest broke off, its report is not complete")
    shown = {case.name for case in cases if case.result is not CaseResult.SKIPPED}
    missing = tuple(dict.fromkeys(name for name in expected if name not in shown))
    if missing:
        return _report(result, RunProblem.MISSING_NAMES, cases, f"not run: {', '.join(missing)}", missing)
    return _report(result, None, cases)


def _report(
    result: CommandResult,
    problem: RunProblem | None,
    cases: tuple[ReportedCase, ...] = (),
    trouble: str = "",
    missing: tuple[str, ...] = (),
) -> TestReport:
    return TestReport(
        cases=cases,
        problem=problem,
        missing_names=missing,
        exit_code=result.exit_code,
        output=f"{result.output}\n[{trouble}]\n" if trouble else result.output,
        duration_s=result.duration_s,
    )


def _install_text(environment: EnvironmentResult) -> str:
    return f"{environment.problem}\n{environment.output}"
