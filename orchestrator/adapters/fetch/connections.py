"""Connections of the proxy to registries and hosts: only to those that are open, by the machine's own proxy if any."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Iterator

from orchestrator.adapters.fetch.sources import Place, Sources, Upstream

CONNECT_S = 20.0
"""For one address, with TLS; also for an answer of the machine's own proxy."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NotOpen(Exception):
    """The place is none of those that the step may reach; the text is for people."""


class NotReached(Exception):
    """The place is open and cannot be reached; the text is for people."""


class Connections:
    """To the places of `sources`. The streams it returns are the caller's to close."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._contexts: dict[bool, ssl.SSLContext] = {}

    async def tunnel(self, place: Place) -> Streams:
        """For bytes that the client encrypts itself. Raises NotOpen, NotReached."""
        self._require_open(place)
        with _told(place):
            upstream = self._sources.upstream("https", place)
            return await self._direct(place) if upstream is None else await self._through(upstream, place)

    async def exchange(self, place: Place) -> tuple[Streams, Upstream | None]:
        """For one request over HTTP, and the proxy that it is asked of, if any. Raises NotOpen, NotReached."""
        self._require_open(place)
        with _told(place):
            if place in self._sources.spoken:
                reader, writer = await self.tunnel(place)
                await self._encrypt(writer, place.host)
                return (reader, writer), None
            upstream = self._sources.upstream("http", place)
            return await (self._direct(place) if upstream is None else self._to(upstream)), upstream

    def _require_open(self, place: Place) -> None:
        if place not in self._sources.registries | self._sources.hosts:
            raise NotOpen(
                f"the network of this step leads to the registries only; `{place}` is not among them: "
                "add it to environment.hosts"
            )

    async def _direct(self, place: Place) -> Streams:
        """The name is resolved once, and what was looked at is what is connected to."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        if place not in self._sources.registries and not _is_address(place.host):
            for address in addresses:
                if not is_public(address):
                    raise NotOpen(
                        f"`{place}` leads to {address}, which is no public address: environment.hosts opens such a "
                        "place by its address, not by its name"
                    )
        return await _first(addresses, place.port)

    async def _to(self, upstream: Upstream) -> Streams:
        """To the machine's proxy itself, wherever it is."""
        streams = await asyncio.wait_for(asyncio.open_connection(*upstream.place), CONNECT_S)
        if upstream.tls:
            await self._encrypt(streams[1], upstream.place.host)
        return streams

    async def _through(self, upstream: Upstream, place: Place) -> Streams:
        reader, writer = await self._to(upstream)
        try:
            shown = "" if upstream.authorization is None else f"Proxy-Authorization: {upstream.authorization}\r\n"
            writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{shown}\r\n".encode())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), CONNECT_S)
            status = head.split(b"\r\n", 1)[0].split(b" ", 2)
            if len(status) < 2 or status[1] != b"200":
                said = b" ".join(status[1:])[:200].decode("ascii", "replace")
                raise NotReached(f"`{place}` could not be reached: the proxy {upstream.place} said {said}")
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def _encrypt(self, writer: asyncio.StreamWriter, host: str) -> None:
        try:
            context = await asyncio.to_thread(self._context, host in self._sources.insecure)
            await asyncio.wait_for(writer.start_tls(context, server_hostname=host), CONNECT_S)
        except BaseException:
            writer.close()
            raise

    def _context(self, insecure: bool) -> ssl.SSLContext:
        """With the certificates that installers were told of, and the machine's own. Blocks."""
        if insecure not in self._contexts:
            context = ssl.create_default_context()
            for path in self._sources.certificates:
                folder = path.is_dir()
                context.load_verify_locations(cafile=None if folder else path, capath=path if folder else None)
            if self._sources.own_certificate is not None:
                context.load_cert_chain(self._sources.own_certificate)
            if insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self._contexts[insecure] = context
        return self._contexts[insecure]


def is_public(address: str) -> bool:
    """Whether it is an address of the internet, also where one of the older kind is written within a newer one."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        within = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64:
            within = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if within is not None:
            return is_public(str(within))
        if ip.is_site_local:
            return False
    return ip.is_global and not ip.is_multicast


def _is_address(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


async def _first(addresses: list[str], port: int) -> Streams:
    """The first that answers; a machine without one kind of addresses refuses those at once."""
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_S)
    return await asyncio.wait_for(asyncio.open_connection(addresses[-1], port), CONNECT_S)


@contextlib.contextmanager
def _told(place: Place) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, UnicodeError, asyncio.LimitOverrunError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "verify_message", None) or error
        raise NotReached(f"`{place}` could not be reached: {str(reason) or type(error).__name__}") from error
