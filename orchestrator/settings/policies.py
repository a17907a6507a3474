"""The part of the settings that is frozen with a story when it begins."""

from collections.abc import Mapping, Sequence

from pydantic import Field

from orchestrator.settings.model import (
    AmendmentSettings,
    AnswerSettings,
    BuildSettings,
    ContractSettings,
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
    contract: ContractSettings = ContractSettings()
    review: ReviewSettings = ReviewSettings()
    test: TestSettings = TestSettings()
    context_tokens: int = 24000
    formats: dict[str, WireFormat] = Field(default_factory=dict)
    """Persona → how its files are asked for; `auto` for one that is not named."""
    stronger: tuple[str, ...] = ()
    """Personas that have a stronger model."""

    @classmethod
    def of(
        cls, settings: Settings, formats: Mapping[str, WireFormat] | None = None, stronger: Sequence[str] = ()
    ) -> "Policies":
        """The part of `settings` that a running story must not see changing; the others as wiring works them out."""
        return cls(
            answer=settings.answer,
            plan=settings.plan,
            gate=settings.gate,
            build=settings.build,
            amendment=settings.amendment,
            contract=settings.contract,
            review=settings.review,
            test=settings.test,
            context_tokens=settings.prompts.context_tokens,
            formats=dict(formats or {}),
            stronger=tuple(stronger),
        )
