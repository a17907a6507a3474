"""Merging a finished story: the contract on the whole diff, then the whole suite on the merged tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.contract.enforce import FOR_PEOPLE, check_diff
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import MergeResult
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, blocking, critical, major, minor, questions
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import TestSuite
from orchestrator.story import gate as gates
from orchestrator.story.context import Progress, Stage, StoryStopped
from orchestrator.story.older_tests import told
from orchestrator.story.regression import Regression
from orchestrator.story.suite_runs import flaky_findings

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
        followed = {path for path, text in progress.locks.items() if after.get(path) == text}
        ours = suite_files | followed
        installed = progress.installed
        return list(check_diff(contract, entries, after=after, before=before, suite_files=ours, installed=installed))

    found = await stage.step.step("check_diff", work, FindingList)
    blocked = blocking(found)
    why = f"does not keep to the contract: {blocked[0].message}" if blocked else "keeps to the contract"
    await stage.decide(
        "diff_checked", f"the whole diff {why}", Loop.MERGE, Verdict.REFUSED if blocked else Verdict.ACCEPTED,
        findings=found, attempt=1, left=0, level=Level.WARN if blocked else Level.DEBUG,
    )  # fmt: skip
    return found


async def ask_person(stage: Stage, plan: Breakdown, branch: str, found: Sequence[Finding]) -> None:
    """Ask about settings of tests and of git in the diff, and about pipelines, unless `contract.ci` allows those.

    Raises StoryStopped where nobody allows it: the work stays on its branch.
    """
    granted = {"contract.ci"} if stage.policies.contract.ci == "allow" else set()
    asked = [one for one in questions(found) if one.code in FOR_PEOPLE - granted]
    if not asked:
        return
    message = "; ".join(one.message for one in asked)
    fix = "look at the branch and merge it by hand; for pipelines contract.ci may be set to allow and the story `reset`"
    open_question = major("contract.ci", message, where=asked[0].where, fix=fix)
    if stage.policies.gate.mode == "auto":
        raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [open_question])
    gate = gates.merge_gate(plan, open_question, branch=branch, iteration=1, vanished=True, asked=False)
    answer = await gates.ask(stage, gate, 0)
    if not gates.approves(stage, gate, answer):
        raise gates.stopped(stage, gate, answer)


def stop_on(violations: Sequence[Finding]) -> None:
    """A violation in the tree fails the story hard."""
    found = blocking(violations)
    if found:
        raise StoryStopped(StoryStatus.FAILED, found)


async def merge_story(stage: Stage, progress: Progress, plan: Breakdown, suite: TestSuite, tried: Tried) -> MergeResult:
    """Merge into the result branch, or say why not."""

    async def work(step_id: str) -> MergeResult:
        note = stage.note(f"Merge {stage.story_id}: {stage.brief.story.title}", step_id)
        regression = Regression(stage, progress, plan, suite, tried.may_go)
        result = await stage.workspace.merge(stage.story_id, note, regression.check)
        return regression.told(result)

    result = await stage.step.step("merge", work, MergeResult)
    said = merge_notes(result) if result.merged else [merge_finding(result)]
    await stage.decide(
        "story_merged" if result.merged else "merge_refused",
        f"merged as {result.commit[:10]}" if result.merged else f"not merged: {said[0].message}",
        Loop.MERGE,
        verdict_of(result),
        findings=said,
        attempt=tried.attempt,
        left=tried.requests_left,
        level=Level.INFO if result.merged else Level.WARN,
        commit=result.commit,
    )
    return result


def verdict_of(result: MergeResult) -> Verdict:
    """What became of a merge, in one word."""
    if result.merged:
        return Verdict.MERGED
    if result.vanished:
        return Verdict.VANISHED
    return Verdict.CONFLICT if result.conflicts else Verdict.RED


def merge_notes(result: MergeResult) -> list[Finding]:
    """What a merge could not look at, and what it took for flaky."""
    flaky = flaky_findings(result.flaky)
    if not result.older_unknown:
        return flaky
    message = f"which tests ran before the merge is not known: {result.older_unknown}"
    return [
        *flaky,
        minor("merge.older_tests_unknown", message, fix="see that the whole suite can run before the sprint"),
    ]


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
