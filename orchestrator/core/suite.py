"""Suites, what a runner reported about them, the trial of the base, and the environment that they run in."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from orchestrator.core.base_cause import advice, missing
from orchestrator.core.contract import InstalledPackages
from orchestrator.core.delivery import FileChange
from orchestrator.core.paths import RepoPath
from orchestrator.core.value import AnswerValue, Value, counted, listed


class TestCase(AnswerValue):
    """One test function and the acceptance criterion it stands for."""

    __test__ = False

    name: str
    criterion: str = ""


class TestSuite(Value):
    """One test file of one story."""

    __test__ = False

    test_file: RepoPath
    test_content: str
    test_cases: tuple[TestCase, ...] = ()
    expected_names: tuple[str, ...] = ()
    """Names of the test functions found in `test_content` by syntax tree; each must appear in the report (C6)."""
    changed: tuple[FileChange, ...] = ()
    """Older test files rewritten with it, as the plan allows."""
    older_names: tuple[str, ...] = ()
    """Tests that its file held before the story: they run with it, and do not count as the story's."""

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """All files, the suite's own first."""
        return (FileChange(path=self.test_file, content=self.test_content), *self.changed)

    @property
    def files(self) -> tuple[str, ...]:
        """Their paths."""
        return tuple(change.path for change in self.changes)

    @property
    def run_files(self) -> tuple[str, ...]:
        """Those that are run with the suite, by the same runner; the others run with the whole suite."""
        python = self.test_file.endswith(".py")
        return tuple(path for path in self.files if path.endswith(".py") == python)


class CaseResult(StrEnum):
    """What happened to one test."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


class ReportedCase(Value):
    """One test as the runner's machine-readable report names it."""

    name: str
    """The bare function name, parameters stripped."""
    id: str
    """Unique within a report: `classname::name[param]`."""
    file: str = ""
    """Path relative to the worktree, when the report tells."""
    result: CaseResult
    message: str = ""
    """Failure text, capped."""


NO_ROOM = "There is no room left on the disk that holds"
"""How the output of a run begins for which no environment could be made; then comes a folder."""


class RunProblem(StrEnum):
    """Why a run says nothing about the code under test; each is a failure with its own name (C3)."""

    TIMEOUT = "timeout"
    NO_TESTS = "no_tests"
    NO_REPORT = "no_report"
    """The runner ended without writing its report: a crash, an early exit, or a kill."""
    MISSING_RUNNER = "missing_runner"
    NO_TYPESCRIPT = "no_typescript"
    """The tests are written in TypeScript, which the node there is cannot run."""
    INTERNAL_ERROR = "internal_error"
    """pytest ended by an INTERNALERROR, of its own or of a plugin."""
    INSTALL_FAILED = "install_failed"
    SETUP_FAILED = "setup_failed"
    """A command of `environment.setup` failed on the base commit."""
    BUILD_FAILED = "build_failed"
    """A command of `environment.build` failed in the tree."""
    OUTPUT_LIMIT = "output_limit"
    MEMORY_LIMIT = "memory_limit"
    MISSING_NAMES = "missing_names"
    """Expected test names are not in the report."""
    TAMPERED = "tampered"
    """A test file was changed while it ran, or what the tree tells git."""


PROBLEMS: Mapping[RunProblem, str] = {
    RunProblem.TIMEOUT: "it was ended after its limit (test.timeout_s; on the base environment.base_timeout_s)",
    RunProblem.NO_TESTS: "no test was run",
    RunProblem.NO_REPORT: "the runner ended without a whole report (a crash, an early exit or a kill)",
    RunProblem.INTERNAL_ERROR: "pytest ended by an INTERNALERROR: not all tests were run",
    RunProblem.MISSING_RUNNER: "there is no test runner for it",
    RunProblem.NO_TYPESCRIPT: "node here cannot run TypeScript tests: install Node 22.18 or newer (22.6 will do)",
    RunProblem.INSTALL_FAILED: "the dependencies could not be installed",
    RunProblem.SETUP_FAILED: "a command of environment.setup failed",
    RunProblem.BUILD_FAILED: "a command of environment.build failed",
    RunProblem.OUTPUT_LIMIT: "it printed more than commands.output_killed_kb",
    RunProblem.MEMORY_LIMIT: "it needed more than commands.memory_mb",
    RunProblem.MISSING_NAMES: "expected tests did not run",
    RunProblem.TAMPERED: "a test file was changed while it ran",
}
"""What a problem means, for people."""
NO_RUNNER = frozenset({RunProblem.MISSING_RUNNER, RunProblem.NO_TYPESCRIPT})
"""Problems of the machine, which no change of the project can fix."""


