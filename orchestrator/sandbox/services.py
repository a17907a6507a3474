"""Ports on a command's own loopback that we answer, from outside.

Services that people started, such as a database, which commands and tests may reach (`environment.services`).
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any

from orchestrator.sandbox.fetch_sources import Place, place_of
from orchestrator.sandbox.tier import Command, Door

Serve = Callable[[socket.socket], Coroutine[Any, Any, None]]
"""Serves a listener until it is cancelled, which ends every connection. It does not block, and stays the caller's."""


@contextlib.asynccontextmanager
async def door_to(serves: Mapping[int, Serve]) -> AsyncIterator[Door]:
    """Opens a door for one command, with a server per port, for as long as the block runs."""
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
    """Serves the listeners that the command sends before it starts, which listen on its own loopback."""
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
    """Serves until cancelled; then closes the listener, so that new connections fail at once."""
    with listener:
        listener.setblocking(False)
        await serve(listener)


async def accept(listener: socket.socket, handle: Callable[[socket.socket], Coroutine[Any, Any, None]]) -> None:
    """Handles every connection until it is cancelled, which ends them all. `listener` does not block."""
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError:  # too many open files, say
                await asyncio.sleep(0.1)
                continue
            group.create_task(handle(accepted))


_CONNECT_S = 10.0  # for a local service
_CHUNK = 262144


class Services:
    """`addresses` are `host:port`, each with a port of its own."""

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        self._places = tuple(place_of(one, 0) for one in addresses)

    @contextlib.asynccontextmanager
    async def joined(self, command: Command, *, own_loopback: bool) -> AsyncIterator[tuple[Command, list[str]]]:
        """Yields the command with its way to them, for as long as the block runs; and which could not be reached.

        With a loopback of its own it finds them there, by their ports, else where they are.
        """
        told: list[str] = []
        if not self._places:
            yield command, told
        elif own_loopback:
            async with door_to({one.port: partial(_serve, one, told) for one in self._places}) as door:
                yield command._replace(door=door), told
        else:
            yield command._replace(door=Door(tuple(one.port for one in self._places), None)), told

    async def unreachable(self) -> list[str]:
        """Returns a sentence for each that does not answer."""
        told: list[str] = []
        await asyncio.gather(*(_try(one, told) for one in self._places))
        return told


async def _try(place: Place, told: list[str]) -> None:
    if streams := await _connected(place, told):
        streams[1].close()


async def _connected(place: Place, told: list[str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    try:
        return await asyncio.wait_for(asyncio.open_connection(*place), _CONNECT_S)
    except OSError as error:
        said = f"environment.services: `{place}` does not answer: {error.strerror or error}"
        told += [said] if said not in told else []
        return None


async def _serve(place: Place, told: list[str], listener: socket.socket) -> None:
    await accept(listener, partial(_hand_on, place, told))


async def _hand_on(place: Place, told: list[str], accepted: socket.socket) -> None:
    """Hands on bytes both ways, until both sides have ended."""
    reader, writer = await asyncio.open_connection(sock=accepted)
    try:
        if there := await _connected(place, told):
            try:
                await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer))
            finally:
                there[1].transport.abort()
    finally:
        writer.transport.abort()


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hands bytes on until the reader's side ends, or either hangs up."""
    with contextlib.suppress(OSError):  # one side hung up
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        await writer.drain()
        if writer.can_write_eof():  # not with TLS
            writer.write_eof()
