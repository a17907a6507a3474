"""A fold over the events of an analysis: what ended, what was picked, and what it cost (decisions.md#event-log)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.domain.analysis import AnalysisRecord, StageResult
from orchestrator.domain.events import Event
from orchestrator.domain.outcome import Tokens


@dataclass
class Ledger:
    """What the log says about one analysis."""

    results: dict[str, StageResult] = field(default_factory=dict)
    """Stage → its result in its present generation."""
    calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = 0.0
    """None when the price of a call is unknown."""

    def add_call(self, event: Event) -> None:
        """One paid call, of whatever generation."""
        data = event.data
        self.calls += 1
        self.tokens = Tokens(
            input=self.tokens.input + data["input_tokens"],
            cached=self.tokens.cached + data["cached_tokens"],
            output=self.tokens.output + data["output_tokens"],
        )
        cost = data["cost_usd"]
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost


def fold(record: AnalysisRecord, events: Iterable[Event]) -> Ledger:
    """`events` are those of the analysis, in order."""
    ledger = Ledger()
    for event in events:
        if event.name == "turn_finished" and event.data.get("paid"):
            ledger.add_call(event)
        elif event.name == "stage_finished" and event.id.rpartition(":")[0] == record.workflow_id(str(event.story)):
            ledger.results[str(event.story)] = StageResult.model_validate(event.data["result"])
    return ledger