class TestReport(Value):
    """What a run of tests said, from the runner's report file, never from its exit code or its printed text."""

    __test__ = False

    cases: tuple[ReportedCase, ...] = ()
    problem: RunProblem | None = None
    missing_names: tuple[str, ...] = ()
    older_failing: tuple[str, ...] = ()
    """Names of failed tests that the suite's file held before the story; they are not among the cases."""
    flaky: tuple[str, ...] = ()
    """Ids of cases that failed and passed when the same run was repeated: they count as passed."""
    exit_code: int | None = None
    output: str = ""
    """Printed text, head and tail kept."""
    duration_s: float = 0.0
    ran_with: tuple[str, ...] = ()
    """Runners that were used, each with the reason why: `pytest: the tests are in Python`."""

    def count(self, *results: CaseResult) -> int:
        """Returns how many cases have one of these results."""
        return sum(case.result in results for case in self.cases)

    @property
    def passed(self) -> int:
        """Number of passed cases."""
        return self.count(CaseResult.PASSED)

    @property
    def failing(self) -> tuple[ReportedCase, ...]:
        """The failed or erroneous cases, in order."""
        return tuple(case for case in self.cases if case.result in {CaseResult.FAILED, CaseResult.ERROR})

    @property
    def failed(self) -> int:
        """Number of failed or erroneous cases."""
        return len(self.failing)

    @property
    def failing_ids(self) -> frozenset[str]:
        """Ids of the failed or erroneous cases."""
        return frozenset(case.id for case in self.failing)

    @property
    def failures(self) -> tuple[tuple[ReportedCase, ...], ...]:
        """The failed or erroneous cases, in order; those that say the same stand together."""
        groups: dict[str, list[ReportedCase]] = {}
        for case in self.failing:
            groups.setdefault(case.message.strip() or case.id, []).append(case)
        return tuple(map(tuple, groups.values()))

    @property
    def green(self) -> bool:
        """True when the report is trustworthy, something passed and nothing failed."""
        return self.problem is None and self.failed == 0 and self.passed > 0

    @property
    def broke_off(self) -> bool:
        """True when tests were reported and the runner still ended as if they were not all."""
        return self.problem in {RunProblem.NO_REPORT, RunProblem.INTERNAL_ERROR} and bool(self.cases)


class FailureInstruction(AnswerValue):
    """One entry of the tester's failure analysis: what to change, where."""

    file: str
    function: str = ""
    issue: str
    fix: str


class CommandResult(Value):
    """How one command ended. `limit` names the limit that ended it, if any."""

    argv: tuple[str, ...]
    exit_code: int | None
    """None when a signal or a limit ended it."""
    output: str
    """stdout and stderr interleaved, head and tail kept when capped."""
    limit: str | None = None
    """timeout | memory | output | processes | disk, or None."""
    duration_s: float = 0.0
    made: tuple[FileChange, ...] = ()
    """Files that it was to make or change and did, with their texts afterwards."""
    left: tuple[str, ...] = ()
    """Paths of other files that it made or changed."""
    ignored: tuple[str, ...] = ()
    """Those of all these that git ignores."""
    seen_at: Path | None = None
    """Where the command saw its tree, when that was another path."""

    @property
    def ok(self) -> bool:
        """Exit code 0 and no limit hit."""
        return self.exit_code == 0 and self.limit is None


BASE_TRIED = "base_tried"
"""Name of the event that tells it."""
TRYING = "trying the base: installing and running its tests"
"""Said before it takes a while."""
FAILING_KEPT = 50
"""Failing tests that are named: there may be a hundred thousand."""
OUTPUT_KEPT = 2000
"""Characters of the end of what was printed."""
_TOLD_LINES = 8
_SAYS_NOTHING = re.compile(r"[\s\]\[{}(),]*$|\s*(?:- |['\"])/\S+$")
"""Brackets, and the paths of node's stack of `require`."""
_LEFT_OUT = re.compile(r"(?:\[[^\]]*\]\n)*")
"""What a runner says before the output of a red run: packages and submodules that are not there."""
_TODO = {
    RunProblem.INSTALL_FAILED: "do what is said there, or correct the manifests, or what fetches packages "
    "(sandbox.registries, sandbox.packages, environment.hosts, commands.install_env, commands.install_timeout_s)",
    RunProblem.SETUP_FAILED: "correct the command in environment.setup, install what it lacks on this machine, or name "
    "in environment.hosts what it fetches from",
    RunProblem.BUILD_FAILED: "correct the command in environment.build",
    RunProblem.MISSING_RUNNER: "install the test runner, or name another one in test.command",
    RunProblem.NO_TYPESCRIPT: "install Node 22.18 or newer",
    RunProblem.TIMEOUT: "raise environment.base_timeout_s",
    RunProblem.OUTPUT_LIMIT: "raise commands.output_killed_kb",
    RunProblem.MEMORY_LIMIT: "raise commands.memory_mb",
}


