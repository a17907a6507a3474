"""Traces: what a real collector gets, over restarts too, and that nobody waits for one."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from orchestrator.core.event import Event
from orchestrator.settings import load
from orchestrator.telemetry.tracing import QUEUE, SpanFold, Traces, collector, traced
from tests.support import PLAIN_TESTS, Team, plain_environment, play, task_id, write_backlog


@dataclass
class Collector:
    """A real OTLP/HTTP receiver on this machine."""

    url: str
    spans: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Collector]:
    told = Collector(url="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
            told.headers.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
            for part in request.resource_spans:
                told.resources.append({one.key: one.value.string_value for one in part.resource.attributes})
                told.spans += [span for scope in part.scope_spans for span in scope.spans]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}"
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """A sprint of two stories: one with a retry and a second attempt, one without an answer."""
    folder = tmp_path_factory.mktemp("traced")
    team = Team()
    team.plan("US-1", ["us_1.py"])
    usual = {"input_tokens": 100, "output_tokens": 7}
    team.say("alex", "US-1", "delivery", "", task=1, error="overloaded")
    team.deliver("US-1", 1, {"us_1.py": "def value():\n    return 2\n"}, **usual)
    team.suite("US-1", "from us_1 import value\n\n\ndef test_us_1():\n    assert value() == 1\n")
    team.analyse("US-1", ("us_1.py", "return 1"))
    team.deliver("US-1", 1, {"us_1.py": "def value():\n    return 1\n"})
    played = play(folder, team, write_backlog(folder / "backlog.csv", "US-1", "US-2"), PLAIN_TESTS, sprint="S1")
    assert (played.status("US-1"), played.status("US-2")) == ("done", "failed")
    return played.events


def folded(events: Sequence[Event]) -> dict[int, Any]:
    fold = SpanFold(lambda _: ())
    return {span.span: span for event in events for span in fold.add(event)}


def test_a_sprint_is_one_tree_of_spans(events: list[Event]) -> None:
    spans = folded(events)
    assert len({span.trace for span in spans.values()}) == 1
    named = {}
    for span in spans.values():
        parent = spans[span.parent].name if span.parent is not None else ""
        named.setdefault(span.name.split(" scripted")[0], []).append(parent)
        assert span.start <= span.end
        if span.parent is not None:
            above = spans[span.parent]
            assert above.start <= span.start <= span.end <= above.end, span.name
    task = f"task {task_id('US-1', 1)}"
    assert named["sprint S1"] == [""]
    assert named["story US-1"] == named["story US-2"] == ["sprint S1"]
    assert named[task] == ["story US-1", "story US-1"], "each time it was worked on"
    assert named["chat"].count(task) == 4, "two deliveries and their reviews"
    assert named["chat"].count("story US-1") == 3, "plan, suite, analysis"
    failed = [span for span in spans.values() if span.error]
    assert {(span.name, span.error) for span in failed} == {("chat", "script.missing"), ("story US-2", "failed")}


def test_attributes_are_those_of_the_conventions_and_hold_no_text(events: list[Event]) -> None:
    finished = next(event for event in events if event.name == "turn_finished" and event.task is not None)
    told = finished.data | {"model": "claude-x", "provider": "anthropic", "cached_tokens": 60, "cost_usd": 0.5}
    begun = [event for event in events if event.name == "sprint_started"]
    (span,) = folded([*begun, finished.model_copy(update={"data": told})]).values()
    assert (span.name, span.asks_model, span.attributes) == (
        "chat claude-x", True, {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.agent.name": "alex",
            "gen_ai.request.model": "claude-x", "gen_ai.response.model": "claude-x",
            "gen_ai.prompt.name": finished.data["prompt"], "gen_ai.response.finish_reasons": ("end_turn",),
            "gen_ai.usage.input_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.usage.output_tokens": 7, "orchestrator.purpose": "delivery", "orchestrator.turn": 2,
            "orchestrator.cost_usd": 0.5, "orchestrator.sprint": "S1", "orchestrator.story": "US-1",
            "orchestrator.task": task_id("US-1", 1),
        },
    )  # fmt: skip
    every = repr([span.attributes for span in folded(events).values()])
    assert "return 2" not in every
    assert "no entry" not in every


def test_a_restart_goes_on_with_the_same_trace(events: list[Event]) -> None:
    whole = folded(events)
    for cut in range(1, len(events), 7):
        first = folded(events[:cut])
        again = events[0].model_copy(update={"id": "S1:sprint_continued:x", "name": "sprint_continued"})
        fold = SpanFold(lambda _, cut=cut, again=again: [*events[:cut], again, *events[cut:]])
        second = {span.span: span for event in [again, *events[cut:]] for span in fold.add(event)}
        assert not first.keys() & second.keys()
        assert first | second == whole, cut


def test_a_collector_gets_them(events: list[Event], receiver: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc,x-team = a", "OTEL_SERVICE_NAME": "ours",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
    }  # fmt: skip
    shown: list[Event] = []
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    traces = Traces(f"{receiver.url}/v1/traces", lambda _: (), shown.append)
    for event in events:
        traces.listen(event)
    traces.close()
    assert shown == []
    assert {int.from_bytes(span.span_id, "big") for span in receiver.spans} == set(folded(events))
    (root,) = [span for span in receiver.spans if not span.parent_span_id]
    assert (root.name, root.start_time_unix_nano % 1000) == ("sprint S1", 0)
    assert root.end_time_unix_nano > root.start_time_unix_nano
    assert {headers["authorization"] for headers in receiver.headers} == {"Bearer abc"}
    assert {headers["x-team"] for headers in receiver.headers} == {"a"}
    assert {headers["path"] for headers in receiver.headers} == {"/v1/traces"}
    (resource,) = {tuple(sorted(resource.items())) for resource in receiver.resources}
    assert {"service.name": "ours", "deployment.environment.name": "test"}.items() <= dict(resource).items()


def test_a_collector_that_is_not_there_is_told_once_and_costs_nothing(events: list[Event]) -> None:
    shown: list[Event] = []
    traces = Traces("http://127.0.0.1:9/v1/traces", lambda _: (), shown.append)
    begun = time.monotonic()
    for _ in range(2 * QUEUE // len(events) + 1):
        for event in events:
            traces.listen(event)
    traces.close()
    assert time.monotonic() - begun < 20, "far less than the time that requests for all of it would take"
    assert [event.name for event in shown] == ["traces_unreached"]
    assert "127.0.0.1:9" in shown[0].message


def test_where_traces_go(tmp_path: Path) -> None:
    def endpoint(**variables: str) -> str | None:
        return collector(load(None, (), plain_environment(**variables), tmp_path)[1])

    assert endpoint() is None
    assert endpoint(OTEL_EXPORTER_OTLP_ENDPOINT="http://c:4318/") == "http://c:4318/v1/traces"
    both = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x"}
    assert endpoint(**both) == "http://t/x"
    assert endpoint(**both, OTEL_SDK_DISABLED="true") is None
    assert endpoint(**both, OTEL_TRACES_EXPORTER="none") is None
    environment = load(None, (), plain_environment(), tmp_path)[1]
    with traced(environment, print) as listen:
        assert listen is print
