"""The provider `openai`: chat completions through the official SDK, which every compatible server speaks too.

Importing this module imports the SDK, which takes seconds: only wiring does, when the provider is in use."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
from openai.types.chat import ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema
from pydantic import NonNegativeInt, model_validator

from orchestrator.core.calls.exchange import Prompt, StopReason, Usage
from orchestrator.core.calls.wire import WIRE_SCHEMAS
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
    reason,
    sendable,
    split,
    spoken,
)
from orchestrator.providers.proxies import own_client
from orchestrator.providers.structured import answer_schema, is_closed, trimmed
from orchestrator.settings import RequestSettings

STOPS: Mapping[str | None, StopReason] = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "content_filter": StopReason.REFUSAL,
}
"""The service's word → ours; any other word, and none, is UNKNOWN: the answer's text shows whether it is whole."""

OWN_HOSTS = (".openai.com", ".azure.com")
"""Hosts whose reasoning models refuse `max_tokens`; many compatible servers know nothing else."""


class _CachedTokens(WirePart):
    cached_tokens: Known[NonNegativeInt] = None
    cache_write_tokens: Known[NonNegativeInt] = None


class _OutputTokens(WirePart):
    reasoning_tokens: Known[NonNegativeInt] = None


class _Usage(WirePart):
    prompt_tokens: NonNegativeInt
    """With what was read from or written to the cache."""
    completion_tokens: NonNegativeInt = 0
    prompt_tokens_details: Known[_CachedTokens] = None
    completion_tokens_details: Known[_OutputTokens] = None


class _Message(WirePart):
    content: Any = None
    refusal: Known[str] = None
    reasoning_content: Known[str] = None
    reasoning: Known[str] = None
    """The same of other servers."""


class _Choice(WirePart):
    message: _Message
    finish_reason: Known[str] = None


class _Completion(WirePart):
    choices: tuple[Known[_Choice], ...] | None
    model: Known[str] = None
    usage: Known[_Usage] = None

    @model_validator(mode="after")
    def _an_answer(self) -> "_Completion":
        if self.choice is None and self.usage is None:
            raise ValueError("neither a message nor usage")
        return self

    @property
    def choice(self) -> _Choice | None:
        """Returns the first one; None when no message came."""
        return self.choices[0] if self.choices else None


class _Streamed(Streamed):
    """Of chat completions."""

    def __init__(self) -> None:
        super().__init__()
        self._refusal, self._thoughts, self._told, self._stop = "", "", dict[str, Any](), None
        self._usage_ends = True
        """Whether usage says that this was all: some servers tell with every piece what was used so far."""

    def add(self, event: Any) -> None:
        """See the base."""
        chunk, told_before = (event if isinstance(event, dict) else {}), "usage" in self._told
        for name in ("model", "usage"):
            if chunk.get(name) is not None:
                self._told[name] = chunk[name]
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        delta = choice.get("delta")
        if isinstance(delta, dict):
            piece = spoken(delta.get("content"))
            self.take(piece)
            self._usage_ends = self._usage_ends and not (piece and told_before)
            self._refusal += delta["refusal"] if isinstance(delta.get("refusal"), str) else ""
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            self._thoughts += thought if isinstance(thought, str) else ""
        self._stop = choice.get("finish_reason") or self._stop
        # Some servers give no reason; what was used comes last.
        self.whole = self._stop is not None or ("usage" in self._told and self._usage_ends)

    def end(self) -> None:
        """See the base."""
        self.whole = self.whole or "usage" in self._told

    def body(self) -> Any:
        """See the base."""
        message = {"content": self.text, "refusal": self._refusal or None, "reasoning": self._thoughts}
        return {"choices": [{"message": message, "finish_reason": self._stop}], **self._told}


def texts(prompt: Prompt) -> tuple[str | None, str]:
    """Returns the system's text, if there is one, and the user's."""
    system, rest = split(prompt.segments)
    user = "\n\n".join(segment.text for segment in rest)
    return (sendable(system.text) if system else None), sendable(user)


class OpenAIProvider(ModelProvider):
    """`ports.Provider` on `chat.completions.create`. Made outside an event loop: it loads certificates."""

    name = "openai"

    def _open(self, access: ModelAccess) -> None:
        timeout = openai.Timeout(access.timeout_s, connect=min(CONNECT_S, access.timeout_s))
        self._client = self._connect(
            access,
            api_key=access.api_key,
            max_retries=0,  # the transport policy retries (decisions.md#retries); two policies would multiply
            timeout=timeout,
            **own_client(access.base_url, timeout),
        )
        host = f".{urlsplit(str(self._client.base_url)).hostname or ''}"
        self._limit_name = "max_completion_tokens" if host.endswith(OWN_HOSTS) else "max_tokens"

    def _connect(self, access: ModelAccess, **usual: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=access.base_url, **usual)

    async def close(self) -> None:
        """See the base."""
        await self._client.close()

    def _request(self, prompt: Prompt) -> AbstractAsyncContextManager[openai.AsyncAPIResponse[Any]]:
        system, user = texts(prompt)
        messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": user}]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        return self._client.chat.completions.with_streaming_response.create(
            model=self._access.model,
            messages=messages,
            response_format=response_format(self._structured.name(prompt)) or openai.omit,
            # Not by name: the types of the SDK want to know at once whether a stream comes back.
            extra_body={self._limit_name: self._access.max_output_tokens, **self._body(prompt)},
        )

    @asynccontextmanager
    async def _ask(self, prompt: Prompt) -> AsyncIterator[httpx2.Response]:
        try:
            async with self._request(prompt) as raw:
                yield raw.http_response
        except openai.APIStatusError as error:
            yield error.response
        except (openai.APIConnectionError, httpx2.TransportError) as error:
            timed_out = isinstance(error, openai.APITimeoutError | httpx2.TimeoutException)
            raise NoConnection(reason(error), timed_out=timed_out) from error

    def _fields(self, request: RequestSettings) -> dict[str, dict[str, Any]]:
        return {
            "stream": {"stream": True, "stream_options": {"include_usage": True}},
            "effort": {"reasoning_effort": request.effort},
            "temperature": {"temperature": request.temperature},
        }

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[Any]:
        try:
            async for event in openai.AsyncStream(cast_to=object, response=response, client=self._client):
                yield event
        except openai.APIConnectionError:
            raise
        except openai.APIError as error:
            raise StreamError(error.message, error.body) from error

    def _streamed(self) -> Streamed:
        return _Streamed()

    def _read(self, body: Any) -> Said:
        completion = _Completion.model_validate(body)
        choice, usage = completion.choice or _Choice(message=_Message()), completion.usage
        details = (usage.prompt_tokens_details if usage else None) or _CachedTokens()
        cached = details.cached_tokens or 0
        thought = (usage.completion_tokens_details if usage else None) or _OutputTokens()
        text = spoken(choice.message.content)
        refusal = choice.message.refusal if not text else None
        return Said(
            text=text or refusal or "",
            reasoning=choice.message.reasoning_content or choice.message.reasoning or "",
            stop_reason=StopReason.REFUSAL if refusal else STOPS.get(choice.finish_reason, StopReason.UNKNOWN),
            model=completion.model or "",
            usage=Usage(
                input=usage.prompt_tokens,
                cached=cached,
                output=usage.completion_tokens,
                reasoning=thought.reasoning_tokens or 0,
            )
            if usage
            else None,
            cache_written=details.cache_write_tokens or 0,
        )


class AzureOpenAIProvider(OpenAIProvider):
    """`ports.Provider` on chat completions of a deployment on Azure: the model is the deployment's name."""

    name = "azure"

    def _open(self, access: ModelAccess) -> None:
        super()._open(access)
        self._limit_name = "max_completion_tokens"

    def _connect(self, access: ModelAccess, **usual: Any) -> openai.AsyncOpenAI:
        version = access.variables["OPENAI_API_VERSION"]
        return openai.AsyncAzureOpenAI(azure_endpoint=access.base_url, api_version=version, **usual)


@cache
def response_format(schema: str | None) -> ResponseFormatJSONSchema | None:
    """Returns what asks for an answer of a schema, strict where that excludes no answer; None without one.

    Not to be changed: all calls share it.
    """
    if schema is None:
        return None
    strict = schema in WIRE_SCHEMAS and is_closed(schema)  # the service takes no union as the whole of a strict schema
    shape = dict(answer_schema(schema))
    if strict:
        # The SDK makes types strict, not schemas; it leaves defaults in, which Azure refuses.
        shape = trimmed(openai.pydantic_function_tool(WIRE_SCHEMAS[schema])["function"].get("parameters"))
    return {"type": "json_schema", "json_schema": {"name": schema, "strict": strict, "schema": shape}}
