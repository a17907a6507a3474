"""What every provider promises through the port: the scripted team and the two real ones keep the same suite."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, Segment, StopReason, TurnKey, Usage
from orchestrator.core.errors import (
    PermanentProviderError,
    ProviderError,
    SchemaValidationError,
    TransientProviderError,
)
from orchestrator.core.ports import Provider
from orchestrator.files.process import SystemClock
from orchestrator.providers.anthropic import AnthropicProvider
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.openai import OpenAIProvider
from orchestrator.providers.openai_responses import OpenAIResponsesProvider
from orchestrator.providers.scripted import CallLog, ScriptedProvider, load_script
from tests.providers.http_server import Answer, completion, message, model_server, response

KEY = TurnKey(persona="alex", story="US-1", task="T-US-1-01", purpose=Purpose.DELIVERY)
TURNS = 3
STATUS = {
    "rate_limit": 429,
    "overloaded": 529,
    "timeout": 504,
    "connection": 0,
    "auth": 401,
    "model": 404,
    "bad_request": 400,
}
Opened = Callable[..., AbstractAsyncContextManager[tuple[Provider, Path]]]
"""(folder, what happens in each turn) → the provider and its call log."""


def prompt(turn: int = 1) -> Prompt:
    return Prompt(key=KEY, turn=turn, segments=(Segment(name="role", text="r"), Segment(name="task", text="t")))


@asynccontextmanager
async def scripted(folder: Path, **entry: Any) -> AsyncIterator[tuple[Provider, Path]]:
    numbers = {"input_tokens": 20, "cached_tokens": 7, "output_tokens": 5}
    lines = [{**KEY.model_dump(mode="json"), "turn": turn, **numbers, **entry} for turn in range(1, TURNS + 1)]
    script, log = folder / "team.jsonl", folder / "calls.jsonl"
    await asyncio.to_thread(script.write_text, "".join(f"{json.dumps(line)}\n" for line in lines))
    yield ScriptedProvider(await asyncio.to_thread(load_script, script), CallLog(log, SystemClock())), log


def real(kind: type[ModelProvider], body: Callable[..., dict[str, Any]], words: dict[str, str]) -> Opened:
    @asynccontextmanager
    async def opened(folder: Path, **entry: Any) -> AsyncIterator[tuple[Provider, Path]]:
        stop, error, log = entry.get("stop_reason", "end_turn"), entry.get("error"), folder / "calls.jsonl"
        wait_s, wish = entry.get("latency_ms", 0) / 1000, entry.get("retry_after_s")
        answer = Answer(body=body(entry.get("text", ""), words.get(stop, stop)), wait_s=wait_s)
        if error is not None:
            headers = {} if wish is None else {"retry-after": str(wish)}
            answer = Answer(status=STATUS[error], body={"error": {"message": entry.get("text")}}, headers=headers)
        with model_server(answer) as server:
            access = ModelAccess(
                model="m", api_key="sk-0123456789", base_url=server.url, timeout_s=20, max_output_tokens=9
            )
            if error == "connection":
                server.close()
            paid = CallLog(log, SystemClock()).write
            provider = await asyncio.to_thread(kind, access, price={}.get, on_paid=paid)
            yield provider, log
            await provider.close()

    return opened


CHAT = {"end_turn": "stop", "max_tokens": "length", "refusal": "content_filter", "tool_use": "tool_calls"}
RESPONSES = {"end_turn": "completed", "max_tokens": "max_output_tokens", "refusal": "content_filter"}
every = pytest.mark.parametrize(
    "opened",
    [
        scripted,
        real(AnthropicProvider, message, {}),
        real(OpenAIProvider, completion, CHAT),
        real(OpenAIResponsesProvider, response, RESPONSES),
    ],
    ids=["scripted", "anthropic", "openai", "openai-responses"],
)


async def lines_of(log: Path) -> list[dict[str, Any]]:
    text = await asyncio.to_thread(log.read_text) if await asyncio.to_thread(log.exists) else ""
    return [json.loads(line) for line in text.splitlines()]


@every
async def test_a_reply_is_the_answer_to_its_prompt(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path, text=' {"a": "\u2028ä😀"}\n') as (provider, log):
        reply = await provider.complete(prompt(2))
        assert (reply.key, reply.turn, reply.text) == (KEY, 2, ' {"a": "\u2028ä😀"}\n')
        assert (reply.provider, reply.paid, reply.failed_calls) == (provider.name, True, ())
        assert reply.usage == Usage(input=20, cached=7, output=5, reasoning=0 if reply.provider == "scripted" else 3)
        assert reply.stop_reason is StopReason.END_TURN
        assert reply.model
        assert Reply.model_validate(reply.model_dump(mode="json")) == reply
        (line,) = await lines_of(log)
        assert {name: line[name] for name in (*KEY.model_dump(), "turn")} == {**KEY.model_dump(mode="json"), "turn": 2}


@every
@pytest.mark.parametrize("word", ["max_tokens", "refusal", "tool_use", "unheard_of"])
async def test_how_the_model_stopped_is_told(opened: Opened, tmp_path: Path, word: str) -> None:
    async with opened(tmp_path, text="{", stop_reason=word) as (provider, _):
        reason = (await provider.complete(prompt())).stop_reason
    assert reason.value == (word if word != "unheard_of" else "unknown")


@every
async def test_an_empty_answer_is_a_reply(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path, text="") as (provider, log):
        assert (await provider.complete(prompt())).text == ""
        assert len(await lines_of(log)) == 1


@every
@pytest.mark.parametrize("kind", list(STATUS))
async def test_an_error_has_its_kind_and_is_not_paid(opened: Opened, tmp_path: Path, kind: str) -> None:
    async with opened(tmp_path, error=kind, text="x" * 900) as (provider, log):
        with pytest.raises(ProviderError) as caught:
            await provider.complete(prompt())
        assert await lines_of(log) == []
    permanent = kind in {"auth", "model", "bad_request"}
    assert isinstance(caught.value, PermanentProviderError if permanent else TransientProviderError)
    assert (caught.value.kind, caught.value.code) == (kind, f"provider.{kind}")
    assert caught.value.provider_name == provider.name
    assert caught.value.original_message
    assert not isinstance(caught.value, SchemaValidationError)
    assert len(caught.value.message) + len(caught.value.original_message) < 1000


@every
async def test_the_wish_to_wait_is_handed_on(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path, error="rate_limit", retry_after_s=2.5) as (provider, _):
        with pytest.raises(TransientProviderError) as caught:
            await provider.complete(prompt())
    assert caught.value.retry_after_s == 2.5


@every
async def test_calls_run_side_by_side_and_one_can_be_cancelled(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path, text="ok", latency_ms=300) as (provider, log):
        cut, *others = [asyncio.create_task(provider.complete(prompt(turn))) for turn in range(1, TURNS + 1)]
        await asyncio.sleep(0.05)
        cut.cancel()
        replies = await asyncio.gather(cut, *others, return_exceptions=True)
        assert isinstance(replies[0], asyncio.CancelledError)
        assert [reply.turn for reply in replies if isinstance(reply, Reply)] == [2, 3]
        assert sorted(line["turn"] for line in await lines_of(log)) == [2, 3]
