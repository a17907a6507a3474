"""Spans of sprints, stories, tasks and turns, folded from events: same events, same spans, whoever folds them.

Spans on their way to a collector over OTLP/HTTP, in a thread that nobody waits for.

Traces, where the environment names a collector (OpenTelemetry's own variables).
"""

import hashlib
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import unquote

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from orchestrator import __version__
from orchestrator.app.sprint_reader import Reader
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.event import Event, Level
from orchestrator.settings import Environment

BEGUN = frozenset({"sprint_started", "sprint_continued"})
TURN_FINISHED, TURN_FAILED = "turn_finished", "turn_failed"
TURNS = frozenset({TURN_FINISHED, TURN_FAILED})
STORY_STARTED, STORY_FINISHED, STORY_RESET = "story_started", "story_finished", "story_reset"
TASK_FINISHED, TURN_STARTED = "task_finished", "turn_started"
TOLD = BEGUN | TURNS | {STORY_STARTED, STORY_FINISHED, STORY_RESET, TASK_FINISHED, TURN_STARTED}
"""Events that spans are made of; all others may be left out."""
Attribute = str | int | float | bool | tuple[str, ...]
Earlier = Callable[[str], Iterable[Event]]
"""Sprint → its events from the beginning, as far as they are recorded. Blocks."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """One span that has ended. No attribute holds what a model said or was asked."""

    name: str
    trace: int
    """16 bytes, the same for everything of a sprint."""
    span: int
    """8 bytes."""
    parent: int | None
    start: datetime
    end: datetime
    attributes: dict[str, Attribute]
    error: str = ""
    """What went wrong, as a code; "" when nothing did."""
    asks_model: bool = False


@dataclass
class _Story:
    started: datetime | None = None
    tasks: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    """Task → how often it has ended, and when it was first heard of since then."""
    asked: dict[tuple[str | None, str | None], datetime] = field(default_factory=dict)
    """(persona, task) → when the turn began that has not ended."""


@dataclass
class _Sprint:
    trace: int
    started: datetime
    stories: frozenset[str]
    open: dict[str, _Story] = field(default_factory=dict)
    """Workflow → its story."""
    finished: dict[str, datetime] = field(default_factory=dict)
    """Story → when it ended."""


class SpanFold:
    """Takes events in their order. What came before this process is read once, when it goes on with a sprint."""

    def __init__(self, earlier: Earlier) -> None:
        self._earlier = earlier
        self._sprints: dict[str, _Sprint] = {}

    def add(self, event: Event) -> list[Span]:
        """The spans that this event ends. Blocks when a sprint goes on."""
        if event.name not in TOLD:
            return []
        if event.name == "sprint_continued" and event.sprint not in self._sprints:
            for known in self._earlier(event.sprint):
                if known.id == event.id:
                    break
                if known.name in TOLD:
                    self._take(known)
        return self._take(event)

    def _take(self, event: Event) -> list[Span]:
        if event.name in BEGUN:
            stories = frozenset(str(story) for story in event.data.get("stories", ()))
            trace = _number(16, event.sprint, event.time.isoformat())
            known = self._sprints.setdefault(event.sprint, _Sprint(trace, event.time, stories))
            known.stories = stories or known.stories
            return []
        sprint = self._sprints.get(event.sprint)
        return list(self._of_story(sprint, event)) if sprint is not None and event.story else []

    def _of_story(self, sprint: _Sprint, event: Event) -> Iterator[Span]:
        workflow = event.id.rpartition(":")[0]
        story = sprint.open.setdefault(workflow, _Story())
        if event.task is not None:
            story.tasks.setdefault(event.task, (0, event.time))
        if event.name == STORY_STARTED:
            story.started = event.time
        elif event.name == STORY_RESET:
            sprint.finished.pop(str(event.story), None)
        elif event.name == TURN_STARTED:
            story.asked[event.persona, event.task] = event.time
        elif event.name in TURNS:
            yield _turn(sprint, workflow, story, event)
        elif event.name == TASK_FINISHED and event.task is not None:
            yield _task(sprint, workflow, story, event)
        elif event.name == STORY_FINISHED:
            yield from self._story_ended(sprint, workflow, story, event)

    def _story_ended(self, sprint: _Sprint, workflow: str, story: _Story, event: Event) -> Iterator[Span]:
        outcome = event.data.get("outcome", {})
        status = str(outcome.get("status", ""))
        yield Span(
            name=f"story {event.story}",
            trace=sprint.trace,
            span=_story_id(sprint, workflow),
            parent=_number(8, sprint.trace),
            start=story.started or event.time,
            end=event.time,
            attributes={
                **_place(event),
                "orchestrator.status": status,
                "orchestrator.attempts": outcome.get("attempts", 0),
            },
            error="" if status == "done" else status,
        )
        sprint.open.pop(workflow, None)
        sprint.finished[str(event.story)] = event.time
        if sprint.stories <= set(sprint.finished):
            yield self._ended(event.sprint, sprint)

    def _ended(self, name: str, sprint: _Sprint) -> Span:
        """Once more, and longer, when a story is begun anew and ends."""
        return Span(
            name=f"sprint {name}",
            trace=sprint.trace,
            span=_number(8, sprint.trace),
            parent=None,
            start=sprint.started,
            end=max(sprint.finished.values()),
            attributes={"orchestrator.sprint": name, "orchestrator.stories": len(sprint.stories)},
        )


def _turn(sprint: _Sprint, workflow: str, story: _Story, event: Event) -> Span:
    data = event.data
    lasted = timedelta(milliseconds=data.get("duration_ms") or 0)
    began = story.asked.pop((event.persona, event.task), event.time - lasted)
    known = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": data.get("provider"),
        "gen_ai.request.model": data.get("model"),
        "gen_ai.response.model": data.get("model"),
        "gen_ai.agent.name": event.persona,
        "gen_ai.prompt.name": data.get("prompt"),
        "gen_ai.usage.input_tokens": data.get("input_tokens"),
        "gen_ai.usage.cache_read.input_tokens": data.get("cached_tokens"),
        "gen_ai.usage.output_tokens": data.get("output_tokens"),
        "gen_ai.response.finish_reasons": (str(data["stop_reason"]),) if data.get("stop_reason") else None,
        "orchestrator.purpose": data.get("purpose"),
        "orchestrator.turn": data.get("turn"),
        "orchestrator.cost_usd": data.get("cost_usd"),
    }
    model = data.get("model")
    error = next((str(one["code"]) for one in data["findings"]), "failed") if event.name == TURN_FAILED else ""
    return Span(
        name=f"chat {model}" if model else "chat",
        trace=sprint.trace,
        span=_number(8, sprint.trace, event.id),
        parent=_story_id(sprint, workflow) if event.task is None else _task_id(sprint, workflow, story, event.task),
        start=min(began, event.time),
        end=event.time,
        attributes={**_place(event), **{name: value for name, value in known.items() if value not in (None, "")}},
        error=error,
        asks_model=True,
    )


def _task(sprint: _Sprint, workflow: str, story: _Story, event: Event) -> Span:
    task = str(event.task)
    ended, began = story.tasks[task]
    told = Span(
        name=f"task {task}",
        trace=sprint.trace,
        span=_task_id(sprint, workflow, story, task),
        parent=_story_id(sprint, workflow),
        start=began,
        end=event.time,
        attributes={**_place(event), "orchestrator.status": str(event.data.get("status", ""))},
        error="" if event.data.get("status") == "done" else str(event.data.get("status", "")),
    )
    story.tasks[task] = (ended + 1, event.time)
    return told


def _place(event: Event) -> dict[str, Attribute]:
    places = {"sprint": event.sprint, "story": event.story, "task": event.task}
    return {f"orchestrator.{name}": value for name, value in places.items() if value}


def _story_id(sprint: _Sprint, workflow: str) -> int:
    return _number(8, sprint.trace, workflow)


def _task_id(sprint: _Sprint, workflow: str, story: _Story, task: str) -> int:
    return _number(8, sprint.trace, workflow, task, story.tasks[task][0])


def _number(size: int, *parts: object) -> int:
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:size], "big") or 1


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


if TYPE_CHECKING:
    pass

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
