"""report.json, folded from the record and the event log; counts come from recorded outcomes only (pure)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.checks.coverage import Covered, coverage
from orchestrator.core.calls.spending import Amount, BudgetState, PersonaSpending, sprint_budgets
from orchestrator.core.command import Verdict
from orchestrator.core.event import Event
from orchestrator.core.history import TURN, StoryHistory, kept_open
from orchestrator.core.sprint import (
    CriterionOutcome,
    Healing,
    JudgedCase,
    PromptUsed,
    SprintRecord,
    SprintReport,
    StageTime,
    StoryOutcome,
    StoryReport,
    StoryStatus,
    TestRewritten,
    Tokens,
)
from orchestrator.core.value import Value
from orchestrator.reports.path import verdict_of


def build_report(record: SprintRecord, histories: Mapping[str, StoryHistory], paused: str = "") -> SprintReport:
    """Returns the whole report; stories without an outcome appear with their present status.

    `paused` is why no further one began, which is said of each that did not, and of each that has not ended.
    """
    stories = tuple(
        _story(story, histories[story], record.titles.get(story, ""), record.criteria.get(story, ()), paused)
        for story in record.story_ids
    )
    told = totals(stories) | {"personas": [one.model_dump() for one in spent_by_persona(histories.values())]}
    return SprintReport(sprint=record.sprint, stories=stories, totals=told)


def spent_by_persona(histories: Iterable[StoryHistory]) -> tuple[PersonaSpending, ...]:
    """Returns what each persona's calls took, by name."""
    found: dict[str, PersonaSpending] = {}
    for history in histories:
        for name, spent in history.personas.items():
            found[name] = found[name] + spent if name in found else spent
    return tuple(found[name] for name in sorted(found))


def budget_states(events: Iterable[Event], histories: Iterable[StoryHistory]) -> tuple[BudgetState, ...]:
    """Returns what a sprint has spent, with the budgets that its events (those of the sprint itself) told last."""
    limits: Mapping[str, float] = {}
    for event in events:
        limits = event.data.get("budget", limits)
    spent = Amount()
    for story in histories:
        spent += Amount(story.calls, story.tokens.input + story.tokens.output, story.usd)
    return sprint_budgets(spent, limits)


def with_facts(
    report: SprintReport, facts: Mapping[str, Value | None], budgets: Sequence[BudgetState] = ()
) -> SprintReport:
    """Returns the report, with these facts of the whole sprint in `totals`, as far as they are known: in which tier the
    commands of the latest run were (`sandbox`), what the tests did on the base commit (`base`), and what is spent of
    which budget (`budgets`)."""
    known: dict[str, object] = {name: one.model_dump(mode="json") for name, one in facts.items() if one is not None}
    if budgets:
        known["budgets"] = [one.model_dump(mode="json") for one in budgets]
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
    counts["looks"] = sum(story.looks for story in stories)
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
    kept = (kept_open(paused, history.status),) if paused and history.outcome is None else ()
    outcome = history.outcome or StoryOutcome(id=story_id, status=history.status, findings=kept)
    events = history.select(_TOLD)
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
        earlier_calls=history.earlier_calls,
        looks=history.looks,
        duration_s=round(history.duration_s, 3),
        branch=outcome.branch,
        commit=outcome.commit,
        changed=outcome.changed,
        criteria=tuple(_criterion(row, outcome) for row in covered),
        healings=healings(events),
        rewritten=rewritten(events),
        stages=stage_times(events, history.duration_s),
        prompts=prompts_used(events),
    )


REWRITTEN = frozenset({"older_test_rewritten", "suite_replaced"})
"""Events about a test file that got another text."""
HEALINGS = frozenset(
    {
        "answer_healed",
        "answer_repaired_by_model",
        "answer_repair_failed",
        "answer_truncated",
        "answer_refused",
        "answer_sent_back",
        "answer_given_up",
        "breakdown_completed",
        "breakdown_left_short",
        "delivery_completed",
        "delivery_left_short",
        "plan_mended",
        "failure_analysed",
        "merge_resolved",
        "merge_unresolved",
        "failure_repeated",
        "older_tests_failed",
        "suite_replaced",
        "review_diff_cut",
        "call_retried",
        "service_away",
        "model_switched",
    }
)
"""Events about something that was not right and what was done about it; a plan to be revised and a change that is not
approved are such, too."""
_GOOD: dict[str, set[str]] = {"plan_judged": {Verdict.VALID}, "review_judged": {Verdict.APPROVED}}
REST = "git, installs, merges, waits"
"""Everything that no recorded duration explains."""
_COMMAND, _TESTS = "commands", "running tests"
STAGE_OF_PURPOSE = {
    "breakdown": "planning",
    "breakdown_missing": "planning",
    "amendment": "planning",
    "delivery": "building",
    "continuation": "building",
    "merge": "building",
    "review": "reviewing",
    "suite": "writing tests",
    "analysis": "analysing failures",
    "repair": "repairing answers",
}
"""Why a persona is asked → the stage of a story that it is asked in."""
STAGES = (*dict.fromkeys(STAGE_OF_PURPOSE.values()), _COMMAND, _TESTS, REST)
"""The stages of a story, in order."""


def healings(events: Iterable[Event]) -> tuple[Healing, ...]:
    """Returns the problems and their resolutions, in order."""
    return tuple(
        Healing(event=event.name, message=event.message, task=event.task)
        for event in events
        if event.name in HEALINGS or (event.name in _GOOD and verdict_of(event) not in _GOOD[event.name])
    )


def rewritten(events: Iterable[Event]) -> tuple[TestRewritten, ...]:
    """Test files that got another text, in order, with both versions."""
    fields = TestRewritten.model_fields
    told = (event.data for event in events if event.name in REWRITTEN)
    return tuple(TestRewritten.model_validate({name: data.get(name) or "" for name in fields}) for data in told)


def stage_times(events: Sequence[Event], duration_s: float) -> tuple[StageTime, ...]:
    """Every stage with its seconds, 0 where none were recorded; the rest is what is left of `duration_s`."""
    spent: Counter[str] = Counter()
    for event in events:
        stage = _stage(event)
        if stage is not None:
            spent[stage] += event.data.get("duration_ms") or 0
    seconds = {stage: spent[stage] / 1000 for stage in STAGES}
    # Stages may overlap, so the rest may come out below zero.
    seconds[REST] = max(0.0, duration_s - sum(seconds.values()))
    return tuple(StageTime(stage=stage, duration_s=round(seconds[stage], 3)) for stage in STAGES)


def prompts_used(events: Iterable[Event]) -> tuple[PromptUsed, ...]:
    """Every prompt that was sent, with its version, once each."""
    sent = (event.data for event in events if event.name == TURN)
    used = dict.fromkeys((str(data["prompt"]), str(data["prompt_version"])) for data in sent if data.get("prompt"))
    return tuple(PromptUsed(name=name, version=version) for name, version in used)


_STAGE_OF = {
    "command_finished": _COMMAND,
    **dict.fromkeys(("tests_finished", "older_tests_failed", "whole_suite_run"), _TESTS),
    **dict.fromkeys(("tests_run_before", "tests_run_hollow", "story_merged", "merge_refused"), _TESTS),
}
_TOLD = frozenset({*HEALINGS, *_GOOD, *REWRITTEN, *_STAGE_OF, TURN})
"""Events that the report of a story is made from, besides its outcome."""


def _stage(event: Event) -> str | None:
    return STAGE_OF_PURPOSE.get(str(event.data.get("purpose"))) if event.name == TURN else _STAGE_OF.get(event.name)
