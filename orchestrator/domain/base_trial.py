"""What a project's own tests do on the commit that a sprint starts from, before anything is paid for (pure)."""

import re
from collections.abc import Sequence

from orchestrator.domain.base import Value
from orchestrator.domain.testing import CaseResult, ReportedCase, RunProblem, TestReport

BASE_TRIED = "base_tried"
"""Name of the event that tells it."""
TRYING = "trying the base: installing and running its tests"
"""Said before it takes a while."""
FAILING_KEPT = 50
"""Failing tests that are named: there may be a hundred thousand."""
OUTPUT_KEPT = 2000
"""Characters of the end of what was printed."""
_TOLD_LINES = 8
_MISSING = re.compile(r"No module named '([\w.]+)'|Cannot find (?:package|module) '([^']+)'")
_PROBLEMS = {
    RunProblem.TIMEOUT: "the tests were ended after environment.base_timeout_s",
    RunProblem.MISSING_RUNNER: "there is no test runner for its tests",
    RunProblem.NO_TYPESCRIPT: "node here cannot run tests in TypeScript",
    RunProblem.INSTALL_FAILED: "its dependencies cannot be installed",
    RunProblem.SETUP_FAILED: "environment.setup failed",
    RunProblem.BUILD_FAILED: "environment.build failed",
    RunProblem.OUTPUT_LIMIT: "the tests printed more than commands.output_killed_kb",
    RunProblem.MEMORY_LIMIT: "the tests needed more than commands.memory_mb",
    RunProblem.TAMPERED: "test files were changed while the tests ran",
}
_TODO = {
    RunProblem.INSTALL_FAILED: "correct the manifests, or what fetches packages (sandbox.registries, sandbox.packages, "
    "environment.hosts, commands.install_env, commands.install_timeout_s)",
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
    """Tests that could be found and loaded."""
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
            return f"base: nothing can be run: {self.problem}"
        if not self.collected:
            return f"base: no tests, its dependencies are there, in {self.seconds:.0f} s"
        ran = self.passed + self.failed + self.skipped
        counts = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped in {self.seconds:.0f} s"
        told = f"base: {counts}" if ran else f"base: {self.collected} tests collected"
        runners = f"; run with {', '.join(self.ran_with)}" if self.ran_with else ""
        return told + (f"; {self.problem}" if self.problem else "") + runners

    @property
    def refusal(self) -> str:
        """Why nothing may be paid for, with the error's end and what to do; for a trial that is not usable."""
        lines = [line for line in self.output_end.splitlines() if line.strip()][-_TOLD_LINES:]
        return "\n".join(
            [
                f"nothing of the base commit can be run: {self.problem}",
                *(f"  {line}" for line in lines),
                f"To do: {self.todo}; or begin all the same with environment.base: warn",
            ]
        )


class TriedBase(Value):
    """A trial, with the whole report of its run for those who compare with it later."""

    trial: BaseTrial
    report: TestReport


def trial_of(report: TestReport, *, collected: int, seconds: float) -> BaseTrial:
    """The trial that `report`, a run of the whole suite, comes to.

    `collected` is how many tests could be collected where the run itself says nothing of that, as after a timeout.
    """
    unloaded = [case for case in report.cases if _is_unloaded(case)]
    there = max(len(report.cases) - len(unloaded), collected)
    problem, todo, end = None, "", ""
    if report.problem not in {None, RunProblem.NO_TESTS}:
        problem = _PROBLEMS.get(report.problem, "the test runner ended without a whole report")
        end = report.output
        todo = _TODO.get(report.problem, "see that the project's tests can be run from its root folder")
    elif unloaded and not there:
        problem, end = "no test file can be loaded", unloaded[0].message
        todo = "see that the project's tests can be run from its root folder"
    if missing := _missing(end):
        todo = f"name what provides {missing} in the project's manifests, or the extra or group that has it in "
        todo += "environment.extras or environment.groups"
    return BaseTrial(
        collected=there,
        passed=report.passed,
        failed=report.failed,
        skipped=report.count(CaseResult.SKIPPED),
        seconds=round(seconds, 1),
        problem=problem,
        todo=todo,
        output_end=end[-OUTPUT_KEPT:],
        failing=tuple(sorted(report.failing_ids)[:FAILING_KEPT]),
        ran_with=report.ran_with,
    )


def _is_unloaded(case: ReportedCase) -> bool:
    """Whether it stands for a file that could not be loaded: pytest gives it no class, node the file's name."""
    return case.result is CaseResult.ERROR and (case.id.startswith("::") or case.name == case.file)


def _missing(text: str) -> str:
    found: Sequence[tuple[str, str]] = _MISSING.findall(text)
    return ", ".join(dict.fromkeys(f"`{python or node}`" for python, node in found))
