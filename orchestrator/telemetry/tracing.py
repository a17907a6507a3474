"""Traces of sprints, stories, tasks and turns, where the environment names a collector (OpenTelemetry's own variables).

Spans are folded from events: same events, same spans, in whichever process. The SDK sends them, over OTLP/HTTP.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from orchestrator import __version__
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.event import Event, Level
from orchestrator.records.sprint_reader import Reader
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
    """Handles events in order. Reads earlier events once, when this process resumes a sprint."""

    def __init__(self, earlier: Earlier) -> None:
        self._earlier = earlier
        self._sprints: dict[str, _Sprint] = {}

    def add(self, event: Event) -> list[Span]:
        """Returns the spans that this event ends. Blocks when a sprint is resumed."""
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
        """Once more, and longer, when a story is restarted and ends."""
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
    # Ids are derived, not drawn: a restart continues the trace. An id of 0 is invalid.
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:size], "big") or 1


NAME = "sprint-orchestrator"
UNREACHED = "traces_unreached"
QUEUE, BATCH, EVERY_S, TIMEOUT_S, ENDING_S = 10_000, 256, 2.0, 5.0, 3.0
"""Spans that wait at most; that are sent at once; longest wait of one; time of a request; time of the last ones."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_SCOPE = InstrumentationScope(NAME, __version__)


class _Exporter(SpanExporter):
    """Sends spans, and calls `unreached` when the collector did not take some."""

    def __init__(self, endpoint: str, unreached: Callable[[], None]) -> None:
        self._otlp, self._unreached = OTLPSpanExporter(endpoint=endpoint, timeout=TIMEOUT_S), unreached
        self.failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._otlp.export(spans)
        self.failing = result is not SpanExportResult.SUCCESS
        if self.failing:
            self._unreached()
        return result

    def shutdown(self) -> None:
        self._otlp.shutdown()  # type: ignore[no-untyped-call]


class Traces:
    """Give each event to `listen`; `close` in the end. `tell` hears once when the collector cannot be reached."""

    def __init__(self, endpoint: str, earlier: Earlier, tell: Callable[[Event], None]) -> None:
        """`endpoint` is where traces go; headers, service name and attributes come from OpenTelemetry's variables."""
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        logging.getLogger("opentelemetry").propagate = False
        self._endpoint, self._tell, self._told = endpoint, tell, False
        self._exporter = _Exporter(endpoint, self._unreached)
        self._processor = BatchSpanProcessor(self._exporter, QUEUE, EVERY_S * 1000, BATCH)
        own = Resource({"service.name": NAME, "service.version": __version__})
        self._resource = own.merge(OTELResourceDetector().detect())
        self._fold = SpanFold(earlier)
        # Folding may read the log once: not on the thread that tells of events.
        self._folding = ThreadPoolExecutor(1, thread_name_prefix="traces")

    def listen(self, event: Event) -> None:
        """An event was recorded; returns at once, whatever the collector does."""
        if event.name in TOLD:
            self._folding.submit(self._take, event)

    def close(self) -> None:
        """Send what is left, for a moment at most; nothing to a collector that was not there just now. Blocks."""
        ending = threading.Thread(target=self._end, name="traces-end", daemon=True)
        ending.start()
        ending.join(0.0 if self._exporter.failing else ENDING_S)
        if ending.is_alive():
            self._unreached()
        self._exporter.shutdown()

    def _end(self) -> None:
        self._folding.shutdown()
        self._processor.shutdown()  # type: ignore[no-untyped-call]

    def _take(self, event: Event) -> None:
        with suppress(OrchestratorError):  # the log cannot be read now: this sprint has no spans of what came before
            for span in self._fold.add(event):
                self._processor.on_end(self._readable(span))

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

    def _unreached(self) -> None:
        if self._told:
            return
        self._told = True
        text = f"traces cannot be sent to {self._endpoint}: what it does not take is lost, and nothing else is"
        now = datetime.now(UTC)
        self._tell(Event(id="", time=now, level=Level.WARN, name=UNREACHED, message=text, sprint="", data={}))


def _nanoseconds(time: datetime) -> int:
    """Exact: as a number with a point it would lose the last digits."""
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000


ENDPOINT, TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


def collector(environment: Environment) -> str | None:
    """Returns where traces go; None when no collector is named."""
    variables = environment.variables
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if variables.get("OTEL_TRACES_EXPORTER", "otlp").strip() == "none":
        return None
    base = variables.get(ENDPOINT, "").strip().rstrip("/")
    return variables.get(TRACES_ENDPOINT, "").strip() or (f"{base}/v1/traces" if base else None)


def open_traces(environment: Environment, tell: Callable[[Event], None]) -> Traces | None:
    """Returns what takes events to the collector (`listen`, and `close` in the end); None when there is none.

    `tell` hears once, from another thread, that it cannot be reached.
    """
    endpoint = collector(environment)
    if endpoint is None:
        return None

    def earlier(sprint: str) -> Iterator[Event]:
        return (event for _, event in Reader(environment).events(sprint))

    return Traces(endpoint, earlier, tell)


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
