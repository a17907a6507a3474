"""What other processes of an event log pay counts for the day, at a cost that does not grow with the log."""

import asyncio
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from orchestrator.app.runtime import PaidElsewhere
from orchestrator.core.event import Event
from orchestrator.settings import BudgetSettings
from orchestrator.sprint.budgets import Budgets
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def paid(number: int, time: datetime) -> Event:
    data = {"input_tokens": 900, "cached_tokens": 0, "output_tokens": 100, "cost_usd": 0.01, "paid": True}
    return Event(id=f"S/A:{number}", time=time, name="turn_finished", message="", sprint="S", story="A", data=data)


class Counting(EventStore):
    """Counts what is read."""

    read = 0
    asked = 0

    async def named(self, names: Collection[str], after: int, *, day: date | None = None) -> list[tuple[int, Event]]:
        found = await super().named(names, after, day=day)
        self.read += len(found)
        self.asked += 1
        return found


async def test_what_was_paid_before_today_is_not_read(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "events.sqlite")
    budgets = Budgets(BudgetSettings(calls_per_day=3), lambda: NOW)
    async with Counting(url) as log, EventStore(url) as other:
        for number in range(5):
            await other.emit(paid(number, NOW - timedelta(days=1)))
        async with PaidElsewhere(log, budgets, always=False):
            await other.emit(paid(5, NOW))
            while log.asked < 2:
                await asyncio.sleep(0.01)
    assert log.read == 1
    assert [state.spent for state in budgets.states()] == [1]
