"""SuiteRunner's half for Python: hostile code runs the tests, so only the report file and the expected names count.

pytest runs what unittest runs, with three exceptions: only pytest-django makes the settings and databases of a
Django project; `load_tests` is never called; and files that only unittest finds by their names are not looked at. Those
tests are run by Django's runner and by unittest's.
"""

import asyncio
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import CommandResult, ReportedCase, RunProblem, TestReport
from orchestrator.environments.python import EnvironmentResult, PythonEnvironments
from orchestrator.environments.python_installer import packages_of
from orchestrator.files.safe_files import read_text, root_files
from orchestrator.sandbox.command_runner import scratch_folder
from orchestrator.settings.model import TestSettings
from orchestrator.test_runners.choice import DJANGO, KINDS, PYTEST, UNITTEST
from orchestrator.test_runners.failures import from_root
from orchestrator.test_runners.python import Part, import_paths, parts, settings_file
from orchestrator.test_runners.report import Selection, judged, merged, read_report, reported
from orchestrator.test_runners.tests_in_tree import files_of_tests

REPORTER = Path(__file__).with_name("unittest_reporter.py")
_CALLS = re.compile(r"(?:\bdjango(?:-admin)?|(?P<manage>[\w./-]*\bmanage\.py))[ \t]+test\b(?P<rest>[^\n]*)")
"""Commands that start Django's runner."""
# In a command or in the environment.
_SETTINGS = re.compile(r"(?:--settings[= ]|\bDJANGO_SETTINGS_MODULE[\"']?[ \t]*[=:][ \t]*)[\"']?([A-Za-z_][\w.]*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TOOLS = ("tox.ini", "Makefile", "noxfile.py", "justfile", "pyproject.toml", "setup.cfg")
_WORKFLOWS = ".github/workflows"
_SAMPLES = frozenset({"docs", "example", "examples", "demo", "sample", "node_modules", "venv"})
"""Folders whose `manage.py` is not the project's own."""
_LOAD_TESTS = re.compile(r"^def load_tests\(", re.MULTILINE)
# Unittest's cases, which pytest runs too.
_CASES = re.compile(r"^class \w+\(.*TestCase\b(?:.*\n)+?\s+def test", re.MULTILINE)


class Tool(NamedTuple):
    """The runner of some Python tests, and the reason."""

    name: str
    why: str
    manage: str = ""
    """`manage.py` from the root; "" for Django itself."""
    settings: str = ""
    """The settings' module; "" where `manage.py` names it."""
    labels: tuple[str, ...] = ()
    """What its people name to it for the whole suite; none: all that it finds."""


def tools_of(root: Path, part: Part, packages: Path | None, forced: str) -> list[tuple[Tool, Part]]:
    """Returns runners with their tests of a part, at least one; `packages` are the project's, `forced` is a setting."""
    django = _django(root, part.folder, packages, forced)
    if django is not None:
        return [(django, part)]
    if forced == UNITTEST:
        every = [*_chosen(part)] if part.chosen or part.only else [*_below(root, part)]
        return [(Tool(UNITTEST, "test.command names it"), part._replace(chosen=tuple(every)))]
    pytest = Tool(PYTEST, "test.command names it" if forced else "the tests are in Python")
    whole = part.whole
    candidates = _below(root, part) if whole else _chosen(part)
    rest = (
        ()
        if forced or _has_pytest(root / part.folder)
        else tuple(file for file in candidates if _is_for_unittest(root, file))
    )
    if not rest:
        return [(pytest, part)]
    unittest = Tool(UNITTEST, f"pytest would not run what {rest[0]} defines")
    others = [] if whole else [file for file in _chosen(part) if file not in rest]
    if not whole and not others:
        return [(unittest, part._replace(chosen=rest))]
    only = [[case for case in part.only if (case.file in rest) is there] for there in (False, True)]
    mine = part._replace(only=tuple(only[0]), chosen=part.chosen if whole else tuple(others))
    return [
        (pytest, mine._replace(ignored=(*part.ignored, *rest)) if whole else mine),
        (unittest, Part(part.folder, rest, tuple(only[1]))),
    ]


def unittest_argv(
    tool: Tool, python: Path, root: Path, part: Part, report: Path, *, collect: bool = False
) -> list[str]:
    """Returns the command line, run at `root`."""
    home = root / part.folder
    order = {
        "report": str(report),
        "root": str(root),
        "django": tool.name == DJANGO,
        "manage": tool.manage,
        "settings": tool.settings,
        "labels": tool.labels,
        "paths": [*dict.fromkeys(map(str, (home, home / "src", root, root / "src")))],
        "files": [] if tool.name == DJANGO and part.whole else [*_chosen(part)],
        "only": [case.id.split("::", 1) for case in part.only],
        "collect": collect,
    }
    place = (root / tool.manage).parent if tool.manage else home
    argv = [str(python), "-P", str(REPORTER), json.dumps(order)]
    return argv if place == root else ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(place), *argv]


