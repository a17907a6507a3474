"""Streamed answers of real models through their SDKs, against a server on loopback."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, Segment, StopReason, TurnKey, Usage
from orchestrator.core.errors import PermanentProviderError, TransientProviderError
from orchestrator.core.value import ENDLESS
from orchestrator.providers.anthropic import AnthropicProvider
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.openai import OpenAIProvider
from orchestrator.providers.openai_responses import OpenAIResponsesProvider
from orchestrator.settings import PriceSettings
from tests.package_index import certificate_in
from tests.providers.http_server import (
    EVENTS,
    Answer,
    ModelServer,
    completion,
    completion_stream,
    message,
    message_stream,
    model_server,
    response,
    response_stream,
)

KEY = TurnKey(persona="alex", story="A", purpose=Purpose.DELIVERY)
PROMPT = Prompt(key=KEY, turn=3, segments=(Segment(name="role", text="r" * 40), Segment(name="task", text="t" * 38)))
TEXT = "one two three four five six \U0001f600 seven"


@dataclass(frozen=True)
class Service:
    provider: type[ModelProvider]
    stream: Callable[..., str]
    body: Callable[..., dict[str, object]]
    limit: str
    told_input: int
    """Tokens of the prompt that are known when a stream breaks: told at its beginning, or estimated."""

    def __str__(self) -> str:
        return self.provider.name


CLAUDE = Service(AnthropicProvider, message_stream, message, "max_tokens", 20)
GPT = Service(OpenAIProvider, completion_stream, completion, "length", 20)
RESPONSES = Service(OpenAIResponsesProvider, response_stream, response, "max_output_tokens", 20)
both = pytest.mark.parametrize("service", [CLAUDE, GPT, RESPONSES], ids=str)
PRICE = PriceSettings(input=10, cached=1, cache_write=12.5, output=50)


async def call(service: Service, server: ModelServer, *, stall_s: float = 20, stream: bool = True) -> Reply:
    access = ModelAccess(
        model="asked", api_key="sk-1234567", base_url=server.url, timeout_s=20, max_output_tokens=30_000,
        stall_s=stall_s, stream=stream,
    )  # fmt: skip
    provider = await asyncio.to_thread(service.provider, access, price=lambda _model: PRICE)
    try:
        return await provider.complete(PROMPT)
    finally:
        await provider.close()


async def fails(service: Service, answer: Answer, *, stall_s: float = 20) -> TransientProviderError:
    with model_server(answer) as server, pytest.raises(TransientProviderError) as caught:
        await call(service, server, stall_s=stall_s)
    return caught.value


@both
@pytest.mark.parametrize("pieces", [1, 40])
async def test_a_streamed_reply_is_what_it_would_be_in_one_piece(service: Service, pieces: int) -> None:
    with model_server(Answer(body=service.stream(TEXT, pieces=pieces), headers=EVENTS)) as server:
        streamed = await call(service, server)
    with model_server(Answer(body=service.body(TEXT))) as server:
        whole = await call(service, server, stream=False)
    assert "stream" not in server.asked[0].body
    assert streamed.model_copy(update={"duration_ms": 0}) == whole.model_copy(update={"duration_ms": 0})
    assert (streamed.text, streamed.usage) == (TEXT, Usage(input=20, cached=7, output=5, reasoning=3))
    with model_server(Answer(body=service.stream(TEXT, service.limit), headers=EVENTS)) as server:
        assert (await call(service, server)).stop_reason is StopReason.MAX_TOKENS


@both
@pytest.mark.parametrize("how", ["cut", "stalled", "error", "not JSON", "ended"])
async def test_what_had_come_of_a_stream_that_broke_is_kept_and_counted(service: Service, how: str) -> None:
    stream = service.stream(TEXT, pieces=8)
    events = stream.split("\n\n")
    half = "\n\n".join(events[: len(events) * 6 // 10]) + "\n\n"
    size = len(half.encode())
    answer = {
        "cut": Answer(body=stream, headers=EVENTS, cut=size),
        "stalled": Answer(body=stream, headers=EVENTS, stall=size),
        "error": Answer(
            body=service.stream(TEXT, error={"type": "overloaded_error", "message": "busy"}), headers=EVENTS
        ),
        "not JSON": Answer(body=half + half[-80:-5] + "\n\n", headers=EVENTS),
        "ended": Answer(body=half, headers=EVENTS),
    }[how]
    with model_server(answer) as server:
        came = await call(service, server, stall_s=0.3)
    assert TEXT.startswith(came.text)
    assert 5 < len(came.text) <= len(TEXT)
    assert (came.stop_reason, came.key, came.turn) == (StopReason.INTERRUPTED, KEY, 3)
    assert came.usage.input == service.told_input
    assert came.usage.output >= len(came.text) // 4
    assert came.cost_usd > 0


@both
async def test_an_answer_that_repeats_itself_without_end_is_read_no_further_and_counted(service: Service) -> None:
    text = f"{TEXT}\n" + "and so on, as before\n" * 2000
    stream = service.stream(text, pieces=400)
    with model_server(Answer(body=stream, headers=EVENTS, stall=len(stream.encode()) * 8 // 10)) as server:
        reply = await call(service, server)
    assert len(server.asked) == 1, "no transport error, so nothing is asked again"
    assert text.startswith(reply.text)
    assert ENDLESS < len(reply.text) < ENDLESS + 2000
    assert reply.stop_reason is StopReason.INTERRUPTED
    assert (reply.usage.input, reply.usage.output) == (
        service.told_input, -(-len(reply.text + reply.reasoning) // 4)
    )  # fmt: skip
    assert reply.cost_usd > 0


@both
async def test_an_empty_account_in_the_middle_of_a_stream_is_no_passing_error(service: Service) -> None:
    empty = {"type": "billing_error", "code": "insufficient_quota", "message": "pay"}
    answer = Answer(body=service.stream(TEXT, error=empty), headers=EVENTS)
    with model_server(answer) as server, pytest.raises(PermanentProviderError) as caught:
        await call(service, server)
    assert (caught.value.kind, caught.value.code) == ("auth", "provider.quota")


async def test_a_gateways_number_in_a_stream_is_the_status_of_its_error() -> None:
    slow, wrong = ({"code": code, "message": "not for sk-1234567"} for code in (429, 401))
    error = await fails(GPT, Answer(body=completion_stream("", error=slow), headers=EVENTS))
    assert (error.kind, error.message.partition(";")[0]) == ("rate_limit", "openai answered 429: not for [redacted]")
    answer = Answer(body=completion_stream("", error=wrong), headers=EVENTS)
    with model_server(answer) as server, pytest.raises(PermanentProviderError) as caught:
        await call(GPT, server)
    told = caught.value
    assert (told.kind, told.message) == ("auth", "openai answered 401: not for [redacted]")
    assert "sk-1234567" not in told.original_message


@both
async def test_a_stream_that_breaks_behind_its_end_is_whole(service: Service) -> None:
    stream = service.stream(TEXT)
    with model_server(Answer(body=stream + ": more\n", headers=EVENTS, cut=len(stream.encode()))) as server:
        reply = await call(service, server)
    assert (reply.text, reply.stop_reason) == (TEXT, StopReason.END_TURN)


@both
async def test_a_server_that_takes_no_streams_is_asked_without_from_then_on(service: Service) -> None:
    named = "stream_options" if service is GPT else "stream"
    refusal = Answer(status=400, body={"error": {"message": f"Unrecognized request argument: {named}"}})
    with model_server(refusal, Answer(body=service.body(TEXT))) as server:
        access = ModelAccess(
            model="asked", api_key="sk-1234567", base_url=server.url, timeout_s=20, max_output_tokens=30_000
        )
        provider = await asyncio.to_thread(service.provider, access, price=lambda _model: PRICE)
        replies = [await provider.complete(PROMPT), await provider.complete(PROMPT)]
        await provider.close()
    assert [reply.text for reply in replies] == [TEXT, TEXT]
    assert ["stream" in asked.body for asked in server.asked] == [True, False, False]
    assert [reply.left_out for reply in replies] == [("stream",), ()]


async def test_a_server_that_gives_no_reason_for_its_end_is_read_as_it_was_in_one_piece() -> None:
    with model_server(Answer(body=completion_stream(TEXT, None), headers=EVENTS)) as server:
        reply = await call(GPT, server)
    assert (reply.text, reply.stop_reason, reply.usage.output) == (TEXT, StopReason.UNKNOWN, 5)


async def test_a_stream_whose_beginning_lacks_what_is_known_anyway_is_read_all_the_same() -> None:
    stream = message_stream(TEXT).replace('"type": "message", ', "")
    with model_server(Answer(body=stream, headers=EVENTS)) as server:
        assert (await call(CLAUDE, server)).text == TEXT


@both
async def test_a_certificate_that_is_not_trusted_is_no_passing_error(service: Service, tmp_path: Path) -> None:
    certificate = await asyncio.to_thread(certificate_in, tmp_path)
    with model_server(Answer(body=service.body(TEXT)), certificate=certificate) as server:
        with pytest.raises(PermanentProviderError) as caught:
            await call(service, server)
        assert (caught.value.kind, caught.value.code) == ("auth", "provider.certificate")
