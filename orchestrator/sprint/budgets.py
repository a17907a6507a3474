"""The budgets of stories, sprints and days: what is spent, and what calls under way are expected to take.

A call is reserved for before it begins and settled when it ends, so that calls side by side spend no more than what
they take beyond the expected, one call each. Reservations last as long as the process: what was paid is in the log.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from orchestrator.core.calls.exchange import Prompt, Usage
from orchestrator.core.calls.spending import NOTHING, UNITS, Amount, BudgetState, amount_in, told
from orchestrator.core.event import Event
from orchestrator.core.history import SPENT
from orchestrator.core.value import counted
from orchestrator.prompts.budget import CHARS_PER_TOKEN
from orchestrator.settings import BudgetSettings, PriceSettings
from orchestrator.settings.prices import cost_of

STORY, SPRINT, DAY = "story", "sprint", "day"
_GOES_ON = {STORY: "", SPRINT: "; raise it to continue", DAY: "; it goes on at 00:00 UTC, or once it is raised"}


def limits(budget: BudgetSettings, scope: str) -> dict[str, float]:
    """Returns unit → limit, of the budgets that are set for a story, a sprint or a day."""
    found = {unit: getattr(budget, f"{unit}_per_{scope}") for unit in UNITS}
    return {unit: most for unit, most in found.items() if most is not None}


def exhausted(budget: BudgetSettings, scope: str, spent: Amount, need: Amount = NOTHING) -> tuple[str, str] | None:
    """Returns the unit and a sentence of a budget that is used up, or that a call of `need` would break."""
    for unit, most in limits(budget, scope).items():
        there, wanted = getattr(spent, unit), getattr(need, unit)
        name = f"budget.{unit}_per_{scope} ({most})"
        if there >= most:
            return unit, f"{name} is used up: {told(unit, there, bare=unit != 'usd')}{_GOES_ON[scope]}"
        if there + wanted > most:
            expected = f"{told(unit, there)} spent, about {told(unit, wanted, bare=True)} expected"
            return unit, f"{name} is too small for the next call: {expected}{_GOES_ON[scope]}"
    return None


class Spending:
    """Adds up the paid calls of one sprint, those of stories that were restarted included."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.total = NOTHING
        self._known: set[str] = set()
        self._calls: Counter[str] = Counter()
        self._usd: dict[str, float | None] = {}
        for event in events:
            self.add(event)

    def add(self, event: Event) -> bool:
        """Adds what a turn took that ended, with a reply or an error; returns whether it counts and was not known."""
        took = amount_in(event.data) if event.name in SPENT and event.id not in self._known else None
        if took is None:
            return False
        self._known.add(event.id)
        self.total += took
        cost = event.data["cost_usd"]
        story, before = event.story or "", self._usd.get(event.story or "", 0.0)
        self._calls[story] += took.calls
        self._usd[story] = None if cost is None or before is None else before + cost
        return True

    def of(self, story: str) -> str:
        """Returns what a story has cost, in words; "" when nothing was paid for."""
        usd = self._usd.get(story)
        cost = f" and {usd:.2f} USD" if usd else ""
        return f"{counted(self._calls[story], 'call')}{cost}" if self._calls[story] else ""


@dataclass
class _Usual:
    """Tokens of a persona's calls, added up."""

    calls: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0


USUAL_OUTPUT = 1000
"""Tokens of an answer that a persona is expected to give before its first one."""


@dataclass(eq=False)
class Reservation:
    """A call that waits for room in the budgets, is under way, or has ended and is not in the log yet."""

    workflow_id: str
    sprint: str
    amount: Amount
    ended: bool = False

    def settle(self, took: Amount) -> None:
        """Notes what the call took; that counts until the event with it does."""
        self.amount, self.ended = took, True


