"""Runs the whole suite for regressions: on the story's branch once its own tests pass, and on the merged tree."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.delivery import CommitNote, MergeResult
from orchestrator.core.event import Level
from orchestrator.core.paths import is_test_file
from orchestrator.core.suite import CaseResult, ReportedCase, RunProblem, TestReport, TestSuite
from orchestrator.core.value import listed
from orchestrator.story.commit_message import fitted
from orchestrator.story.context import Progress, Stage, failure_text, summary
from orchestrator.story.older_tests import NAMED, Tests, holds_tests, ran, vanished
from orchestrator.story.suite_runs import flaky_findings, twice


def merge_note(stage: Stage) -> CommitNote:
    """Returns the message of the story's merge, the same for each step that may be the first to build it."""
    return stage.note(fitted(f"Merge {stage.story_id}: {stage.brief.story.title}"), f"{stage.step.workflow_id}/merge")


class Regression:
    """Compares the whole suite with the base commit: no new failures, and no vanished tests."""

    def __init__(
        self,
        stage: Stage,
        progress: Progress,
        plan: Breakdown,
        suite: TestSuite,
        may_go: frozenset[str] = frozenset(),
    ) -> None:
        """`may_go` are older tests that a person allowed to vanish."""
        self._stage, self._progress, self._suite, self._may_go = stage, progress, suite, may_go
        self._changed = {change.file for change in plan.tests_to_change}
        # Doctests vanish with the code that contains them.
        self._changed |= {path for task in plan.tasks for path in task.files_to_create if not is_test_file(path)}
        self._report = TestReport(problem=RunProblem.NO_TESTS)
        self._vanished: tuple[str, ...] = ()
        self._flaky: tuple[str, ...] = ()
        self._unknown = ""
        self._tested = False
        self._seconds = 0.0
        """What its runs of the whole suite took."""

    async def before_merge(self) -> TestReport | None:
        """Returns the run with older tests as failed that fail now and passed at the base.

        Returns None when there are none, or when the run is inconclusive: the merge checks again.
        """
        stage = self._stage
        if not holds_tests(self._progress.surface.files):
            return None

        async def work(_step_id: str) -> TestReport:
            if (shown := await self._in_merge()) is not None:
                return shown
            await stage.workspace.reset(stage.story_id)
            head = await stage.workspace.head(stage.story_id)
            report, _ = await self._whole(stage.workspace.root(stage.story_id), head)
            return await self._judged(stage.workspace.root(stage.story_id), report)

        async def timed(step_id: str) -> TestReport:
            return (await work(step_id)).model_copy(update={"duration_s": self._seconds})

        report = await stage.step.step("older_tests", timed, TestReport)
        self._progress.note_findings(flaky_findings(report.flaky))
        if report.problem is None and report.failed:
            return report
        milliseconds = round(report.duration_s * 1000)
        told = f"all tests: {summary(report)}"
        await stage.step.emit("whole_suite_run", told, level=Level.DEBUG, duration_ms=milliseconds)
        return None

    async def _in_merge(self) -> TestReport | None:
        """Returns the run on what the story's merge would be now, which keeps its place in the queue if it is good.

        Returns None for a bad run that may be the fault of what others have changed: the branch alone tells.
        """
        stage, shown = self._stage, TestReport(problem=RunProblem.NO_TESTS)
        tested = ""

        async def test(folder: Path, commit: str) -> bool:
            nonlocal shown, tested
            tested = commit
            await self.test(folder, commit)
            shown = await self._judged(folder, self._report)
            return shown.problem is None and not shown.failed

        content_of = stage.workspace.content_of
        if await stage.workspace.test_merge(stage.story_id, merge_note(stage), test):
            return shown
        head = await stage.workspace.head(stage.story_id)
        return shown if tested and await content_of(tested) == await content_of(head) else None

    async def _judged(self, folder: Path, report: TestReport) -> TestReport:
        """Returns the run without what failed at the base."""
        base = None if report.green else await self._comparable_base(report)
        if base is None:
            return report
        trusted = report.model_copy(update={"problem": None})
        return await self._settled(folder, trusted, self._not_own(base.failing_ids, report))

    async def test(self, folder: Path, commit: str) -> None:
        """Runs the whole suite on a merged tree, unless that was done."""
        self._report, self._tested = await self._whole(folder, commit)

    async def check(self, folder: Path) -> str:
        """Returns why the tree of the last test is refused, or ""."""
        report, self._vanished, self._flaky, self._unknown = self._report, (), (), ""
        if not report.green and (red := await self._red(folder, report)):
            return red
        before = await self._before()
        if isinstance(before, str):
            self._unknown = before
            return ""
        gone = vanished(before, report, self._changed)
        self._vanished = tuple(test for test in gone if test not in self._may_go)
        return f"older tests do not run any more: {listed(self._vanished, NAMED)}" if self._vanished else ""

    async def _whole(self, folder: Path, commit: str) -> tuple[TestReport, bool]:
        """Returns a run of the whole suite on the commit in `folder`, and whether it was run before.

        One that failed otherwise than at the base is run again: it may be flaky.
        """
        stage = self._stage
        content = await stage.workspace.content_of(commit)
        known = stage.older.find(content)
        if known is not None and self._shows_own(known) and await self._is_as_at_base(known):
            return known, True
        report = await self._run(folder)
        stage.older.note(content, report)
        return report, False

    def _shows_own(self, report: TestReport) -> bool:
        passed = {case.name for case in report.cases if case.result is CaseResult.PASSED}
        return passed.issuperset(self._suite.expected_names)

    async def _is_as_at_base(self, report: TestReport) -> bool:
        """Returns whether the run shows something, and nothing failed in it that did not fail at the base."""
        if report.green:
            return True
        base = await self._comparable_base(report)
        return base is not None and report.failing_ids <= base.failing_ids

    async def _comparable_base(self, report: TestReport) -> TestReport | None:
        """Returns the run at the base, or None for a run that shows nothing.

        One that broke off is compared where the runner ended in the same way at the base.
        """
        if report.problem is None:
            return await self.at_base()
        if not report.broke_off:
            return None
        base = await self.at_base()
        return base if base.broke_off and base.exit_code == report.exit_code else None

    @property
    def _key(self) -> str:
        return self._stage.environment_key

    async def _run(self, folder: Path, only: Sequence[ReportedCase] = ()) -> TestReport:
        names = () if only else self._suite.expected_names
        report = await self._stage.runner.run(folder, files=None, expected_names=names, only=only, key=self._key)
        self._seconds += report.duration_s
        return report

    async def _red(self, folder: Path, report: TestReport) -> str:
        """Returns why the merged tree is red, "" if only tests fail that failed at the sprint's base commit (C6).

        Tests fixed since then must not fail again: neither the story's own nor those that pass on the result.
        """
        base = await self._comparable_base(report)
        if base is None:
            return f"{summary(report)}\n{report.output[-4000:]}"
        if report.problem is None and base.problem not in {None, RunProblem.NO_TESTS}:
            return f"{summary(report)}; at the base commit {summary(base)}\n{failure_text(report)}"
        known = self._not_own(base.failing_ids, report)
        mended = await self._mended(known & report.failing_ids)
        settled = await self._settled(folder, report, known - mended, unsteady=mended)
        self._flaky = settled.flaky
        if not settled.failed and settled.passed:
            return ""
        return f"{summary(report)}: {', '.join(sorted(settled.failing_ids))}\n{failure_text(settled)}"

    def _not_own(self, failing: frozenset[str], report: TestReport) -> frozenset[str]:
        """Returns the ids without the story's own tests, which pass on its branch."""
        suite = self._suite
        held = {*suite.older_names}
        own = (case for case in report.cases if case.file in suite.files)
        return failing - {case.id for case in own if case.name not in held or case.file != suite.test_file}

    async def _mended(self, failing: frozenset[str]) -> frozenset[str]:
        """Returns those that pass on the current result branch; none when that is unknown."""
        if not failing:
            return failing
        there = await self._at_result()
        return failing & {case.id for case in there.cases if case.result is CaseResult.PASSED}

    async def _settled(
        self, folder: Path, report: TestReport, known: frozenset[str], unsteady: frozenset[str] = frozenset()
    ) -> TestReport:
        """Returns the run without `known` failures; with new ones it is repeated, see `twice`."""
        fresh = report.failing_ids - known
        once = partial(self._run, folder)
        settled = await twice(self._stage, report, once, fresh, unsteady) if fresh else report
        left_out = settled.failing_ids - fresh
        return settled.model_copy(update={"cases": tuple(case for case in settled.cases if case.id not in left_out)})

    async def at_base(self) -> TestReport:
        """Returns the whole suite's report at the sprint's base commit."""
        stage = self._stage
        if stage.older.base is not None:
            return stage.older.base

        async def run(folder: Path) -> TestReport:
            return await stage.runner.run(folder, files=None, key=f"{stage.brief.sprint}-base")

        report = await stage.workspace.base_tree(run)
        if report.problem in {None, RunProblem.NO_TESTS} or report.broke_off:
            stage.older.base = report
        return report

    async def _before(self) -> Tests | str:
        """Returns the tests of the current result branch; or, for people, why they are not known."""
        progress = self._progress
        here = await self._stage.workspace.result_head()
        if here == progress.branch.base and not holds_tests(progress.surface.files):
            return {}
        there = await self._at_result()
        if there.problem not in {None, RunProblem.NO_TESTS} and not there.broke_off:
            return f"{there.problem}: {there.output[-500:].strip()}"
        return ran(there)

    async def _at_result(self) -> TestReport:
        stage = self._stage
        return await stage.older.at_result(stage.workspace, stage.runner, key=f"{stage.brief.sprint}-base")

    def told(self, result: MergeResult) -> MergeResult:
        """Returns the result with facts about older tests."""
        learned = {
            "vanished": self._vanished, "older_unknown": self._unknown, "flaky": self._flaky, "tested": self._tested,
            "seconds": self._seconds,
        }  # fmt: skip
        return result.model_copy(update=learned)
