"""The stages of an analysis, side by side as far as they may (engine-free)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from orchestrator.domain.analysis import StagePrompt, StageResult, StageStatus
from orchestrator.domain.findings import Where, major

AskStage = Callable[[StagePrompt, Sequence[StageResult]], Awaitable[StageResult]]
"""(prompt, what earlier stages gave) → what it gives. Raises nothing for what a model or a provider does."""


async def run_stages(
    prompts: Sequence[StagePrompt], ask: AskStage, *, at_once: int, stop_after: int, warm: bool = False
) -> tuple[StageResult, ...]:
    """Every stage's result, in the order of `prompts`; those that were not begun say why.

    One stage goes ahead, unless the provider is `warm`: what all prompts begin with is then in the provider's cache. A
    stage that asks for earlier findings waits for all stages before it. After `stop_after` failures in a row (0:
    never), or one that concerns every stage, none is begun any more; while there are some, never more than are left
    are in flight, so that a provider that is down is asked no more often than that.
    """
    stages = _Stages(prompts, at_once, stop_after, warm)
    running: dict[asyncio.Task[StageResult], int] = {}
    try:
        while True:
            while (at := stages.next(len(running))) is not None:
                earlier = [stages.results[one] for one in range(at)] if prompts[at].history else []
                running[asyncio.ensure_future(ask(prompts[at], earlier))] = at
            if not running:
                return stages.all()
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=lambda task: running[task]):
                stages.ended(running.pop(task), task.result())
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class _Stages:
    """Which stage may begin next."""

    def __init__(self, prompts: Sequence[StagePrompt], at_once: int, stop_after: int, warm: bool) -> None:
        self._prompts, self._at_once, self._stop_after = prompts, at_once, stop_after
        self._open = list(range(len(prompts)))
        self._warm = warm
        self._failures = 0
        self._stopped = ""
        self.results: dict[int, StageResult] = {}

    def next(self, running: int) -> int | None:
        """The place of a stage that may begin now; it counts as begun."""
        if self._stopped or running >= self._limit():
            return None
        for at in self._open:
            if not self._prompts[at].history or all(one in self.results for one in range(at)):
                self._open.remove(at)
                return at
        return None

    def ended(self, at: int, result: StageResult) -> None:
        """A stage has its result."""
        self.results[at], self._warm = result, True
        self._failures = self._failures + 1 if result.failed else 0
        if result.stop:
            self._stopped = f"{result.id} failed for a reason that concerns every stage"
        elif self._stop_after and self._failures >= self._stop_after:
            self._stopped = f"{self._failures} stages failed in a row (analysis.stop_after_failures)"

    def _limit(self) -> int:
        if not self._warm:
            return 1
        return (
            min(self._at_once, self._stop_after - self._failures)
            if self._failures and self._stop_after
            else self._at_once
        )

    def all(self) -> tuple[StageResult, ...]:
        """All results in order."""
        return tuple(self.results.get(at) or self._not_begun(prompt) for at, prompt in enumerate(self._prompts))

    def _not_begun(self, prompt: StagePrompt) -> StageResult:
        message = f"{prompt.id} was not begun: {self._stopped}"
        fix = "remove the cause; the same command goes on with the stages that are missing"
        said = major("stage.not_begun", message, where=Where(task=prompt.id), fix=fix)
        return StageResult(id=prompt.id, goal=prompt.goal, status=StageStatus.NOT_BEGUN, findings=(said,))
