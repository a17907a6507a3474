"""Merges a green story; otherwise has the developer resolve it once and tests again, or asks a person (C5)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from orchestrator.checks.kept_tests import lost_parts
from orchestrator.checks.suite import names_of_tests
from orchestrator.contract.enforce import FOR_PEOPLE, WHERE_PUSHED, check_diff
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.command import Choice, Loop, Verdict
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import MergeResult, Sides
from orchestrator.core.errors import BudgetExceeded, ProviderError
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, blocking, critical, major, minor, questions
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import TestSuite
from orchestrator.core.value import listed
from orchestrator.story import gate as gates
from orchestrator.story.context import Progress, Stage, StoryStopped, Trial, failure_text, summary
from orchestrator.story.older_tests import NAMED
from orchestrator.story.regression import Regression, merge_note
from orchestrator.story.resolution import Resolution, out_of_reach
from orchestrator.story.suite_runs import flaky_findings, run_again

FindingList = list[Finding]


async def check_final_diff(
    stage: Stage, progress: Progress, contract: ArchitectureContract, suite_files: frozenset[str]
) -> Sequence[Finding]:
    """Checks the contract on the actual diff of the tree against the story's base."""

    async def work(_step_id: str) -> FindingList:
        entries = await stage.workspace.diff(stage.story_id)
        paths = [entry.path for entry in entries]
        after = await stage.workspace.read(stage.story_id, paths)
        before = await stage.workspace.read_base(stage.story_id, paths)
        followed = {path for path, text in progress.locks.items() if after.get(path) == text}
        ours = suite_files | followed
        installed = progress.installed
        return await asyncio.to_thread(check_diff, contract, entries, after, before, ours, installed)

    found = await stage.step.step("check_diff", work, FindingList)
    blocked = blocking(found)
    why = f"does not keep to the contract: {blocked[0].message}" if blocked else "keeps to the contract"
    await stage.decide(
        "diff_checked", f"the whole diff {why}", Loop.MERGE, Verdict.REFUSED if blocked else Verdict.ACCEPTED,
        findings=found, attempt=1, left=0, level=Level.WARN if blocked else Level.DEBUG,
    )  # fmt: skip
    return found


async def ask_person(stage: Stage, progress: Progress, plan: Breakdown, found: Sequence[Finding]) -> None:
    """Asks about settings of tests and of git in the diff; where results are pushed also about pipelines, files that
    run unasked and hidden text. What is not asked stands in the report.

    Raises StoryStopped unless a person allows it; the work stays on its branch.
    """
    granted = frozenset() if stage.policies.pushed else WHERE_PUSHED
    asked = [one for one in questions(found) if one.code in FOR_PEOPLE - granted]
    progress.note_findings([one for one in questions(found) if one.code in granted])
    if not asked:
        return
    message = "; ".join(one.message for one in asked)
    fix = "look at the branch and merge it by hand"
    open_question = major("contract.ci", message, where=asked[0].where, fix=fix)
    if stage.policies.gate.mode == "auto":
        raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [open_question])
    gate = gates.merge_gate(plan, open_question, branch=progress.branch.name, iteration=1, vanished=True, asked=False)
    answer = await gates.ask(stage, gate, 0)
    if not gates.approves(stage, gate, answer):
        raise gates.stopped(stage, gate, answer)


def stop_on(violations: Sequence[Finding]) -> None:
    """Raises StoryStopped with status failed when the tree violates the contract."""
    found = blocking(violations)
    if found:
        raise StoryStopped(StoryStatus.FAILED, found)


def merge_notes(result: MergeResult) -> list[Finding]:
    """Returns findings on older tests that a merge could not compare, and on flaky tests."""
    flaky = flaky_findings(result.flaky)
    if not result.older_unknown:
        return flaky
    message = f"which tests ran before the merge is not known: {result.older_unknown}"
    return [
        *flaky,
        minor("merge.older_tests_unknown", message, fix="see that the whole suite can run before the sprint"),
    ]


