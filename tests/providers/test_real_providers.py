"""The providers of real models through their SDKs, against a server on loopback."""

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, Segment, StopReason, TurnKey, Usage
from orchestrator.core.errors import PermanentProviderError, ProviderError, TransientProviderError
from orchestrator.providers.anthropic import AnthropicProvider
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.limits import Limiter
from orchestrator.providers.openai import OpenAIProvider
from orchestrator.providers.openai_responses import OpenAIResponsesProvider
from orchestrator.settings import PriceSettings
from tests.providers.http_server import Answer, completion, message, model_server, response

KEY = TurnKey(persona="mike", story="A", purpose=Purpose.BREAKDOWN)
SECRET = "sk-test-0123456789abcdef"
NAMES = ("data", "project", "story", "role", "rules", "skills", "done", "task", "feedback")
PROMPT = Prompt(key=KEY, turn=3, segments=tuple(Segment(name=name, text=f"<{name}>") for name in NAMES))


@dataclass(frozen=True)
class Service:
    """What differs between the two."""

    provider: type[ModelProvider]
    path: str
    body: Callable[..., dict[str, Any]]
    told_model: str

    def __str__(self) -> str:
        return self.provider.name


CLAUDE = Service(AnthropicProvider, "/v1/messages", message, "claude-told")
GPT = Service(OpenAIProvider, "/chat/completions", completion, "gpt-told")
RESPONSES = Service(OpenAIResponsesProvider, "/responses", response, "gpt-told")
both = pytest.mark.parametrize("service", [CLAUDE, GPT, RESPONSES], ids=str)


async def call(
    service: Service,
    url: str,
    prompt: Prompt = PROMPT,
    *,
    prices: Mapping[str, PriceSettings] | None = None,
    timeout_s: float = 20.0,
    paid: Callable[[Prompt], None] | None = None,
) -> Reply:
    access = ModelAccess(model="asked", api_key=SECRET, base_url=url, timeout_s=timeout_s, max_output_tokens=30_000)
    provider = await asyncio.to_thread(service.provider, access, price=(prices or {}).get, on_paid=paid)
    try:
        return await provider.complete(prompt)
    finally:
        await provider.close()


@both
async def test_a_reply_is_read_whole(service: Service) -> None:
    with model_server(Answer(body=service.body("plan \ud83d\ude00"))) as server:
        reply = await call(service, server.url)
    assert (reply.text, reply.reasoning, reply.key, reply.turn) == ("plan 😀", "hm", KEY, 3)
    assert (reply.stop_reason, reply.paid) == (StopReason.END_TURN, True)
    assert reply.usage == Usage(input=20, cached=7, output=5, reasoning=3)
    assert (reply.model, reply.provider, reply.cost_usd) == (service.told_model, service.provider.name, None)
    (asked,) = server.asked
    assert asked.path == service.path
    assert asked.headers["authorization"] == f"Bearer {SECRET}"


async def test_the_messages_request_has_breakpoints_at_the_seams() -> None:
    with model_server(Answer(body=message())) as server:
        await call(CLAUDE, server.url)
    body = server.asked[0].body
    here = {"cache_control": {"type": "ephemeral"}}
    assert (body["model"], body["max_tokens"]) == ("asked", 30_000)
    assert body["system"] == [{"type": "text", "text": "<data>"}]
    (user,) = body["messages"]
    assert user["role"] == "user"
    assert user["content"] == [
        {"type": "text", "text": "<project>"},
        {"type": "text", "text": "<story>", **here},
        {"type": "text", "text": "<role>"},
        {"type": "text", "text": "<rules>", **here},
        {"type": "text", "text": "<skills>"},
        {"type": "text", "text": "<done>", **here},
        {"type": "text", "text": "<task>", **here},
        {"type": "text", "text": "<feedback>"},
    ]
    assert body["stream"] is True
    assert "temperature" not in body


