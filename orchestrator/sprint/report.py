"""report.json, folded from the record and the event log; counts come from recorded outcomes only."""

from collections.abc import Mapping, Sequence

from orchestrator.domain.base import Value
from orchestrator.domain.outcome import CriterionOutcome, JudgedCase, SprintReport, StoryOutcome, StoryReport, Tokens
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.status import StoryStatus
from orchestrator.sprint.coverage import Covered, coverage
from orchestrator.sprint.history import StoryHistory
from orchestrator.sprint.pause import not_begun
from orchestrator.sprint.report_facts import healings, prompts_used, rewritten, stage_times
from orchestrator.sprint.report_forms import forms


def build_report(
    record: SprintRecord, histories: Mapping[str, StoryHistory], titles: Mapping[str, str], paused: str = ""
) -> SprintReport:
    """The whole report; stories without an outcome appear with their present status.

    `paused` is why no further one began, which is said of each that did not.
    """
    stories = tuple(
        _story(story, histories[story], titles.get(story, ""), record.criteria.get(story, ()), paused)
        for story in record.story_ids
    )
    events = (event for story in record.story_ids for event in histories[story].events)
    told = totals(stories) | {"forms": [form.model_dump() for form in forms(events)]}
    return SprintReport(sprint=record.sprint, stories=stories, totals=told)


def with_facts(report: SprintReport, facts: Mapping[str, Value | None]) -> SprintReport:
    """The report, with these facts of the whole sprint in `totals`, as far as they are known: in which tier the
    commands of the latest run were (`sandbox`), what the tests did on the base commit (`base`)."""
    known = {name: fact.model_dump(mode="json") for name, fact in facts.items() if fact is not None}
    return report.model_copy(update={"totals": {**report.totals, **known}})


def totals(stories: tuple[StoryReport, ...]) -> dict[str, object]:
    """A count per status, the sums of tokens and calls, and the cost (None when any story's is unknown)."""
    counts: dict[str, object] = {status.value: 0 for status in StoryStatus}
    for status in StoryStatus:
        counts[status.value] = sum(story.status is status for story in stories)
    costs = [story.cost_usd for story in stories]
    known = [cost for cost in costs if cost is not None]
    counts["tokens"] = Tokens(
        input=sum(story.tokens.input for story in stories),
        cached=sum(story.tokens.cached for story in stories),
        output=sum(story.tokens.output for story in stories),
    ).model_dump()
    counts["calls"] = sum(story.calls for story in stories)
    counts["cost_usd"] = sum(known) if len(known) == len(costs) else None
    return counts


def exit_code(report: SprintReport) -> int:
    """0 when every story is done, else 1."""
    return 0 if all(story.status is StoryStatus.DONE for story in report.stories) else 1


def _criterion(row: Covered, outcome: StoryOutcome) -> CriterionOutcome:
    before, hollow = outcome.before, outcome.hollow
    tests = (
        JudgedCase(**case.model_dump(), before=before.get(case.name, ""), hollow=hollow.get(case.name, ""))
        for case in row.cases
    )
    return CriterionOutcome(criterion=row.criterion, tests=tuple(tests))


def _story(story_id: str, history: StoryHistory, title: str, criteria: Sequence[str], paused: str = "") -> StoryReport:
    kept = (not_begun(paused),) if paused and history.status is StoryStatus.PENDING else ()
    outcome = history.outcome or StoryOutcome(id=story_id, status=history.status, findings=kept)
    events = history.events
    covered, _ = coverage(criteria if history.criteria is None else history.criteria, outcome.tests.cases)
    return StoryReport(
        id=story_id,
        title=title,
        status=history.status,
        attempts=outcome.attempts,
        tasks=outcome.tasks,
        tests=outcome.tests,
        findings=outcome.findings,
        tokens=history.tokens,
        cost_usd=history.cost_usd,
        calls=history.calls,
        duration_s=round(history.duration_s, 3),
        branch=outcome.branch,
        commit=outcome.commit,
        criteria=tuple(_criterion(row, outcome) for row in covered),
        healings=healings(events),
        rewritten=rewritten(events),
        stages=stage_times(events, history.duration_s),
        prompts=prompts_used(events),
    )