def merge_finding(result: MergeResult) -> Finding:
    """Returns the finding on a refused merge."""
    if result.vanished:
        return major(
            "merge.vanished_tests",
            f"tests that ran before do not run on the merged tree: {listed(result.vanished, NAMED)}",
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


REQUESTS = 1
"""Requests to the developer about a story's merge, unless a person asks for another (decisions.md#retries)."""


class Refused(NamedTuple):
    """A refused merge, with both sides as git sees them."""

    result: MergeResult
    sides: Sides


class Merging:
    """Merges one story into the result. Its branch moves only by a resolution, which merges the result into it."""

    def __init__(
        self, stage: Stage, progress: Progress, plan: Breakdown, contract: ArchitectureContract, trial: Trial
    ) -> None:
        self._stage, self._progress, self._plan = stage, progress, plan
        self._contract, self._trial = contract, trial
        self._requests, self._tries = REQUESTS, 0
        self._can_ask = True
        self._refused: Refused | None = None
        self._may_go: frozenset[str] = frozenset()
        """Older tests that a person allowed to vanish."""
        self._said: tuple[Finding, ...] = ()
        """Shown in the next request: why the last answer was refused, and a person's comment."""

    async def run(self) -> MergeResult:
        """Returns the merge. Raises StoryStopped: needs_attention (unresolved), failed (outside the contract)."""
        loop = self._stage.policies.loop(Loop.MERGE, lambda tried: isinstance(tried, Refused))
        merged: MergeResult = await loop(self._next)
        return merged

    async def _next(self) -> MergeResult | Refused:
        """Tries to merge; after a refusal tries again with the developer's resolution or a person's answer."""
        refused = self._refused
        if refused is None:
            tried = await self._try()
        else:
            why_not = out_of_reach(self._stage, refused.sides, self._contract)
            self._progress.note_findings([_not_for_the_developer(why_not)] if why_not else [])
            reachable = self._can_ask and not why_not
            # Without another side there is nothing to bring together, unless a person says what to change.
            called_for = refused.sides.merged or refused.sides.conflicts or self._said
            ask = reachable and self._requests > 0 and bool(called_for)
            tried = await (self._resolve(refused) if ask else self._ask(refused, reachable=reachable))
        self._refused = tried if isinstance(tried, Refused) else None
        return tried

    async def _try(self) -> MergeResult | Refused:
        """Merges into the current result, which may include stories merged since the last try."""
        stage = self._stage
        self._tries += 1

        async def work(_step_id: str) -> MergeResult:
            note = merge_note(stage)
            # An older test of the suite's file that passes on the branch may not fail again.
            held = {"older_names": self._trial.report.older_failing}
            suite = self._trial.suite.model_copy(update=held)
            regression = Regression(stage, self._progress, self._plan, suite, self._may_go)
            merged = await stage.workspace.merge(stage.story_id, note, regression.check, regression.test)
            return regression.told(merged)

        result = await stage.step.step("merge", work, MergeResult)
        said = merge_notes(result) if result.merged else [merge_finding(result)]
        await stage.decide(
            "story_merged" if result.merged else "merge_refused",
            f"merged as {result.commit[:10]}" if result.merged else f"not merged: {said[0].message}",
            Loop.MERGE,
            _verdict(result),
            findings=said,
            attempt=self._tries,
            left=self._requests,
            level=Level.INFO if result.merged and not result.flaky else Level.WARN,
            commit=result.commit,
            tested=result.tested,
            duration_ms=round(result.seconds * 1000),
        )
        return result if result.merged else await self._refusal(result)

    async def _refusal(self, result: MergeResult) -> Refused:
        stage = self._stage
        return Refused(result, await stage.do("sides", Sides, stage.workspace.sides, stage.story_id, result.onto))

    async def _resolve(self, refused: Refused) -> MergeResult | Refused:
        """Has the developer resolve both sides on the story's branch, and tests the result like other work."""
        self._requests -= 1
        request = Resolution(self._stage, self._progress, self._plan, self._contract, refused.sides, refused.result.red)
        try:
            resolved = await request.ask(self._said, attempt=self._tries, left=self._requests)
        except ProviderError as error:
            return self._not_asked(refused, error)
        if not isinstance(resolved, ArchitectureContract):
            self._said = resolved
            return refused
        self._said, self._contract = (), resolved
        suite = frozenset(self._trial.suite.files)
        stop_on(await check_final_diff(self._stage, self._progress, self._contract, suite))
        self._trial = replace(self._trial, suite=await self._suite_as_merged())
        report = await run_again(self._stage, self._plan, self._trial)
        self._progress.trial = replace(self._trial, report=report, broken=None)
        if report.green:
            return await self._try()
        red = f"the story's own: {summary(report)}\n{failure_text(report)}"
        return await self._refusal(MergeResult(merged=False, red=red, onto=refused.result.onto))

    async def _suite_as_merged(self) -> TestSuite:
        """Returns the suite with what others added to its files meanwhile, which is not its own."""
        suite = self._trial.suite
        there = await self._stage.read(suite.files)
        grown: dict[str, str] = {
            change.path: text
            for change in suite.changes
            if (text := there.get(change.path, change.content)) != change.content
            and not lost_parts(change.path, change.content, text)
        }
        changed = [
            change.model_copy(update={"content": grown.get(change.path, change.content)}) for change in suite.changed
        ]
        text = grown.get(suite.test_file, suite.test_content)
        own = {*suite.expected_names, *suite.older_names}
        theirs = tuple(name for name in names_of_tests(suite.test_file, text) if name not in own)
        return suite.model_copy(
            update={"test_content": text, "changed": tuple(changed), "older_names": (*suite.older_names, *theirs)}
        )

    def _not_asked(self, refused: Refused, error: ProviderError) -> Refused:
        """Lets the finished story wait for a person."""
        # A person is not offered a request that the story's remaining calls cannot pay for.
        self._can_ask = not isinstance(error, BudgetExceeded)
        fix = "remove the cause; the story itself is finished"
        self._progress.note_findings([minor(error.code, error.message, fix=fix)])
        return refused

    async def _ask(self, refused: Refused, *, reachable: bool) -> MergeResult | Refused:
        """Asks a person. Raises StoryStopped when gates are off, or when the story stays unmerged."""
        finding, vanished = merge_finding(refused.result), refused.result.vanished
        if self._stage.policies.gate.mode == "auto":
            raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [finding])
        gate = gates.merge_gate(
            self._plan,
            finding,
            branch=self._progress.branch.name,
            iteration=self._tries,
            vanished=bool(vanished),
            asked=reachable,
        )
        answer = await gates.ask(self._stage, gate, self._requests)
        if answer.choice in {Choice.CANCEL, Choice.TIME_OUT}:
            raise gates.stopped(self._stage, gate, answer)
        if answer.choice not in gate.choices:
            return refused
        if answer.choice is Choice.APPROVE:
            self._may_go |= set(vanished)
            self._progress.note_findings([_let_go(vanished, answer.by)])
        else:
            self._requests += 1
            self._said = (gates.comment_finding(self._stage.story_id, answer), *self._said)
        return await self._try()


def _verdict(result: MergeResult) -> Verdict:
    if result.merged:
        return Verdict.MERGED
    if result.vanished:
        return Verdict.VANISHED
    return Verdict.CONFLICT if result.conflicts else Verdict.RED


def _not_for_the_developer(why: str) -> Finding:
    message = f"the developer was not asked to bring both sides together: {why}"
    return minor("merge.not_asked", message, fix="look at both branches; a person decides this one")


def _let_go(tests: Sequence[str], by: str) -> Finding:
    message = f"{by} let tests go that ran before: {listed(tests, NAMED)}"
    return minor("merge.tests_let_go", message, fix="see that what they showed is shown elsewhere, or no longer meant")
