"""What is scraped: every event is counted once, and the gauges are the daemon's own numbers."""

from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from orchestrator.core.event import Event
from orchestrator.server.metrics import Metrics
from tests.server.stand import NOON, Stand, running
from tests.support import Played


def values(text: str) -> dict[str, float]:
    """`name{label=value,…}` → its value."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"orchestrator_{sample.name.removeprefix('orchestrator_')}{{{labels}}}"] = sample.value
    return found


def event(name: str, persona: str | None = None, **data: Any) -> Event:
    return Event(id=name, time=NOON, name=name, message="", sprint="S", persona=persona, data=data)


def scraped(stand: Stand) -> Mapping[str, float]:
    return values(stand.metrics.text(stand.state(), streams=7).decode())


def test_a_whole_sprint_is_counted(played: Played, stand: Stand) -> None:
    for one in played.events:
        stand.metrics.observe(one)
    found = scraped(stand)
    for status in ("done", "failed", "blocked"):
        assert found[f"orchestrator_stories_total{{status={status}}}"] == 1
    turns = [one for one in played.events if one.name == "turn_finished"]
    assert sum(value for name, value in found.items() if name.startswith("orchestrator_turns_total")) == len(turns) > 0
    assert found["orchestrator_turns_total{persona=mike,purpose=breakdown}"] == 1
    assert found["orchestrator_turn_duration_seconds_count{persona=mike}"] == 1
    assert found["orchestrator_turns_failed_total{persona=mike,purpose=breakdown}"] == 1
    assert sum(value for name, value in found.items() if name.startswith("orchestrator_repairs_total")) == 1


def test_tokens_cost_retries_and_what_is_unknown(stand: Stand) -> None:
    spent = {"paid": True, "input_tokens": 10, "cached_tokens": 4, "output_tokens": 3, "purpose": "suite"}
    observe = stand.metrics.observe
    observe(event("turn_finished", "jordan", cost_usd=0.25, duration_ms=1500, **spent))
    observe(event("turn_finished", "jordan", cost_usd=None, duration_ms=None, **spent))
    observe(event("turn_finished", None, paid=False, cost_usd=9.0, purpose=None))
    broke_off = {"input_tokens": 5, "cached_tokens": 0, "output_tokens": 2, "purpose": "suite"}
    observe(event("turn_failed", "jordan", cost_usd=0.5, **broke_off))
    observe(event("turn_failed", "jordan", purpose="suite"))
    observe(event("call_retried", kind="rate_limit"))
    observe(event("gate_opened", gate={"kind": "plan"}))
    observe(event("gate_opened"))
    observe(event("story_finished"))
    observe(event("something_new", more=[1]))
    found = scraped(stand)
    assert found["orchestrator_tokens_total{kind=input}"] == 25
    assert found["orchestrator_tokens_total{kind=cached}"] == 8
    assert found["orchestrator_cost_usd_total{}"] == 0.75
    assert found["orchestrator_turns_unpriced_total{}"] == 1
    assert found["orchestrator_turns_total{persona=,purpose=unknown}"] == 1
    assert found["orchestrator_calls_retried_total{kind=rate_limit}"] == 1
    assert found["orchestrator_gates_opened_total{kind=plan}"] == 1
    assert found["orchestrator_turn_duration_seconds_bucket{le=2.0,persona=jordan}"] == 2


def test_gauges_are_the_daemons_numbers(stand: Stand) -> None:
    stand.handed_in = {"a": b"", "b": b""}
    found = scraped(stand)
    expected = {"gates_open": 3, "stories_queued": 4, "stories_at_work": 1, "calls_in_flight": 2, "backlogs": 2}
    assert {name: found[f"orchestrator_{name}{{}}"] for name in expected} == expected
    assert found["orchestrator_event_streams{}"] == 7
    assert found["orchestrator_sprints{phase=paused}"] == 1
    assert found["orchestrator_phase{phase=ready}"] == 1
    assert found["orchestrator_budget_limit{budget=usd_per_day,sprint=}"] == 5
    assert found["orchestrator_budget_spent{budget=usd_per_day,sprint=}"] == 1.25
    assert found["orchestrator_budget_spent{budget=calls_per_sprint,sprint=S1}"] == 4
    assert found["orchestrator_info{version=0.1.0}"] == 1
    assert found["orchestrator_uptime_seconds{}"] > 0
    assert values(Metrics().text(stand.state(), 0).decode())["orchestrator_cost_usd_total{}"] == 0


async def test_events_that_are_recorded_are_scraped(stand: Stand) -> None:
    async with running(stand) as daemon:
        await daemon.store.emit(event("story_finished", status="done"))
        await daemon.store.emit(event("story_finished", status="done"))
        answer = await daemon.client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert values(answer.text)["orchestrator_stories_total{status=done}"] == 1
