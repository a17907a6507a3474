"""What a run may cost before it begins: from what the last sprints of its project cost, and today's prices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import quantiles

from orchestrator.core.calls.exchange import Usage
from orchestrator.core.calls.spending import PersonaSpending
from orchestrator.core.finding import blocking
from orchestrator.core.sprint import SprintReport, StoryReport, StoryStatus
from orchestrator.providers.seats import model_of
from orchestrator.records.histories import read_saved_report
from orchestrator.settings import Environment, Settings
from orchestrator.settings.prices import cost_of, find_price
from orchestrator.sprint.dry_run import DryRun, PastSprint, PastStories, SpendingEstimate, StoryCalls
from orchestrator.storage.state_folder import StateFolder

PAST = 3
"""Sprints to reckon from: the last ones, because prompts and projects change."""
QUARTILES = 4
"""Stories from which a range leaves the lowest and the highest quarter out."""
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
    reports = _past(StateFolder.of(environment), repo, backlog)
    past = [_sprint(report) for report in reports]
    stories = [story for report in reports for story in report.stories if story.tokens.input]  # a script's have none
    calls = _by_persona(made.usual, settings)
    usages = _usages(calls, reports, stories)
    # A script answers for nothing, and costs nothing.
    models = {persona: model for persona in calls if (model := model_of(settings, persona, provider))}
    prices = {persona: find_price(settings.prices, model) for persona, model in models.items()}

    def usd(usages: Mapping[str, Usage]) -> float | None:
        """Returns the US dollars of a call on the average; None where a price is unknown, or no model is named."""
        costs = [calls[one] * cost_of(price, usages[one]) for one, price in prices.items() if price is not None]
        return sum(costs) / sum(calls.values()) if costs and len(costs) == len(prices) else None

    def usd_of(story: StoryReport) -> float | None:
        usage = Usage(**story.tokens.model_dump())
        return usd(dict.fromkeys(calls, usage))

    expected, a_call = made.calls.expected, usd(usages)  # a budget of calls may end the stories before
    tokens_in, tokens_out = (
        sum(count * getattr(usages[persona], kind) for persona, count in calls.items()) / (sum(calls.values()) or 1)
        for kind in ("input", "output")
    )
    spending = SpendingEstimate(
        input_tokens=round(expected * tokens_in),
        output_tokens=round(expected * tokens_out),
        input_per_call=round(tokens_in),
        output_per_call=round(tokens_out),
        usd=round(expected * a_call, 4) if a_call is not None else None,
        unpriced=tuple(sorted({models[one] for one, price in prices.items() if price is None})),
        measured=bool(stories),
        as_before=_as_before([story for story in stories if story.status.final], made.stories, usd_of),
    )
    return made.model_copy(update={"spending": spending, "past": tuple(past)})


def _by_persona(calls: StoryCalls, settings: Settings) -> dict[str, int]:
    """Returns the calls of each persona that has some."""
    reviewers = settings.review.names
    by_persona = {
        "mike": calls.reading + calls.plans,
        "alex": calls.builds,
        "jordan": calls.suites + calls.analyses,
        **{name: calls.reviews // len(reviewers) for name in reviewers},
    }
    return {persona: count for persona, count in by_persona.items() if count}


def _usages(
    personas: Iterable[str], reports: Sequence[SprintReport], stories: Sequence[StoryReport]
) -> dict[str, Usage]:
    """Persona → the tokens of one call on the average: of its own where the reports tell them, else of all calls."""
    anybody = PersonaSpending(persona="")
    for story in stories:
        anybody += PersonaSpending(persona="", calls=story.calls, tokens=story.tokens)
    found: dict[str, PersonaSpending] = {}
    for report in reports:
        told = report.totals.get("personas")  # one of an older release does not
        for one in map(PersonaSpending.model_validate, told if isinstance(told, list) else ()):
            if one.calls and one.tokens.input:
                found[one.persona] = found[one.persona] + one if one.persona in found else one
    usual = _a_call(anybody) if anybody.calls else USUAL
    return {persona: _a_call(found[persona]) if persona in found else usual for persona in personas}


def _a_call(spent: PersonaSpending) -> Usage:
    tokens, calls = spent.tokens, spent.calls
    return Usage(
        input=round(tokens.input / calls), cached=round(tokens.cached / calls), output=round(tokens.output / calls)
    )


def _as_before(
    stories: Sequence[StoryReport], count: int, usd: Callable[[StoryReport], float | None]
) -> PastStories | None:
    """Returns what so many stories take when they go as these did; None without any."""
    if not stories:
        return None

    def span(values: Iterable[float]) -> tuple[float, float]:
        known = sorted(values)
        if len(known) >= QUARTILES:
            low, _, high = quantiles(known, n=4, method="inclusive")
        else:
            low, high = known[0], known[-1]
        return low * count, high * count

    costs = [cost for story in stories if (cost := usd(story)) is not None]
    cheap, dear = span(costs) if costs else (0.0, 0.0)
    return PastStories(
        stories=len(stories),
        calls=_rounded(span(story.calls for story in stories)),
        input_tokens=_rounded(span(story.tokens.input for story in stories)),
        output_tokens=_rounded(span(story.tokens.output for story in stories)),
        usd=(round(cheap, 4), round(dear, 4)) if costs else None,
    )


def _rounded(span: tuple[float, float]) -> tuple[int, int]:
    return round(span[0]), round(span[1])


def _past(folder: StateFolder, repo: Path | None, backlog: Path | None) -> list[SprintReport]:
    """Returns the reports of the last sprints of the project in which calls were paid for, oldest first."""
    places = {str(path) for path in (repo, backlog) if path is not None}
    records = [record for record in folder.records() if not record.cleared]
    ours = [record for record in records if not places or places & {record.repo, record.backlog}]
    told = (read_saved_report(folder, record.sprint) for record in reversed(ours))
    found = (report for report in told if report is not None and any(story.calls for story in report.stories))
    return [*islice(found, PAST)][::-1]


def _sprint(report: SprintReport) -> PastSprint:
    stories = report.stories
    costs = [story.cost_usd for story in stories if story.cost_usd is not None]
    return PastSprint(
        sprint=report.sprint,
        stories=len(stories),
        done=sum(story.status is StoryStatus.DONE for story in stories),
        calls=sum(story.calls for story in stories),
        input_tokens=sum(story.tokens.input for story in stories),
        cached_tokens=sum(story.tokens.cached for story in stories),
        output_tokens=sum(story.tokens.output for story in stories),
        cost_usd=round(sum(costs), 4) if len(costs) == len(stories) else None,
    )
