"""Traces: a real collector gets dbos's spans of a run, and nothing of what a model was asked or said."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support import ALL_PASS, Team, make_repo, plain_environment, run_cli, write_backlog


@dataclass
class Collector:
    """A real OTLP/HTTP receiver on this machine."""

    url: str = ""
    spans: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Collector]:
    told = Collector()

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


def test_a_collector_gets_the_spans_of_the_engine_and_no_text(receiver: Collector, tmp_path: Path) -> None:
    team = Team()
    team.good("US-1")
    team.write(tmp_path / "team.jsonl")
    write_backlog(tmp_path / "backlog.csv", "US-1")
    make_repo(tmp_path / "repo", {"README.md": "An app."})
    words = ["run", "backlog.csv", "--repo", "repo", "--script", "team.jsonl", "--sprint", "S1", "--set", ALL_PASS]
    named = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
    }  # fmt: skip
    ran = run_cli(words, tmp_path, plain_environment(**named))
    assert ran.returncode == 0, ran.stderr
    assert {(one["authorization"], one["path"]) for one in receiver.headers} == {("Bearer abc", "/v1/traces")}
    resource = receiver.resources[0]
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("orchestrator", "test")
    roots = [span for span in receiver.spans if not span.parent_span_id]
    ids = {one.value.string_value for span in roots for one in span.attributes if one.key == "operationUUID"}
    assert "S1/US-1" in ids
    assert len(receiver.spans) > len(roots), "steps lie below their workflows"
    assert "def value" not in str(receiver.spans)
