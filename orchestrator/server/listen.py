"""The daemon's HTTP server in the running event loop: sockets, connections and their deadlines, start, clean end."""

import asyncio
import errno
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from orchestrator.core.errors import ConfigError
from orchestrator.server.access import choose_hosts, is_loopback, require_token
from orchestrator.server.service import count_connections, get_service
from orchestrator.settings import Environment, Settings


@dataclass(frozen=True)
class ClientTimeouts:
    """How long a client may keep a connection for nothing, in seconds."""

    head_s: float = 20.0
    """For the head of a request, from the connection or the first byte of it on."""
    stuck_s: float = 60.0
    """Until it reads something of what waits for it."""
    look_s: float = 1.0
    """Between two checks of both."""


MOST_HEAD = 32 * 1024
"""Bytes of a request's head: what a platform's edge lets through."""
_BARE_LF = re.compile(rb"(?<!\r)\n")


class StrictParser(h11.Connection):
    """h11, which takes what a proxy before us may read as another request, and limits incomplete heads alone.

    uvicorn has no settings for either, and its other parser has no limit for heads.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MOST_HEAD)

    def next_event(self) -> Any:
        """Part of h11.Connection. Raises RemoteProtocolError."""
        before = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        event = super().next_event()
        if isinstance(event, h11.Request):
            head = before[: len(before) - len(self.trailing_data[0])]
            names = {name for name, _ in event.headers}
            if len(head) > MOST_HEAD:
                raise h11.RemoteProtocolError("the head is too large")
            if event.http_version not in {b"1.0", b"1.1"}:
                raise h11.RemoteProtocolError("a version of HTTP that is not spoken here")
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version == b"1.0"):
                raise h11.RemoteProtocolError("two lengths of one body")
            if _BARE_LF.search(head):
                raise h11.RemoteProtocolError("a line of the head ends without a carriage return")
        return event


class Connection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with limits for clients that hold connections for nothing."""

    def __init__(self, *args: Any, timeouts: ClientTimeouts, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = StrictParser()
        self._timeouts = timeouts
        self._asked_since: float | None = None
        self._stuck_since: float | None = None
        self._unread = 0
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Part of asyncio.Protocol."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            transport.abort()  # one that asks nothing takes a descriptor too, and the work needs those that are left
            return
        self._asked_since = time.monotonic()
        self._look = self.loop.call_later(self._timeouts.look_s, self._judge)

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio.Protocol."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        super().data_received(data)
        # An incomplete head: no request is being handled, and the parser holds part of one.
        waits = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        self._asked_since = (self._asked_since or time.monotonic()) if waits else None

    def _judge(self) -> None:
        """Closes the connection of a client that is late. One that reads slowly is not: it reads something between two
        checks."""
        now, unread = time.monotonic(), self.transport.get_write_buffer_size()
        progress = unread == 0 or unread < self._unread
        self._stuck_since = None if progress else self._stuck_since or now
        self._unread = unread
        asked_late = self._asked_since is not None and now - self._asked_since > self._timeouts.head_s
        stuck = self._stuck_since is not None and now - self._stuck_since > self._timeouts.stuck_s
        if asked_late or stuck:
            self.transport.abort()
            return
        self._look = self.loop.call_later(self._timeouts.look_s, self._judge)


START_LOOK_S = 0.01  # between two checks whether the server listens
END_S = 1
"""Seconds that requests at work get to end."""
_BACKLOG = 1024  # connections that the kernel queues: many followers may come back at once
_ABSENT = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})
"""Errors of binding on a machine without IPv6 or without IPv4."""
_TRIES = 20  # for a port that is free in both families
_TIMEOUTS = ClientTimeouts()


@dataclass(frozen=True, kw_only=True)
class Address:
    """The daemon's address."""

    url: str
    """Under which this machine reaches it."""
    bound: tuple[tuple[str, int], ...]
    """Addresses and the port, each."""


