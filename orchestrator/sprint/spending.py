"""What a sprint has cost up to now, and whether that is all it may (`budget.*_per_sprint`)."""

from collections.abc import Iterable

from orchestrator.domain.events import Event
from orchestrator.settings import BudgetSettings

TURN = "turn_finished"


class Spending:
    """Adds up the paid calls of one sprint, those of stories that were begun anew included."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.calls = self.tokens = 0
        self.usd = 0.0
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take in one more event of the sprint; only paid calls count."""
        if event.name != TURN or not event.data.get("paid"):
            return
        self.calls += 1
        self.tokens += event.data["input_tokens"] + event.data["output_tokens"]
        self.usd += event.data["cost_usd"] or 0.0

    def over(self, budget: BudgetSettings) -> str:
        """Which limit is used up, as a sentence; "" while none is."""
        limits = (
            ("calls_per_sprint", budget.calls_per_sprint, self.calls, ""),
            ("tokens_per_sprint", budget.tokens_per_sprint, self.tokens, ""),
            ("usd_per_sprint", budget.usd_per_sprint, self.usd, " USD"),
        )
        for name, most, spent, unit in limits:
            if most is not None and spent >= most:
                shown = f"{spent:.2f}" if unit else str(spent)
                return f"budget.{name} ({most}) is used up: {shown}{unit}; raise it to go on"
        return ""
