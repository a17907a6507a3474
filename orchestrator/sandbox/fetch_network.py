"""The way of a fetch step to the network: a proxy for as long as the step runs, and a place where it finds it."""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Iterable, Mapping

from orchestrator.sandbox.fetch_proxy import FetchProxy
from orchestrator.sandbox.fetch_sources import read_sources
from orchestrator.sandbox.services import at_work, door_to, serve_on
from orchestrator.sandbox.tier import Command, Door

_PORT = 3128
"""On a loopback of the step's own, where no other port is in use."""
_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class FetchNetwork:
    """`variables` are the machine's, for its own proxy; `hosts` are open beside the registries of a step."""

    def __init__(self, variables: Mapping[str, str], hosts: Iterable[str] = ()) -> None:
        self._variables, self._hosts = variables, tuple(hosts)

    @contextlib.asynccontextmanager
    async def joined(self, command: Command, *, own_loopback: bool) -> AsyncIterator[tuple[Command, list[str]]]:
        """The command with its proxy, for as long as the block runs; and what it could not have, as that gets known.

        `own_loopback`: it will run where only what is within reaches loopback. Raises ConfigError, OSError.
        """
        sources = await asyncio.to_thread(read_sources, command.env, self._variables, self._hosts)
        token = secrets.token_hex(16)  # without one, other users of this machine could fetch by it
        proxy = FetchProxy(sources, token)
        async with _served(proxy, own_loopback) as door:
            address = f"http://step:{token}@127.0.0.1:{door.ports[0]}"
            env = {**sources.variables, **dict.fromkeys(_NAMES, address), "no_proxy": "", "NO_PROXY": ""}
            yield command._replace(env=env, access=command.access.also(*sources.readable), door=door), proxy.told


@contextlib.asynccontextmanager
async def _served(proxy: FetchProxy, own_loopback: bool) -> AsyncIterator[Door]:
    if own_loopback:
        async with door_to({_PORT: proxy.serve}) as door:
            yield door
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with at_work(serve_on(proxy.serve, listener)):
            yield Door((listener.getsockname()[1],), None)
