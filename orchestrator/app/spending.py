"""What a run may cost before it begins: its calls, times the tokens of a call in the last sprints, at its prices."""

from collections.abc import Iterator
from itertools import islice

from orchestrator.core.calls.exchange import Usage
from orchestrator.core.finding import blocking
from orchestrator.core.sprint import StoryReport
from orchestrator.providers.seats import model_of
from orchestrator.records.histories import read_saved_report
from orchestrator.settings import Environment, Settings
from orchestrator.settings.prices import cost_of, find_price
from orchestrator.sprint.dry_run import DryRun, SpendingEstimate
from orchestrator.storage.state_folder import StateFolder

PAST = 3
"""Sprints to reckon from: the last ones, because prompts and projects change."""
USUAL = Usage(input=7000, output=800)
"""Of a call without such a sprint: three libraries took 4,400 to 10,800 in and 200 to 700 out."""


def with_spending(made: DryRun, settings: Settings, environment: Environment, *, provider: str | None = None) -> DryRun:
    """Returns the dry run with what it may cost. Blocks."""
    if blocking(made.problems) or not made.stories:
        return made  # nothing would be spent
    stories = list(_paid_stories(StateFolder.of(environment)))
    count = sum(story.calls for story in stories)
    sums = {kind: sum(getattr(story.tokens, kind) for story in stories) for kind in ("input", "cached", "output")}
    a_call = Usage(**{kind: round(total / count) for kind, total in sums.items()}) if count else USUAL
    # A script answers for nothing, and costs nothing.
    calls = {"mike": made.stories, "alex": made.tasks, "jordan": made.stories}
    calls |= dict.fromkeys(settings.review.names, made.tasks)
    models = {one: model for one in calls if (model := model_of(settings, one, provider))}
    prices = {persona: find_price(settings.prices, model) for persona, model in models.items()}
    # A budget of calls may end the stories before.
    share = made.calls.expected / sum(calls.values())
    costs = [calls[one] * share * cost_of(price, a_call) for one, price in prices.items() if price is not None]
    spending = SpendingEstimate(
        input_tokens=made.calls.expected * a_call.input,
        output_tokens=made.calls.expected * a_call.output,
        usd=round(sum(costs), 4) if costs and len(costs) == len(prices) else None,
        unpriced=tuple(sorted({models[persona] for persona, price in prices.items() if price is None})),
        measured=bool(count),
    )
    return made.model_copy(update={"spending": spending})


def _paid_stories(folder: StateFolder) -> Iterator[StoryReport]:
    """Yields the stories of the last sprints that took tokens: a script's have none."""
    reports = (read_saved_report(folder, record.sprint) for record in reversed(folder.records()))
    told = ([story for story in report.stories if story.tokens.input] for report in reports if report is not None)
    for stories in islice(filter(None, told), PAST):
        yield from stories
