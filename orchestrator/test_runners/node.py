"""SuiteRunner's half for `node --test`: only the report file and the expected names count, never what it prints."""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path

from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import Access, ReportedCase, RunProblem, TestReport
from orchestrator.environments.node import NodeEnvironments, NodePackages
from orchestrator.environments.node_layers import MODULES, linked
from orchestrator.sandbox.command_runner import scratch_folder
from orchestrator.settings.model import TestSettings
from orchestrator.test_runners.choice import NODE
from orchestrator.test_runners.failures import from_root
from orchestrator.test_runners.report import Selection, judged, merged, read_report
from orchestrator.test_runners.tests_in_tree import (
    ANSI,
    MOCHA_REPORTER,
    SEPARATOR,
    Tool,
    command,
    files_of_tests,
    is_nodes,
    is_typescript,
    read_results,
    tool_of,
    typescript_tests,
)

REPORTER = Path(__file__).with_name("node_reporter.mjs")
OLDEST = 20
"""First version of node whose test runner tells a reporter all that ours needs."""
_STRIP = "--experimental-strip-types"
_STRIPS = (
    f"process.features.typescript ? 'always' : process.allowedNodeEnvironmentFlags.has('{_STRIP}') ? 'asked' : 'never'"
)
"""node's support for stripping types: always, on request, or never."""
_EVERY = ("**/*[._-]test.?(c|m)[jt]s", "**/test-*.?(c|m)[jt]s", "**/test.?(c|m)[jt]s", "**/test/**/*.?(c|m)[jt]s")
"""Test files that node finds, with TypeScript, which not every version with type stripping finds."""
_VERSION = re.compile(r"^v(\d+)\.")


class NodeRunner:
    """Runs Node suites with the packages of their key. `settings.timeout_s` limits each run.

    One test is one case, named by the titles of its describe blocks and its own, joined with ` > `.
    """

    def __init__(self, runner: CommandRunner, environments: NodeEnvironments, settings: TestSettings) -> None:
        self._runner = runner
        self.environments = environments
        self._settings = settings
        self._able = False
        self._strips: str | None = None

    async def run(self, root: Path, asked: Selection) -> TestReport:
        """See `ports.SuiteRunner.run`; the whole suite is what node itself finds below `root`."""
        files = tuple(dict.fromkeys(case.file for case in asked.only)) if asked.only else asked.files
        root = await asyncio.to_thread(root.resolve)
        if lacking := await self._lacking(root):
            return TestReport(problem=RunProblem.MISSING_RUNNER, output=lacking)
        groups = await asyncio.to_thread(_groups, root, files)
        packages = await self.environments.ensure(root)
        if packages.problem is not None:
            text = f"{packages.problem}\n{packages.output}"
            return TestReport(problem=RunProblem.INSTALL_FAILED, output=text)
        asked = asked._replace(timeout_s=asked.timeout_s or self._settings.timeout_s)
        async with linked(root, packages.modules):
            reports = [
                await (
                    self._by_node(root, chosen, asked, packages)
                    if tool is None
                    else self._by_tool(tool, root, chosen, asked, packages)
                )
                for tool, chosen in groups
            ]
        titles = [NODE if tool is None else f"{tool.name}: {tool.why}" for tool, _ in groups]
        report = reports[0] if len(reports) == 1 else merged(titles, reports, asked.expected)
        if packages.note and not report.green:
            return report.model_copy(update={"output": f"[{packages.note}]\n{report.output}"})
        return report

    async def _by_node(self, root: Path, files: Sequence[str], asked: Selection, packages: NodePackages) -> TestReport:
        typed = [*filter(is_typescript, files)] if files else await asyncio.to_thread(typescript_tests, root)
        options = await self._typescript_options(root) if typed else ()
        if options is None:
            told = f"written in TypeScript: {', '.join(typed[:20])}"
            return TestReport(problem=RunProblem.NO_TYPESCRIPT, output=told)
        async with scratch_folder() as scratch:
            report = scratch / "report.xml"
            argv = [
                *(NODE, *options, "--test", "--test-reporter=spec", "--test-reporter-destination=stdout"),
                *(f"--test-reporter={REPORTER}", f"--test-reporter-destination={report}"),
                *_patterns(asked.only),
                *([f"./{file}" for file in files] if files else _EVERY if options else ()),
            ]
            access = Access(readable=(REPORTER, *packages.folders), plain_path=True)
            result = await self._runner.run(argv, cwd=root, timeout_s=asked.timeout_s, scratch=scratch, access=access)
            cases, trouble = await asyncio.to_thread(read_report, report, NODE, result.seen_at or root)
        shown = judged(result, asked.those(cases), trouble, asked.expected, runner=NODE, complete=(0,))
        output = from_root(shown.output, result.seen_at or root)
        return shown.model_copy(update={"output": output, "ran_with": ("node: the tests import node:test",)})

    async def _by_tool(
        self, tool: Tool, root: Path, files: Sequence[str], asked: Selection, packages: NodePackages
    ) -> TestReport:
        program = await asyncio.to_thread(_program, root, tool)
        if program is None:
            told = f"`{tool.name}` is not among the packages ({tool.why}): add it to devDependencies"
            return TestReport(problem=RunProblem.MISSING_RUNNER, output=told)
        access = Access(tree=root, readable=(MOCHA_REPORTER, *packages.folders), plain_path=True)
        env, limit = dict(tool.env), asked.timeout_s
        async with scratch_folder() as scratch:
            inner = [file.removeprefix(f"{tool.folder}/") if tool.folder else file for file in files]
            argv, cwd = command(tool, program, scratch, inner, asked.only), root / tool.folder
            result = await self._runner.run(argv, cwd=cwd, env=env, timeout_s=limit, scratch=scratch, access=access)
            seen_at, of = result.seen_at or root, await asyncio.to_thread(_files_of, root, tool, files)
            cases, trouble = await asyncio.to_thread(_read_results, scratch / "report.json", seen_at, of)
        if cases is not None and files:  # a tool may find more by what its settings say
            # AVA does not say in which file something failed outside of all tests.
            cases = tuple(case for case in cases if case.file in files or (tool.name == "ava" and not case.file))
        shown = judged(result, asked.those(cases), trouble, asked.expected, runner=tool.name, complete=(0,))
        # NO_COLOR in the environment would be seen by tests of programs that look at it.
        output = from_root(ANSI.sub("", shown.output), result.seen_at or root)
        return shown.model_copy(update={"output": output, "ran_with": (f"{tool.name}: {tool.why}",)})

    async def collect(self, root: Path, *, key: str) -> int:
        """Test files below `root`: node loads none without running it. 0 where packages cannot be installed."""
        packages = await self.environments.ensure(root)
        return (
            0
            if packages.problem is not None
            else await asyncio.to_thread(lambda: sum(not path.endswith(".py") for path in files_of_tests(root)))
        )

    async def _lacking(self, root: Path) -> str:
        """Returns why node cannot be used, or ""."""
        if self._able:
            return ""
        result = await self._runner.run([NODE, "--version"], cwd=root)
        found = _VERSION.match(result.output)
        if not result.ok or found is None:
            return f"`node` is not there: {result.output.strip()[:500]}"
        if int(found[1]) < OLDEST:
            return f"`node` is {result.output.strip()[:50]}; needed is {OLDEST} or newer"
        self._able = True
        return ""

    async def _typescript_options(self, root: Path) -> tuple[str, ...] | None:
        """Returns what node must be given to run TypeScript, or None when it cannot. It is asked once."""
        if self._strips is None:
            result = await self._runner.run([NODE, "-p", _STRIPS], cwd=root)
            self._strips = result.output.strip() if result.ok else ""
        return {"always": (), "asked": (_STRIP,)}.get(self._strips)