async def test_the_chat_request_is_one_that_compatible_servers_take() -> None:
    with model_server(Answer(body=completion())) as server:
        await call(GPT, f"{server.url}/v1/")
    assert server.asked[0].path == "/v1/chat/completions"
    assert server.asked[0].body == {
        "model": "asked",
        "max_tokens": 30_000,
        "messages": [
            {"role": "system", "content": "<data>"},
            {"role": "user", "content": "\n\n".join(f"<{name}>" for name in NAMES[1:])},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_the_responses_request_keeps_nothing_at_the_service() -> None:
    with model_server(Answer(body=response())) as server:
        await call(RESPONSES, f"{server.url}/v1/")
    assert server.asked[0].path == "/v1/responses"
    assert server.asked[0].body == {
        "model": "asked",
        "max_output_tokens": 30_000,
        "instructions": "<data>",
        "input": "\n\n".join(f"<{name}>" for name in NAMES[1:]),
        "stream": True,
        "store": False,
    }


async def test_a_response_that_failed_is_no_answer() -> None:
    for code, kind in (("rate_limit_exceeded", "rate_limit"), ("server_error", "overloaded")):
        failed = response("", "failed", output=[], error={"code": code, "message": "later"})
        assert (await fails(RESPONSES, Answer(body=failed))).kind == kind
    failed = response("", "failed", output=[], error={"code": "invalid_prompt", "message": "no"})
    with model_server(Answer(body=failed)) as server, pytest.raises(PermanentProviderError, match="400: no"):
        await call(RESPONSES, server.url)


@both
async def test_half_a_character_of_an_earlier_answer_does_not_stop_a_request(service: Service) -> None:
    segments = (Segment(name="role", text="r\udc00"), Segment(name="task", text="a\ud800b \ud83d\ude00"))
    with model_server(Answer(body=service.body("half \ud800"))) as server:
        reply = await call(service, server.url, Prompt(key=KEY, turn=1, segments=segments))
    assert reply.text == "half \ud800"
    assert "a\ufffdb 😀" in str(server.asked[0].body)


async def each(
    service: Service, *answers: Answer, prices: Mapping[str, PriceSettings] | None = None, paid: Any = None
) -> list[Any]:
    """The reply or the error that a provider makes of each of `answers`; each is asked for once."""
    found: list[Reply | ProviderError] = []
    with model_server(*answers) as server:
        access = ModelAccess(model="asked", api_key=SECRET, base_url=server.url, timeout_s=20, max_output_tokens=30_000)
        price, patient = (prices or {}).get, Limiter(clock=itertools.count(0, 1000).__next__)  # no call waits
        provider = await asyncio.to_thread(service.provider, access, price=price, on_paid=paid, limiter=patient)
        for _ in answers:
            try:
                found.append(await provider.complete(PROMPT))
            except ProviderError as error:
                found.append(error)
        await provider.close()
    assert len(server.asked) == len(answers)
    return found


async def answers(service: Service, body: Any) -> Reply:
    """The reply that is read in a body."""
    with model_server(Answer(body=body)) as server:
        return await call(service, server.url, prices={"asked": PriceSettings(input=10, output=50)})


@both
@pytest.mark.parametrize("begun", ["", "The plan"])
async def test_the_words_of_a_refusal_are_the_text_where_nothing_else_came(service: Service, begun: str) -> None:
    body = service.body(begun, "refusal")
    if service is GPT:
        body = service.body(begun, "content_filter")
        body["choices"][0]["message"]["refusal"] = "I will not."
    if service is RESPONSES:
        body = service.body(begun, "content_filter")
        body["output"][1]["content"].append({"type": "refusal", "refusal": "I will not."})
    body["stop_details"] = {"type": "refusal", "category": None, "explanation": "I will not."}
    reply = await answers(service, body)
    assert (reply.text, reply.stop_reason) == (begun or "I will not.", StopReason.REFUSAL)


@pytest.mark.parametrize("service", [CLAUDE, GPT], ids=str)
async def test_the_text_parts_of_a_content_are_its_text(service: Service) -> None:
    parts = [None, 7, {"type": "text"}, {"type": "text", "text": None}, {"type": "thinking", "thinking": ["hm"]}]
    body = service.body(None)
    for content in ([*parts, *({"type": "text", "text": text} for text in "ok")], "ok"):
        if service is GPT:
            body["choices"][0]["message"]["content"] = content
        assert (await answers(service, {**body, "content": content})).text == "ok"


ODD_USAGE: list[Any] = [
    None, [], "many", {}, {"prompt_tokens": None, "input_tokens": None}, {"prompt_tokens": -1, "input_tokens": -1},
    {"prompt_tokens": 1e400, "input_tokens": 1e400}, {"prompt_tokens": 5, "input_tokens": 5, "completion_tokens": "x",
                                                      "output_tokens": "x"},
]  # fmt: skip


@both
async def test_an_answer_whose_usage_cannot_be_read_is_read_at_an_unknown_cost(service: Service) -> None:
    odd = [Answer(body=service.body("plan", usage=usage, model=["x"])) for usage in ODD_USAGE]
    read = await each(service, *odd, prices={"asked": PriceSettings(input=10, output=50)})
    for usage, reply in zip(ODD_USAGE, read, strict=True):
        assert (reply.text, reply.usage, reply.cost_usd, reply.model) == ("plan", Usage(), None, "asked"), usage


@both
async def test_cost_comes_from_the_price_of_the_told_or_the_asked_model(service: Service) -> None:
    price = PriceSettings(input=10, cached=1, cache_write=12.5, output=50)
    expected = (11 * 10 + 7 * 1 + 2 * 12.5 + 5 * 50) / 1_000_000
    for name in (service.told_model, "asked"):
        with model_server(Answer(body=service.body())) as server:
            assert (await call(service, server.url, prices={name: price})).cost_usd == pytest.approx(expected)
    plain = PriceSettings(input=10, output=50)
    with model_server(Answer(body=service.body())) as server:
        assert (await call(service, server.url, prices={"asked": plain})).cost_usd == pytest.approx(450 / 1_000_000)
    with model_server(Answer(body=service.body(usage=None))) as server:
        reply = await call(service, server.url, prices={"asked": price})
    assert (reply.cost_usd, reply.usage) == (None, Usage())


async def fails(service: Service, answer: Answer, **options: Any) -> TransientProviderError:
    """The transient error of a call that gets `answer`, after one request."""
    with model_server(answer) as server, pytest.raises(TransientProviderError) as caught:
        await call(service, server.url, **options)
    assert len(server.asked) == 1
    return caught.value


def refusal(message: str, **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "some_error", "message": message, **more}}


REFUSED: list[tuple[int, dict[str, Any], str, str]] = [
    (400, {}, "bad_request", "provider.bad_request"),
    (401, {}, "auth", "provider.auth"),
    (402, {}, "auth", "provider.quota"),
    (404, {}, "model", "provider.model"),
    (413, {}, "bad_request", "provider.bad_request"),
    (422, {}, "bad_request", "provider.bad_request"),
    (429, {"code": "insufficient_quota"}, "auth", "provider.quota"),
]


@both
async def test_what_no_retry_mends(service: Service) -> None:
    told = [Answer(status=status, body=refusal(f"no: {SECRET}", **more)) for status, more, _, _ in REFUSED]
    for (status, _, kind, code), error in zip(REFUSED, await each(service, *told), strict=True):
        assert isinstance(error, PermanentProviderError)
        assert (error.kind, error.code) == (kind, code)
        assert error.message == f"{service.provider.name} answered {status}: no: [redacted]"
        assert SECRET not in error.original_message


PASSING = {408: "timeout", 409: "overloaded", 429: "rate_limit", 500: "overloaded", 502: "overloaded",
           503: "overloaded", 504: "timeout", 529: "overloaded"}  # fmt: skip


@both
async def test_what_a_retry_may_mend_is_asked_once_here(service: Service) -> None:
    told = [Answer(status=status, body="<html>\nbusy</html>") for status in PASSING]
    for (status, kind), error in zip(PASSING.items(), await each(service, *told), strict=True):
        assert isinstance(error, TransientProviderError)
        assert (error.kind, error.retry_after_s) == (kind, None)
        assert error.message == f"{service.provider.name} answered {status}: <html> busy</html>"


@both
async def test_the_servers_wish_to_wait_is_told_in_seconds_where_it_can_be_used(service: Service) -> None:
    usable = [{"retry-after": "7"}, {"retry-after": "2.5"}, {"retry-after-ms": "1500", "retry-after": "9"}]
    wishes = ["400", "0", "-3", "nan", "soon", "", "Wed, 21 Oct 2015 07:28:00 GMT", "inf"]
    headers = [*usable, *({"retry-after": wish} for wish in wishes)]
    errors = await each(service, *(Answer(status=429, body=refusal("slow"), headers=one) for one in headers))
    assert [error.retry_after_s for error in errors] == [7, 2.5, 1.5, 400, *[None] * 7]


NO_REPLIES: list[tuple[Any, str]] = [
    ("<!doctype html><title>Sign in</title>", "text/html"),
    ("", "application/json"),
    ('{"broken": ', "application/json"),
    ("[" * 100_000, "application/json"),
    ({"error": {"message": "upstream failed"}}, "application/json"),
    ({"type": "message", "object": "chat.completion", "choices": [], "content": None}, "application/json"),
    (["not", "an", "object"], "application/json"),
    ({"choices": [{"text": "of another interface"}], "usage": {}, "type": "completion"}, "application/json"),
    ({"status": "ok", "usage": {"cpu": 5}, "content": "x", "choices": []}, "application/json"),
]


@both
async def test_a_success_that_is_no_reply_is_transient(service: Service) -> None:
    paid: list[Prompt] = []
    told = [Answer(body=body, headers={"content-type": kind}) for body, kind in NO_REPLIES]
    for (body, _), error in zip(NO_REPLIES, await each(service, *told, paid=paid.append), strict=True):
        assert isinstance(error, TransientProviderError)
        assert "base URL" in error.message
        assert (error.kind, error.code) == ("overloaded", "provider.shape")
        assert error.original_message == (body if isinstance(body, str) else json.dumps(body))[:500]
    assert paid == []


@both
async def test_another_temperature_is_asked_for_and_left_out_where_a_model_takes_none(service: Service) -> None:
    refusal = {"error": {"type": "invalid_request_error", "message": "'temperature' is not supported with this model"}}
    with model_server(Answer(status=400, body=refusal), Answer(body=service.body("fine"))) as server:
        warmer = Prompt(key=KEY, turn=1, segments=(Segment(name="role", text="r"),), temperature=1.0)
        reply = await call(service, server.url, warmer)
    assert reply.text == "fine"
    assert [asked.body.get("temperature") for asked in server.asked] == [1.0, None]