def _chosen(part: Part) -> Sequence[str]:
    return tuple(dict.fromkeys(case.file for case in part.only)) if part.only else part.chosen


def _below(root: Path, part: Part) -> Iterator[str]:
    """Python files of a part that are named like tests, by pytest's customs or unittest's."""
    for file in sorted(files_of_tests(root)):
        inside = not part.folder or file.startswith(f"{part.folder}/")
        if file.endswith(".py") and inside and not any(file.startswith(f"{one}/") for one in part.ignored):
            yield file


def _is_for_unittest(root: Path, file: str) -> bool:
    """Returns whether pytest would leave something of it out: `load_tests`, or all of it for its name."""
    if not file.endswith(".py"):
        return False
    text = read_text(root, file) or ""
    if _LOAD_TESTS.search(text):
        return True
    return not KINDS[PYTEST].suites.search(PurePosixPath(file).name) and bool(_CASES.search(text))


def _django(root: Path, folder: str, packages: Path | None, forced: str) -> Tool | None:
    """Django's runner, where it is named, or where its project has nothing that makes pytest serve it."""
    home = root / folder
    if not forced:
        there = {path.name.partition("-")[0].lower() for path in packages.glob("*.dist-info")} if packages else set()
        if "django" not in there or "pytest_django" in there or _has_pytest(home):
            return None
    elif forced != DJANGO:
        return None
    why = "test.command names it" if forced else "Django is among the packages, pytest-django is not"
    for name in _tool_files(home):
        text = read_text(home, name) or ""
        if (call := _CALLS.search(text)) is not None:
            settings = _SETTINGS.search(call["rest"]) or _SETTINGS.search(text)
            manage = call["manage"] or ""
            manage = manage if manage and (home / manage).is_file() else ""
            if manage or settings:
                inside = str(PurePosixPath(folder) / manage) if manage else ""
                labels = tuple(word for word in _WORD.findall(call["rest"]) if (home / word).is_dir())
                return Tool(DJANGO, f"{why}; {name} calls it", inside, settings[1] if settings else "", labels)
    manage = _manage(root, folder)
    if manage or forced:
        return Tool(DJANGO, f"{why}; {manage} is there" if manage else why, manage)
    return None


def _has_pytest(home: Path) -> bool:
    """Returns whether its people run pytest: what that leaves out, they leave out."""
    names = root_files(home)
    return settings_file(names, partial(read_text, home)) is not None or "conftest.py" in names


def _tool_files(home: Path) -> Iterator[str]:
    there = root_files(home)
    yield from (name for name in _TOOLS if name in there)
    yield from (f"{_WORKFLOWS}/{name}" for name in root_files(home / _WORKFLOWS) if fnmatchcase(name, "*.y*ml"))


