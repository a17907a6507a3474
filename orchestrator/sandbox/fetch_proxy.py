"""The proxy that fetch steps reach the network by: CONNECT for `https`, whole addresses for `http`, HTTP/1.1.

It connects to registries and hosts that are open, and to nothing else, by the machine's own proxy if there is one.
"""

import asyncio
import contextlib
import hmac
import ipaddress
import re
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from urllib.parse import urlsplit

import h11

from orchestrator.sandbox.fetch_sources import (
    Place,
    Sources,
    Upstream,
    archives_in,
    basic,
    place_at,
    place_of,
    read_sources,
)
from orchestrator.sandbox.services import accept, at_work, door_to, pipe, serve_on
from orchestrator.sandbox.tier import Command, Door

CONNECT_S = 20.0
"""For one address, with TLS; also for an answer of the machine's own proxy."""
# The prefix in which an IPv4 address is written for networks that have IPv6 alone (RFC 6052).
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
        """Returns the name is resolved once, and what was looked at is what is connected to."""
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
        """Returns a context with the installers' configured certificates, and the machine's own. Blocks."""
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
    """Returns whether it is an internet address; checks an IPv4 address embedded in an IPv6 one."""
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
    with contextlib.suppress(ValueError):  # a name and not an address
        return bool(ipaddress.ip_address(host))
    return False


async def _first(addresses: list[str], port: int) -> Streams:
    """Returns the first that answers; a machine without one kind of addresses refuses those at once."""
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):  # the next address may answer; the last one's error counts
            return await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_S)
    return await asyncio.wait_for(asyncio.open_connection(addresses[-1], port), CONNECT_S)


@contextlib.contextmanager
def _told(place: Place, what: str = "could not be reached") -> Iterator[None]:
    """Turns errors in the block into NotReached."""
    try:
        yield
    except (OSError, EOFError, UnicodeError, asyncio.LimitOverrunError, h11.RemoteProtocolError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "verify_message", None) or error
        raise NotReached(f"`{place}` {what}: {str(reason) or type(error).__name__}") from error


HEAD_S = 30.0
"""For a whole request head to come."""
CLOSE_S = 5.0  # for the rest of an answer
TOLD = 20
"""Limit on the reported refusals of one step."""
_HEAD_BYTES = 65536  # more is no request of an installer
_CHUNK = 262144
_PAGE_BYTES = 64 << 20
"""A page of a registry in which addresses are rewritten."""
# Headers that belong to one connection and are not handed on (RFC 9110, 7.6.1); `proxy-authorization` holds our token.
_HOP = {b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"te", b"upgrade"}
_METHODS = {b"GET", b"HEAD", b"POST"}  # npm posts for advisories; nothing is ever put or deleted


