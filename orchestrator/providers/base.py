"""Shared code of real providers: one call with a time limit, errors of our kinds, usage and cost.

A provider says how a prompt becomes its request and its response body our `Said`; the rest is here.
"""

import asyncio
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from orchestrator.core.calls.exchange import Prompt, Reply, Segment, StopReason, Usage
from orchestrator.core.calls.progress import call_progress
from orchestrator.core.errors import (
    CallWithdrawn,
    PermanentProviderError,
    ProviderError,
    TransientProviderError,
)
from orchestrator.core.value import repeated_end
from orchestrator.providers.limits import Call, Limiter
from orchestrator.providers.proxies import proxy_before
from orchestrator.providers.refusals import Refusal, one_line, refused, retry_after, unexpected
from orchestrator.providers.structured import Structured
from orchestrator.settings import PriceSettings, RequestSettings, WireStructured
from orchestrator.settings.prices import cost_of

if TYPE_CHECKING:
    import httpx2  # takes a second, which only a command that calls a model has

T = TypeVar("T")

_BUSY = frozenset({429, 503, 529})
_BAD_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"
CONNECT_S = 15.0
"""Seconds in which a connection must come about; a server that is not there is known soon."""
LOOK_AFTER = 1000
"""Characters of a stream between two looks whether it repeats itself."""
LOOK_S = 0.25
"""Seconds of a stream between two looks at the clock."""


class WirePart(BaseModel):
    """Base of the parts of a response body that we read; the rest is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _known(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:  # an unknown shape is left out
        return None


Known = Annotated[T | None, WrapValidator(_known)]
"""A part of a body that is unknown when it has another shape: an answer was paid for and is not lost for it."""


@dataclass(frozen=True, kw_only=True)
class ModelAccess:
    """Which model is called, where, and within which limits."""

    model: str
    api_key: str = field(repr=False)
    base_url: str
    timeout_s: float
    """For a whole call, from connecting to the last byte."""
    max_output_tokens: int
    stream: bool = True
    """Whether answers are asked for piece by piece."""
    stall_s: float = 60.0
    """Seconds without a further piece, once the first has come, after which a stream counts as broken."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The process environment, for what a cloud wants to know beside the key."""
    request: RequestSettings = field(default_factory=RequestSettings)
    """What requests say beside the prompt."""
    structured: Callable[[str], WireStructured] = lambda _: "auto"
    """Persona → whether the schemas of its answers are sent."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """A response body, read."""

    text: str
    stop_reason: StopReason
    model: str
    """As the service names it; empty when it does not."""
    usage: Usage | None
    """None when the service does not tell."""
    reasoning: str = ""
    """Thoughts before the answer; no part of `text`."""
    cache_written: int = 0
    """Tokens of `usage.input` that were written to the provider's cache."""


class NoConnection(Exception):
    """The SDK got no response, or not all of it; `timed_out` when that was a time limit."""

    def __init__(self, reason: str, *, timed_out: bool) -> None:
        super().__init__(reason)
        self.timed_out = timed_out


class StreamError(Exception):
    """A service says in the middle of its answer that it cannot go on; `details` is its error object."""

    def __init__(self, message: str, details: object) -> None:
        super().__init__(message)
        self.details: Mapping[str, Any] = details if isinstance(details, dict) else {"message": message}

    def refusal(self) -> Refusal:
        """Returns the error as if it had come in place of the answer."""
        word = f"{self.details.get('type')} {self.details.get('code')}"
        status = next((status for part, status in _STREAM_ERRORS if part in word), 500)
        code = self.details.get("code")
        if isinstance(code, int) and 400 <= code < 600:  # gateways say it so
            status = code
        return Refusal(status=status, headers={}, text=json.dumps({"error": self.details}))


_STREAM_ERRORS = (
    ("rate_limit", 429),
    ("throttling", 429),
    ("overloaded", 529),
    ("timeout", 504),
    ("authentication", 401),
    ("permission", 403),
    ("invalid_prompt", 400),
)
"""Part of the type or code of an error in a stream → its status elsewhere; any other is a server's fault."""