def _average(spent: Amount) -> Amount:
    """Returns what a call took so far; nothing before the first one."""
    if not spent.calls:
        return NOTHING
    return Amount(1, spent.tokens // spent.calls, spent.usd / spent.calls)


@dataclass
class _Day:
    """What was spent since midnight UTC, by all sprints and analyses of the event log."""

    date: date
    spending: Spending = field(default_factory=Spending)


class Budgets:
    """The budgets of everything in a process."""

    def __init__(
        self,
        budget: BudgetSettings,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        price: Callable[[Prompt], PriceSettings | None] = lambda _prompt: None,
    ) -> None:
        """`price` returns that of the model that a prompt goes to."""
        self._budget, self._price = budget, price
        self._limited = {scope for scope in (SPRINT, DAY) if limits(budget, scope)}
        self._now, self._day = now, _Day(now().date())
        self._sprints: dict[str, Spending] = {}
        self._reserved: list[Reservation] = []
        self._refused: dict[str, Amount] = {}
        """Sprint, or "" for the day → the expected amount of the call that found no room."""
        self._usual: dict[str, _Usual] = {}
        self._moved = asyncio.Event()
        self.on_change: Callable[[], None] = lambda: None
        """Is called when a budget may be used up, or is so no longer."""

    @property
    def limits_days(self) -> bool:
        """Returns whether there is a budget of a day."""
        return DAY in self._limited

    def of_sprint(self, sprint: str) -> Spending:
        """Returns what the sprint has spent; its events are added from now on."""
        return self._sprints.setdefault(sprint, Spending())

    def forget(self, sprint: str) -> None:
        """Adds the sprint's events no more."""
        self._sprints.pop(sprint, None)

    def add(self, event: Event) -> None:
        """Adds an event of any sprint or analysis; a known one changes nothing."""
        if event.name not in SPENT:
            return
        before = self.over(event.sprint)
        counting = [self._sprints[event.sprint]] if event.sprint in self._sprints else []
        if event.time.astimezone(UTC).date() == self.today():
            counting.append(self._day.spending)
        if any([spending.add(event) for spending in counting]):
            self._learn(event)
        workflow_id = event.id.rpartition(":")[0]
        self._reserved = [one for one in self._reserved if not (one.ended and one.workflow_id == workflow_id)]
        self._move(changed=self.over(event.sprint) != before)

    def today(self) -> date:
        """Returns the date in UTC; what was spent before counts for the day no more."""
        today = self._date()
        if today != self._day.date:
            self._day = _Day(today)
            self._refused.pop("", None)
            # The event of one that was cut behind its answer, and is not gone on with, never comes.
            self._reserved = [one for one in self._reserved if not one.ended]
            self._move(changed=True)
        return today

    def over(self, sprint: str, need: Amount | None = None) -> str:
        """Returns a sentence on the sprint's or the day's exhausted budget; "" while there is none.

        With `need` also on one that has no room for a call of that size.
        """
        for scope, key in self._scopes(sprint):
            wanted = self._refused.get(key, NOTHING) if need is None else need
            found = exhausted(self._budget, scope, self._spent(scope, sprint), wanted)
            if found is not None:
                return found[1]
        return ""

    def over_in_story(self, spent: Amount, need: Amount) -> tuple[str, str] | None:
        """Returns the unit and a sentence of the story's budget that is used up; `spent`: by the story's calls."""
        return exhausted(self._budget, STORY, spent, need)

    def states(self) -> tuple[BudgetState, ...]:
        """Returns the budgets of the day that are set."""
        spent = self._spent(DAY, "")
        return tuple(
            BudgetState(name=f"{unit}_per_{DAY}", limit=most, spent=getattr(spent, unit))
            for unit, most in limits(self._budget, DAY).items()
        )

    def expected(self, prompt: Prompt) -> Amount:
        """Returns what a call is expected to take: the prompt's tokens, and the persona's answer and share of the cache
        as they were so far."""
        tokens, usual = -(-len(prompt.text) // CHARS_PER_TOKEN), self._usual.get(prompt.key.persona, _Usual())
        output = round(usual.output / usual.calls) if usual.calls else USUAL_OUTPUT
        cached = round(tokens * usual.cached / usual.input) if usual.input else 0
        price = self._price(prompt)
        usage = Usage(input=tokens, cached=cached, output=output)
        return Amount(1, tokens + output, cost_of(price, usage) if price is not None else 0.0)

    @asynccontextmanager
    async def reserved(self, workflow_id: str, sprint: str, need: Amount) -> AsyncIterator[Reservation | None]:
        """Yields a reservation once there is room for it beside those before it; None where there would be none even
        without them: then `over` says why, with the call's `need` where there is room for usual calls and only this one
        is too large. A call that is not settled in the block counts no longer."""
        mine = Reservation(workflow_id, sprint, need)
        self._reserved.append(mine)
        try:
            yield mine if await self._has_room(mine) else None
        finally:
            if not mine.ended:
                self._reserved.remove(mine)
            self._move(changed=mine.ended and bool(self.over(sprint)))

    async def _has_room(self, mine: Reservation) -> bool:
        while True:
            self.today()
            before = [one for one in self._reserved[: self._reserved.index(mine)] if not one.ended]
            waits = False
            for scope, key in self._scopes(mine.sprint):
                spent = self._spent(scope, mine.sprint)
                if exhausted(self._budget, scope, spent, mine.amount) is not None:
                    if exhausted(self._budget, scope, spent, _average(spent)) is not None:
                        self._refused[key] = mine.amount
                        self._move(changed=True)
                    return False
                beside = (one.amount for one in before if scope == DAY or one.sprint == mine.sprint)
                waits = waits or exhausted(self._budget, scope, sum(beside, spent), mine.amount) is not None
            if not waits:
                return True
            await self._moved.wait()

    def _scopes(self, sprint: str) -> list[tuple[str, str]]:
        """Returns whose budgets limit a call of the sprint, or of an analysis, and their keys among the refused."""
        both = ((SPRINT, sprint), (DAY, ""))
        return [
            (scope, key) for scope, key in both if scope in self._limited and (scope == DAY or key in self._sprints)
        ]

    def _spent(self, scope: str, sprint: str) -> Amount:
        """Returns what is in the log, and what ended calls took that are not in it yet. Changes nothing, for the live
        table asks in a thread of its own; that a day is over, `today` notices."""
        if scope == DAY and self._day.date != self._date():
            return NOTHING
        total = (self._day.spending if scope == DAY else self._sprints[sprint]).total
        ended = (one.amount for one in self._reserved if one.ended and (scope == DAY or one.sprint == sprint))
        return sum(ended, total)

    def _date(self) -> date:
        return self._now().astimezone(UTC).date()

    def _learn(self, event: Event) -> None:
        if event.data.get("paid") and event.persona:
            usual = self._usual.setdefault(event.persona, _Usual())
            usual.calls += 1
            usual.input += event.data["input_tokens"]
            usual.cached += event.data["cached_tokens"]
            usual.output += event.data["output_tokens"]

    def _move(self, *, changed: bool = False) -> None:
        """Wakes calls that wait for room, and with `changed` whoever looks whether a budget is used up."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        if changed:
            self.on_change()
