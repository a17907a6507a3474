"""Folds over the event log: of earlier generations only the cost counts, money is unknown when one price is."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.core.event import Event
from orchestrator.core.history import Logged, event_of, fold, is_finished, last_rest, why_it_rests
from orchestrator.core.sprint import SprintRecord, StoryOutcome, StoryStatus, Tokens
from orchestrator.reports.report import budget_states, build_report, exit_code

START = datetime(2026, 1, 1, tzinfo=UTC)


def record(**fields: Any) -> SprintRecord:
    given = {"sprint": "SP-001", "backlog": "/b.csv", "repo": "/r", "base": "", "story_ids": ("A", "A-1")}
    return SprintRecord(started_at=START, **{**given, **fields})


def event(at: str, name: str, story: str = "A", after_s: int = 0, **data: Any) -> Event:
    time = START + timedelta(seconds=after_s)
    return Event(id=at, time=time, name=name, message=f"{name}!", sprint="SP-001", story=story, data=data)


def turn(at: str, cost: float | None = 0.5, paid: bool = True, story: str = "A") -> Event:
    tokens = {"input_tokens": 10, "cached_tokens": 4, "output_tokens": 3}
    return event(at, "turn_finished", story, cost_usd=cost, paid=paid, **tokens)


def finished(at: str, status: StoryStatus, story: str = "A", after_s: int = 0) -> Event:
    outcome = StoryOutcome(id=story, status=status, branch="b", commit="c")
    return event(at, "story_finished", story, after_s, outcome=outcome.model_dump(mode="json"))


def test_a_story_is_added_up() -> None:
    events = [
        event("SP-001/A:story_started", "story_started", after_s=1),
        turn("SP-001/A:1"),
        turn("SP-001/A:2", paid=False),
        turn("SP-001/A:3", cost=0.25),
        finished("SP-001/A:story_finished", StoryStatus.DONE, after_s=5),
    ]
    story = fold(record(), events)["A"]
    assert (story.status, story.calls, story.cost_usd, story.duration_s) == (StoryStatus.DONE, 2, 0.75, 4.0)
    assert story.tokens == Tokens(input=20, cached=8, output=6)
    assert story.last is not None
    assert story.last.message == "story_finished!"


def test_what_each_persona_took_and_what_of_the_budgets_is_spent_is_in_the_report() -> None:
    broke_off = {"input_tokens": 5, "cached_tokens": 0, "output_tokens": 1, "cost_usd": 0.125}
    events = [
        turn("SP-001/A:1").model_copy(update={"persona": "mike"}),
        turn("SP-001/A-1:1", cost=None, story="A-1").model_copy(update={"persona": "mike"}),
        turn("SP-001/A@0:9", cost=0.25).model_copy(update={"persona": "alex"}),
        event("SP-001/A:2", "turn_failed", **broke_off).model_copy(update={"persona": "alex"}),
    ]
    histories = fold(record(), events)
    told = build_report(record(), histories).totals["personas"]
    assert told == [
        {"persona": "alex", "calls": 1, "tokens": {"input": 15, "cached": 4, "output": 4}, "cost_usd": 0.375},
        {"persona": "mike", "calls": 2, "tokens": {"input": 20, "cached": 8, "output": 6}, "cost_usd": None},
    ]
    own = [event("S:started", "sprint_started", budget={"usd": 1.0}), event("S:resumed", "sprint_continued")]
    told_by = [str(one) for one in budget_states(own, histories.values())]
    assert told_by == ["3 calls", "45 tokens", "0.88 of 1.00 USD"]
    assert [one.limit for one in budget_states(own[1:], histories.values())] == [None] * 3, "of an older release"


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    events = [turn("SP-001/A:1"), turn("SP-001/A:2", cost=None), turn("SP-001/A:3"), turn("SP-001/A-1:1", story="A-1")]
    histories = fold(record(), events)
    assert histories["A"].cost_usd is None
    report = build_report(record(), histories)
    assert report.totals["cost_usd"] is None
    assert report.totals["calls"] == 4


def test_of_earlier_generations_only_what_was_paid_counts_and_of_other_stories_nothing() -> None:
    events = [
        finished("SP-001/A:story_finished", StoryStatus.FAILED),
        turn("SP-001/A:1"),
        turn("SP-001/A@2:1"),
        turn("SP-001/A+plan-0a1b2c3d:1", cost=0.25),
        turn("SP-001/A-1:1", story="A-1"),
        event("SP-001:paused", "sprint_paused"),
    ]
    histories = fold(record(generations={"A": 2}), events)
    assert histories["A"].outcome is None
    assert (histories["A"].calls, histories["A"].earlier_calls, histories["A"].cost_usd) == (3, 2, 1.25)
    assert (histories["A-1"].calls, histories["A-1"].earlier_calls) == (1, 0)
    (first, _) = build_report(record(generations={"A": 2}), histories).stories
    assert (first.calls, first.earlier_calls) == (3, 2)


def test_states_on_the_way_and_the_report() -> None:
    histories = fold(record(), [event("SP-001/A:story_started", "story_started")])
    assert [history.status for history in histories.values()] == [StoryStatus.EXECUTING, StoryStatus.PENDING]
    assert not is_finished(histories)
    report = build_report(record(titles={"A": "Title"}), histories)
    assert [(story.id, story.title, story.status.value) for story in report.stories] == [
        ("A", "Title", "executing"),
        ("A-1", "", "pending"),
    ]
    assert (report.totals["executing"], report.totals["done"], exit_code(report)) == (1, 0, 1)


def test_all_done_is_good() -> None:
    events = [finished(f"SP-001/{story}:story_finished", StoryStatus.DONE, story) for story in ("A", "A-1")]
    histories = fold(record(), events)
    assert is_finished(histories)
    assert exit_code(build_report(record(), histories)) == 0


def test_the_report_tells_the_criteria_that_a_story_began_with() -> None:
    frozen = record(criteria={"A": ("old",), "A-1": ("not started",)})
    begun = event("SP-001/A:story_started", "story_started", criteria=["mended"])
    report = build_report(frozen, fold(frozen, [begun]))
    assert [[row.criterion for row in story.criteria] for story in report.stories] == [["mended"], ["not started"]]


def test_what_a_paused_sprint_did_not_begin_says_why_until_it_goes_on() -> None:
    events = [event("1", "sprint_started"), event("2", "sprint_paused"), event("3", "sprint_stopped")]
    data = {"reason": "3 failed", "not_begun": ["A-1"], "interrupted": False}
    events[2] = events[2].model_copy(update={"data": data})
    assert last_rest(events) == events[2].time
    told = [why_it_rests(events[:2]), why_it_rests(events), why_it_rests([*events, event("4", "sprint_continued")])]
    assert told == ["", "3 failed", ""]
    histories = fold(record(), [event("SP-001/A:story_started", "story_started")])
    report = build_report(record(), histories, told[1])
    said = [[finding.message for finding in story.findings] for story in report.stories]
    assert said == [["not finished: the sprint paused: 3 failed"], ["not started: the sprint paused: 3 failed"]]


@pytest.mark.parametrize("files", [1, 1000])
def test_a_stored_event_is_known_by_its_own_name_and_loses_a_contract_only(files: int) -> None:
    words = 'a "level": "info", "name": "story_finished", "data": {"x": 1}'
    contract = {"name": "y", "data": {}, "baseline_files": [f"shop/part_{number}/\ud83d.py" for number in range(files)]}
    frozen = event("SP-001/A:1", "contract_frozen", contract=contract).model_copy(update={"message": words})
    logged = Logged.of(frozen)
    assert event_of(logged.body) == frozen
    assert len(logged.body) < 6000, "a project's size is felt little"
    plain = json.dumps(frozen.model_dump(mode="json"))  # as releases up to 0.1 stored it
    assert event_of(plain) == frozen
    assert logged.name == "contract_frozen"
    assert event_of(logged.in_short().body) == frozen.model_copy(update={"data": {}})
    other = Logged.of(event("SP-001/A:2", "plan_judged", plan={}))
    assert other.in_short() is other
