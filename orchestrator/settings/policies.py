"""The part of the settings that is frozen with a story when it begins, and the loops that it bounds."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import Field
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt, stop_never
from tenacity.stop import stop_base

from orchestrator.core.command import Loop
from orchestrator.settings.model import (
    AmendmentSettings,
    AnswerSettings,
    BuildSettings,
    GateSettings,
    PlanSettings,
    ReviewSettings,
    Settings,
    TestSettings,
    WireFormat,
)
from orchestrator.settings.sections import Section


class Policies(Section):
    """The budgets of a story's loops; part of its workflow's frozen input, so that a continued run keeps them."""

    answer: AnswerSettings = AnswerSettings()
    plan: PlanSettings = PlanSettings()
    gate: GateSettings = GateSettings()
    build: BuildSettings = BuildSettings()
    amendment: AmendmentSettings = AmendmentSettings()
    review: ReviewSettings = ReviewSettings()
    test: TestSettings = TestSettings()
    context_tokens: int = 24000
    looks: int = 0
    """Looks of one turn that cost no attempt."""
    formats: dict[str, WireFormat] = Field(default_factory=dict)
    """Persona → how its files are asked for; `auto` for one that is not named."""
    stronger: tuple[str, ...] = ()
    """Personas that have a stronger model."""
    pushed: bool = True
    """Whether results are pushed, so that people are asked about what nobody would look at before it counts."""
    own_reviews: dict[str, int] = Field(default_factory=dict)
    """Reviewer → reviews of one task; `review.max_iterations` for one that is not named."""

    @classmethod
    def of(
        cls, settings: Settings, formats: Mapping[str, WireFormat] | None = None, stronger: Sequence[str] = ()
    ) -> "Policies":
        """Returns the part of `settings` that must not change in a running story; the caller works the others out."""
        names = ("answer", "gate", "build", "amendment", "review", "test")
        return cls(
            **{name: getattr(settings, name) for name in names},
            plan=settings.plan.model_copy(update={"max_iterations": settings.most_plans}),
            own_reviews=settings.own_reviews,
            context_tokens=settings.prompts.context_tokens,
            looks=settings.look.max_per_turn,
            formats=dict(formats or {}),
            stronger=tuple(stronger),
            pushed=settings.serve.push_to is not None,
        )

    def may_plan(self, persona: str) -> bool:
        """Returns whether a persona may be asked for files as an action plan."""
        return self.formats.get(persona, "auto") != "json"

    def reviews_of(self, reviewer: str) -> int:
        """Returns how many reviews of a task a reviewer may send it back in."""
        return self.own_reviews.get(reviewer, self.review.max_iterations)

    @property
    def most_reviews(self) -> int:
        """Returns how many reviews of one task there are at most."""
        return max(map(self.reviews_of, self.review.names), default=self.review.max_iterations)

    def loop(
        self,
        name: Loop,
        again: Callable[[Any], bool],
        *,
        left: Callable[[], int] | None = None,
        before_next: Callable[[RetryCallState], Awaitable[None]] | None = None,
    ) -> AsyncRetrying:
        """Returns the loop of this name: another round while `again` says so of the result and the budget lasts.

        The last result counts either way. `left` is what remains of the budget where a round may cost more than one
        unit of it, or a person may add to it. Make a new one per loop: it holds the state of its rounds.
        """
        # The first reply of an answer is no attempt to mend it.
        most = {
            Loop.ANSWER: 1 + self.answer.max_attempts,
            Loop.PLAN: self.plan.max_iterations,
            Loop.BUILD: self.build.max_attempts,
            Loop.REVIEW: self.most_reviews,
            Loop.TEST: self.test.max_attempts,
        }
        stop: stop_base = stop_after_attempt(most[name]) if name in most else stop_never
        return AsyncRetrying(
            name=name,
            # Workflows are replayed: without sleep, jitter and clock their steps keep their order.
            sleep=_no_sleep,
            stop=stop if left is None else lambda _: left() < 1,
            retry=retry_if_result(again),
            before_sleep=before_next,
            retry_error_callback=result_of,
        )


async def _no_sleep(_seconds: float) -> None:
    """The next round begins at once."""


def result_of(state: RetryCallState) -> Any:
    """Returns what the last round returned; raises what it raised."""
    assert state.outcome is not None
    return state.outcome.result()
