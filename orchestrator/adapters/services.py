"""Services that people started, such as a database, which commands and tests may reach (`environment.services`)."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterable
from functools import partial

from orchestrator.adapters.doors import door_to
from orchestrator.adapters.fetch.sources import Place, place_of
from orchestrator.adapters.sandbox.tier import Command, Door

_CONNECT_S = 10.0
_CHUNK = 262144


class Services:
    """`addresses` are `host:port`, each with a port of its own."""

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        self._places = tuple(place_of(one, 0) for one in addresses)

    @contextlib.asynccontextmanager
    async def joined(self, command: Command, *, own_loopback: bool) -> AsyncIterator[tuple[Command, list[str]]]:
        """The command with its way to them, for as long as the block runs; and which could not be reached.

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
        """A sentence for each that does not answer."""
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
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError:  # too many open files, say
                await asyncio.sleep(0.1)
                continue
            group.create_task(_hand_on(place, told, accepted))


async def _hand_on(place: Place, told: list[str], accepted: socket.socket) -> None:
    """Bytes both ways, until both sides have ended."""
    reader, writer = await asyncio.open_connection(sock=accepted)
    try:
        if there := await _connected(place, told):
            try:
                await asyncio.gather(_pipe(reader, there[1]), _pipe(there[0], writer))
            finally:
                there[1].transport.abort()
    finally:
        writer.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # one side hung up
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        await writer.drain()
        writer.write_eof()
