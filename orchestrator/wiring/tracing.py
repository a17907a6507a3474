"""Traces, where the environment names a collector (OpenTelemetry's own variables)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.domain.events import Event
from orchestrator.settings import Environment
from orchestrator.wiring.read import Reader

if TYPE_CHECKING:
    from orchestrator.adapters.tracing import Traces

ENDPOINT, TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


def collector(environment: Environment) -> str | None:
    """Where traces go; None when nobody wants them."""
    variables = environment.variables
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if variables.get("OTEL_TRACES_EXPORTER", "otlp").strip() == "none":
        return None
    base = variables.get(ENDPOINT, "").strip().rstrip("/")
    return variables.get(TRACES_ENDPOINT, "").strip() or (f"{base}/v1/traces" if base else None)


def open_traces(environment: Environment, tell: Callable[[Event], None]) -> "Traces | None":
    """What takes events to the collector (`listen`, and `close` in the end); None when there is none.

    `tell` hears once, from another thread, that it cannot be reached.
    """
    endpoint = collector(environment)
    if endpoint is None:
        return None
    # Imported here: most have no collector.
    from orchestrator.adapters.tracing import Traces

    def earlier(sprint: str) -> Iterator[Event]:
        return (event for _, event in Reader(environment).events(sprint))

    return Traces(endpoint, environment.variables, earlier, tell)


@contextmanager
def traced(environment: Environment, listen: Callable[[Event], None]) -> Iterator[Callable[[Event], None]]:
    """`listen`, with traces beside it where there is a collector; what is left is sent at the end, in a moment.

    Blocks, also when it is left.
    """
    traces = open_traces(environment, listen)
    if traces is None:
        yield listen
        return

    def both(event: Event) -> None:
        traces.listen(event)
        listen(event)

    try:
        yield both
    finally:
        traces.close()
