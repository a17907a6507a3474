"""The end of a green story: merged, or resolved once by the developer and tested again, or put to a person (C5)."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.command import Choice, Loop
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import MergeResult, Sides
from orchestrator.core.errors import BudgetExceeded, ProviderError
from orchestrator.core.finding import Finding, minor
from orchestrator.core.sprint import StoryStatus
from orchestrator.story import gate as gates
from orchestrator.story.context import Progress, Stage, StoryStopped, Trial, failure_text, summary
from orchestrator.story.merge import Tried, check_final_diff, merge_finding, merge_story, stop_on
from orchestrator.story.older_tests import told
from orchestrator.story.resolution import Resolution, look, out_of_reach
from orchestrator.story.suite_runs import run_again

REQUESTS = 1
"""How often the developer is asked about a story's merge, unless a person wants it once more (decisions.md#retries)."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A merge that did not come about."""

    result: MergeResult
    sides: Sides

    @property
    def finding(self) -> Finding:
        """Why, for people."""
        return merge_finding(self.result)


class Merging:
    """Brings one story into the result. Its branch moves only by a resolution, which takes the result in."""

    def __init__(
        self, stage: Stage, progress: Progress, plan: Breakdown, contract: ArchitectureContract, trial: Trial
    ) -> None:
        self._stage, self._progress, self._plan = stage, progress, plan
        self._contract, self._trial = contract, trial
        self._requests, self._tries = REQUESTS, 0
        self._can_ask = True
        self._refusal: Refused | None = None
        self._may_go: frozenset[str] = frozenset()
        self._said: tuple[Finding, ...] = ()

    async def run(self) -> MergeResult:
        """The merge. Raises StoryStopped: needs_attention (nobody resolved it), failed (outside the contract)."""
        loop = self._stage.policies.loop(Loop.MERGE, lambda tried: isinstance(tried, Refused))
        merged: MergeResult = await loop(self._next)
        return merged

    async def _next(self) -> MergeResult | Refused:
        """The first try; after one that was refused, another with the developer's resolution or a person's word."""
        if self._refusal is None:
            tried = await self._try()
        else:
            why_not = out_of_reach(self._refusal.sides, self._contract)
            self._progress.note_findings([_not_for_the_developer(why_not)] if why_not else [])
            reachable = self._can_ask and not why_not
            if reachable and self._requests > 0:
                tried = await self._resolve(self._refusal)
            else:
                tried = await self._ask(self._refusal, reachable=reachable)
        self._refusal = tried if isinstance(tried, Refused) else None
        return tried

    async def _try(self) -> MergeResult | Refused:
        """Under the lock, on the result as it is now: others may have been merged since the last try."""
        self._tries += 1
        result = await merge_story(self._stage, self._progress, self._plan, self._trial.suite, self._tried)
        return result if result.merged else await self._refused(result)

    @property
    def _tried(self) -> Tried:
        return Tried(attempt=self._tries, requests_left=self._requests, may_go=self._may_go)

    async def _refused(self, result: MergeResult) -> Refused:
        return Refused(result=result, sides=await look(self._stage, result.onto))

    async def _resolve(self, refused: Refused) -> MergeResult | Refused:
        """What the developer makes of it, on the story's branch, tested like any work of the story."""
        self._requests -= 1
        request = Resolution(
            self._stage, self._progress, self._plan, self._contract, refused.sides, refused.result, self._tried
        )
        try:
            asked = await request.ask(self._said)
        except ProviderError as error:
            return self._not_asked(refused, error)
        self._said = asked.refused
        if asked.contract is None:
            return refused
        self._contract = asked.contract
        suite = frozenset(self._trial.suite.files)
        stop_on(await check_final_diff(self._stage, self._progress, self._contract, suite))
        red = await self._own_suite()
        if not red:
            return await self._try()
        return await self._refused(MergeResult(merged=False, red=red, onto=refused.result.onto))

    def _not_asked(self, refused: Refused, error: ProviderError) -> Refused:
        """The story is whole without an answer: it waits for a person. A refused key concerns the whole sprint."""
        if error.kind == "auth":
            self._progress.note_findings([refused.finding])
            raise error
        # Nobody is offered what the story's calls do not reach for any more.
        self._can_ask = not isinstance(error, BudgetExceeded)
        fix = "remove the cause; the story itself is finished"
        self._progress.note_findings([minor(error.code, error.message, fix=fix)])
        return refused

    async def _own_suite(self) -> str:
        """Why the story's own suite is red on its branch now, ""; the report tells this run."""
        report = await run_again(self._stage, self._plan, self._trial)
        self._progress.trial = Trial(suite=self._trial.suite, report=report, attempts=self._trial.attempts)
        return "" if report.green else f"the story's own: {summary(report)}\n{failure_text(report)}"

    async def _ask(self, refused: Refused, *, reachable: bool) -> MergeResult | Refused:
        """What a person says. Raises StoryStopped when nobody is to be asked, or when it stays where it is."""
        if self._stage.policies.gate.mode == "auto":
            raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [refused.finding])
        vanished = refused.result.vanished
        gate = gates.merge_gate(
            self._plan, refused.finding, branch=self._progress.branch.name, iteration=self._tries,
            vanished=bool(vanished), asked=reachable,
        )  # fmt: skip
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


def _not_for_the_developer(why: str) -> Finding:
    message = f"the developer was not asked to bring both sides together: {why}"
    return minor("merge.not_asked", message, fix="look at both branches; a person decides this one")


def _let_go(tests: Sequence[str], by: str) -> Finding:
    message = f"{by} let tests go that ran before: {told(tests)}"
    return minor("merge.tests_let_go", message, fix="see that what they showed is shown elsewhere, or no longer meant")
