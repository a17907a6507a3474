"""Merging a finished story: the contract on the whole diff, then the whole suite on the merged tree (DESIGN 5.8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.contract.enforce import check_diff
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.decisions import Loop, Verdict, decided
from orchestrator.domain.events import Level
from orchestrator.domain.findings import Finding, blocking, critical, major, minor
from orchestrator.domain.gitfacts import MergeResult
from orchestrator.domain.status import StoryStatus
from orchestrator.domain.testing import RunProblem, TestReport, TestSuite
from orchestrator.sprint.context import Progress, Stage, StoryStopped
from orchestrator.sprint.older_tests import Tests, holds_tests, told, vanished
from orchestrator.sprint.trial import failure_text, summary

FindingList = list[Finding]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """Which try of a story's merge this is, and what a person has said about it."""

    attempt: int = 1
    requests_left: int = 0
    """How often the developer may still be asked."""
    may_go: frozenset[str] = frozenset()
    """Older tests that need not run any more."""


async def check_final_diff(
    stage: Stage, progress: Progress, contract: ArchitectureContract, suite_files: frozenset[str]
) -> Sequence[Finding]:
    """The contract on what really is in the tree, against the story's base."""

    async def work(_step_id: str) -> FindingList:
        entries = await stage.workspace.diff(stage.story_id)
        paths = [entry.path for entry in entries]
        after = await stage.workspace.read(stage.story_id, paths)
        before = await stage.workspace.read_base(stage.story_id, paths)
        return list(check_diff(contract, entries, after=after, before=before, suite_files=suite_files))

    found = await stage.step.step("check_diff", work, FindingList)
    blocked = blocking(found)
    why = f"does not keep to the contract: {blocked[0].message}" if blocked else "keeps to the contract"
    await stage.step.emit(
        "diff_checked", f"the whole diff {why}", level=Level.WARN if blocked else Level.DEBUG,
        **decided(Loop.MERGE, Verdict.REFUSED if blocked else Verdict.ACCEPTED, findings=found, attempt=1,
                  budget_left=0),
    )  # fmt: skip
    return found


def stop_on(violations: Sequence[Finding]) -> None:
    """A violation in the tree fails the story hard."""
    found = blocking(violations)
    if found:
        raise StoryStopped(StoryStatus.FAILED, found)


async def merge_story(stage: Stage, progress: Progress, plan: Breakdown, suite: TestSuite, tried: Tried) -> MergeResult:
    """Merge into the result branch, or say why not."""

    async def work(step_id: str) -> MergeResult:
        note = stage.note(f"Merge {stage.story_id}: {stage.brief.story.title}", step_id)
        regression = _Regression(stage, progress, plan, suite, tried.may_go)
        result = await stage.workspace.merge(stage.story_id, note, regression.check)
        return regression.told(result)

    result = await stage.step.step("merge", work, MergeResult)
    said = merge_notes(result) if result.merged else [merge_finding(result)]
    await stage.step.emit(
        "story_merged" if result.merged else "merge_refused",
        f"merged as {result.commit[:10]}" if result.merged else f"not merged: {said[0].message}",
        level=Level.INFO if result.merged else Level.WARN,
        commit=result.commit,
        **decided(
            Loop.MERGE, verdict_of(result), findings=said, attempt=tried.attempt, budget_left=tried.requests_left
        ),
    )
    return result


def verdict_of(result: MergeResult) -> Verdict:
    """What became of a merge, in one word."""
    if result.merged:
        return Verdict.MERGED
    if result.vanished:
        return Verdict.VANISHED
    return Verdict.CONFLICT if result.conflicts else Verdict.RED


class _Regression:
    """The whole suite on one merged tree: not worse than at the base commit, and nothing that ran before is gone."""

    def __init__(
        self, stage: Stage, progress: Progress, plan: Breakdown, suite: TestSuite, may_go: frozenset[str]
    ) -> None:
        self._stage, self._progress, self._suite, self._may_go = stage, progress, suite, may_go
        self._changed = {change.file for change in plan.tests_to_change}
        self._report: TestReport | None = None
        self._vanished: tuple[str, ...] = ()
        self._unknown = ""

    async def check(self, folder: Path) -> str:
        """Why the merged tree is turned down, or ""."""
        stage, names = self._stage, self._suite.expected_names
        self._report = report = await stage.runner.run(
            folder, files=None, expected_names=names, key=f"{stage.brief.sprint}-merge"
        )
        red = "" if report.green else await _worse_than_base(stage, report)
        if red:
            return red
        before = await self._before()
        if isinstance(before, str):
            self._unknown = before
            return ""
        gone = vanished(before, report, self._changed)
        self._vanished = tuple(test for test in gone if test not in self._may_go)
        return f"older tests do not run any more: {told(self._vanished)}" if self._vanished else ""

    async def _before(self) -> Tests | str:
        stage, progress = self._stage, self._progress
        here = await stage.workspace.result_head()
        if here == progress.branch.base and not holds_tests(progress.surface.files):
            return {}
        return await stage.older.at_result(stage.workspace, stage.runner, key=f"{stage.brief.sprint}-base")

    def told(self, result: MergeResult) -> MergeResult:
        """The result with what was learned about older tests; what ran is kept for the next merge."""
        if result.merged and self._report is not None:
            self._stage.older.note(result.commit, self._report)
        return result.model_copy(update={"vanished": self._vanished, "older_unknown": self._unknown})


async def _worse_than_base(stage: Stage, report: TestReport) -> str:
    """Why the merged tree is red, "" when it only fails what failed at the sprint's base commit already (C6)."""
    if report.problem is not None:
        return f"{summary(report)}\n{report.output[-4000:]}"

    async def at_base(folder: Path) -> TestReport:
        return await stage.runner.run(folder, files=None, key=f"{stage.brief.sprint}-base")

    base = await stage.workspace.base_tree(at_base)
    if base.problem not in {None, RunProblem.NO_TESTS}:
        return f"{summary(report)}; at the base commit {summary(base)}\n{failure_text(report)}"
    fresh = report.failing_ids - base.failing_ids
    if not fresh and report.passed:
        return ""
    return f"{summary(report)}: {', '.join(sorted(fresh))}\n{failure_text(report)}"


def merge_notes(result: MergeResult) -> list[Finding]:
    """What a merge could not look at."""
    if not result.older_unknown:
        return []
    message = f"which tests ran before the merge is not known: {result.older_unknown}"
    return [minor("merge.older_tests_unknown", message, fix="see that the whole suite can run before the sprint")]


def merge_finding(result: MergeResult) -> Finding:
    """The finding of a merge that was refused."""
    if result.vanished:
        return major(
            "merge.vanished_tests",
            f"tests that ran before do not run on the merged tree: {told(result.vanished)}",
            fix="look for what hides or removes them (settings of the test runner, imports, skips) and mend the branch "
            "by hand, or reset the story; a plan that means it lists their files under tests_to_change",
        )
    if result.conflicts:
        return critical(
            "merge.conflict",
            f"the branch and what was merged before it both change {', '.join(result.conflicts)}",
            fix="merge the story's branch by hand, or reset the story so that it is built on the result",
        )
    return major(
        "merge.red",
        f"the tests fail on the merged tree: {result.red}",
        fix="look at both stories; reset this one so that it is built on the result",
    )
