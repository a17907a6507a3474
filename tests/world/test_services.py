"""What services of models answer, and the way to them: real servers on loopback, asked by the vendors' own packages."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, Segment, TurnKey
from orchestrator.core.errors import PermanentProviderError, ProviderError, TransientProviderError
from orchestrator.core.sprint import SprintRecord
from orchestrator.files.hosts import is_loopback, is_spared
from orchestrator.providers.anthropic import AnthropicProvider
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.openai import OpenAIProvider
from orchestrator.providers.openai_responses import OpenAIResponsesProvider
from orchestrator.providers.proxies import proxy_before
from orchestrator.providers.refusals import retry_after
from orchestrator.sandbox.fetch_sources import Place, read_sources
from orchestrator.settings import RequestSettings
from orchestrator.storage.event_store import FOREVER
from orchestrator.storage.state_folder import StateFolder
from tests.postgres import IMMEDIATE, PostgresServer
from tests.providers.http_server import Answer, Asked, completion, message, model_server, response
from tests.server.stand import NOON, Stand, running
from tests.world.case import Case, table

KEY = TurnKey(persona="alex", story="A", purpose=Purpose.DELIVERY)
MORE = {"seed": 7, "stop": ["<end>"], "metadata": {"user_id": "u"}, "top_k": 40}
ALL = RequestSettings(effort="low", temperature=0.5, extra=MORE)
WIRES: dict[type[ModelProvider], Any] = {
    AnthropicProvider: message,
    OpenAIProvider: completion,
    OpenAIResponsesProvider: response,
}


def prompt(text: str) -> Prompt:
    return Prompt(key=KEY, turn=1, segments=(Segment(name="role", text="r"), Segment(name="task", text=text)))


async def ask(
    kind: type[ModelProvider], url: str, text: str = "work", request: RequestSettings | None = None, **more: Any
) -> Reply | ProviderError:
    access = ModelAccess(
        model="asked", api_key="sk-1234567", base_url=url, timeout_s=20, max_output_tokens=9,
        request=request or RequestSettings(), **{"stream": False, **more},
    )  # fmt: skip
    provider = await asyncio.to_thread(kind, access, price={}.get)
    try:
        return await provider.complete(prompt(text))
    except ProviderError as error:
        return error
    finally:
        await provider.close()


ECHO = {
    "model": "asked",
    "temperature": 0.5,
    "seed": 7,
    "stop": ["<end>"],
    "stream": True,
    "metadata": {"user_id": "u"},
}
PYDANTIC = [{"type": "missing", "loc": ["body", "messages", 0, "name"], "msg": "Field required", "input": ECHO}]
EXTRA = {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 7}
OF_PYTHON = "servers in Python repeat the whole request in a 422"


def drops(name: str, body: Any, *right: str, status: int = 400, kind: Any = OpenAIProvider, seen: str = "") -> Case:
    return Case(name=name, given=(status, body, kind), right=right, seen=seen or "refusals of services")


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": text, **more}}


@table(
    drops("echo in detail", {"detail": PYDANTIC}, status=422, seen=OF_PYTHON),
    drops("echo as text", said(repr(PYDANTIC), param=None), seen=OF_PYTHON),
    drops("echo as JSON text", said(json.dumps(PYDANTIC)), seen=OF_PYTHON),
    drops("echo in words", said(f"Unsupported request: {json.dumps(ECHO)}"), seen=OF_PYTHON),
    drops("echo that was cut", said(f"Unsupported request: {json.dumps(ECHO)[:90]}"), seen=OF_PYTHON),
    drops("echo beside the words", {"error": {"message": "no"}, "request": ECHO}, status=422, seen=OF_PYTHON),
    drops("echo and nothing else", {"detail": "Unprocessable", "body": ECHO}, status=422, seen=OF_PYTHON),
    drops("one of an echo", {"detail": [{**EXTRA, "input": ECHO}]}, "seed", status=422, seen=OF_PYTHON),
    drops("one as text", said(repr([EXTRA])), "seed", seen="vLLM"),
    drops("one in older words", {"detail": [{"loc": ["body", "top_k"], "msg": "extra fields not permitted"}]}, "top_k"),
    drops("two at once", {"detail": [EXTRA, {**EXTRA, "loc": ["body", "stop"]}]}, "seed", "stop", status=422),
    drops("bare words", said("Please stop: the seed of this stream has no metadata")),
    drops("too long", said("the prompt is too long; lower the effort")),
    drops("a model's name", said("unknown model name stop-1; seed/metadata")),
    drops("param", said("no", param="seed"), "seed"),
    drops("param of another", said("temperature is not supported with messages", param="messages")),
    drops("param below another", said("no", param="input[0].metadata")),
    drops("not supported", said("temperature is not supported with this model."), "temperature"),
    drops("does not support", said("Model x does not support parameters: ['seed'], for model=x. Drop: y"), "seed"),
    drops("unexpected", said("Completions.create() got an unexpected keyword argument 'top_k'"), "top_k"),
    drops("unknown", [{"error": {"message": 'Unknown name "seed": Cannot find field.'}}], "seed", seen="Gemini"),
    drops("deprecated", said("`temperature` is deprecated for this model."), "temperature", kind=AnthropicProvider),
    drops("a path", said("metadata.user_id: Extra inputs are not permitted"), "metadata", kind=AnthropicProvider),
    drops("of another sentence", said("top_k is not supported. Then stop."), "top_k"),
    drops("a validation error", said("1 validation error\nseed\n  Extra inputs are not permitted [input=7]"), "seed"),
    drops("no JSON", "unsupported parameter: seed", "seed"),
)
async def test_dropped_settings(case: Case) -> None:
    status, body, kind = case.given
    with model_server(Answer(status=status, body=body), Answer(body=WIRES[kind]())) as server:
        reply = await ask(kind, server.url, request=ALL)
    first, *second = (asked.body for asked in server.asked)
    sent = {"stop_sequences": "stop", "reasoning_effort": "effort"}
    gone = [sent.get(name, name) for name in first if second and name not in second[0]]
    assert sorted(gone) == sorted(case.right)
    assert isinstance(reply, Reply) == bool(case.right)


WALL = Answer(status=403, body="<html>Request blocked by policy 981173</html>", headers={"content-type": "text/html"})
GOOD = {kind: Answer(body=body()) for kind, body in WIRES.items()}
FLAGGED = {"code": 403, "message": "flagged"}


def wall(
    name: str, right: tuple[type[ProviderError], str], *, prompt: Answer = WALL, others: Answer | None = None
) -> Case:
    return Case(name=name, given=(prompt, others), right=right, seen="a gateway that refuses what one prompt says")


@table(
    wall("of one prompt", (PermanentProviderError, "bad_request")),
    wall("of one prompt, in JSON", (PermanentProviderError, "bad_request"), prompt=Answer(status=403, body=said("no"))),
    wall("of all prompts", (PermanentProviderError, "auth"), others=WALL),
    wall("of a key", (PermanentProviderError, "auth"), others=Answer(status=401, body=said("no key"))),
    wall("of a bill", (PermanentProviderError, "auth"), others=Answer(status=402, body=said("pay"))),
    wall("of an empty prompt", (PermanentProviderError, "bad_request"), others=Answer(status=400, body=said("empty"))),
    wall("before an overload", (TransientProviderError, "overloaded"), others=Answer(status=503, body="busy")),
    wall("before a limit", (TransientProviderError, "rate_limit"), others=Answer(status=429, body=said("slow"))),
)
@pytest.mark.parametrize("kind", WIRES)
async def test_refused_prompt(case: Case, kind: type[ModelProvider]) -> None:
    of_prompt, of_others = case.given

    def answer(asked: Asked) -> Answer:
        return of_prompt if "DROP TABLE" in json.dumps(asked.body) else of_others or GOOD[kind]

    with model_server(answer) as server:
        error = await ask(kind, server.url, "DROP TABLE users")
    assert isinstance(error, case.right[0])
    assert error.kind == case.right[1]
    assert len(server.asked) == 2
    assert len(json.dumps(server.asked[1].body)) < 400


async def test_a_prompt_that_is_refused_in_a_stream() -> None:
    def answer(asked: Asked) -> Answer:
        told = f"data: {json.dumps({'error': FLAGGED})}\n\n"
        return Answer(body=told, headers={"content-type": "text/event-stream"}) if is_flagged(asked) else good

    good = GOOD[OpenAIProvider]
    with model_server(answer) as server:
        error = await ask(OpenAIProvider, server.url, "DROP TABLE users", stream=True)
    assert isinstance(error, PermanentProviderError)
    assert error.kind == "bad_request"


def is_flagged(asked: Asked) -> bool:
    return "DROP TABLE" in json.dumps(asked.body)


def waits(name: str, form: Callable[[datetime], str], seconds: float | None) -> Case:
    return Case(name=name, given=form, right=seconds, seen="Retry-After as RFC 9110 has it")


@table(
    waits("a date", lambda date: format_datetime(date, usegmt=True), 90),
    waits("a date in another form", lambda date: f"{date:%A, %d-%b-%y %X} GMT", 90),
    waits("a date of RFC 3339", lambda date: date.isoformat(), 90),
    waits("a date that has passed", lambda date: format_datetime(date - timedelta(hours=1), usegmt=True), None),
    waits("seconds", lambda _date: "90", 90),
    waits("words", lambda _date: "soon", None),
    waits("no date", lambda _date: "Wed, 99 Oct 2015", None),
)
def test_wish_to_wait(case: Case) -> None:
    seconds = retry_after({"retry-after": case.given(datetime.now(UTC) + timedelta(seconds=90))})
    assert seconds == (case.right and pytest.approx(case.right, abs=20))


@contextmanager
def proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy that answers everything by itself, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def refuse(self) -> None:
            asked.append(self.path)
            self.send_error(503, "no way there")

        do_POST = do_CONNECT = refuse

        def log_message(self, *args: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", WIRES)
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
async def test_a_model_on_this_machine_is_asked_directly(
    monkeypatch: pytest.MonkeyPatch, kind: type[ModelProvider], variable: str
) -> None:
    with proxy() as (place, through), model_server(GOOD[kind]) as server:
        monkeypatch.setenv(variable, f"http://{place}")
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            assert isinstance(await ask(kind, url), Reply)
    assert through == []


@pytest.mark.parametrize("url", ["http://10.20.30.40:8000/v1", "https://model.example/v1"])
async def test_a_proxy_on_the_way_is_named(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    with proxy() as (place, through):
        monkeypatch.setenv("ALL_PROXY", f"http://me:secret@{place}")
        error = await ask(OpenAIProvider, url)
    assert isinstance(error, TransientProviderError)
    assert f"through the proxy {place}" in error.message
    assert "secret" not in error.message
    assert len(through) == 1


def spares(no_proxy: str, host: str, port: int, *, right: bool = True) -> Case:
    return Case(
        name=f"{no_proxy} {host}:{port}", given=(no_proxy, host, port), right=right, seen="networks of companies"
    )


@table(
    spares("10.0.0.0/8", "10.1.2.3", 80),
    spares("10.0.0.0/8", "11.1.2.3", 80, right=False),
    spares("localhost, 192.168.0.0/16 ,.corp", "192.168.7.1", 443),
    spares("localhost 172.16.0.0/12", "172.20.0.1", 443),
    spares("10.1.2.3/8", "10.9.9.9", 80),
    spares("10.1.2.3", "10.1.2.3", 80),
    spares("10.1.2.3:8080", "10.1.2.3", 8080),
    spares("10.1.2.3:8080", "10.1.2.3", 80, right=False),
    spares("10.1.2.0/24:8080", "10.1.2.3", 8080),
    spares("fd00::/8", "fd12::1", 80),
    spares("[fd12::1]:8080", "fd12::1", 8080),
    spares("fd00::/8", "10.1.2.3", 80, right=False),
    spares(".corp", "model.corp", 80),
    spares("*.corp", "model.corp", 80),
    spares("corp", "model.corp.", 80),
    spares("corp", "acorp", 80, right=False),
    spares("corp:8080", "model.corp", 8080),
    spares("*", "anything", 80),
    spares("", "anything", 80, right=False),
    spares("10.0.0.0/8", "10.example", 80, right=False),
    spares("10.0.0.0/99", "10.0.0.1", 80, right=False),
)  # fmt: skip
def test_no_proxy(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    no_proxy, host, port = case.given
    assert is_spared(no_proxy, host, port) == case.right
    sources = read_sources({}, {"HTTPS_PROXY": "http://proxy.corp:3128", "NO_PROXY": no_proxy})
    assert (sources.upstream("https", Place(host.rstrip("."), port)) is None) == case.right
    for name, value in {"ALL_PROXY": "http://proxy.corp:3128", "NO_PROXY": no_proxy}.items():
        monkeypatch.setenv(name, value)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    assert proxy_before(url) == ("" if case.right else "proxy.corp:3128")


@table(
    *(Case(name=host, given=host, right=True, seen="names of this machine") for host in (
        "localhost", "127.0.0.1", "127.9.9.9", "::1", "LOCALHOST.", "a.localhost", "::ffff:127.0.0.1")),
    *(Case(name=host, given=host, right=False, seen="names of others") for host in (
        "10.0.0.1", "localhost.example", "0.0.0.0", "127.example", "")),
)  # fmt: skip
def test_loopback(case: Case) -> None:
    assert is_loopback(case.given) == case.right


def paths_of_reads() -> list[str]:
    return ["sprints", "sprints/S1", "sprints/S1/stories/A", "sprints/S1/report"]


async def test_the_api_answers_while_postgres_is_away(tmp_path: Path, postgres_server: PostgresServer) -> None:
    address = await asyncio.to_thread(postgres_server.fresh)
    stand = await asyncio.to_thread(Stand, tmp_path / "state", DATABASE_URL=address)
    work = await asyncio.to_thread(StateFolder.of, stand.environment)
    assert work.shared is not None
    record = SprintRecord(sprint="S1", backlog="b", repo="/r", base="", story_ids=("A",), started_at=NOON)
    await asyncio.to_thread(work.save, record)
    work.shared.patience_s = FOREVER  # as the work on sprints has it
    async with running(stand) as daemon:
        assert (await daemon.client.get("/api/v1/sprints")).status_code == 200
        await asyncio.to_thread(postgres_server.stop, IMMEDIATE)
        waits = asyncio.create_task(asyncio.to_thread(work.refresh))
        try:
            await asyncio.sleep(0.5)
            for path in paths_of_reads() * 2:
                answer = await asyncio.wait_for(daemon.client.get(f"/api/v1/{path}"), 5)
                assert answer.status_code == 503, path
            order = {"verb": "pause", "comment": ""}
            answer = await asyncio.wait_for(daemon.client.post("/api/v1/sprints/S1/orders", json=order), 5)
            assert answer.status_code == 503
            assert not waits.done()
        finally:
            await asyncio.to_thread(postgres_server.start)
        await asyncio.wait_for(waits, 20)
        assert (await daemon.client.get("/api/v1/sprints")).status_code == 200
    await asyncio.to_thread(work.shared.close)
