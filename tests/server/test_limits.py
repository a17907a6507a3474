"""What a client may do to a connection: large, slow, malformed and unusual requests."""

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from orchestrator.server.app import build_app
from orchestrator.server.listen import serve_http
from orchestrator.server.service import get_service
from tests.server.stand import BEARER, Stand, running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty state folder does here."""
    return tmp_path / "state"


LIMIT = 64 * 1024
UPGRADE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
POST = f"POST /api/v1/prune HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{BEARER}".encode()


@pytest.fixture
def small(home: Path) -> Stand:
    return Stand(home, f"serve.body_limit_kb={LIMIT // 1024}")


def chunked(body: bytes, size: int = 4096) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def body_of(size: int) -> bytes:
    return b'{"dry_run": true' + b" " * (size - len('{"dry_run": true}')) + b"}"


async def test_a_body_is_as_large_as_it_may_be(small: Stand) -> None:
    fits, large = body_of(LIMIT), body_of(LIMIT + 1)
    plain = POST + b"Connection: close\r\n"
    async with running(small) as daemon:
        for sent, status in (
            (plain + b"Content-Length: %d\r\n\r\n" % LIMIT + fits, b"200"),
            (plain + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(fits), b"200"),
            (plain + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(fits, 7), b"200"),
            (plain + b"Content-Length: %d\r\n\r\n" % (LIMIT + 1) + large, b"413"),
            (plain + b"Content-Length: 99999999999999\r\n\r\n", b"413"),
            (plain + b"Content-Length: 99999999999999\r\nExpect: 100-continue\r\n\r\n", b"413"),
            (plain + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(large), b"413"),
            (plain + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(large * 5), b"413"),
            (POST + b"Content-Length: -1\r\n\r\n", b"400"),
            (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"400"),
            (b"GET /healthz HTTP/1.0\r\n\r\n", b"200"),
            (POST + b"Transfer-Encoding: gzip\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
            (b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000, b"400"),
            (UPGRADE, b"200"),
        ):
            answer = await daemon.raw(sent)
            assert answer.split(b" ", 2)[1:2] == [status], (sent[-80:], answer[:200])


async def test_a_body_that_does_not_end_is_nobodys(small: Stand) -> None:
    handed_in: list[bytes] = []

    async def submit(*args: object) -> None:
        handed_in.append(b"")

    small.submit = submit  # type: ignore[method-assign,assignment]
    async with running(small) as daemon:
        _, writer = await daemon.connection()
        writer.write(
            f"PUT /api/v1/backlogs/a HTTP/1.1\r\nHost: x\r\n{BEARER}Content-Length: 100\r\n\r\nStory_ID".encode()
        )
        await writer.drain()
        writer.close()
        assert (await daemon.client.get("/healthz")).status_code == 200
    assert handed_in == []


async def test_more_connections_than_may_be_are_let_go(stand: Stand) -> None:
    app = build_app(stand)
    async with serve_http(app, stand.settings, stand.environment, most=3) as address:
        url = urlsplit(address)
        held = [await asyncio.open_connection(url.hostname, url.port) for _ in range(5)]

        async def first_line(number: int) -> bytes:
            reader, writer = held[number]
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            line = await reader.readline()
            await reader.readuntil(b"\r\n\r\n")
            return line

        assert b"503" in await first_line(4)
        for _, writer in held[2:]:
            writer.close()
            await writer.wait_closed()
        while b"200 OK" not in await first_line(0):  # the server has yet to see that they have gone
            await held[0][0].readexactly(len("Service Unavailable"))
        for _, writer in held[:2]:
            writer.close()


async def test_it_listens_on_both_families(guarded: Stand) -> None:
    async with running(guarded) as daemon:
        for host in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
            reader, writer = await asyncio.open_connection(host, urlsplit(daemon.address).port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert b'{"status": "ok"}' in await reader.read()
            writer.close()


async def test_nothing_outlives_the_server_whatever_is_open(stand: Stand) -> None:
    """A stream that nobody reads, one that is read, a look that hangs, half a request, and an idle connection."""
    before = asyncio.all_tasks()
    stand.hangs = asyncio.Event()
    head = f" HTTP/1.1\r\nHost: localhost\r\n{BEARER}".encode()
    async with AsyncExitStack() as stack, running(stand) as daemon:
        feed, writers = get_service(daemon.app).feed, []
        for sent in (b"GET /api/v1/events?level=debug", b"GET /api/v1/events", b"GET /readyz", b"", None):
            _, writer = await daemon.connection(slow=sent == b"GET /api/v1/events?level=debug")
            stack.callback(writer.close)
            writers.append(writer)
            writer.write((sent + head + b"\r\n") if sent else b"GET /" if sent is not None else b"")
        while feed.streams < 2 or stand.looks < 1:
            await daemon.client.get("/healthz")
        writers[0].transport.pause_reading()
        await daemon.record(500, message="x" * 1900)
    stand.hangs = None
    leftover = {task for task in asyncio.all_tasks() - before if not task.done()}
    assert leftover == set()
