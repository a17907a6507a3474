"""The budgets of stories, sprints and days: what is spent is compared with each limit before a call.

Calls that are under way then end, so a budget is overrun by at most one call for each of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable
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
    """Returns the unit and a sentence of a budget that is used up, or that one call of `need` is larger than."""
    for unit, most in limits(budget, scope).items():
        there, wanted = getattr(spent, unit), getattr(need, unit)
        name = f"budget.{unit}_per_{scope} ({most})"
        if there >= most:
            return unit, f"{name} is used up: {told(unit, there, bare=unit != 'usd')}{_GOES_ON[scope]}"
        if wanted > most:
            return unit, f"{name} is too small for the next call: it takes about {told(unit, wanted)}{_GOES_ON[scope]}"
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


USUAL_OUTPUT = 1000
"""Tokens of an answer that a call is expected to take."""


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
        self._unlogged: dict[str, tuple[str, Amount]] = {}
        """Workflow → its sprint, and what its calls took that ended and are not in the log yet."""
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
        self._unlogged.pop(event.id.rpartition(":")[0], None)
        if event.sprint in self._sprints:
            self._sprints[event.sprint].add(event)
        if event.time.astimezone(UTC).date() == self.today():
            self._day.spending.add(event)
        if self.over(event.sprint) != before:
            self.on_change()

    def took(self, workflow_id: str, sprint: str, amount: Amount) -> None:
        """Counts a call that ended, until the event that tells it does."""
        before = self._unlogged.get(workflow_id, (sprint, NOTHING))[1]
        self._unlogged[workflow_id] = sprint, before + amount
        if self.over(sprint):
            self.on_change()

    def today(self) -> date:
        """Returns the date in UTC; what was spent before counts for the day no more."""
        today = self._date()
        if today != self._day.date:
            self._day = _Day(today)
            self._unlogged.clear()  # the event of a call whose story was cut behind its answer never comes
            self.on_change()
        return today

    def over(self, sprint: str, need: Amount = NOTHING) -> str:
        """Returns a sentence on the sprint's or the day's budget that is used up, or that one call of `need` is larger
        than; "" while there is none."""
        for scope in (SPRINT, DAY):
            if scope in self._limited and (scope == DAY or sprint in self._sprints):
                found = exhausted(self._budget, scope, self._spent(scope, sprint), need)
                if found is not None:
                    return found[1]
        return ""

    def over_in_story(self, spent: Amount, need: Amount) -> tuple[str, str] | None:
        """Returns the same of the story's budgets, and the unit; `spent`: by the story's calls."""
        return exhausted(self._budget, STORY, spent, need)

    def states(self) -> tuple[BudgetState, ...]:
        """Returns the budgets of the day that are set."""
        spent = self._spent(DAY, "")
        return tuple(
            BudgetState(name=f"{unit}_per_{DAY}", limit=most, spent=getattr(spent, unit))
            for unit, most in limits(self._budget, DAY).items()
        )

    def expected(self, prompt: Prompt) -> Amount:
        """Returns what a call is expected to take: the prompt's tokens and an answer of the usual length."""
        usage, price = Usage(input=-(-len(prompt.text) // CHARS_PER_TOKEN), output=USUAL_OUTPUT), self._price(prompt)
        return Amount(1, usage.input + usage.output, cost_of(price, usage) if price is not None else 0.0)

    def _spent(self, scope: str, sprint: str) -> Amount:
        """Returns what is in the log, and what ended calls took that are not in it yet. Changes nothing, for the live
        table asks in a thread of its own; that a day is over, `today` notices."""
        if scope == DAY and self._day.date != self._date():
            return NOTHING
        total = (self._day.spending if scope == DAY else self._sprints[sprint]).total
        ended = (took for of, took in [*self._unlogged.values()] if scope == DAY or of == sprint)
        return sum(ended, total)

    def _date(self) -> date:
        return self._now().astimezone(UTC).date()
