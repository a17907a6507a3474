"""What Prometheus scrapes: counters fed by events as they are recorded, gauges of the daemon as it is now.

Counters begin at zero with each process, as is their convention; their readers know restarts.
"""

from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from orchestrator.core.daemon import DaemonState
from orchestrator.core.event import Event

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# Buckets for calls to models, which take from half a second to minutes.
_SECONDS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_TOKENS = {"input": "input_tokens", "cached": "cached_tokens", "output": "output_tokens"}
_PHASES = ("starting", "ready", "stopping")


class Metrics:
    """`observe` every new event; `text` is what is scraped. Neither blocks."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # an unused second sample of each counter
        self._registry = CollectorRegistry()
        self._stories = self._counter("stories", "Stories that ended, by how", "status")
        self._turns = self._counter("turns", "Turns of personas that ended with a reply", "persona", "purpose")
        self._failed = self._counter("turns_failed", "Turns that ended without a reply", "persona", "purpose")
        self._tokens = self._counter("tokens", "Tokens that were paid for; input includes cached", "kind")
        self._cost = self._counter("cost_usd", "What calls of known price cost, in US dollars")
        self._unpriced = self._counter("turns_unpriced", "Paid replies whose price is unknown")
        self._retries = self._counter("calls_retried", "Requests that were sent again, by why", "kind")
        self._sent_back = self._counter("answers_sent_back", "Answers that went back with findings", "purpose")
        self._repairs = self._counter("repairs", "Answers that were healed, by the layer that did it", "layer")
        self._gates = self._counter("gates_opened", "Questions to a person", "kind")
        self._latency = Histogram(
            "orchestrator_turn_duration_seconds", "How long turns took", ("persona",),
            registry=self._registry, buckets=_SECONDS,
        )  # fmt: skip
        self._gauges = {
            name: Gauge(f"orchestrator_{name}", told, registry=self._registry)
            for name, told in (
                ("gates_open", "Stories that wait for a person"),
                ("stories_at_work", "Stories that are being worked on"),
                ("stories_queued", "Stories that are chosen and have not started"),
                ("stories_unclaimed", "Stories of watched backlogs that no sprint has taken yet"),
                ("calls_in_flight", "Requests to providers that wait for their reply"),
                ("backlogs", "Backlogs that are watched"),
                ("backlogs_refused", "Watched backlogs whose present content is refused"),
                ("uptime_seconds", "Seconds since the daemon began"),
                ("event_streams", "Open streams of events"),
            )
        }
        self._sprints = Gauge("orchestrator_sprints", "Sprints of the daemon", ("phase",), registry=self._registry)
        budget = ("budget", "sprint")
        self._limit = Gauge("orchestrator_budget_limit", "A budget that is set", budget, registry=self._registry)
        self._spent = Gauge("orchestrator_budget_spent", "What is spent of it", budget, registry=self._registry)
        self._phase = Gauge("orchestrator_phase", "1 for the daemon's phase", ("phase",), registry=self._registry)
        self._version = Gauge("orchestrator_info", "Always 1", ("version",), registry=self._registry)

    def _counter(self, name: str, told: str, *labels: str) -> Counter:
        return Counter(f"orchestrator_{name}", told, labels, registry=self._registry)

    def observe(self, event: Event) -> None:
        """Counts an event that was recorded now for the first time."""
        data, persona = event.data, event.persona or ""
        if event.name == "turn_finished":
            self._turn(persona, data)
        elif event.name == "turn_failed":
            self._failed.labels(persona, _word(data, "purpose")).inc()
            if "cost_usd" in data:
                self._spend(data)
        elif event.name == "story_finished":
            self._stories.labels(_word(data, "status")).inc()
        elif event.name == "call_retried":
            self._retries.labels(_word(data, "kind")).inc()
        elif event.name == "answer_sent_back":
            self._sent_back.labels(_word(data, "purpose")).inc()
        elif event.name in {"answer_healed", "answer_repaired_by_model"}:
            self._repairs.labels("model" if event.name == "answer_repaired_by_model" else _word(data, "layer")).inc()
        elif event.name == "gate_opened":
            self._gates.labels(_word(data.get("gate") or {}, "kind")).inc()

    def _turn(self, persona: str, data: dict[str, Any]) -> None:
        self._turns.labels(persona, _word(data, "purpose")).inc()
        self._latency.labels(persona).observe((data.get("duration_ms") or 0) / 1000)
        if not data.get("paid"):
            return
        self._spend(data)
        if data.get("cost_usd") is None:
            self._unpriced.inc()

    def _spend(self, data: dict[str, Any]) -> None:
        for kind, name in _TOKENS.items():
            self._tokens.labels(kind).inc(data.get(name) or 0)
        self._cost.inc(data.get("cost_usd") or 0.0)

    def text(self, state: DaemonState, streams: int) -> bytes:
        """Returns everything in Prometheus' text format."""
        phases = [sprint.phase for sprint in state.sprints]
        shown = {
            "gates_open": state.stories_waiting,
            "stories_at_work": state.stories_at_work,
            "stories_queued": state.stories_queued,
            "stories_unclaimed": sum(len(backlog.waiting) for backlog in state.backlogs),
            "calls_in_flight": state.calls_in_flight,
            "backlogs": len(state.backlogs),
            "backlogs_refused": sum(bool(backlog.refused) for backlog in state.backlogs),
            "uptime_seconds": max(0.0, (datetime.now(UTC) - state.started_at).total_seconds()),
            "event_streams": streams,
        }
        for name, value in shown.items():
            self._gauges[name].set(value)
        for phase in ("running", "paused", "ended"):
            self._sprints.labels(phase).set(phases.count(phase))
        for gauge in (self._limit, self._spent):
            gauge.clear()
        for sprint, budgets in (("", state.budgets), *((one.sprint, one.budgets) for one in state.sprints)):
            for one in budgets:
                self._limit.labels(one.name, sprint).set(one.limit or 0)
                self._spent.labels(one.name, sprint).set(one.spent)
        for phase in _PHASES:
            self._phase.labels(phase).set(state.phase == phase)
        self._version.labels(state.version).set(1)
        return generate_latest(self._registry)


def _word(data: Any, name: str) -> str:
    return str(data.get(name) or "unknown")
