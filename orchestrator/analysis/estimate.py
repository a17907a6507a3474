"""What an analysis would ask and could cost, known without asking anything (pure)."""

from collections.abc import Sequence

from orchestrator.domain.analysis import Packed, StagePrompt
from orchestrator.domain.base import Value
from orchestrator.prompts.analysis import HISTORY_TOKENS
from orchestrator.prompts.budget import tokens
from orchestrator.settings import PriceSettings, Settings

ANSWER_TOKENS = 1500
"""Tokens of a usual answer of a stage."""


class CallEstimate(Value):
    """Paid calls."""

    expected: int
    """When every answer is right at once."""
    maximal: int
    """When every loop uses its whole budget."""


class TokenEstimate(Value):
    """Tokens of the expected calls, of about four characters each."""

    shared: int
    """What every prompt begins with: role, PRD and repository. A provider's cache takes it from the second call on."""
    input: int
    """All prompts together, the shared part counted with each."""
    output: int


class AnalysisEstimate(Value):
    """The object that `analyse --dry-run --json` prints."""

    profile: str
    stages: tuple[str, ...]
    """Ids, in order; with triage, what may be picked."""
    triage: bool
    files: int
    shown: int
    cut: tuple[str, ...]
    left_out: tuple[str, ...]
    calls: CallEstimate
    tokens: TokenEstimate
    cost_usd: float | None = None
    """Of the expected calls without a cache; None when the model's price is not configured."""


def estimate(
    profile: str,
    prompts: Sequence[StagePrompt],
    fallback: Sequence[str],
    packed: Packed,
    texts: tuple[str, str],
    settings: Settings,
    price: PriceSettings | None,
) -> AnalysisEstimate:
    """`texts`: the PRD as it is shown, and what each prompt of a stage holds besides. With triage, `fallback` says how
    many stages are expected."""
    triage = settings.analysis.triage
    expected = [prompt for prompt in prompts if not triage or prompt.id in fallback]
    prd, besides = texts
    shared = packed.tokens + tokens(prd)
    own = sum(tokens(prompt.text + besides) + HISTORY_TOKENS // 2 * prompt.history for prompt in expected)
    calls = len(expected) + triage
    answers = ANSWER_TOKENS * calls
    used = TokenEstimate(shared=shared, input=shared * calls + own, output=answers)
    cost = None if price is None else (used.input * price.input + used.output * price.output) / 1_000_000
    return AnalysisEstimate(
        profile=profile,
        stages=tuple(prompt.id for prompt in prompts),
        triage=triage,
        files=len(packed.paths),
        shown=len(packed.shown),
        cut=tuple(one.path for one in packed.cut),
        left_out=tuple(one.path for one in packed.left_out),
        calls=CallEstimate(expected=calls, maximal=(len(prompts) + triage) * stage_calls(settings)),
        tokens=used,
        cost_usd=cost,
    )


def stage_calls(settings: Settings) -> int:
    """The most calls of one stage: its replies and repairs times `provider.max_attempts`, within the story's budget."""
    answer = 1 + settings.answer.repair_requests + settings.answer.max_attempts
    return min(answer * settings.provider.max_attempts, settings.budget.calls_per_story)
