"""The stream of events: complete, in order, from any point; nobody who is slow or gone holds anything."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event
from orchestrator.server.feed import PAGE, Feed
from orchestrator.server.service import get_service
from tests.server.stand import BEARER, NOON, Daemon, Stand, running

EVENTS = "/api/v1/events"


class Stream:
    """An open stream as a client reads it."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.heartbeats = 0

    async def take(self, count: int) -> list[dict[str, Any]]:
        """The next log lines; fewer when the stream ends."""
        found: list[dict[str, Any]] = []
        number = ""
        while len(found) < count and (line := await anext(self._lines, None)) is not None:
            self.heartbeats += line == ": heartbeat"
            if line.startswith("id: "):
                number = line[4:]
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                assert found[-1]["seq"] == int(number)
        return found

    async def beats(self, count: int) -> None:
        """Wait for signs of life."""
        while self.heartbeats < count:
            self.heartbeats += await anext(self._lines) == ": heartbeat"


@asynccontextmanager
async def opened(daemon: Daemon, *, last: str | None = None, **query: Any) -> AsyncIterator[Stream]:
    headers = {} if last is None else {"last-event-id": last}
    async with daemon.client.stream("GET", EVENTS, params={"level": "debug", **query}, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Stream(answer.aiter_lines())


async def told(daemon: Daemon, **query: Any) -> list[dict[str, Any]]:
    async with opened(daemon, follow="false", **query) as stream:
        return await stream.take(10_000)


def numbers(lines: list[dict[str, Any]]) -> list[int]:
    return [line["seq"] for line in lines]


async def test_everything_from_any_point_on_and_only_what_is_wanted(stand: Stand) -> None:
    async with running(stand) as daemon:
        every = await told(daemon)
        seqs = numbers(every)
        assert seqs == sorted(set(seqs))
        assert {"timestamp", "level", "message", "event", "sprint", "seq"} <= set(every[0])
        for place in (0, 1, 7, seqs[-1] - 1, seqs[-1]):
            assert await told(daemon, after=place) == [line for line in every if line["seq"] > place]
        assert await told(daemon, last=str(seqs[3]), after=0) == every[4:]
        assert await told(daemon, last="", after=seqs[3]) == every[4:]
        assert await told(daemon, tail=3) == every[-3:]
        assert await told(daemon, tail=3, last=str(seqs[3])) == every[4:], "who comes back misses nothing"
        assert await told(daemon, tail=3, after=seqs[3]) == every[-3:]
        assert await told(daemon, tail=3, after=seqs[-2]) == every[-1:]
        assert await told(daemon, sprint="S1") == every
        assert await told(daemon, story="US-1") == [line for line in every if line.get("story") == "US-1"]
        assert await told(daemon, persona="mike") == [line for line in every if line.get("persona") == "mike"]
        loud = await told(daemon, level="warn")
        assert loud == [line for line in every if line["level"] in {"warn", "error"}] != []
        assert await told(daemon, since=every[5]["timestamp"]) == every[5:]
        assert await told(daemon, after=10**17) == []


async def test_what_comes_while_somebody_follows(stand: Stand) -> None:
    async with running(stand) as daemon:
        seqs = numbers(await told(daemon))
        async with opened(daemon) as early, opened(daemon, sprint="S1", story="A") as choosy:
            assert numbers(await early.take(len(seqs))) == seqs
            for burst in (1, 3 * PAGE):
                await daemon.record(burst)
                assert len(await early.take(burst)) == burst
            async with opened(daemon, last=str(seqs[-1])) as again:
                assert numbers(await again.take(3 * PAGE + 1)) == list(range(seqs[-1] + 1, seqs[-1] + 3 * PAGE + 2))
                await daemon.record(story="A", message="two\nlines\r\n\ndata: x \u2028 \ud800")
                (line,) = await choosy.take(1)
                assert line["message"].startswith("two\nlines\r\n\ndata: x")
                assert (await again.take(1), await early.take(1)) == ([line], [line])


async def test_a_stream_that_ends_anywhere_goes_on_without_loss_or_duplicates(stand: Stand) -> None:
    async with running(stand) as daemon:
        last, seen, wanted = 0, [], len(await told(daemon)) + 200
        writer = asyncio.create_task(daemon.record(200))
        for size in [1, 2, 3, 5, 8, 13, 21, 34] * 10:
            async with opened(daemon, last=str(last)) as stream:
                seen += await stream.take(min(size, wanted - len(seen)))
                last = seen[-1]["seq"]
            if len(seen) == wanted:
                break
        await writer
        assert numbers(seen) == numbers(await told(daemon))


@pytest.fixture
def lively(home: Any) -> Stand:
    return Stand(home, "serve.heartbeat_s=0.01")


async def test_a_stream_shows_that_it_lives_and_ends_with_the_daemon(lively: Stand) -> None:
    async with running(lively) as daemon:
        await daemon.client.get("/healthz")
        context = opened(daemon, after=10**9)
        stream = await context.__aenter__()
        await stream.beats(3)
        assert get_service(daemon.app).feed.streams == 1
        ending = asyncio.create_task(stream.take(1))
        await daemon.record()
        assert len(await ending) == 1
        await daemon.record(2)
        get_service(daemon.app).end()
        assert len(await stream.take(9)) == 2
        await context.__aexit__(None, None, None)
        late = await daemon.client.get(EVENTS, params={"after": 10**9})
        assert (late.status_code, late.text) == (200, ": heartbeat\n\n")


async def test_who_leaves_holds_nothing(stand: Stand) -> None:
    async with running(stand) as daemon:
        feed = get_service(daemon.app).feed
        _, leaves = await daemon.connection()
        leaves.write(f"GET {EVENTS} HTTP/1.1\r\nHost: x\r\n{BEARER}\r\n".encode())
        async with opened(daemon) as reads:
            while feed.streams < 2:
                await daemon.client.get("/healthz")
            leaves.close()
            while feed.streams > 1:
                await daemon.record()
                await reads.take(1)


@pytest.mark.parametrize("clients", [100, pytest.param(1000, marks=pytest.mark.soak)])
async def test_many_follow(stand: Stand, clients: int) -> None:
    async with running(stand) as daemon:
        head = numbers(await told(daemon))[-1]
        gone: list[asyncio.StreamWriter] = []

        async def follow() -> list[bytes]:
            reader, writer = await daemon.connection()
            gone.append(writer)
            query = f"after={head}&level=info" if len(gone) % 2 else "level=info"
            writer.write(f"GET {EVENTS}?{query} HTTP/1.1\r\nHost: x\r\n{BEARER}\r\n".encode())
            found = []
            while len(found) < 20:
                line = await reader.readline()
                found += [line] if b'"event": "noted"' in line else []
            return found

        tasks = [asyncio.create_task(follow()) for _ in range(clients)]
        while get_service(daemon.app).feed.streams < clients:
            await daemon.client.get("/healthz")
        await daemon.record(20)
        found = await asyncio.gather(*tasks)
        assert all(lines == found[0] for lines in found)
        for writer in gone:
            writer.close()


@pytest.fixture
def shared(tmp_path: Path, postgres: str) -> Stand:
    return Stand(tmp_path / "state", DATABASE_URL=postgres)


class Fake:
    """A log that can be away, and be replaced by a shorter one."""

    def __init__(self, count: int) -> None:
        self.count, self.away, self.reads = count, False, 0

    def head(self) -> int:
        if self.away:
            raise ConfigError("the event log cannot be used: it is away")
        return self.count

    def read(self, sprint: str | None = None, after: int = 0) -> Iterator[tuple[int, Event]]:
        self.reads += 1
        for seq in range(after + 1, self.count + 1):
            yield seq, Event(id=str(seq), time=NOON, name="noted", message="m", sprint="S", data={"plan": "p"})

    def close(self) -> None:
        self.away = True


def feed_of(log: Fake) -> Feed:
    async def here(function: Any, *args: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args)

    return Feed(lambda: log, here, text_cap=lambda: 100, poll_s=0.001)


async def seqs_of(feed: Feed, count: int, after: int = 0) -> list[int]:
    found: list[int] = []
    with feed.stream():
        chunks = feed.chunks(after, None, lambda event: True, follow=True, heartbeat_s=lambda: 10.0)
        async for chunk in chunks:
            found += [int(line[4:]) for line in chunk.split(b"\n") if line.startswith(b"id: ")]
            if len(found) >= count:
                break
        await chunks.aclose()
    return found


async def test_a_stream_that_reads_while_the_feed_ends_ends_with_it() -> None:
    log = Fake(3)
    feed = feed_of(log)
    chunks = feed.chunks(0, None, lambda event: True, follow=True, heartbeat_s=lambda: 1000.0)
    told = [await anext(chunks)]
    feed.end()
    told += [chunk async for chunk in chunks]
    assert b"".join(told).count(b"id: ") == 3
    other = feed_of(log)
    chunks = other.chunks(0, None, lambda event: True, follow=True, heartbeat_s=lambda: 1000.0)
    assert (await anext(chunks)).startswith(b": ")
    assert (await anext(chunks)).count(b"id: ") == 3  # it waits for what comes, once it is asked for more
    other.end()
    assert [chunk async for chunk in chunks] == []
    await feed.close()
    log.away = False
    await other.close()


async def test_a_database_that_does_not_answer_holds_no_end_up() -> None:
    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    feed = Feed(lambda: None, never, text_cap=lambda: 100)
    follower = asyncio.create_task(seqs_of(feed, 1))
    while not feed._pages:
        await asyncio.sleep(0)
    await feed.close()
    with pytest.raises(asyncio.CancelledError):
        await follower


async def test_a_log_that_is_away_or_restored_is_followed_on() -> None:
    log = Fake(50)
    feed = feed_of(log)
    follower = asyncio.create_task(seqs_of(feed, 60))
    while feed._head < 50:
        await asyncio.sleep(0)
    log.away = True
    with pytest.raises(ConfigError):
        await seqs_of(feed, 1, after=3)
    feed._ending.set()  # it waits no longer for the database to come back
    feed._ending.clear()
    log.away, log.count = False, 60
    assert await follower == list(range(1, 61))
    log.count = 10
    assert await seqs_of(feed, 0, after=55) == []
    await feed.close()
    assert log.away
    assert list(islice(log.read(), 2))
