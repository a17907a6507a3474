"""Merging a finished story: the contract on the whole diff, then the whole suite on the merged tree (DESIGN 5.8)."""

from collections.abc import Sequence
from pathlib import Path

from orchestrator.contract.enforce import check_diff
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.events import Level
from orchestrator.domain.findings import Finding, critical, major
from orchestrator.domain.gitfacts import MergeResult
from orchestrator.domain.testing import RunProblem, TestReport, TestSuite
from orchestrator.sprint.context import Progress, Stage
from orchestrator.sprint.trial import failure_text, summary

FindingList = list[Finding]


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

    return await stage.step.step("check_diff", work, FindingList)


async def merge_story(stage: Stage, suite: TestSuite) -> MergeResult:
    """Merge into the result branch, or say why not."""

    async def work(step_id: str) -> MergeResult:
        note = stage.note(f"Merge {stage.story_id}: {stage.brief.story.title}", step_id)
        return await stage.workspace.merge(stage.story_id, note, check)

    async def check(folder: Path) -> str:
        key = f"{stage.brief.sprint}-merge"
        report = await stage.runner.run(folder, files=None, expected_names=suite.expected_names, key=key)
        if report.green:
            return ""
        return await _worse_than_base(stage, report)

    result = await stage.step.step("merge", work, MergeResult)
    await stage.step.emit(
        "story_merged" if result.merged else "merge_refused",
        f"merged as {result.commit[:10]}" if result.merged else f"not merged: {merge_finding(result).message}",
        level=Level.INFO if result.merged else Level.WARN,
        commit=result.commit,
    )
    return result


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


def merge_finding(result: MergeResult) -> Finding:
    """The finding of a merge that was refused."""
    if result.conflicts:
        return critical(
            "merge.conflict",
            f"the branch and what was merged before it both change {', '.join(result.conflicts)}",
            fix="merge the story's branch by hand, or reset the story so that it is built on the result",
        )
    return major(
        "merge.red",
        f"the whole suite fails on the merged tree: {result.red}",
        fix="look at both stories; reset this one so that it is built on the result",
    )
