"""What calls of models take: calls, tokens and money, of one call or added up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.core.exchange import FailedCall, Reply
from orchestrator.core.value import Value

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


def amount_of(call: Reply | FailedCall) -> Amount:
    """Returns what a call took; one without an answer is no paid call, but its tokens may be paid for."""
    paid = isinstance(call, Reply) and call.paid
    return Amount(int(paid), call.usage.input + call.usage.output, call.cost_usd or 0.0)


def amount_in(data: Mapping[str, Any]) -> Amount | None:
    """Returns what a turn took by the data of the event that ends it; None for one that took nothing."""
    if data.get("paid") is False or "cost_usd" not in data:  # a stand-in; a turn that failed in an older release
        return None
    return Amount(int(bool(data.get("paid"))), data["input_tokens"] + data["output_tokens"], data["cost_usd"] or 0.0)


class BudgetState(Value):
    """A budget that is set, and what of it is spent."""

    name: str
    """The setting below `budget`, as `usd_per_sprint`."""
    limit: float
    spent: float

    def __str__(self) -> str:
        unit = self.name.partition("_")[0]
        return f"{told(unit, self.spent, bare=True)} of {told(unit, self.limit)}"


def told(unit: str, number: float, *, bare: bool = False) -> str:
    """Returns a number of one of the units, for people; `bare`: without the unit."""
    if unit == "usd":
        return f"{number:.2f}" if bare else f"{number:.2f} USD"
    return f"{number:.0f}" if bare else f"{number:.0f} {unit}"
