"""Effort, thinking, temperature and the like in the requests of real models, and what becomes of what is refused."""

import asyncio
from typing import Any

import pytest

from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, Segment, TurnKey
from orchestrator.core.errors import PermanentProviderError
from orchestrator.providers.anthropic import AnthropicProvider
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.openai import OpenAIProvider
from orchestrator.providers.openai_responses import OpenAIResponsesProvider
from orchestrator.settings import RequestSettings
from tests.providers.http_server import Answer, ModelServer, completion, message, model_server, response

SUMMARY = {"reasoning": {"summary": "auto"}}
KEY = TurnKey(persona="alex", story="A", purpose=Purpose.DELIVERY)
PROMPT = Prompt(key=KEY, turn=1, segments=(Segment(name="role", text="r"),))
ALL = RequestSettings(
    effort="low", thinking=True, temperature=0.5, extra={"top_k": 40, "metadata": {"user_id": "u"}}
)  # fmt: skip


async def ask(
    kind: type[ModelProvider], server: ModelServer, request: RequestSettings, *prompts: Prompt, stream: bool = False
) -> list[Reply]:
    access = ModelAccess(
        model="asked", api_key="sk-1234567", base_url=server.url, timeout_s=20, max_output_tokens=9, stream=stream,
        request=request,
    )  # fmt: skip
    provider = await asyncio.to_thread(kind, access, price={}.get)
    try:
        return [await provider.complete(prompt) for prompt in prompts or (PROMPT,)]
    finally:
        await provider.close()


async def sent(kind: type[ModelProvider], answer: Any, request: RequestSettings) -> tuple[dict[str, Any], Reply]:
    """What of a request is there beside the prompt, and its reply."""
    with model_server(Answer(body=answer)) as server:
        (reply,) = await ask(kind, server, request)
    body = server.asked[0].body
    usual = ("model", "messages", "system", "max_tokens", "input", "instructions", "max_output_tokens", "store")
    return {name: value for name, value in body.items() if name not in usual}, reply


async def test_each_setting_is_sent_where_the_wire_has_a_field_and_else_told_once() -> None:
    body, reply = await sent(AnthropicProvider, message(), ALL)
    assert body == {
        "output_config": {"effort": "low"},
        "thinking": {"type": "adaptive"},
        "temperature": 0.5,
        "metadata": {"user_id": "u"},
        "top_k": 40,
    }
    assert reply.left_out == ()
    body, reply = await sent(OpenAIProvider, completion(), ALL)
    assert body == {
        "reasoning_effort": "low",
        "temperature": 0.5,
        "metadata": {"user_id": "u"},
        "top_k": 40,
    }
    assert reply.left_out == ("thinking",)
    assert reply.without == "; gpt-told takes no thinking: requests go without from now on"
    body, reply = await sent(OpenAIResponsesProvider, response(), ALL.model_copy(update={"extra": SUMMARY}))
    assert body == {
        "reasoning": {"effort": "low", "summary": "auto"},
        "temperature": 0.5,
    }
    assert reply.left_out == ("thinking",)
    with model_server(Answer(body=completion())) as server:
        assert [one.left_out for one in await ask(OpenAIProvider, server, ALL, PROMPT, PROMPT)] == [("thinking",), ()]


async def test_another_temperature_of_a_prompt_goes_before_the_setting() -> None:
    warmer = PROMPT.model_copy(update={"temperature": 1.0})
    with model_server(Answer(body=completion())) as server:
        await ask(OpenAIProvider, server, RequestSettings(temperature=0.1), PROMPT, warmer)
    assert [asked.body["temperature"] for asked in server.asked] == [0.1, 1.0]


REFUSALS: list[tuple[type[ModelProvider], dict[str, Any], tuple[str, ...]]] = [
    # (wire, error, what is left out)
    (OpenAIProvider, {"message": "Unsupported parameter", "param": "reasoning_effort", "type": "x"}, ("effort",)),
    (OpenAIProvider, {"message": "temperature and top_k: Extra inputs are not permitted"}, ("temperature", "top_k")),
    (OpenAIProvider, {"message": "Unrecognized request argument supplied: top_k"}, ("top_k",)),
    (OpenAIProvider, {"message": "'metadata' is only allowed when 'store' is enabled"}, ("metadata",)),
    (AnthropicProvider, {"message": "output_config.effort: Extra inputs are not permitted"}, ("effort",)),
    (AnthropicProvider, {"message": "This model does not support the effort parameter."}, ("effort",)),
    (AnthropicProvider, {"message": "thinking.adaptive.display: no"}, ("thinking",)),
]


@pytest.mark.parametrize(("kind", "error", "left_out"), REFUSALS)
async def test_what_a_service_refuses_by_name_is_left_out_from_then_on(
    kind: type[ModelProvider], error: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    body = message() if kind is AnthropicProvider else completion()
    without = () if kind is AnthropicProvider else ("thinking",)
    with model_server(Answer(status=400, body={"error": error}), Answer(body=body)) as server:
        first, second = await ask(kind, server, ALL, PROMPT, PROMPT)
    assert (first.left_out, second.left_out) == ((*without, *left_out), ())
    refused, *later = (asked.body for asked in server.asked)
    gone = {"effort": {"reasoning_effort", "output_config"}}
    for one in later:
        assert set(refused) - set(one) == set().union(*({*gone.get(name, {name})} & set(refused) for name in left_out))


async def test_of_fields_that_are_shared_only_the_one_that_is_refused_is_left_out() -> None:
    told = {"error": {"message": "Your organization must be verified", "param": "reasoning.summary"}}
    asked = RequestSettings(effort="low", extra=SUMMARY)
    with model_server(Answer(status=400, body=told), Answer(body=response())) as server:
        (reply,) = await ask(OpenAIResponsesProvider, server, asked)
    assert reply.left_out == ("reasoning",)
    assert server.asked[1].body["reasoning"] == {"effort": "low"}


async def test_a_refusal_that_names_nothing_of_ours_ends_the_call() -> None:
    told = {"error": {"message": "output_config.format: the schema is too large; stopped"}}
    with model_server(Answer(status=400, body=told)) as server, pytest.raises(PermanentProviderError):
        await ask(AnthropicProvider, server, ALL, stream=True)
    assert len(server.asked) == 1
