"""The provider `anthropic`: the Messages API through the official SDK.

Importing this module imports the SDK, which takes seconds: only wiring does, when the provider is in use."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Literal

import anthropic
import httpx2
from anthropic.types import MessageParam, TextBlockParam
from pydantic import NonNegativeInt, model_validator

from orchestrator.core.calls.exchange import Prompt, Segment, StopReason, Usage
from orchestrator.providers.base import (
    CONNECT_S,
    Known,
    ModelAccess,
    ModelProvider,
    NoConnection,
    Said,
    Streamed,
    StreamError,
    WirePart,
    merged,
    reason,
    sendable,
    split,
    spoken,
)
from orchestrator.providers.proxies import own_client
from orchestrator.providers.structured import answer_schema
from orchestrator.settings import RequestSettings

STOPS: Mapping[str | None, StopReason] = {
    "end_turn": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "tool_use": StopReason.TOOL_USE,
    "refusal": StopReason.REFUSAL,
}
"""The service's word → ours; any other word, and none, is UNKNOWN: the answer's text shows whether it is whole."""

SEAMS = (("data", "project", "story"), ("role", "rules", "contract", "sprint"), ("skills", "done"), ("task",))
"""Segments that change together. Behind the last of each stands a cache breakpoint; the service takes four.

The first group is the same for all personas of a story, the second for one of them, `skills` for tasks on files of the
same kinds. `done` only grows: a piece of it that was sent before is found again, because the service looks up to 20
blocks back from a breakpoint."""


GROWING = "done"
"""The segment that only has entries added behind the others."""
_ENTRY = re.compile(r"\n\n(?=### )")


class _OutputTokens(WirePart):
    thinking_tokens: Known[NonNegativeInt] = None


class _Usage(WirePart):
    input_tokens: NonNegativeInt
    """Without what was read from or written to the cache."""
    output_tokens: NonNegativeInt = 0
    cache_creation_input_tokens: Known[NonNegativeInt] = None
    cache_read_input_tokens: Known[NonNegativeInt] = None
    output_tokens_details: Known[_OutputTokens] = None


class _Stop(WirePart):
    explanation: Known[str] = None
    """Why an answer was refused, in words."""


class _Message(WirePart):
    type: Literal["message"]
    content: Any = None
    model: Known[str] = None
    stop_reason: Known[str] = None
    stop_details: Known[_Stop] = None
    usage: Known[_Usage] = None

    @model_validator(mode="after")
    def _an_answer(self) -> "_Message":
        if not isinstance(self.content, list | str) and self.usage is None:
            raise ValueError("neither content nor usage")
        return self


class _Streamed(Streamed):
    """Of the Messages API."""

    def __init__(self) -> None:
        super().__init__()
        self._thoughts = ""
        self._message = dict[str, Any]()

    def add(self, event: Any) -> None:
        """See the base."""
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "message_start" and isinstance(event.get("message"), dict):
            self._message = dict(event["message"])
        elif kind == "content_block_start":
            self.take(spoken([event.get("content_block")]))
            self._thoughts += _thoughts([event.get("content_block")])
        elif kind == "content_block_delta" and isinstance(delta := event.get("delta"), dict):
            self.take(delta.get("text"))
            self._thoughts += delta["thinking"] if isinstance(delta.get("thinking"), str) else ""
        elif kind == "message_delta":
            told = (
                event.get("delta"),
                {"usage": {**_mapping(self._message.get("usage")), **_mapping(event.get("usage"))}},
            )
            for part in told:
                self._message.update(_mapping(part))
        elif kind == "message_stop":
            self.whole = True

    def body(self) -> Any:
        """See the base."""
        thoughts = {"type": "thinking", "thinking": self._thoughts}
        content = [thoughts, {"type": "text", "text": self.text}]
        return {**self._message, "type": "message", "content": content}


def _thoughts(content: object) -> str:
    parts = (part for part in content if isinstance(part, dict)) if isinstance(content, list) else ()
    return "".join(part["thinking"] for part in parts if isinstance(part.get("thinking"), str))


def _mapping(found: object) -> Mapping[str, Any]:
    """Returns what has a value in an object; nothing of what is none."""
    return {name: one for name, one in found.items() if one is not None} if isinstance(found, dict) else {}


class AnthropicProvider(ModelProvider):
    """`ports.Provider` on `messages.create`. Made outside an event loop: it loads certificates and parts of the SDK."""

    name = "anthropic"
    takes_open_schemas = False

    def _open(self, access: ModelAccess) -> None:
        timeout = anthropic.Timeout(access.timeout_s, connect=min(CONNECT_S, access.timeout_s))
        self._client = self._connect(
            access,
            max_retries=0,  # the transport policy retries (decisions.md#retries); two policies would multiply
            timeout=timeout,
            **own_client(access.base_url, timeout),
        )
        self._create = self._client.messages.with_streaming_response.create

    def _connect(self, access: ModelAccess, **usual: Any) -> Any:
        return anthropic.AsyncAnthropic(api_key=access.api_key, base_url=access.base_url, **usual)

    async def close(self) -> None:
        """See the base."""
        await self._client.close()

    @asynccontextmanager
    async def _ask(self, prompt: Prompt) -> AsyncIterator[httpx2.Response]:
        system, rest = split(prompt.segments)
        ends = _seams(prompt.segments)
        user: MessageParam = {
            "role": "user",
            "content": [block for segment in rest for block in _blocks(segment, ends)],
        }
        try:
            async with self._create(
                model=self._access.model,
                max_tokens=self._access.max_output_tokens,
                system=_blocks(system, ends) if system else anthropic.omit,
                messages=[user],
                # Not by name: the SDK knows no temperature any longer, which most models still take.
                extra_body=merged(self._body(prompt), _output_config(self._structured.name(prompt))),
                # Given with the call as well: without it the SDK refuses long answers that are not streamed.
                timeout=self._client.timeout,
            ) as raw:
                yield raw.http_response
        except anthropic.APIStatusError as error:
            yield error.response
        except (anthropic.APIConnectionError, httpx2.TransportError) as error:
            timed_out = isinstance(error, anthropic.APITimeoutError | httpx2.TimeoutException)
            raise NoConnection(reason(error), timed_out=timed_out) from error

    def _fields(self, request: RequestSettings) -> dict[str, dict[str, Any]]:
        thinking: dict[str, Any] = {"type": "adaptive" if request.thinking else "disabled"}
        if not isinstance(request.thinking, bool):
            thinking = {"type": "enabled", "budget_tokens": request.thinking}
        return {
            "stream": {"stream": True},
            "effort": {"output_config": {"effort": request.effort}},
            "thinking": {"thinking": thinking},
            "temperature": {"temperature": request.temperature},
        }

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[Any]:
        try:
            async for event in anthropic.AsyncStream(cast_to=object, response=response, client=self._client):
                yield event
        except anthropic.APIStatusError as error:
            body = error.body
            raise StreamError(error.message, body.get("error") if isinstance(body, dict) else body) from error

    def _streamed(self) -> Streamed:
        return _Streamed()

    def _read(self, body: Any) -> Said:
        message = _Message.model_validate(body)
        usage = message.usage
        read = (usage.cache_read_input_tokens or 0) if usage else 0
        written = (usage.cache_creation_input_tokens or 0) if usage else 0
        thought = (usage.output_tokens_details or _OutputTokens()).thinking_tokens if usage else None
        return Said(
            text=spoken(message.content) or (message.stop_details or _Stop()).explanation or "",
            reasoning=_thoughts(message.content),
            stop_reason=STOPS.get(message.stop_reason, StopReason.UNKNOWN),
            model=message.model or "",
            usage=Usage(
                input=usage.input_tokens + read + written,
                cached=read,
                output=usage.output_tokens,
                reasoning=thought or 0,
            )
            if usage
            else None,
            cache_written=written,
        )


@cache
def _output_config(schema: str | None) -> Mapping[str, Any]:
    """Returns what asks for an answer of a schema; nothing without one. Not to be changed: all calls share it."""
    if schema is None:
        return {}
    form = {"type": "json_schema", "schema": anthropic.transform_schema(dict(answer_schema(schema)))}
    return {"output_config": {"format": form}}


def _seams(segments: Sequence[Segment]) -> frozenset[str]:
    """Returns names of the segments with a breakpoint behind them, at most four."""
    present = [segment.name for segment in segments if segment.text.strip()]
    ends = ([name for name in group if name in present] for group in SEAMS)
    return frozenset(names[-1] for names in ends if names)


def _blocks(segment: Segment, ends: frozenset[str]) -> list[TextBlockParam]:
    """Returns a segment as blocks: one, or one per entry of what only grows, so that the first ones stay the same."""
    texts = _ENTRY.split(segment.text) if segment.name == GROWING else [segment.text]
    blocks: list[TextBlockParam] = [{"type": "text", "text": sendable(text)} for text in texts if text.strip()]
    if segment.name in ends:
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
    return blocks
