"""Budgets of stories, sprints and days: what counts, and what holds a call."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.core.calls.exchange import Prompt, Purpose, Segment, TurnKey
from orchestrator.core.calls.spending import Amount, told
from orchestrator.core.event import Event
from orchestrator.settings import BudgetSettings, PriceSettings
from orchestrator.sprint.budgets import Budgets, Spending
from orchestrator.sprint.state import Board

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PROMPT = Prompt(
    key=TurnKey(persona="mike", story="A", purpose=Purpose.BREAKDOWN), segments=(Segment(name="role", text="x" * 4000),)
)
CENT = Amount(1, 1000, 0.01)


class Time:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time


def paid(
    number: int, sprint: str = "S", *, usd: float | None = 0.01, name: str = "turn_finished", **data: Any
) -> Event:
    told = {"input_tokens": 900, "cached_tokens": 0, "output_tokens": 100, "cost_usd": 0.01, "paid": True, **data}
    if name == "turn_failed":
        del told["paid"]
    return Event(
        id=f"{sprint}/A:{number}", time=NOON, name=name, message="", sprint=sprint, story="A", persona="mike", data=told
    )


def made(time: Time | None = None, price: PriceSettings | None = None, **budget: Any) -> Budgets:
    budgets = Budgets(BudgetSettings(**budget), (time or Time()).now, lambda _prompt: price)
    budgets.of_sprint("S")
    return budgets


def test_what_a_turn_took_counts_once_also_of_one_that_failed_and_a_stand_in_does_not() -> None:
    spending = Spending([paid(1), paid(1), paid(2, cost_usd=None), paid(3, name="turn_failed"), paid(4, paid=False)])
    assert spending.total == Amount(2, 3000, 0.02)
    old = paid(5, name="turn_failed")
    spending.add(old.model_copy(update={"data": {"purpose": "suite"}}))
    assert spending.total == Amount(2, 3000, 0.02), "a log of a release that did not tell"
    assert [told("calls", 1), told("calls", 2), told("tokens", 1), told("usd", 1)] == [
        "1 call", "2 calls", "1 token", "1.00 USD",
    ]  # fmt: skip


def test_a_budget_holds_calls_and_nothing_else() -> None:
    budgets = made(usd_per_sprint=0.02, calls_per_sprint=3, tokens_per_sprint=2001)
    board = Board("S", lambda: budgets.over("S"))
    budgets.add(paid(1))
    assert board.why_not("A", paid=True) == ""
    budgets.add(paid(2))
    assert board.why_not("A", paid=False) == ""
    assert board.why_not("A", paid=True) == ("budget.usd_per_sprint (0.02) is used up: 0.02 USD; raise it to continue")
    budgets = made(tokens_per_sprint=2000)
    budgets.add(paid(1))
    budgets.add(paid(2))
    assert "budget.tokens_per_sprint (2000) is used up: 2000;" in budgets.over("S")


def test_a_day_holds_all_sprints_and_analyses_and_begins_again_at_midnight_utc() -> None:
    time = Time()
    budgets = made(time, calls_per_day=2, calls_per_sprint=9)
    budgets.add(paid(1))
    budgets.add(paid(2, "another"))
    used_up = "budget.calls_per_day (2) is used up: 2; it goes on at 00:00 UTC, or once it is raised"
    assert [budgets.over(name) for name in ("S", "another", "an analysis")] == [used_up] * 3
    assert [str(state) for state in budgets.states()] == ["2 of 2 calls"]
    looks: list[str] = []
    budgets.on_change = lambda: looks.append("")
    time.time = NOON + timedelta(hours=12)
    assert budgets.over("S") == ""
    assert budgets.states()[0].spent == 0
    assert not looks, "the live table asks in a thread of its own"
    budgets.add(paid(3))
    assert looks
    assert budgets.states()[0].spent == 0, "what is of yesterday does not count for today"


def test_a_call_that_ended_counts_before_its_event_is_there_and_once() -> None:
    budgets = made(calls_per_sprint=1)
    looks: list[str] = []
    budgets.on_change = lambda: looks.append(budgets.over("S"))
    used_up = "budget.calls_per_sprint (1) is used up: 1; raise it to continue"
    budgets.took("S/A", "S", CENT)
    assert looks == [used_up]
    budgets.add(paid(1))
    assert (budgets.over("S"), budgets.of_sprint("S").total.calls, looks) == (used_up, 1, [used_up])


def test_an_expected_amount_is_of_the_prompt_a_usual_answer_and_the_price() -> None:
    assert made().expected(PROMPT) == Amount(1, 2000, 0.0)
    budgets = made(price=PriceSettings(input=10, cached=1, output=50))
    assert budgets.expected(PROMPT).usd == pytest.approx(1000 * 10e-6 + 1000 * 50e-6)