class BaseTrial(Value):
    """One run of the whole suite on the base commit, or what came of it without tests."""

    collected: int = 0
    """Tests that could be found and loaded; 0 where nothing can be judged by them."""
    passed: int = 0
    failed: int = 0
    """Files that could not be loaded are among them."""
    skipped: int = 0
    seconds: float = 0.0
    problem: str | None = None
    """Why the run shows nothing, or not all."""
    todo: str = ""
    """What a person does about `problem`."""
    output_end: str = ""
    """The end of the error, where there is a problem."""
    failing: tuple[str, ...] = ()
    """Ids of the failed tests and files, the first of them."""
    ran_with: tuple[str, ...] = ()
    """Runners that were used, each with the reason why."""

    @property
    def usable(self) -> bool:
        """Whether anything of the base can be run: a test could be collected, or there is none and no problem."""
        return self.problem is None or self.collected > 0

    @property
    def told(self) -> str:
        """One line for people."""
        if not self.usable:
            return f"base: {self._what}: {self.problem}"
        if not self.collected:
            told = f"base: no tests, its dependencies are there, in {self.seconds:.0f} s"
            return "; ".join((told, *self.ran_with))
        ran = self.passed + self.failed + self.skipped
        counts = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped in {self.seconds:.0f} s"
        told = f"base: {counts}" if ran else f"base: {self.collected} tests collected"
        runners = f"; run with {', '.join(self.ran_with)}" if self.ran_with else ""
        return told + (f"; {self.problem}" if self.problem else "") + runners

    @property
    def _what(self) -> str:
        return "not all of it can be run" if self.passed else "nothing can be run"

    @property
    def refusal(self) -> str:
        """Why nothing may be paid for, with the error's end and what to do; for a trial that is not usable."""
        lines = [line for line in self.output_end.splitlines() if not _SAYS_NOTHING.match(line)][-_TOLD_LINES:]
        return "\n".join(
            [
                f"the base commit: {self._what}: {self.problem}",
                *(f"  {line}" for line in lines),
                f"To do: {self.todo}; or begin all the same with environment.base: warn",
            ]
        )


class TriedBase(Value):
    """A trial, with the whole report of its run for those who compare with it later."""

    trial: BaseTrial
    report: TestReport


def trial_of(
    report: TestReport, *, collected: int, seconds: float, installed: InstalledPackages | None = None
) -> BaseTrial:
    """Returns the trial that `report`, a run of the whole suite, comes to.

    `collected` is how many tests could be collected after a timeout. By the `installed` packages it is told what an
    error that comes out of one of them may be mended with.
    """
    unloaded = [case for case in report.cases if _is_unloaded(case)]
    there = max(len(report.cases) - len(unloaded), collected)
    problem, todo, end = None, "see that the project's tests can be run from its root folder", ""
    if report.problem is not None and report.problem is not RunProblem.NO_TESTS:
        problem, end = PROBLEMS[report.problem], report.output
        todo = _TODO.get(report.problem, todo)
        there = 0 if report.problem is RunProblem.INTERNAL_ERROR else there
    elif unloaded:
        problem, left_out = _not_loaded(unloaded, there), _LEFT_OUT.match(report.output)
        end = f"{unloaded[0].message}\n{left_out[0] if left_out else ''}"
    elif report.cases and not report.passed and not report.failed:
        problem, there = f"no test of {len(report.cases)} passed or failed: all are skipped", 0
        todo, end = "see what they need to run here: they say why they are skipped", report.output
    if problem is not None and report.problem not in _TODO:
        said = "\n".join([*(case.message for case in unloaded), report.output])
        todo = advice(said, installed or InstalledPackages()) or todo
    return BaseTrial(
        collected=there,
        passed=report.passed,
        failed=report.failed,
        skipped=report.count(CaseResult.SKIPPED),
        seconds=round(seconds, 1),
        problem=problem,
        todo=todo if problem is not None else "",
        output_end=end[-OUTPUT_KEPT:],
        failing=tuple(sorted(report.failing_ids)[:FAILING_KEPT]),
        ran_with=report.ran_with,
    )


