"""What calls of models take: calls, tokens and money, of one call or added up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.core.calls.exchange import Reply
from orchestrator.core.sprint import Tokens
from orchestrator.core.value import Value, counted

UNITS = ("calls", "tokens", "usd")


@dataclass(frozen=True)
class Amount:
    """Calls, their tokens (input and output together), and US dollars."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    """Of calls with a known price."""

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)


NOTHING = Amount()


def amount_of(reply: Reply) -> Amount:
    """Returns what a call took."""
    return Amount(int(reply.paid), reply.usage.input + reply.usage.output, reply.cost_usd or 0.0)


def amount_in(data: Mapping[str, Any]) -> Amount | None:
    """Returns what a turn took by the data of the event that ends it; None for one that took nothing."""
    if data.get("paid") is False or "cost_usd" not in data:  # a stand-in; a turn that failed
        return None
    return Amount(int(bool(data.get("paid"))), data["input_tokens"] + data["output_tokens"], data["cost_usd"] or 0.0)


class BudgetState(Value):
    """What is spent, and of which budget."""

    name: str
    """The setting below `budget`, as `usd_per_sprint`."""
    limit: float | None
    """None where there is none."""
    spent: float

    def __str__(self) -> str:
        unit = self.name.partition("_")[0]
        if self.limit is None:
            return told(unit, self.spent)
        return f"{told(unit, self.spent, bare=True)} of {told(unit, self.limit)}"


def sprint_budgets(spent: Amount, limits: Mapping[str, float]) -> tuple[BudgetState, ...]:
    """Returns what a sprint has spent in each unit, and of which budget; `limits`: unit → limit where one is set."""
    return tuple(
        BudgetState(name=f"{unit}_per_sprint", limit=limits.get(unit), spent=getattr(spent, unit)) for unit in UNITS
    )


def told_spent(budgets: Iterable[BudgetState]) -> str:
    """Returns what is spent in one line; "" where there is nothing to tell."""
    shown = [str(one) for one in budgets if one.spent or one.limit is not None]
    return f"spent {', '.join(shown)}" if shown else ""


class PersonaSpending(Value):
    """What the calls of one persona took."""

    persona: str
    calls: int = 0
    tokens: Tokens = Tokens()
    cost_usd: float | None = 0.0
    """None when any call's price is unknown."""

    def __add__(self, other: "PersonaSpending") -> "PersonaSpending":
        mine, theirs = self.tokens, other.tokens
        known = self.cost_usd is not None and other.cost_usd is not None
        return PersonaSpending(
            persona=self.persona,
            calls=self.calls + other.calls,
            tokens=Tokens(
                input=mine.input + theirs.input, cached=mine.cached + theirs.cached, output=mine.output + theirs.output
            ),
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


def told(unit: str, number: float, *, bare: bool = False) -> str:
    """Returns a number of one of the units, for people; `bare`: without the unit."""
    if unit == "usd":
        return f"{number:.2f}" if bare else f"{number:.2f} USD"
    return f"{number:.0f}" if bare else counted(round(number), unit.removesuffix("s"))