def _manage(root: Path, folder: str) -> str:
    """Returns the nearest `manage.py`, in the part's folder or one below it; "" for none."""
    home = root / folder
    below = sorted(path.name for path in home.iterdir() if path.is_dir() and not path.is_symlink())
    for place in ["", *(name for name in below if name not in _SAMPLES and not name.startswith("."))]:
        path = "/".join(filter(None, (folder, place, "manage.py")))
        if "DJANGO_SETTINGS_MODULE" in (read_text(root, path) or ""):
            return path
    return ""


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
        self.environments = environments
        self._settings = settings
        self._path = path

    async def run(self, root: Path, asked: Selection) -> TestReport:
        """See `ports.SuiteRunner.run`.

        An expected test that was only skipped (or expected to fail) has shown nothing: it counts as missing. Tests of
        several projects in one repository run in the environments of their nearest manifests, one after the other.
        """
        root = await asyncio.to_thread(root.resolve)
        found = await asyncio.to_thread(parts, root, asked.files, asked.only)
        if len(found) == 1:
            return await self._run(root, found[0], asked)
        reports = [await self._run(root, part, asked._replace(expected=())) for part in found]
        return merged([part.folder or "." for part in found], reports, asked.expected)

    async def _run(self, root: Path, part: Part, asked: Selection) -> TestReport:
        environment = await self.environments.ensure(root, asked.key, part.folder)
        if environment.python is None:
            return TestReport(problem=RunProblem.INSTALL_FAILED, output=_install_text(environment))
        jobs = await asyncio.to_thread(self._jobs, root, part, environment)
        if len(jobs) == 1:
            return await self._by(*jobs[0], root, environment, asked)
        reports = [await self._by(tool, some, root, environment, asked._replace(expected=())) for tool, some in jobs]
        return merged([tool.name for tool, _ in jobs], reports, asked.expected)

    def _jobs(self, root: Path, part: Part, environment: EnvironmentResult) -> list[tuple[Tool, Part]]:
        command = (self._settings.command or "").strip()
        packages = packages_of(environment.layer) if environment.layer is not None else None
        return tools_of(root, part, packages, command if command in {PYTEST, UNITTEST, DJANGO} else "")

    async def _by(
        self, tool: Tool, part: Part, root: Path, environment: EnvironmentResult, asked: Selection
    ) -> TestReport:
        assert environment.python is not None
        async with scratch_folder() as scratch:
            report = scratch / "report.xml"
            argv = await asyncio.to_thread(_argv, tool, environment.python, root, part, scratch)
            result = await self._pytest(argv, root, environment, scratch, asked.timeout_s)
            cases, trouble = await asyncio.to_thread(read_report, report, tool.name, result.seen_at or root)
        if (
            tool.name == PYTEST
            and cases is None
            and result.limit is None
            and await self._lacks_pytest(environment, root)
        ):
            return reported(result, RunProblem.MISSING_RUNNER, trouble="pytest cannot be imported")
        complete = _COMPLETE_EXITS if tool.name == PYTEST else {0}
        shown = judged(result, cases, trouble, asked.expected, runner=tool.name, complete=complete)
        told = "" if shown.green or not environment.note else f"[{environment.note}]\n"
        by = f"{tool.name}: {tool.why}"
        output = from_root(shown.output, result.seen_at or root)
        return shown.model_copy(update={"output": f"{told}{output}", "ran_with": (by,)})

    async def collect(self, root: Path, *, key: str) -> int:
        """See `ports.SuiteRunner.collect`; what pytest prints is believed: nothing is decided by how many there are."""
        root = await asyncio.to_thread(root.resolve)
        found = await asyncio.to_thread(parts, root, None, ())
        return sum([await self._collect(root, part, key) for part in found])

    async def _collect(self, root: Path, part: Part, key: str) -> int:
        environment = await self.environments.ensure(root, key, part.folder)
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
        environment = await self.environments.ensure(root, key)
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
        # Not `-p no:cacheprovider`, without which a project's own `--ff`, `--sw` or `cache_dir` are unknown.
        *("-o", "junit_family=xunit1", "-o", f"cache_dir={scratch / 'cache'}", "--color=no", "--tb=short"),
        *("-c", str(settings), f"--rootdir={root}", f"--confcutdir={root}", f"--junitxml={report}"),
        # What the project's own options choose by words or marks is no matter of tests that are named one by one.
        *(("-k", "", "-m", "", "--maxfail=0") if part.only else ()),
        # Values whole in what a story's tests say; of a whole suite it would be too much.
        *(() if part.whole else ("-vv",)),
        # One file that cannot be loaded must not keep the whole suite from running.
        *(("--continue-on-collection-errors",) if part.whole else ()),
        *(f"--ignore={root / folder}" for folder in part.ignored),
        *("--", *(f"{root}/{one}" for one in chosen)),
    ]


def _settings(root: Path, home: Path) -> Path | None:
    """Returns the nearest file with pytest's settings."""
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