class FetchProxy:
    """Serves one step, who shows `token`; `told` fills with sentences about what it could not have."""

    def __init__(self, sources: Sources, token: str) -> None:
        self.told: list[str] = []
        self._sources = sources
        self._shown = basic("step", token).encode()
        self._connections = Connections(sources)
        self._archives: dict[tuple[Place, str], str] = {}
        """Archives that pages of a registry name, with its credentials: they may lie beside it."""

    async def serve(self, listener: socket.socket) -> None:
        """Serves until it is cancelled, which ends every connection."""
        await accept(listener, self._serve)

    async def _serve(self, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError, h11.ProtocolError):  # the step hung up, or spoke nonsense to the end
            streams = await asyncio.open_connection(sock=accepted)
            async with _closing(streams[1]):
                await _Client(streams).serve(self)

    async def answer(self, client: "_Client", request: h11.Request) -> None:
        """Serves one request; what cannot be had becomes an answer that says why."""
        try:
            shown = [value for name, value in request.headers if name == b"proxy-authorization"]
            if not any(hmac.compare_digest(value, self._shown) for value in shown):
                raise _Bad(407, "this proxy belongs to another step")
            if request.method == b"CONNECT":
                await self._tunnel(client, request)
            else:
                await self._exchange(client, request)
        except (NotOpen, NotReached) as error:
            if str(error) not in self.told and len(self.told) < TOLD:
                self.told.append(str(error))
            await client.refuse(403 if isinstance(error, NotOpen) else 502, str(error))
        except _Bad as error:
            await client.refuse(error.status, str(error))
        except (h11.ProtocolError, ValueError) as error:
            await client.refuse(400, f"this proxy does not understand that: {error}")

    async def _tunnel(self, client: "_Client", request: h11.Request) -> None:
        place = place_of(request.target.decode("ascii"), 443)
        reader, writer = await self._connections.tunnel(place)
        async with _closing(writer):
            writer.write(await client.opened())
            await asyncio.gather(pipe(client.reader, writer), pipe(reader, client.writer))

    async def _exchange(self, client: "_Client", request: h11.Request) -> None:
        url = urlsplit(request.target.decode("ascii"))
        if url.scheme != "http" or not url.hostname or request.method not in _METHODS:
            raise _Bad(400, "this proxy takes CONNECT, and GET, HEAD and POST of whole addresses with http")
        place = place_at(url)
        path = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
        streams, upstream = await self._connections.exchange(place)
        server = _Server(streams, place)
        try:
            await server.ask(self._request(request, place, path, upstream), client)
            rewrite = _Rewriting(place) if place in self._sources.spoken else None
            learn = partial(self._learn, place, path) if place in self._sources.closed else None
            await server.hand_on(client, rewrite, learn)
        finally:
            streams[1].transport.abort()  # all of it was read, or it is no longer needed

    def _learn(self, place: Place, path: str, page: bytes) -> None:
        authorization = self._sources.authorization(place, path.partition("?")[0])
        if authorization is not None:
            scheme = "https" if place in self._sources.spoken else "http"
            found = archives_in(page, f"{scheme}://{place}{path}")
            self._archives |= {one: authorization for one in found if one[0] == place}

    def _authorization(self, place: Place, path: str) -> str | None:
        plain = path.partition("?")[0]
        return self._sources.authorization(place, plain) or self._archives.get((place, plain))

    def _request(self, request: h11.Request, place: Place, path: str, upstream: Upstream | None) -> h11.Request:
        """Returns the request for the registry, or for the machine's own proxy."""
        # Only for what is read: who shows credentials may often publish as well.
        authorization = None if request.method == b"POST" else self._authorization(place, path)
        own = {b"host", *((b"authorization",) if authorization else ())}
        usual = place.port == (443 if place in self._sources.spoken else 80)
        named = str(place).rpartition(":")[0] if usual else str(place)
        headers = [(b"Host", named.encode()), (b"Connection", b"close")]
        headers += [one for one in request.headers if one[0] not in _HOP | own]
        if authorization:
            headers.append((b"Authorization", authorization.encode()))
        if (
            place in self._sources.spoken | self._sources.closed
        ):  # addresses can be read and rewritten in what is not compressed
            headers = [*(one for one in headers if one[0] != b"accept-encoding"), (b"Accept-Encoding", b"identity")]
        if upstream is not None and upstream.authorization:
            headers.append((b"Proxy-Authorization", upstream.authorization.encode()))
        target = path if upstream is None else f"http://{named}{path}"
        return h11.Request(method=request.method, target=target, headers=headers)


class _Bad(Exception):
    """A request that this proxy does not serve."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Peer:
    """One end of a connection, for one request: later ones come on connections of their own."""

    def __init__(self, streams: Streams, role: type[h11.CLIENT] | type[h11.SERVER]) -> None:
        self.reader, self.writer = streams
        self.state = h11.Connection(role, max_incomplete_event_size=_HEAD_BYTES)

    async def next(self) -> "h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]":
        while (event := self.state.next_event()) is h11.NEED_DATA:
            if self.state.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            self.state.receive_data(await self.reader.read(_CHUNK))
        return event

    async def send(self, event: h11.Event) -> None:
        self.writer.write(self.state.send(event) or b"")
        await self.writer.drain()


class _Client(_Peer):
    """The step's end."""

    def __init__(self, streams: Streams) -> None:
        super().__init__(streams, h11.SERVER)

    async def serve(self, proxy: FetchProxy) -> None:
        try:
            request = await asyncio.wait_for(self.next(), HEAD_S)
        except h11.ProtocolError as error:
            await self.refuse(400, f"this proxy does not understand that: {error}")
            return
        if isinstance(request, h11.Request):
            await proxy.answer(self, request)

    async def opened(self) -> bytes:
        """Says that the tunnel is there; what the client sent ahead."""
        await self.next()
        await self.send(h11.Response(status_code=200, headers=[], reason="Connection established"))
        return self.state.trailing_data[0]

    async def refuse(self, status: int, text: str) -> None:
        """Sends the reason as text, unless an answer has started, which is then cut short."""
        if self.state.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        body = f"{text}\n".encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        headers += [("Connection", "close"), *([("Proxy-Authenticate", "Basic")] if status == 407 else [])]
        response = h11.Response(status_code=status, headers=headers, reason="Refused")
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            await self.send(event)