def _not_loaded(unloaded: Sequence[ReportedCase], there: int) -> str:
    """Returns how many files cannot be loaded, and what they do not find."""
    names = missing("\n".join(case.message for case in unloaded))
    lacking = f": {listed([f'`{name}`' for name in names], 5)} cannot be found" if names else ""
    if not there:
        return f"no test file can be loaded ({len(unloaded)}){lacking}"
    return f"{counted(len(unloaded), 'test file')} cannot be loaded{lacking}"


def _is_unloaded(case: ReportedCase) -> bool:
    """Returns whether it stands for a file that could not be loaded: pytest gives it no class, node the file's name."""
    return case.result is CaseResult.ERROR and (case.id.startswith("::") or case.name == case.file)


LEFT_OUT = "was left out"
"""Text about a required package in notes on an environment."""


class ProjectEnvironment(Value):
    """Where a project's packages lie, or why they could not be installed."""

    key: str = ""
    """Names the packages: the same ones have the same key. Empty where there are none."""
    seconds: float = 0.0
    """Until they were there; those that are there already take less."""
    megabytes: float = 0.0
    because: tuple[str, ...] = ()
    """Manifests that were read; what was refused; why the project itself could not be built."""
    problem: str = ""
    """Why they could not be installed; "" when they could."""
    failed: str = ""
    """Packages that could not be built on this machine, and why."""
    output_end: str = ""


class NewPackages(Value):
    """Whether the packages that a plan brings can be had."""

    refusal: str = ""
    """Why not, in the installer's words; "" where they can, or where that could not be found out."""
    base_too: bool = False
    """Whether the project's own packages are refused without them as well."""
    closed: tuple[str, ...] = ()
    """Packages that need to run code while they are installed, and may not."""
    listed: tuple[str, ...] = ()
    """What `environment.install_scripts` lists so far, `auto` included."""
    failed: str = ""
    """How the code of allowed ones ended that could not build them, in the installer's words."""

    @property
    def setting(self) -> str:
        """What would allow the closed ones to, as it is written in config.yaml."""
        names = dict.fromkeys((*self.listed, *self.closed))
        quoted = (f'"{name}"' if name[:1] == "@" else name for name in names)
        return f"environment.install_scripts: [{', '.join(quoted)}]"

    @property
    def had(self) -> bool:
        """Whether nothing is said against them."""
        return not (self.refusal or self.closed or self.failed)


SANDBOX_CHOSEN = "sandbox_chosen"
"""The event that tells in which tier a run's commands are."""


class Tier(StrEnum):
    """How commands are confined, the strongest first."""

    NAMESPACES = "namespaces"
    """bubblewrap and seccomp: a file system, a network and processes of its own."""
    LANDLOCK = "landlock"
    """Landlock and seccomp: the machine's file system with most of it closed, and no network."""
    PLAIN = "plain"
    """Limits and a clean environment: accidents are bounded, malice is not."""


class SandboxFacts(Value):
    """The tier of a run, for the log and the reports."""

    tier: Tier
    holds: tuple[str, ...] = ()
    """What was shown to hold, a few words each."""
    missing: tuple[str, ...] = ()
    """What a stronger tier or machine would hold as well."""
    untested: tuple[str, ...] = ()
    """Guarantees that should hold and were not tested."""
    note: str = ""
    """Why it is not a stronger tier; empty for the strongest."""

    def __str__(self) -> str:
        parts = [f"sandbox={self.tier}"]
        for name in ("holds", "missing", "untested"):
            if words := getattr(self, name):
                parts.append(f"{name}=[{', '.join(words)}]")
        return " ".join(parts) + (f" ({self.note})" if self.note else "")


class Access(Value):
    """What a command may reach beyond the system's programs, the interpreter, its working folder and its scratch."""

    tree: Path | None = None
    """The folder it may change, `.git` on top of it excepted; None: the folder that it runs in."""
    readable: tuple[Path, ...] = ()
    """Files and folders that it may read."""
    plain_path: bool = False
    """It sees its tree at a path without hidden folders, where the tier can: servers such as Express send no file from
    below one, and trees lie below `.orchestrator`."""
    fetch: bool = False
    """It reaches the registries that its variables name and `environment.hosts`, by a proxy of ours and no other way.

    Of its variables it gets neither credentials nor the machine's proxies; certificates and folders of packages that
    they name it may read.
    """

    def also(self, *paths: Path) -> "Access":
        """With these to read as well."""
        return self.model_copy(update={"readable": (*self.readable, *paths)})