class _Server(uvicorn.Server):
    """uvicorn, whose process's signals belong to the daemon."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


@asynccontextmanager
async def serve_http(
    app: FastAPI,
    settings: Settings,
    environment: Environment,
    *,
    timeouts: ClientTimeouts = _TIMEOUTS,
    most: int | None = None,
) -> AsyncIterator[Address]:
    """Serves the app on its address for as long as the context lasts; open streams end with it at once.

    `most` connections are held at a time; by default as many as leave descriptors to the work.

    Raises ConfigError for an address that cannot be listened on, and for one that others reach without a token.
    """
    hosts = choose_hosts(settings, environment)
    for host in hosts:
        require_token(host, environment.token)
    port = settings.serve.port if environment.port is None else environment.port
    sockets = await asyncio.to_thread(_bind, hosts, port)
    server = _Server(_config(app, timeouts, most or count_connections()))
    task = asyncio.create_task(server.serve(sockets), name="http-server")
    try:
        while not server.started and not task.done():  # noqa: ASYNC110  # uvicorn has a flag, and no event
            await asyncio.sleep(START_LOOK_S)
        if task.done():
            await task
        yield _address(sockets)
    finally:
        get_service(app).end()
        server.should_exit = True
        await _ended(task)
        await get_service(app).close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        if server.server_state.tasks:  # cancelled by now
            await asyncio.wait(server.server_state.tasks, timeout=END_S)
        for one in sockets:
            one.close()


async def _ended(task: asyncio.Task[None]) -> None:
    """Waits for the server's end, also while the daemon is cancelled itself."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    await task


def _config(app: FastAPI, timeouts: ClientTimeouts, most: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=partial(Connection, timeouts=timeouts),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        log_level="critical",  # its warnings on malformed requests help no one; our own log reports failures
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        limit_concurrency=most + 1,  # from which on requests are refused; connections end before
        timeout_keep_alive=30,  # longer than a scraper or a page waits between two requests
        timeout_graceful_shutdown=END_S,
    )


def _bind(hosts: Sequence[str], port: int) -> list[socket.socket]:
    """Returns a socket per address, all on one port. Blocks."""
    for attempt in range(_TRIES):
        sockets: list[socket.socket] = []
        try:
            for family, host in _resolved(hosts):
                sockets += _bound(family, host, port or (sockets[0].getsockname()[1] if sockets else 0))
            if not sockets:
                raise ConfigError(f"this machine has none of the addresses {', '.join(hosts)} (serve.host)")
            return sockets
        except OSError as error:
            for one in sockets:
                one.close()
            # A free port of one family may be taken in the other.
            if port != 0 or error.errno != errno.EADDRINUSE or attempt + 1 == _TRIES:
                raise ConfigError(_why(error, hosts, port)) from error
    raise AssertionError("the last attempt raises")


def _resolved(hosts: Sequence[str]) -> list[tuple[socket.AddressFamily, str]]:
    found: dict[tuple[socket.AddressFamily, str], None] = {}
    for host in hosts:
        try:
            infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except (OSError, UnicodeError) as error:
            if ":" in host and len(hosts) > 1:
                continue
            raise ConfigError(f"there is no address {host} on this machine (serve.host)") from error
        found |= dict.fromkeys((info[0], str(info[4][0])) for info in infos)
    return list(found)


def _bound(family: socket.AddressFamily, host: str, port: int) -> list[socket.socket]:
    """Returns the bound socket; none where the machine lacks the family. Raises OSError."""
    try:
        one = socket.create_server((host, port), family=family, backlog=_BACKLOG)  # IPv6 alone, too
    except OSError as error:
        if error.errno in _ABSENT:
            return []
        raise
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    one.setblocking(False)
    return [one]


def _why(error: OSError, hosts: Sequence[str], port: int) -> str:
    where = f"port {port} of {' and '.join(hosts)}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use by another program: choose another one with serve.port, or the variable PORT"
    return f"cannot listen on {where}: {os.strerror(error.errno or 0)} (serve.host, serve.port, PORT)"


def _address(sockets: Sequence[socket.socket]) -> Address:
    bound = tuple((str(one.getsockname()[0]), int(one.getsockname()[1])) for one in sockets)
    host, port = next((one for one in bound if is_loopback(one[0])), bound[0])
    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return Address(url=f"http://[{own}]:{port}" if ":" in own else f"http://{own}:{port}", bound=bound)
