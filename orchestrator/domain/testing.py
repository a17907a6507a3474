"""The tester's suite and what the test runner reported."""

from enum import StrEnum
from pathlib import Path

from orchestrator.domain.base import AnswerValue, Value
from orchestrator.domain.delivery import FileChange
from orchestrator.domain.paths import RepoPath


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
    """Older test files written anew with it, as the plan allows."""

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
    FAKED = "faked"
    """In a second run of an all green suite, tests that must fail were not reported as failed."""


NO_RUNNER = frozenset({RunProblem.MISSING_RUNNER, RunProblem.NO_TYPESCRIPT})
"""What lies at the machine: nothing that anybody writes into the project mends it."""


class TestReport(Value):
    """What a run of tests said, from the runner's report file, never from its exit code or its printed text."""

    __test__ = False

    cases: tuple[ReportedCase, ...] = ()
    problem: RunProblem | None = None
    missing_names: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    """Ids of cases that failed and passed when they were run once more alone: they count as passed."""
    exit_code: int | None = None
    output: str = ""
    """Printed text, head and tail kept."""
    duration_s: float = 0.0
    ran_with: tuple[str, ...] = ()
    """Runners that were used, each with the reason why: `pytest: the tests are in Python`."""
    not_proved: str = ""
    """Why it was not tried whether these tests can fail; "" where it was, or nobody asked."""

    def count(self, *results: CaseResult) -> int:
        """How many cases have one of these results."""
        return sum(case.result in results for case in self.cases)

    @property
    def passed(self) -> int:
        """Number of passed cases."""
        return self.count(CaseResult.PASSED)

    @property
    def failed(self) -> int:
        """Number of failed or erroneous cases."""
        return self.count(CaseResult.FAILED, CaseResult.ERROR)

    @property
    def failing_ids(self) -> frozenset[str]:
        """Ids of the failed or erroneous cases."""
        return frozenset(case.id for case in self.cases if case.result in {CaseResult.FAILED, CaseResult.ERROR})

    @property
    def green(self) -> bool:
        """True when the report is trustworthy, something passed and nothing failed."""
        return self.problem is None and self.failed == 0 and self.passed > 0


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
