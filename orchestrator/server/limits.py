"""Limits of bodies, headers of all responses, JSON bodies, and responses that end with their client."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.server.access import LOGIN
from orchestrator.server.login import BODY_BYTES
from orchestrator.server.problems import JSON, Refused, explain_errors, make_problem
from orchestrator.server.service import ServiceDep

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


class BodyLimit:
    """Middleware: a body is as large as it may be. One that is announced as larger is refused before it is read."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        limit = BODY_BYTES if scope["path"] == LOGIN else self._limit  # anybody may send a login
        told, size = f"the body is larger than {limit} bytes (serve.body_limit_kb; a login: {BODY_BYTES} bytes)", 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
            return message

        announced = int(dict(scope["headers"]).get(b"content-length", 0))
        refusal = make_problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)  # and reads on: who still sends sees no end
        await (refusal if announced > limit else self._app)(scope, counted, send)


class ResponseHeaders:
    """Middleware: adds the headers that every response has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message.get("headers", [])
                names = {name for name, _ in own}
                message = {**message, "headers": [*own, *(one for one in _HEADERS if one[0] not in names)]}
            await send(message)

        await self._app(scope, receive, told)


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
