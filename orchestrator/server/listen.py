"""The daemon's HTTP server in the running event loop: its socket, its start, its clean end."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import FastAPI

from orchestrator.core.errors import ConfigError
from orchestrator.server.service import count_connections, get_service
from orchestrator.settings import Environment, Settings

LOOPBACK, EVERYWHERE = "127.0.0.1", ""
MOST_HEAD = 32 * 1024
"""Bytes of a request's head: what a platform's edge lets through."""
START_LOOK_S = 0.01  # between two checks whether the server listens
END_S = 1
"""Seconds that requests at work get to end."""


class _Server(uvicorn.Server):
    """uvicorn, whose process's signals belong to the daemon."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


def choose_host(settings: Settings, environment: Environment) -> str:
    """Returns the address to listen on: `serve.host`; without it every one when PORT is set, else loopback alone."""
    named = settings.serve.host
    if named:
        return LOOPBACK if named.lower() == "localhost" else named.strip("[]")
    asked = environment.variables.get("PORT", "").strip()  # by a platform; a port that a person names is no such wish
    return EVERYWHERE if asked else LOOPBACK


@asynccontextmanager
async def serve_http(
    app: FastAPI, settings: Settings, environment: Environment, *, most: int | None = None
) -> AsyncIterator[str]:
    """Serves the app for as long as the context lasts; open streams end with it at once. Yields the address under which
    this machine reaches it.

    `most` connections are served at a time, others get 503; by default as many as leave descriptors to the work.
    Raises ConfigError for an address that cannot be listened on.
    """
    port = settings.serve.port if environment.port is None else environment.port
    listening = await asyncio.to_thread(_bind, choose_host(settings, environment), port)
    server = _Server(
        uvicorn.Config(
            app,
            http="h11",  # the parser with a limit for heads
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            log_level="critical",  # its warnings on malformed requests help no one; our own log reports failures
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=1024,  # connections that the kernel queues: many followers may come back at once
            limit_concurrency=(most or count_connections()) + 1,
            timeout_keep_alive=30,  # longer than a scraper or a page waits between two requests
            timeout_graceful_shutdown=END_S,
            h11_max_incomplete_event_size=MOST_HEAD,
        )
    )
    address = _address(listening)
    task = asyncio.create_task(server.serve([listening]), name="http-server")
    try:
        while not server.started and not task.done():  # noqa: ASYNC110  # uvicorn has a flag, and no event
            await asyncio.sleep(START_LOOK_S)
        yield address
    finally:
        get_service(app).end()
        server.should_exit = True
        await task
        for connection in list(server.server_state.connections):  # of a client that reads nothing
            connection.transport.abort()
        await get_service(app).close()
        listening.close()


def _bind(host: str, port: int) -> socket.socket:
    """Returns the socket that listens. Raises ConfigError. Blocks."""
    both = host in {EVERYWHERE, "::"} and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        where = f"port {port} of {host or 'every address'}"
        if error.errno == errno.EADDRINUSE:
            told = f"{where} is in use by another program: choose another one with serve.port, or the variable PORT"
        else:
            told = f"cannot listen on {where}: {os.strerror(error.errno or 0)} (serve.host, serve.port, PORT)"
        raise ConfigError(told) from error


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    own = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)
    return f"http://[{own}]:{port}" if ":" in own else f"http://{own}:{port}"
