"""A state folder with sprints that are over: records, event log and reports, as runs leave them."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.core.event import Event, Level
from orchestrator.core.finding import Finding, major, minor
from orchestrator.core.sprint import SprintRecord, StoryOutcome, StoryStatus
from orchestrator.records.sprint_reader import save_report
from orchestrator.settings import Environment
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.state_folder import StateFolder

FIRST_DAY = datetime(2026, 3, 1, 9, tzinfo=UTC)
FLAKY = minor("test.flaky", "failed once and passed when run again alone: tests/test_clock.py::test_noon")
LOST = major("test.failed", "3 tests failed")


def make_record(number: int, stories: int) -> SprintRecord:
    """The sprint of a day."""
    return SprintRecord(
        sprint=f"SP-{number:03d}",
        backlog="/project/backlog.csv",
        repo="/project/repo",
        base="0" * 40,
        story_ids=tuple(f"US-{story}" for story in range(1, stories + 1)),
        started_at=FIRST_DAY + timedelta(days=number - 1),
    )


def story_events(
    record: SprintRecord,
    story: str,
    number: int,
    *noted: str,
    calls: int = 2,
    usd: float | None = 0.25,
    status: StoryStatus | None = StoryStatus.DONE,
    findings: Sequence[Finding] = (),
    ends: timedelta = timedelta(minutes=10),
) -> Iterator[Event]:
    """What the log says of a story: it began, calls, `noted` of its answers, and how it ended (None: it has not)."""
    count = 0

    def event(name: str, at: timedelta, level: Level = Level.INFO, **data: Any) -> Event:
        nonlocal count
        count += 1
        label = name if name in {"story_started", "story_finished"} else f"{name}:{count}"
        return Event(
            id=f"{record.workflow_id(story)}:{label}", time=record.started_at + at, level=level, name=name,
            message=f"{story}: {name}", sprint=record.sprint, story=story, persona="alex", data=data,
        )  # fmt: skip

    paid = {"input_tokens": 900, "cached_tokens": 0, "output_tokens": 100, "cost_usd": usd, "paid": True}
    yield event("story_started", timedelta(minutes=number), criteria=["It works."])
    for _ in range(calls):
        yield event("turn_finished", timedelta(minutes=number), purpose="delivery", model="m", provider="p", **paid)
    for name in noted:
        yield event(name, timedelta(minutes=number), Level.WARN, purpose="delivery", findings=[])
    if status is not None:
        outcome = StoryOutcome(id=story, status=status, findings=tuple(findings), commit="a" * 40)
        told = outcome.model_dump(mode="json")
        yield event("story_finished", timedelta(minutes=number) + ends, outcome=told, status=status.value)


async def keep(environment: Environment, record: SprintRecord, events: Sequence[Event], *, report: bool = True) -> None:
    """Writes a sprint as a run does: its record, its events, and its report when it has ended."""
    folder = StateFolder.of(environment)
    await asyncio.to_thread(folder.make)
    await asyncio.to_thread(folder.save, record)
    async with EventStore(sqlite_url(folder.event_database)) as store:
        await asyncio.gather(*(store.emit(event) for event in events))
    if report:
        await asyncio.to_thread(save_report, environment, record)
