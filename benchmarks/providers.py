"""What asking a model costs beside the model: processor time beyond the SDK's, cached tokens of a story, limits.

Services are simulated: on loopback in a process of their own, and for limits in simulated time.
"""

import asyncio
import hashlib
import json
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

from benchmarks import prompts
from benchmarks.measure import Figure, Result
from orchestrator.core.calls.exchange import Prompt, Purpose, Segment, TurnKey, Usage
from orchestrator.prompts.budget import tokens
from orchestrator.providers.base import ModelAccess, ModelProvider
from tests.prompts.recorded import prompts_of
from tests.providers.http_server import Answer, Asked, completion_stream, message, message_stream, model_server
from tests.providers.test_limits import CALLERS, LATENCY_S, Bucket, Counted, SimulatedTime, drive, openai_headers

Ask = Callable[[], Awaitable[str]]
TEXT = "".join(f"    total += page.sum_of({line})  # line {line} of a page\n" for line in range(160))
"""An answer of 2,000 tokens."""
PIECES = {"anthropic": len(TEXT) // 12, "openai": len(TEXT) // 4}
"""Anthropic sends a few tokens an event, OpenAI each by itself."""
BURST = 8
"""Events that are sent at once: a network joins what comes within a few milliseconds."""
CACHED_FROM = 1024
"""Tokens that a prefix must have before the service keeps it."""
LOOKS_BACK = 20
"""Blocks before a breakpoint at which the service looks for a prefix that it has."""
PROJECTS = (5, 50)
"""Which story of a growing project is measured, beside the demo's first."""
LIMITS = {"600 requests a minute": (600, 10_000_000), "2,000,000 tokens a minute": (10_000, 2_000_000)}
CALLS = 1500


def run(*, calls: int = 40) -> Result:
    """Returns the figures of both SDKs, of three stories, and of a service with limits."""
    figures = [*_overhead(calls), *_cached(), *_limited()]
    about = f"streamed answers of {tokens(TEXT):,} tokens, the services simulated"
    return Result(name="providers", about=about, figures=tuple(figures))


def _overhead(calls: int) -> Iterator[Figure]:
    with _service() as url:
        for name, asking in (("anthropic", _anthropic(url)), ("openai", _openai(url))):
            typed, plain, ours = asyncio.run(_compare(asking, calls))
            beyond = [own - theirs for own, theirs in zip(ours, plain, strict=True)]
            yield Figure(name=f"{name}: the SDK's stream, a call", value=median(typed), unit="ms")
            yield Figure(name=f"{name}: the SDK's stream without types", value=median(plain), unit="ms")
            yield Figure(name=f"{name}: ours", value=median(ours), unit="ms")
            yield Figure(name=f"{name}: ours beyond the one without types", value=median(beyond), unit="ms")


@contextmanager
def _service() -> Iterator[str]:
    """The address of a service that streams `TEXT` in either wire format."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join()


def _serve(address: Connection) -> None:
    events = {
        name: [f"{event}\n\n".encode() for event in stream(TEXT, pieces=PIECES[name]).rstrip().split("\n\n")]
        for name, stream in (("anthropic", message_stream), ("openai", completion_stream))
    }

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            except asyncio.IncompleteReadError:  # the client has gone
                break
            size = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
            await reader.readexactly(size)
            sent = events["anthropic" if "/messages" in lines[0] else "openai"]
            told = f"content-type: text/event-stream\r\ncontent-length: {sum(map(len, sent))}"
            writer.write(f"HTTP/1.1 200 OK\r\n{told}\r\n\r\n".encode())
            for at in range(0, len(sent), BURST):
                writer.write(b"".join(sent[at : at + BURST]))
                await writer.drain()
                await asyncio.sleep(0.001)

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        address.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


PROMPT = Prompt(
    key=TurnKey(persona="alex", story="US-001", purpose=Purpose.DELIVERY),
    segments=tuple(
        Segment(name=name, text=f"{name} of a story, told in full. " * 900) for name in ("role", "story", "task")
    ),
)


@dataclass(frozen=True)
class Asking:
    """Three ways to ask one service."""

    typed: Ask
    plain: Ask
    ours: Ask
    close: Ask


async def _compare(asking: Asking, calls: int) -> list[list[float]]:
    """Returns what each call costs in milliseconds, each way; they take turns: a busy machine slows all alike."""
    ways = (asking.typed, asking.plain, asking.ours)
    spent: list[list[float]] = [[] for _ in ways]
    for _ in range(calls):
        for ask, costs in zip(ways, spent, strict=True):
            before = time.process_time()
            if await ask() != TEXT:
                raise RuntimeError("another text came")
            costs.append(1000 * (time.process_time() - before))
    await asking.close()
    return spent


SYSTEM, *REST = (segment.text for segment in PROMPT.segments)
USER: Any = [{"role": "user", "content": "\n\n".join(REST)}]


def _anthropic(url: str) -> Asking:
    from anthropic import AsyncAnthropic, AsyncStream

    from orchestrator.providers.anthropic import AnthropicProvider

    client, ours = AsyncAnthropic(api_key="none", base_url=url), AnthropicProvider(_access(url), price=_no_price)
    given: Any = {"model": "m", "max_tokens": 16000, "system": SYSTEM, "messages": USER}

    async def typed() -> str:
        said = await client.messages.create(**given, stream=True)
        deltas = [event.delta async for event in said if event.type == "content_block_delta"]
        return "".join(delta.text for delta in deltas if delta.type == "text_delta")

    async def plain() -> str:
        async with client.messages.with_streaming_response.create(**given, extra_body={"stream": True}) as raw:
            said: Any = AsyncStream(cast_to=object, response=raw.http_response, client=client)
            return "".join([event.get("delta", {}).get("text", "") async for event in said])

    return Asking(typed, plain, *_asks(ours, client.close))


def _openai(url: str) -> Asking:
    from openai import AsyncOpenAI, AsyncStream

    from orchestrator.providers.openai import OpenAIProvider

    client, ours = AsyncOpenAI(api_key="none", base_url=url), OpenAIProvider(_access(url), price=_no_price)
    given: Any = {"model": "m", "max_tokens": 16000, "messages": [{"role": "system", "content": SYSTEM}, *USER]}

    async def typed() -> str:
        said = await client.chat.completions.create(**given, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in said if chunk.choices])

    async def plain() -> str:
        async with client.chat.completions.with_streaming_response.create(**given, extra_body={"stream": True}) as raw:
            said: Any = AsyncStream(cast_to=object, response=raw.http_response, client=client)
            return "".join([one["delta"].get("content") or "" async for chunk in said for one in chunk["choices"]])

    return Asking(typed, plain, *_asks(ours, client.close))


def _asks(provider: ModelProvider, close_other: Callable[[], Awaitable[None]]) -> tuple[Ask, Ask]:
    async def ask() -> str:
        return (await provider.complete(PROMPT)).text

    async def close() -> str:
        await asyncio.gather(provider.close(), close_other())
        return ""

    return ask, close


def _access(url: str) -> ModelAccess:
    return ModelAccess(model="m", api_key="none", base_url=url, timeout_s=60, max_output_tokens=16000)


def _no_price(_model: str) -> None:
    return None


@dataclass
class Cache:
    """What a service of the Messages API keeps of prompts, as it is documented; nothing expires here."""

    kept: set[str] = field(default_factory=set)

    def count(self, body: dict[str, Any]) -> dict[str, int]:
        """Returns the usage of a request, and keeps its prefixes."""
        blocks = [*body.get("system", ()), *body["messages"][0]["content"]]
        prefix, ends, size = hashlib.sha256(body["model"].encode()), list[tuple[str, int]](), 0
        for block in blocks:
            prefix.update(json.dumps(block["text"]).encode())
            size += tokens(block["text"])
            ends.append((prefix.hexdigest(), size))
        marked = [number for number, block in enumerate(blocks) if "cache_control" in block]
        looked = {at for mark in marked for at in range(max(0, mark - LOOKS_BACK), mark + 1)}
        read = max((ends[at][1] for at in looked if ends[at][0] in self.kept), default=0)
        written = [ends[at] for at in marked if ends[at][1] >= CACHED_FROM]
        self.kept |= {name for name, _ in written}
        last = max([read, *(end for _, end in written)])
        return {
            "input_tokens": size - last,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": last - read,
            "output_tokens": 1,
        }


def _cached() -> Iterator[Figure]:
    stories = {"the demo's first story": asyncio.run(prompts_of("demo"))}
    stories |= {f"story {number} of a project": asyncio.run(prompts.prompts_of(number)) for number in PROJECTS}
    for name, asked in stories.items():
        total, read = _count(asked)
        yield Figure(name=f"{name}: input", value=total, unit="tokens")
        yield Figure(name=f"{name}: read from the cache", value=100 * read / total, unit="%")


def _count(asked: Sequence[Prompt]) -> tuple[int, int]:
    """Returns the tokens of a story's prompts, and how many of them came from the cache of the service."""
    from orchestrator.providers.anthropic import AnthropicProvider

    cache = Cache()

    def answer(request: Asked) -> Answer:
        return Answer(body=message(usage=cache.count(request.body)))

    async def ask() -> list[Usage]:
        usages = [(await provider.complete(prompt)).usage for prompt in asked]
        await provider.close()
        return usages

    with model_server(answer) as server:
        provider = AnthropicProvider(_access(server.url), price=_no_price)
        usages = asyncio.run(ask())
    return sum(usage.input for usage in usages), sum(usage.cached for usage in usages)


def _limited() -> Iterator[Figure]:
    for name, (requests, tokens_a_minute) in LIMITS.items():
        counted, took = _simulated(requests, tokens_a_minute)
        per_minute = min(requests, tokens_a_minute / 4500)
        ideal = max((CALLS - per_minute) * 60 / per_minute, CALLS / CALLERS * LATENCY_S)
        yield Figure(name=f"{CALLERS} callers, {name}: refused of 1,000 calls", value=1000 * counted.refused / CALLS)
        yield Figure(name=f"{CALLERS} callers, {name}: time lost", value=100 * (1 - ideal / took), unit="%")


def _simulated(requests: int, tokens_a_minute: int) -> tuple[Counted, float]:
    counted, loop = Counted(), SimulatedTime()
    buckets = {"requests": Bucket(requests, loop.time), "tokens": Bucket(tokens_a_minute, loop.time)}

    def take() -> float:
        return max(buckets["requests"].take(1), buckets["tokens"].take(4500))

    try:
        loop.run_until_complete(drive(loop, CALLS, counted, take, lambda: openai_headers(buckets)))
        return counted, loop.time()
    finally:
        loop.close()