class Streamed:
    """An answer as far as its pieces have come; as it is here, of a service that is not asked for streams."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.characters = 0
        """Length of the text."""
        self.whole = False
        """Whether the service said that this was all."""
        self.endless = False
        """Whether the text repeats itself without end: nothing more of it is read."""
        self._look_at = LOOK_AFTER

    @property
    def text(self) -> str:
        """Returns what has come. Joined when it is read: adding piece by piece would copy a long text each time."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def take(self, piece: object) -> None:
        """Adds a piece of the text; what is no text adds nothing."""
        if isinstance(piece, str):
            self._pieces.append(piece)
            self.characters += len(piece)
            if self.characters >= self._look_at:
                self._look_at = self.characters + LOOK_AFTER
                self.endless = repeated_end(self.text) is not None

    def add(self, event: Any) -> None:
        """Take the next event's data. Raises StreamError for one that is an error; what is unknown is left out."""

    def end(self) -> None:
        """Notes that the stream has ended without an error."""

    def body(self) -> Any:
        """Returns what the service would have sent in one piece."""


class ModelProvider(ABC):
    """`ports.Provider` on a service's SDK. `on_paid` is called with each prompt right before its reply is given.

    `limiter` is shared by those that ask one model with one key.
    """

    name: str
    takes_open_schemas = True
    """Whether the service takes schemas of objects whose keys are not known."""

    def __init__(
        self,
        access: ModelAccess,
        *,
        price: Callable[[str], PriceSettings | None],
        on_paid: Callable[[Prompt], None] | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        self._access, self._price, self._on_paid = access, price, on_paid
        self._limiter = limiter or Limiter()
        proxy = proxy_before(access.base_url) if access.base_url else ""
        self._proxy = f" through the proxy {proxy}" if proxy else ""
        # In place of a service with TLS no proxy can answer.
        self._through = "" if access.base_url.startswith("https:") else self._proxy
        self._refused: set[str] = set()
        # What the wire has no field for is told with the first reply, what the service refuses with the next one.
        said = access.request.model_dump(exclude_none=True, exclude={"extra"})
        self._untold = [name for name in said if name not in self._fields(access.request)]
        service = f"{self.name} .{urlsplit(access.base_url).hostname or ''}/{access.model}"
        self._structured = Structured(service, access.structured, takes_open=self.takes_open_schemas)
        self._open(access)

    async def complete(self, prompt: Prompt) -> Reply:
        """See the port. Ended by `timeout_s` at the latest, also when a server sends its answer byte by byte."""
        came, response = self._streamed(), None
        call_progress(prompt.key, time.monotonic()).waits_for = "the service's limits"
        async with self._limiter.admitted(_tokens(prompt.text)) as call:
            started = time.monotonic()
            progress = call_progress(prompt.key, started)
            if not progress.may_begin():
                raise CallWithdrawn(f"{self.name} was not asked", provider_name=self.name)
            try:
                with progress.calling(started):
                    async with asyncio.timeout(self._access.timeout_s):
                        response = await self._receive(prompt, came, call)
            except (TimeoutError, NoConnection, StreamError) as error:
                if not came.whole:
                    lost = self._ended(error)
                    if lost.kind in {"rate_limit", "overloaded"}:
                        self._limiter.refused(call, {}, None)
                    if isinstance(lost, PermanentProviderError) or not came.text:
                        raise lost from without_frames(error)
            if came.endless or (came.text and not came.whole):
                said = self._so_far(prompt, came)
            else:
                said = self._read(came.body()) if came.whole or response is None else self._said(response)
            reply = self._reply(prompt, said, started).model_copy(update={"left_out": tuple(self._untold)})
            self._untold = []
            self._limiter.finished(reply.usage.output)
            if untold := self._structured.untold(prompt, said.text, said.stop_reason):
                reply = reply.model_copy(update={"unconstrained": untold})
        if self._on_paid is not None:
            self._on_paid(prompt)
        return reply

    async def _receive(self, prompt: Prompt, came: Streamed, call: Call) -> "httpx2.Response":
        """Returns the response, read to its end: into `came` where it is a stream.

        What a model, or a server of one's own, does not take is left out, in later requests too.
        """
        while True:
            schema, parts = self._structured.name(prompt), self._parts(prompt)
            try:
                response = await self._exchange(prompt, came, call)
            except StreamError as error:
                if (refusal := error.refusal()).status == 403:
                    await self._expect_refusal(prompt, replace(refusal, text=self._without_key(refusal.text)))
                raise
            if response.status_code < 300:
                return response
            refusal = self._refusal(response)
            if self._structured.refuses(schema, refusal):
                continue
            refused = {name for name, fields in parts.items() if _refuses(name, fields, refusal)}
            if not refused:
                if refusal.status == 403:
                    await self._expect_refusal(prompt, refusal)
                return response
            self._untold += sorted(refused - self._refused)
            self._refused |= refused

    async def _expect_refusal(self, prompt: Prompt, refusal: Refusal) -> None:
        """Raises the error of a prompt that was refused alone, as by a firewall: where a request that says nothing is
        taken. One that cannot be answered now is an error as elsewhere."""
        empty = Prompt(key=prompt.key, segments=(Segment(name="role", text="."),))
        async with self._ask(empty) as response:
            if response.status_code in {401, 402, 403}:
                return
            if response.status_code >= 300:
                await response.aread()
                if isinstance(
                    error := refused(self._refusal(response), self.name, self._through), TransientProviderError
                ):
                    raise error
        raise PermanentProviderError(
            f"{self.name} refuses this prompt ({refusal.status}) and takes others: {refusal.told}",
            kind="bad_request",
            provider_name=self.name,
            original_message=refusal.text,
        )

    def _refusal(self, response: "httpx2.Response") -> Refusal:
        text = self._without_key(response.text)
        return Refusal(status=response.status_code, headers=response.headers, text=text)

    async def _exchange(self, prompt: Prompt, came: Streamed, call: Call) -> "httpx2.Response":
        async with self._ask(prompt) as response:
            if response.status_code in _BUSY:
                self._limiter.refused(call, response.headers, retry_after(response.headers))
            elif response.status_code < 300:
                self._limiter.answered(call, response.headers)
            if response.status_code >= 300 or not self._is_stream(response):
                await response.aread()
                return response
            await self._follow(prompt, came, response, call)
            return response

    async def _follow(self, prompt: Prompt, came: Streamed, response: "httpx2.Response", call: Call) -> None:
        """Reads a stream into `came`, to the answer's end or to where it repeats itself. Raises NoConnection."""
        progress, look_at = call_progress(prompt.key, time.monotonic()), 0.0
        try:
            async with asyncio.timeout(None) as patience, aclosing(self._events(response)) as events:
                async for event in events:
                    came.add(event)
                    if came.endless:
                        return
                    # Most pieces come within milliseconds, and a timer costs more than to read one. Before the first,
                    # some think for minutes.
                    if came.characters and (now := time.monotonic()) >= look_at:
                        look_at = now + LOOK_S
                        self._limiter.circuit.answered(call)
                        patience.reschedule(look_at + self._access.stall_s)
                        progress.wrote(-(-came.characters // 4), now)
                came.end()
        except TimeoutError as error:
            if not patience.expired():
                raise
            told = f"nothing more came for {self._access.stall_s:g} s"
            raise NoConnection(told, timed_out=True) from error
        except ValueError as error:
            raise NoConnection(f"the stream holds something that is no event: {error}", timed_out=False) from error
        if not came.whole:
            raise NoConnection("the stream ended before the answer did", timed_out=False)

    def _ended(self, error: Exception) -> ProviderError:
        """Returns the error of an answer that did not come, or not to its end."""
        kind, told = "timeout", f"{self.name}{self._proxy}: no answer within {self._access.timeout_s:g} s"
        if isinstance(error, StreamError):
            refusal = error.refusal()
            failure = refused(replace(refusal, text=self._without_key(refusal.text)), self.name)
            if isinstance(failure, PermanentProviderError):
                return failure
            kind, told = failure.kind, failure.message
        elif isinstance(error, NoConnection):
            kind = "timeout" if error.timed_out else "connection"
            told = f"{self.name}{self._proxy}: {one_line(str(error))}"
            if _BAD_CERTIFICATE in str(error):
                # Concerns every story as a wrong key does, and does not pass.
                return PermanentProviderError(
                    f"the certificate is not trusted: {told}",
                    kind="auth",
                    code="provider.certificate",
                    provider_name=self.name,
                    original_message=told,
                )
        told = self._without_key(told)
        return TransientProviderError(told, kind=kind, provider_name=self.name, original_message=told)

    def _so_far(self, prompt: Prompt, came: Streamed) -> Said:
        """Returns what came of an answer whose end did not, with its tokens estimated."""
        said = self._read(came.body())
        usage = said.usage or Usage(input=_tokens(prompt.text))
        # Of what was generated the service tells at the end only.
        usage = usage.model_copy(update={"output": max(usage.output, _tokens(came.text + said.reasoning))})
        return replace(said, text=came.text, stop_reason=StopReason.INTERRUPTED, usage=usage)

    def _reply(self, prompt: Prompt, said: Said, started: float) -> Reply:
        return Reply(
            key=prompt.key,
            turn=prompt.turn,
            text=said.text,
            reasoning=said.reasoning,
            stop_reason=said.stop_reason,
            usage=said.usage or Usage(),
            cost_usd=self._cost(said),
            model=said.model or self._access.model,
            provider=self.name,
            duration_ms=round((time.monotonic() - started) * 1000),
        )

    @abstractmethod
    def _open(self, access: ModelAccess) -> None:
        """Make the SDK's client; no request is sent."""

    @abstractmethod
    async def close(self) -> None:
        """Give the connections back."""

    @abstractmethod
    def _ask(self, prompt: Prompt) -> "AbstractAsyncContextManager[httpx2.Response]":
        """One request, with the fields of `_body`. A response of any status is yielded, its body unread.

        Raises NoConnection when there is none, or when it breaks off while the block reads it.
        """

    def _fields(self, request: RequestSettings) -> dict[str, dict[str, Any]]:
        """Returns setting → its fields in the body of a request, `stream` → those that ask for one, and further ones.

        A setting that is not among them has no field on this wire; one without a value is not looked at.
        """
        return {}

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        """Returns the fields of a request that a service may refuse: they are then left out."""
        return merged(*self._parts(prompt).values())

    def _parts(self, prompt: Prompt) -> dict[str, dict[str, Any]]:
        own = {} if prompt.temperature is None else {"temperature": prompt.temperature}
        request = self._access.request.model_copy(update=own)
        unset = {name for name in RequestSettings.model_fields if getattr(request, name) is None}
        unset |= set() if self._access.stream else {"stream"}
        parts = {name: fields for name, fields in self._fields(request).items() if name not in unset}
        for name, value in (request.extra or {}).items():
            parts[name] = merged(parts.get(name, {}), {name: value})
        return {name: fields for name, fields in parts.items() if name not in self._refused}

    def _is_stream(self, response: "httpx2.Response") -> bool:
        return "event-stream" in response.headers.get("content-type", "")

    async def _events(self, response: "httpx2.Response") -> AsyncGenerator[Any]:
        """Yields the data of the stream's events. Raises ValueError for what is none, StreamError for an error."""
        none: tuple[Any, ...] = ()  # of a service that is not asked for streams
        for event in none:
            yield event

    def _streamed(self) -> Streamed:
        """Returns an answer of which nothing has come yet."""
        return Streamed()

    @abstractmethod
    def _read(self, body: Any) -> Said:
        """Returns the response's JSON, read. Raises pydantic's ValidationError for what is no answer of the service.

        What a model put into an answer is no reason to raise: text that is not there is "".
        """

    def _said(self, response: "httpx2.Response") -> Said:
        if response.status_code >= 300:
            raise refused(self._refusal(response), self.name, self._through)
        try:
            return self._read(json.loads(response.text))
        except (ValueError, RecursionError) as error:  # a ValidationError is a ValueError
            shape = error if isinstance(error, ValidationError) else None
            content_type = response.headers.get("content-type", "")
            raise unexpected(self.name, content_type, self._without_key(response.text)) from shape

    def _without_key(self, text: str) -> str:
        """Some servers repeat the key they refuse; it must reach no record."""
        return text.replace(self._access.api_key, "[redacted]") if self._access.api_key else text

    def _cost(self, said: Said) -> float | None:
        price = self._price(said.model) or self._price(self._access.model)
        if price is None or said.usage is None:
            return None
        return cost_of(price, said.usage, said.cache_written)


_UNSUPPORTED = re.compile(
    r"unsupported|deprecated|no longer|extra (?:inputs|fields)"
    r"|n[o'’]t (?:be )?(?:support|permit|allow|accept|take|recogni[sz]|available|used|set|specified)"
    r"|only (?:be |allowed|supported|available|permitted)|cannot (?:both )?be (?:used|set|specified|combined|enabled)"
    r"|(?:unknown|unexpected|unrecogni[sz]ed)(?: \w+){0,2} (?:argument|parameter|field|name|key|property|option)",
    re.IGNORECASE,
)
"""In words that a service has for what it does not take at all."""


def _refuses(name: str, fields: Mapping[str, Any], refusal: Refusal) -> bool:
    """Returns whether a setting, or a field of it, is what is not taken: models that reason take no temperature.

    It is, where a refusal names it as the field that is wrong, or says of it that it is not supported.
    """
    if refusal.status not in {400, 422}:
        return False
    below = [f"{field}.{inner}" for field, value in fields.items() if isinstance(value, dict) for inner in value]
    # A field may be shared: `output_config.format` says nothing of `output_config.effort`.
    named = [re.escape(one) for one in (name, *below)] + [rf"{re.escape(field)}(?!\.\w)" for field in fields]
    word = rf"(?<![\w./-])(?:{'|'.join(named)})(?![\w/-])"
    if refusal.param:
        return re.match(word, refusal.param) is not None
    return any(
        re.match(rf"{word}[\w.]*: ", one) or (_UNSUPPORTED.search(one) and re.search(word, one))
        for one in refusal.complaints
    )


def merged(*bodies: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one object of all; of values that are no objects the last counts."""
    whole: dict[str, Any] = {}
    for body in bodies:
        for name, value in body.items():
            mine = whole.get(name)
            whole[name] = merged(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return whole


def _tokens(text: str) -> int:
    return -(-len(text) // 4)


def without_frames(error: BaseException) -> BaseException:
    """Returns the error, and those beneath, without their frames: they hold the SDK's generators, which only their loop
    can close, until garbage is collected."""
    beneath: BaseException | None = error
    while beneath is not None:
        beneath.__traceback__ = None
        beneath = beneath.__cause__ or beneath.__context__
    return error


def reason(error: Exception) -> str:
    """Returns why an SDK got no response: its own words and those of what lies beneath."""
    return ": ".join(dict.fromkeys(text for text in (str(error).rstrip("."), str(error.__cause__ or "")) if text))


def sendable(text: str) -> str:
    """Returns `text` as UTF-8 takes it: half a surrogate pair, which a model's text may hold, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def spoken(content: object) -> str:
    """The text of a message's content: the content itself, or its parts of type `text`; "" where there is none."""
    if isinstance(content, str):  # most pieces of a stream
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def split(segments: Sequence[Segment]) -> tuple[Segment | None, tuple[Segment, ...]]:
    """The system segment and the others, without blank ones. A lone segment is the user's: a request needs one."""
    spoken = tuple(segment for segment in segments if segment.text.strip())
    return (spoken[0], spoken[1:]) if len(spoken) > 1 else (None, spoken)
