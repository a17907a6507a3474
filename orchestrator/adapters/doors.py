"""Ports on a command's own loopback that we answer, from outside."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

from orchestrator.adapters.sandbox.tier import Door

Serve = Callable[[socket.socket], Coroutine[Any, Any, None]]
"""Serves a listener until it is cancelled, which ends every connection. It does not block, and stays the caller's."""


@contextlib.asynccontextmanager
async def door_to(serves: Mapping[int, Serve]) -> AsyncIterator[Door]:
    """By each port what serves it; for as long as the block runs, for one command."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with at_work(_serve_sent(serves, ours)):
            yield Door((*serves,), theirs.fileno())


@contextlib.asynccontextmanager
async def at_work(serve: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Beside the block, and ended with it."""
    serving = asyncio.create_task(serve)
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait({serving})
        if not serving.cancelled():
            serving.result()


async def _serve_sent(serves: Mapping[int, Serve], ours: socket.socket) -> None:
    """By the listeners that the command sends before it starts: they listen on the command's own loopback."""
    ours.setblocking(False)
    loop, sent = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(ours, sent.set)
    try:
        await sent.wait()
    finally:
        loop.remove_reader(ours)
    _, fds, _, _ = socket.recv_fds(ours, 1, len(serves))
    async with asyncio.TaskGroup() as group:
        for fd, serve in zip(fds, serves.values(), strict=True):
            group.create_task(serve_on(serve, socket.socket(fileno=fd)))


async def serve_on(serve: Serve, listener: socket.socket) -> None:
    """Until it is cancelled; then whoever still connects is told at once."""
    with listener:
        listener.setblocking(False)
        await serve(listener)
