"""The page of a sprint: its stories as cards in columns by state, and the sprint as a whole above them."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchestrator.board.deliveries import iso
from orchestrator.board.orders import list_sprint_orders
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.story import waves
from orchestrator.core.suite import BASE_TRIED
from orchestrator.records.sprint_reader import SprintView
from orchestrator.records.views import began_at, begun_by

WAITING, PAUSED, OPEN = "waiting", "paused", "open"
"""States besides a story's status: it waits for a person's answer, or for the end of a pause; it was begun and nothing
works on it."""
COLUMNS = {
    "Waiting for a person": (WAITING,),
    "At work": (StoryStatus.EXECUTING.value, PAUSED, OPEN),
    "To come": (StoryStatus.PENDING.value,),
    "Not done": ("failed", "needs_attention", "conflicted", "blocked", "cancelled"),
    "Done": (StoryStatus.DONE.value,),
}
"""Heading of a column → the states in it."""
_COLUMN_OF = {state: column for column, states in enumerate(COLUMNS.values()) for state in states}


@dataclass(frozen=True)
class Cards:
    """A sprint at one moment, as values for templates."""

    view: SprintView

    def page(self, place: int) -> dict[str, Any]:
        """Returns what sprint.html shows; `place`: up to where the log was read."""
        cards = [self.card(story) for story in self.view.histories]
        columns = [
            {"title": title, "cards": [one for one in cards if one["column"] == number]}
            for number, title in enumerate(COLUMNS)
        ]
        return {"head": self.head(), "columns": columns, "place": place}

    def head(self) -> dict[str, Any]:
        """Returns the sprint as a whole."""
        view, histories = self.view, self.view.histories.values()
        counts = Counter(self.state(story) for story in view.histories)
        prices = [history.cost_usd for history in histories]
        ends = [history.finished for history in histories if history.finished]
        is_over = len(ends) == len(view.histories)
        return {
            "sprint": view.record.sprint,
            "backlog": view.record.backlog,
            "begun_by": begun_by(view.record),
            "is_running": view.is_running,
            "running_on": view.running_on or (f"pid {view.running_pid}" if view.running_pid else ""),
            "running_since": iso(began_at(view)) if view.is_running else "",
            "started_at": view.record.started_at.isoformat(),
            "ended_at": iso(max(ends, default=None)) if is_over else "",
            "paused": "" if is_over else view.paused,
            "base": _base(view),
            "result": view.record.result_branch if counts[StoryStatus.DONE.value] else "",
            "counts": {state: counts[state] for state in _COLUMN_OF if counts[state]},
            "total": len(view.histories),
            "ended": sum(history.outcome is not None for history in histories),
            "done": counts[StoryStatus.DONE.value],
            "budgets": [one.model_dump() for one in view.budgets if one.limit is not None],
            "calls": sum(history.calls for history in histories),
            "tokens": sum(history.tokens.input + history.tokens.output for history in histories),
            "orders": list_sprint_orders(view),
            "usd": sum(price for price in prices if price is not None) if any(prices) or None not in prices else None,
            "unpriced": prices.count(None),
        }

    def card(self, story: str) -> dict[str, Any]:
        """Returns one story."""
        view, history, state = self.view, self.view.histories[story], self.state(story)
        needs = [{"id": one, "done": self._is_done(one)} for one in view.record.needs.get(story, ())]
        last, gate = history.last, history.waits_for
        doing, since = (last.message, last.time) if last else ("", None)
        if gate:
            doing, since = gate.reason, gate.opened_at
        elif view.held.get(story):
            doing = view.held[story]
        elif state == StoryStatus.PENDING:
            doing = "waits for others" if any(not one["done"] for one in needs) else view.paused or "waits for a slot"
        return {
            "sprint": view.record.sprint,
            "id": story,
            "order": self._order[story],
            "title": view.record.titles.get(story, ""),
            "state": state,
            "column": _COLUMN_OF[state],
            "doing": doing,
            "since": "" if history.outcome else iso(since),
            "lasts_s": history.duration_s,
            "calls": history.calls,
            "tokens": history.tokens.input + history.tokens.output,
            "usd": history.cost_usd,
            "needs": needs,
            "wave": self._waves.get(story, 1) if state == StoryStatus.PENDING else 0,
        }

    def state(self, story: str) -> str:
        """Returns a status, or what it comes to now."""
        history = self.view.histories[story]
        if history.waits_for:
            return WAITING
        if history.status is StoryStatus.EXECUTING and (not self.view.is_running or self._is_paused(story)):
            return PAUSED if self._is_paused(story) else OPEN
        return history.status.value

    def _is_paused(self, story: str) -> bool:
        return bool(self.view.paused or self.view.held.get(story))

    def _is_done(self, story: str) -> bool:
        history = self.view.histories.get(story)
        return history is None or history.status is StoryStatus.DONE

    @cached_property
    def _order(self) -> dict[str, int]:
        return {story: number for number, story in enumerate(self.view.histories)}

    @cached_property
    def _waves(self) -> dict[str, int]:
        layers, _ = waves(self.view.histories, self.view.record.needs)
        return {story: number for number, layer in enumerate(layers, 1) for story in layer}


def _base(view: SprintView) -> str:
    """Returns what the tests did before the sprint changed anything; "" while that is not known."""
    told = [event.message for event in view.events if event.name == BASE_TRIED]
    return told[-1] if told else ""
