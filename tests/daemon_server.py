"""Daemons of tests: one that says what it is told to and keeps what it was asked, and a real `serve`."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support import plain_environment
from tests.zygote import zygote

STREAM = {"content-type": "text/event-stream; charset=utf-8"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the daemon sends: `body` as JSON, text as it is, or the parts of a stream."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] | None = None
    breaks: bool = False
    """Whether the connection ends in the middle of the stream."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone, as a test wants it."""


class FakeDaemon:
    """`respond` says what each request gets; it is called in a thread per request."""

    def __init__(self, respond: Callable[[Asked], Said]) -> None:
        self.asked: list[Asked] = []
        self._respond = respond
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                server._serve(self)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *args: Any) -> None:
                """Nothing is printed."""

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        address = urlsplit(handler.path)
        asked = Asked(
            method=handler.command, path=address.path, query=dict(parse_qsl(address.query)),
            headers={name.lower(): value for name, value in handler.headers.items()}, body=body,
        )  # fmt: skip
        self.asked.append(asked)
        said = self._respond(asked)
        try:
            self._send(handler, said)
        except OSError:
            handler.close_connection = True  # the client has gone, as a test wants it

    def _send(self, handler: BaseHTTPRequestHandler, said: Said) -> None:
        handler.send_response(said.status)
        if said.parts is None:
            text = said.body if isinstance(said.body, str) else json.dumps(said.body)
            sent = {"content-type": "application/json", **said.headers, "content-length": str(len(text.encode()))}
            for name, value in sent.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(text.encode())
            return
        for name, value in {**STREAM, **said.headers, "transfer-encoding": "chunked"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        for part in said.parts:
            handler.wfile.write(f"{len(part.encode()):x}\r\n".encode() + part.encode() + b"\r\n")
        handler.wfile.flush()
        if said.breaks:
            handler.close_connection = True
        else:
            handler.wfile.write(b"0\r\n\r\n")

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextmanager
def fake_daemon(*said: Said | Callable[[Asked], Said]) -> Iterator[FakeDaemon]:
    """A daemon that says these things in order, the last one forever; one may be a function of the request."""
    left = list(said)

    def respond(asked: Asked) -> Said:
        one = left.pop(0) if len(left) > 1 else left[0]
        return one if isinstance(one, Said) else one(asked)

    server = FakeDaemon(respond)
    try:
        yield server
    finally:
        server.close()


def log_event(seq: int, **more: Any) -> str:
    """An event of the stream, as the daemon sends it."""
    line = {"timestamp": "2026-01-02T03:04:05Z", "level": "info", "message": f"m{seq}", "event": "turn_finished"}
    told = {**line, "sprint": "SP-001", "story": "US-1", "seq": seq, **more}
    return f"id: {seq}\nevent: log\ndata: {json.dumps(told)}\n\n"


class RealDaemon:
    """A `serve` in a folder, as a process; what it prints goes to serve.log."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.state, self.log = folder, folder / ".orchestrator", folder / "serve.log"
        self._words = ["serve", "--port", "0", *words]

    def start(self) -> "RealDaemon":
        """Begin it again, and wait until it listens."""
        with self.log.open("ab") as log:
            self.process = zygote().start(
                "orchestrator", self._words, cwd=self.folder, env=plain_environment(), log=log
            )
        self.until(lambda: self._address().get("pid") == self.process.pid)
        self.url = self._address()["url"]
        return self

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def until(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + 90
        while not what():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def _address(self) -> dict[str, Any]:
        try:
            read: dict[str, Any] = json.loads((self.state / "daemon" / "address.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return read
