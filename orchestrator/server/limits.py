"""Limits of requests: a body of bounded size in bounded time, JSON bodies, HEAD; responses end with their client."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.server.problems import JSON, Refused, explain_errors, make_problem
from orchestrator.server.service import ServiceDep

BODY_S = 60.0
"""Seconds in which a whole body has to come."""
HEAD = "orchestrator.head"
"""In the scope of a request that wants headers alone."""
_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    # Scripts, styles and pictures are files of ours alone; nothing frames a page, and no form leads elsewhere.
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_DROPPED = 4
"""Times the limit that are read of a body that is too large."""
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class BodyLimit:
    """Middleware: a body is read whole before anything looks at it, up to the limit and the deadline.

    `limit` is how many bytes a path may get, and the setting that says so. What says its length is judged by that;
    what comes in chunks is counted.
    """

    def __init__(self, app: ASGIApp, *, limit: Callable[[str], tuple[int, str]], body_s: float = BODY_S) -> None:
        self._app, self._limit, self._body_s = app, limit, body_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        if scope["type"] != "http" or scope["method"] in _WITHOUT_BODY:
            await self._app(scope, receive, send)
            return
        limit, setting = self._limit(scope["path"])
        try:
            async with asyncio.timeout(self._body_s):
                body = await _read(scope, receive, limit)
        except ClientDisconnect:
            return
        except TimeoutError:
            told = f"the body did not come within {self._body_s:g} s"
            response = make_problem(HTTPStatus.REQUEST_TIMEOUT, told, headers={"connection": "close"})
            await response(scope, receive, send)
            return
        if body is None:
            told = f"the body is larger than {limit} bytes ({setting})"
            response = make_problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told, headers={"connection": "close"})
            await response(scope, receive, send)
            return
        await self._app(scope, _Replayed(body, receive), send)


async def _read(scope: Scope, receive: Receive, limit: int) -> bytes | None:
    """Returns the body, None when it is larger. Raises ClientDisconnect when it does not end.

    What is somewhat too large is read to its end and dropped: a client that still sends would not see the answer.
    """
    told = dict(scope["headers"])
    length = told.get(b"content-length", b"")
    announced = int(length[:20]) if length.isdigit() else 0
    if announced > limit and (announced > _DROPPED * limit or b"expect" in told):
        return None
    body, size, more = bytearray(), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > _DROPPED * limit:
            return None
        if size <= limit:
            body += part
        more = message.get("more_body", False)
    return bytes(body) if size <= limit else None


class _Replayed:
    """Hands out a body that was read, and then what comes of the connection."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class ResponseHeaders:
    """Middleware: adds the headers that every response has; answers HEAD as GET without its body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message.get("headers", [])
                names = {name for name, _ in own}
                message = {**message, "headers": [*own, *(one for one in _HEADERS if one[0] not in names)]}
            elif head:
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET", HEAD: True} if head else scope, receive, told)


async def send_until_gone(telling: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Sends until all is sent, or the client has left. Raises what `telling` raises."""
    tell, left = asyncio.create_task(telling), asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({tell, left}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        tell.cancel()
        left.cancel()
        await asyncio.gather(tell, left, return_exceptions=True)
    if not tell.cancelled():
        tell.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


B = TypeVar("B", bound=BaseModel)


def read_body(model: type[B]) -> Callable[[Request, ServiceDep], Awaitable[B]]:
    """Returns a dependency: the body as this model. Raises Refused for what is none: no number stands for a yes or no.

    Other content types are refused: a form of a foreign web page may send them without being asked back.
    """

    async def read(request: Request, service: ServiceDep) -> B:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body is to be {JSON}")
        raw = await request.body()
        try:
            return await service.in_thread(partial(model.model_validate_json, raw, strict=True))
        except ValidationError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, explain_errors(error.errors())) from None

    return read