class _Server(_Peer):
    """The registry's end."""

    def __init__(self, streams: Streams, place: Place) -> None:
        super().__init__(streams, h11.CLIENT)
        self._place = place

    async def next(self) -> "h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]":
        with _told(self._place, "gave no whole answer"):
            return await super().next()

    async def send(self, event: h11.Event) -> None:
        with _told(self._place, "gave no whole answer"):
            await super().send(event)

    async def ask(self, request: h11.Request, client: _Client) -> None:
        await self.send(request)
        while isinstance(event := await client.next(), (h11.Data, h11.EndOfMessage)):
            await self.send(event)
            if isinstance(event, h11.EndOfMessage):
                return

    async def hand_on(
        self, client: _Client, rewrite: "_Rewriting | None", learn: Callable[[bytes], None] | None = None
    ) -> None:
        """Hands on the answer, as it comes; a page of links is given to `learn` and rewritten as a whole."""
        page: bytearray | None = None
        while not isinstance(event := await self.next(), (h11.ConnectionClosed, h11.EndOfMessage)):
            if isinstance(event, h11.Response):
                headers = [one for one in event.headers if one[0] not in _HOP]
                if rewrite is not None:
                    headers = [(name, rewrite(value) if name == b"location" else value) for name, value in headers]
                if rewrite is not None or learn is not None:
                    page = bytearray() if _is_page(headers) else None
                if page is not None:  # its length changes
                    headers = [one for one in headers if one[0] not in {b"content-length", b"transfer-encoding"}]
                headers.append((b"Connection", b"close"))
                await client.send(h11.Response(status_code=event.status_code, headers=headers, reason=event.reason))
            elif isinstance(event, h11.Data) and page is None:
                await client.send(event)
            elif isinstance(event, h11.Data) and page is not None:
                page += event.data
                if len(page) > _PAGE_BYTES:
                    return
        if page and learn is not None:
            await asyncio.to_thread(learn, bytes(page))
        if page:
            await client.send(h11.Data(data=rewrite(bytes(page)) if rewrite is not None else bytes(page)))
        if isinstance(event, h11.EndOfMessage):
            await client.send(h11.EndOfMessage())


class _Rewriting:
    """In addresses of this place, `https` becomes what the step was told to ask by."""

    def __init__(self, place: Place) -> None:
        port = f"(:{place.port}){'?' if place.port == 443 else ''}"
        self._pattern = re.compile(
            f"https://{re.escape(str(place).rpartition(':')[0])}{port}(?=[/?\"']|$)".encode(), re.I
        )
        self._new = f"http://{place}".encode()

    def __call__(self, text: bytes) -> bytes:
        return self._pattern.sub(self._new, text)


def _is_page(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Returns a list of files with their addresses, in a form that can be read."""
    held = dict(headers)
    kind = held.get(b"content-type", b"").split(b";")[0].lower()
    plain = held.get(b"content-encoding", b"identity").lower() == b"identity"
    return plain and (kind == b"text/html" or kind.endswith((b"json", b"+html")))


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Closes the connection after the block; allows a limited time to send the remaining output."""
    ended = False
    try:
        yield
        writer.close()
        with contextlib.suppress(OSError):  # the other side has closed already
            await asyncio.wait_for(writer.wait_closed(), CLOSE_S)
            ended = True
    finally:
        if not ended:  # a transport that has ended while something was still being sent cannot be asked again
            writer.transport.abort()


_PORT = 3128
"""On a loopback of the step's own, where no other port is in use."""
_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class FetchNetwork:
    """`variables` are the machine's, for its own proxy; `hosts` are open beside the registries of a step."""

    def __init__(self, variables: Mapping[str, str], hosts: Iterable[str] = ()) -> None:
        self._variables, self._hosts = variables, tuple(hosts)

    @contextlib.asynccontextmanager
    async def joined(self, command: Command, *, own_loopback: bool) -> AsyncIterator[tuple[Command, list[str]]]:
        """Yields the command with its proxy, which runs inside the block, and a growing list of refused requests.

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