def _groups(root: Path, files: Sequence[str] | None) -> list[tuple[Tool | None, tuple[str, ...]]]:
    """Returns which runner runs which files, None being node itself; no files: all that it finds. At least one."""
    tools: dict[tuple[str, str], Tool | None] = {}
    chosen: dict[tuple[str, str], list[str]] = {}
    for file in [*files_of_tests(root)] if files is None else files:
        if files is None and file.endswith(".py"):
            continue
        tool = None if is_nodes(root, file) else tool_of(root, file)
        if tool is None and files is None and not is_nodes(root, file):
            continue
        key = ("", "") if tool is None else (tool.name, tool.folder)
        tools[key] = tool
        chosen.setdefault(key, []).append(file)
    found = [(tool, tuple(chosen[key]) if files is not None else ()) for key, tool in tools.items()]
    return found or [(None, ())]


def _program(root: Path, tool: Tool) -> str | None:
    """Returns the tool's own program as seen from its folder, in the nearest `node_modules` upwards."""
    inner = root / tool.folder
    folders = [inner, *(parent for parent in inner.parents if parent.is_relative_to(root))]
    places = (folder / MODULES / ".bin" / tool.name for folder in folders)
    return next((f"./{os.path.relpath(place, inner)}" for place in places if place.exists()), None)


def _files_of(root: Path, tool: Tool, files: Sequence[str]) -> Sequence[str] | None:
    """Returns the files that AVA may have run, which its report does not name; None for another tool. Blocks."""
    if tool.name != "ava" or files:
        return files if tool.name == "ava" else None
    there = (file for file in files_of_tests(root) if not file.endswith(".py") and not is_nodes(root, file))
    return sorted(file for file in there if (found := tool_of(root, file)) and found[:2] == tool[:2])


def _read_results(
    report: Path, root: Path, tap_of: Sequence[str] | None
) -> tuple[tuple[ReportedCase, ...] | None, str]:
    try:
        return read_results(report, root, tap_of), ""
    except ValueError as error:
        return None, str(error)


def _patterns(only: Sequence[ReportedCase]) -> tuple[str, ...]:
    """Returns what keeps node from running other tests; versions differ in what that does to tests inside others."""
    if any(SEPARATOR in case.name for case in only):
        return ()
    return tuple(f"--test-name-pattern=^{re.escape(case.name)}$" for case in only)
