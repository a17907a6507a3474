"""What a run may cost before it begins: from what the last sprints of its project cost, and today's prices."""

from collections import Counter
from pathlib import Path

from orchestrator.app.histories import read_saved_report
from orchestrator.core.exchange import Usage
from orchestrator.core.finding import blocking
from orchestrator.core.sprint import SprintRecord, SprintReport, StoryStatus
from orchestrator.providers.routing import model_of
from orchestrator.settings import Environment, Settings
from orchestrator.settings.prices import cost_of, find_price
from orchestrator.sprint.dry_run import DryRun, PastSprint, SpendingEstimate, StoryCalls
from orchestrator.storage.state_folder import StateFolder

PAST = 3
"""Sprints to reckon from: the last ones, because prompts and projects change."""


USUAL = Usage(input=7000, output=800)
"""For a project that has no sprint yet: three libraries took 4,400 to 10,800 in and 200 to 700 out a call."""


def with_spending(
    made: DryRun,
    settings: Settings,
    environment: Environment,
    *,
    provider: str | None = None,
    repo: Path | None = None,
    backlog: Path | None = None,
) -> DryRun:
    """Returns the dry run with what it may cost. Blocks.

    The project's sprints are known by its repository or its backlog; without both, all in the state folder are its own.
    """
    if blocking(made.problems) or not made.stories:
        return made  # nothing would be spent
    past = _past(StateFolder.of(environment), repo, backlog)
    measured = [sprint for sprint in past if sprint.input_tokens]  # a script's replies have none
    calls = sum(sprint.calls for sprint in measured)
    per_call = USUAL
    if calls:
        per_call = Usage(
            input=round(sum(sprint.input_tokens for sprint in measured) / calls),
            cached=round(sum(sprint.cached_tokens for sprint in measured) / calls),
            output=round(sum(sprint.output_tokens for sprint in measured) / calls),
        )
    # A script answers for nothing, and costs nothing.
    models = {model: count for model, count in _models(made.usual, settings, provider).items() if model}
    spending = SpendingEstimate(
        input_tokens=made.calls.expected * per_call.input,
        output_tokens=made.calls.expected * per_call.output,
        input_per_call=per_call.input,
        output_per_call=per_call.output,
        usd=_cost(models, per_call, settings, made.calls.expected),
        unpriced=tuple(sorted(model for model in models if find_price(settings.prices, model) is None)),
        measured=bool(measured),
    )
    return made.model_copy(update={"spending": spending, "past": past})


def _models(calls: StoryCalls, settings: Settings, provider: str | None) -> Counter[str]:
    """Returns the calls of each model; "" is that of a script."""
    reviewers = settings.review.names
    by_persona = {
        "mike": calls.reading + calls.plans,
        "alex": calls.builds,
        "jordan": calls.suites + calls.analyses,
        **{name: calls.reviews // len(reviewers) for name in reviewers},
    }
    models: Counter[str] = Counter()
    for persona, count in by_persona.items():
        models[model_of(settings, persona, provider) or ""] += count
    return models


def _cost(models: Counter[str] | dict[str, int], per_call: Usage, settings: Settings, expected: int) -> float | None:
    """Returns the US dollars; None where a price is unknown, or no model is named."""
    total, counted = 0.0, sum(models.values())
    for model, count in models.items():
        price = find_price(settings.prices, model)
        if price is None:
            return None
        total += count * cost_of(price, per_call)
    # A budget of calls may end the stories before.
    return round(total * expected / counted, 4) if counted else None


def _past(folder: StateFolder, repo: Path | None, backlog: Path | None) -> tuple[PastSprint, ...]:
    """Returns the last sprints of the project that have a report, oldest first."""
    places = {str(path) for path in (repo, backlog) if path is not None}
    records = [record for record in folder.records() if not record.cleared]
    ours = [record for record in records if not places or places & {record.repo, record.backlog}]
    told = ((record, read_saved_report(folder, record.sprint)) for record in reversed(ours))
    found = [_sprint(record, report) for record, report in told if report is not None]
    return tuple(reversed([sprint for sprint in found if sprint.calls][:PAST]))


def _sprint(record: SprintRecord, report: SprintReport) -> PastSprint:
    stories = report.stories
    costs = [story.cost_usd for story in stories if story.cost_usd is not None]
    return PastSprint(
        sprint=record.sprint,
        stories=len(stories),
        done=sum(story.status is StoryStatus.DONE for story in stories),
        calls=sum(story.calls for story in stories),
        input_tokens=sum(story.tokens.input for story in stories),
        cached_tokens=sum(story.tokens.cached for story in stories),
        output_tokens=sum(story.tokens.output for story in stories),
        cost_usd=round(sum(costs), 4) if len(costs) == len(stories) else None,
    )
