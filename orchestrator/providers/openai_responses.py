"""The provider `openai-responses`: the Responses API through the official SDK.

Importing this module imports the SDK, which takes seconds: only wiring does, when the provider is in use."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import openai
from pydantic import NonNegativeInt, model_validator

from orchestrator.core.calls.exchange import Prompt, StopReason, Usage
from orchestrator.providers.base import Known, Said, Streamed, StreamError, WirePart, merged
from orchestrator.providers.openai import OpenAIProvider, response_format, texts
from orchestrator.providers.refusals import refused
from orchestrator.settings import RequestSettings

STOPS: Mapping[str | None, StopReason] = {
    "completed": StopReason.END_TURN,
    "max_output_tokens": StopReason.MAX_TOKENS,
    "content_filter": StopReason.REFUSAL,
}
"""The service's word → ours, the reason where an answer is incomplete; any other word, and none, is UNKNOWN."""


class _Input(WirePart):
    cached_tokens: Known[NonNegativeInt] = None
    cache_write_tokens: Known[NonNegativeInt] = None


class _Output(WirePart):
    reasoning_tokens: Known[NonNegativeInt] = None


class _Usage(WirePart):
    input_tokens: NonNegativeInt
    """With what was read from or written to the cache."""
    output_tokens: NonNegativeInt = 0
    input_tokens_details: Known[_Input] = None
    output_tokens_details: Known[_Output] = None


class _Incomplete(WirePart):
    reason: Known[str] = None


class _Response(WirePart):
    output: Any = None
    model: Known[str] = None
    status: Known[str] = None
    incomplete_details: Known[_Incomplete] = None
    error: Any = None
    usage: Known[_Usage] = None

    @model_validator(mode="after")
    def _an_answer(self) -> "_Response":
        if not isinstance(self.output, list) and self.usage is None:
            raise ValueError("neither output nor usage")
        return self

    def parts(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """Yields the items of a kind."""
        items = self.output if isinstance(self.output, list) else []
        yield from (item for item in items if isinstance(item, dict) and item.get("type") == kind)

    def text(self, kind: str, *parts: str) -> str:
        """Returns the texts of items of a kind: of their parts of these types."""
        lists = (item.get(name) for item in self.parts(kind) for name in ("summary", "content"))
        found = (part for one in lists if isinstance(one, list) for part in one if isinstance(part, dict))
        said = (part.get("text", part.get("refusal")) for part in found if part.get("type") in parts)
        return "".join(text for text in said if isinstance(text, str))


class _Streamed(Streamed):
    """Of the Responses API."""

    def __init__(self) -> None:
        super().__init__()
        self._refusal, self._thoughts, self._response = "", "", dict[str, Any]()

    def add(self, event: Any) -> None:
        """See the base."""
        told = event if isinstance(event, dict) else {}
        kind, delta, response = str(told.get("type")), told.get("delta"), told.get("response")
        if kind == "error":
            raise StreamError(str(told.get("message")), told)
        if isinstance(delta, str):
            self.take(delta if kind == "response.output_text.delta" else "")
            self._refusal += delta if kind == "response.refusal.delta" else ""
            self._thoughts += delta if kind.startswith("response.reasoning") else ""
        if isinstance(response, dict):
            if kind == "response.failed":
                raise _failed(response.get("error"))
            self._response = response
            self.whole = kind in {"response.completed", "response.incomplete"}

    def body(self) -> Any:
        """See the base."""
        thoughts = {"type": "reasoning", "summary": [{"type": "summary_text", "text": self._thoughts}]}
        said = [{"type": "output_text", "text": self.text}, {"type": "refusal", "refusal": self._refusal}]
        output = self._response.get("output")
        others = (
            [one for one in output if _kind(one) not in {"reasoning", "message"}] if isinstance(output, list) else []
        )
        return {**self._response, "output": [thoughts, {"type": "message", "content": said}, *others]}


def _kind(item: object) -> object:
    return item.get("type") if isinstance(item, dict) else None


def _failed(error: object) -> StreamError:
    details = error if isinstance(error, dict) else {}
    return StreamError(str(details.get("message") or "the response failed"), error)


class OpenAIResponsesProvider(OpenAIProvider):
    """`ports.Provider` on `responses.create`. Nothing is stored at the service, unless `extra` says `store: true`."""

    name = "openai-responses"

    def _request(self, prompt: Prompt) -> AbstractAsyncContextManager[openai.AsyncAPIResponse[Any]]:
        system, user = texts(prompt)
        asked = response_format(self._structured.name(prompt))
        form = {"text": {"format": {"type": "json_schema", **asked["json_schema"]}}} if asked is not None else {}
        return self._client.responses.with_streaming_response.create(
            model=self._access.model,
            instructions=openai.omit if system is None else system,
            input=user,
            max_output_tokens=self._access.max_output_tokens,
            extra_body=merged(self._body(prompt), form),
        )

    def _fields(self, request: RequestSettings) -> dict[str, dict[str, Any]]:
        return {
            "stream": {"stream": True},
            "store": {"store": False},
            "effort": {"reasoning": {"effort": request.effort}},
            "temperature": {"temperature": request.temperature},
        }

    def _streamed(self) -> Streamed:
        return _Streamed()

    def _read(self, body: Any) -> Said:
        response = _Response.model_validate(body)
        if response.status == "failed":
            raise refused(_failed(response.error).refusal(), self.name)
        usage = response.usage
        read = (usage.input_tokens_details if usage else None) or _Input()
        wrote = (usage.output_tokens_details if usage else None) or _Output()
        text, refusal = response.text("message", "output_text"), response.text("message", "refusal")
        word = (response.incomplete_details or _Incomplete()).reason or response.status
        stop = StopReason.TOOL_USE if any(response.parts("function_call")) else STOPS.get(word, StopReason.UNKNOWN)
        return Said(
            text=text or refusal,
            reasoning=response.text("reasoning", "summary_text", "reasoning_text"),
            stop_reason=StopReason.REFUSAL if refusal and not text else stop,
            model=response.model or "",
            usage=Usage(
                input=usage.input_tokens,
                cached=read.cached_tokens or 0,
                output=usage.output_tokens,
                reasoning=wrote.reasoning_tokens or 0,
            )
            if usage
            else None,
            cache_written=read.cache_write_tokens or 0,
        )
