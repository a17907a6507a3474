"""Spans on their way to a collector over OTLP/HTTP, in a thread that nobody waits for."""

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from orchestrator import __version__
from orchestrator.adapters.trace_spans import TOLD, Earlier, Span, SpanFold
from orchestrator.domain.events import Event, Level
from orchestrator.errors import OrchestratorError

NAME = "sprint-orchestrator"
UNREACHED = "traces_unreached"
QUEUE = 10_000
"""Events that wait at most; what comes while the collector hangs is left out of the traces, never of the log."""
BATCH, EVERY_S, TIMEOUT_S, ENDING_S = 256, 2.0, 5.0, 3.0
"""Spans that are sent at once; longest wait of a span; what one request may take; what the last ones get."""
_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_SCOPE = InstrumentationScope(NAME, __version__)


class Traces:
    """Give each event to `listen`; `close` in the end. `tell` hears once when the collector cannot be reached."""

    def __init__(
        self, endpoint: str, variables: Mapping[str, str], earlier: Earlier, tell: Callable[[Event], None]
    ) -> None:
        """`endpoint` is where traces go; `variables` may hold headers, the service's name and attributes of it."""
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        logging.getLogger("opentelemetry").propagate = False
        headers = _pairs(variables.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or variables.get(_HEADERS, ""))
        self._exporter = OTLPSpanExporter(endpoint=endpoint, headers=headers, timeout=TIMEOUT_S)
        told = _pairs(variables.get("OTEL_RESOURCE_ATTRIBUTES", ""))
        named = variables.get("OTEL_SERVICE_NAME") or told.get("service.name") or NAME
        self._resource = Resource({**told, "service.name": named, "service.version": __version__})
        self._endpoint, self._tell = endpoint, tell
        self._fold = SpanFold(earlier)
        self._events: queue.Queue[Event | None] = queue.Queue(QUEUE)
        self._told = self._failing = False
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._thread.start()

    def listen(self, event: Event) -> None:
        """An event was recorded; returns at once, whatever the collector does."""
        if event.name in TOLD:
            try:
                self._events.put_nowait(event)
            except queue.Full:
                self._unreached("it does not keep up: spans are left out")

    def close(self) -> None:
        """Send what is left, for a moment at most; nothing to a collector that was not there just now. Blocks."""
        with suppress(queue.Full):
            self._events.put_nowait(None)
            self._thread.join(0.0 if self._failing else ENDING_S)
        if self._thread.is_alive():
            self._unreached("what it has not taken by now is not sent")
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _work(self) -> None:
        ended = False
        while not ended:
            spans, ended = self._batch()
            if spans:
                self._failing = self._exporter.export(spans) is not SpanExportResult.SUCCESS
            if self._failing:
                self._unreached("what it did not take is not sent again")

    def _batch(self) -> tuple[list[ReadableSpan], bool]:
        """Spans that are ready, and whether there are no more to come."""
        spans: list[ReadableSpan] = []
        until = datetime.now(UTC) + timedelta(seconds=EVERY_S)
        while len(spans) < BATCH:
            left = (until - datetime.now(UTC)).total_seconds() if spans else None
            try:
                event = self._events.get(timeout=left if left is None else max(left, 0.0))
            except queue.Empty:
                break
            if event is None:
                return spans, True
            spans += [self._readable(span) for span in self._ended_by(event)]
        return spans, False

    def _ended_by(self, event: Event) -> list[Span]:
        try:
            return self._fold.add(event)
        except OrchestratorError:  # the log cannot be read now: this sprint has no spans of what came before
            return []

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=SpanContext(span.trace, span.span, is_remote=False, trace_flags=_SAMPLED),
            parent=None if span.parent is None else SpanContext(span.trace, span.parent, is_remote=False),
            resource=self._resource,
            attributes={**span.attributes, **({"error.type": span.error} if span.error else {})},
            kind=SpanKind.CLIENT if span.asks_model else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end),
            instrumentation_scope=_SCOPE,
        )

    def _unreached(self, what: str) -> None:
        if self._told:
            return
        self._told = True
        now = datetime.now(UTC)
        text = f"traces cannot be sent to {self._endpoint}; {what}, and nothing else depends on it"
        self._tell(Event(id="", time=now, level=Level.WARN, name=UNREACHED, message=text, sprint="", data={}))


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=2` with values as in an address."""
    parts = (part.partition("=") for part in text.split(","))
    return {name.strip(): unquote(value.strip()) for name, sign, value in parts if sign and name.strip()}


def _nanoseconds(time: datetime) -> int:
    """Exact: as a number with a point it would lose the last digits."""
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000
