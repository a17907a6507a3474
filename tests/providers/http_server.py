"""A model server on loopback: answers as a test says, and keeps what it was asked."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server sends; `body` as JSON unless it is text or bytes."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    drip_s: float = 0.0
    """Time between two bytes of the body."""
    cut: int | None = None
    """Bytes of the body that are sent before the connection is closed."""
    stall: int | None = None
    """Bytes of the body that are sent before nothing more comes."""


class ModelServer:
    """`respond` says what each request gets; it is called in a thread per request."""

    def __init__(self, respond: Callable[[Asked], Answer], certificate: Path | None = None) -> None:
        self.asked: list[Asked] = []
        self._respond = respond
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server.serve(self)

            def log_message(self, *args: Any) -> None:
                """Nothing is printed."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._scheme = "https" if certificate else "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http.server_port}"

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["content-length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        is_json = "json" in headers.get("content-type", "")
        asked = Asked(path=handler.path, headers=headers, body=json.loads(raw) if is_json else {})
        self.asked.append(asked)
        answer = self._respond(asked)
        self._closing.wait(answer.wait_s)
        body = answer.body if isinstance(answer.body, str | bytes) else json.dumps(answer.body)
        data = body.encode() if isinstance(body, str) else body
        sent = {"content-type": "application/json", **answer.headers, "content-length": str(len(data))}
        try:
            handler.send_response(answer.status)
            for name, value in sent.items():
                handler.send_header(name, value)
            handler.end_headers()
            self._send(handler, data[: answer.cut if answer.stall is None else answer.stall], answer.drip_s)
            if answer.stall is not None:
                self._closing.wait(30)
            if answer.cut is not None:
                handler.close_connection = True
        except OSError:
            handler.close_connection = True  # the client has gone, as a test wants it

    def _send(self, handler: BaseHTTPRequestHandler, data: bytes, drip_s: float) -> None:
        if not drip_s:
            handler.wfile.write(data)
            return
        for byte in data:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            if self._closing.wait(drip_s):
                return

    def close(self) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextmanager
def model_server(
    *answers: Answer | Callable[[Asked], Answer], certificate: Path | None = None
) -> Iterator[ModelServer]:
    """A server that gives `answers` in order, the last one forever; one may be a function of the request."""
    left = list(answers)

    def respond(asked: Asked) -> Answer:
        answer = left.pop(0) if len(left) > 1 else left[0]
        return answer if isinstance(answer, Answer) else answer(asked)

    server = ModelServer(respond, certificate)
    try:
        yield server
    finally:
        server.close()


def message(text: str = "ok", stop: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    """A body of the Messages API."""
    usage = {"input_tokens": 11, "output_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2}
    usage |= {"output_tokens_details": {"thinking_tokens": 3}}
    content = [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": text}]
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-told", "content": content}
    return {**body, "stop_reason": stop, "stop_sequence": None, "usage": usage, **more}


def completion(text: str | None = "ok", stop: str | None = "stop", **more: Any) -> dict[str, Any]:
    """A body of chat completions."""
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    details = {"prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 2}}
    details |= {"completion_tokens_details": {"reasoning_tokens": 3}}
    said = {"role": "assistant", "content": text, "reasoning_content": "hm"}
    choice = {"index": 0, "message": said, "finish_reason": stop}
    body = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "gpt-told", "choices": [choice]}
    return {**body, "usage": {**usage, **details}, **more}


def response(text: str | None = "ok", stop: str | None = "completed", **more: Any) -> dict[str, Any]:
    """A body of the Responses API; `stop`: its status, the reason why it is incomplete, or `tool_use`."""
    incomplete = stop in {"max_output_tokens", "content_filter"}
    usage = {"input_tokens": 20, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}}
    usage |= {"input_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 2}}
    thoughts = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    call = [{"type": "function_call", "name": "f", "arguments": "{}"}] if stop == "tool_use" else []
    body = {"id": "r", "object": "response", "model": "gpt-told", "output": [thoughts, said, *call], "usage": usage}
    status = "incomplete" if incomplete else "completed" if call else stop
    return {**body, "status": status, "incomplete_details": {"reason": stop} if incomplete else None, **more}


EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


def _events(events: list[dict[str, Any]], *, named: bool) -> str:
    return "".join(
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
    )


def message_stream(text: str = "ok", stop: str | None = "end_turn", pieces: int = 4, error: Any = None) -> str:
    """A stream of the Messages API; with `error` in place of its end."""
    whole = message(text, stop)
    start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    step = -(-len(text) // pieces) or 1
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "ping"},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    ]
    for at in range(0, len(text), step):
        delta = {"type": "text_delta", "text": text[at : at + step]}
        events.append({"type": "content_block_delta", "index": 1, "delta": delta})
    end: list[dict[str, Any]] = [
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return _events(events + ([{"type": "error", "error": error}] if error else end), named=True)


def completion_stream(text: str = "ok", stop: str | None = "stop", pieces: int = 4, error: Any = None) -> str:
    """A stream of chat completions; with `error` in place of its end."""
    whole = completion(text, stop)
    usage = whole.pop("usage")
    step = -(-len(text) // pieces) or 1

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**whole, "object": "chat.completion.chunk", "choices": [choice], "usage": None}

    events = [chunk({"role": "assistant", "content": ""}), chunk({"content": None, "reasoning": "hm"})]
    events += [chunk({"content": text[at : at + step]}) for at in range(0, len(text), step)]
    end = [chunk({}, stop), {**whole, "object": "chat.completion.chunk", "choices": [], "usage": usage}]
    return _events(events + ([{"error": error}] if error else end), named=False) + ("" if error else "data: [DONE]\n\n")


def response_stream(text: str = "ok", stop: str | None = "completed", pieces: int = 4, error: Any = None) -> str:
    """A stream of the Responses API; with `error` in place of its end."""
    whole = response(text, stop)
    step = -(-len(text) // pieces) or 1
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
        *({"type": "response.output_text.delta", "delta": text[at : at + step]} for at in range(0, len(text), step)),
    ]
    end = {"type": f"response.{whole['status']}", "response": whole}
    failed = {"type": "response.failed", "response": {**begun, "status": "failed", "error": error}}
    return _events([*events, failed if error else end], named=True)
