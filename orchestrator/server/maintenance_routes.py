"""Routes for the state folder of a daemon: its backup, what is pruned, what its machine lacks."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.core.command import PruneBody
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.sprint import Pruned
from orchestrator.maintenance.backup import backup as write_backup
from orchestrator.server.limits import HEAD, read_body, send_until_gone
from orchestrator.server.models import Examined
from orchestrator.server.openapi import GUARDED, WRITES, describe, list_refusals
from orchestrator.server.problems import Refused
from orchestrator.server.service import Service, ServiceDep
from orchestrator.settings import Environment

GZIP = "application/gzip"
_CHUNK = 256 * 1024


async def stream_archive(environment: Environment) -> AsyncGenerator[bytes]:
    """Yields the archive of the state folder in parts; ends with its reader. Raises ConfigError, WorkspaceError.

    Nothing of it is kept: through a pipe, so that a slow reader costs neither memory nor disk space.
    """
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=_CHUNK)
    ours, theirs = os.pipe()
    writing = asyncio.create_task(_write(environment, theirs), name="backup")
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb", buffering=0)
    )
    try:
        while part := await reader.read(_CHUNK):
            yield part
        await writing
    finally:
        transport.close()  # a writer that still writes gets an error
        await asyncio.gather(writing, return_exceptions=True)


class Archive(Response):
    """Sends the parts behind the first one until the client leaves; breaks off when a part cannot be made."""

    media_type = GZIP

    def __init__(self, first: bytes, parts: AsyncGenerator[bytes], headers: Mapping[str, str]) -> None:
        super().__init__(None, headers=headers)
        del self.headers["content-length"]
        self._first, self._parts = first, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        async with aclosing(self._parts):
            await send_until_gone(self._tell(send), receive)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
        async for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _write(environment: Environment, end: int) -> None:
    stream = os.fdopen(end, "wb")
    try:
        await write_backup(environment, stream)
        await asyncio.to_thread(stream.flush)
    finally:
        with suppress(OSError, OrchestratorError):  # the reader has gone
            await asyncio.to_thread(stream.close)


router = APIRouter(prefix="/api/v1", tags=["keeping"])
_HEADERS = {"content-disposition": 'attachment; filename="backup.tar.gz"'}
Prune = Annotated[PruneBody, Depends(read_body(PruneBody))]
Sandbox = Annotated[bool, Query(description="true: a hundred harmless hostile actions are tried in every tier as well")]


@router.get(
    "/backup", operation_id="backup", summary="Everything that the state folder cannot get again",
    response_class=Response,
    responses={
        200: {"content": {GZIP: {"schema": {"type": "string", "format": "binary"}}}, "description": "The archive"},
        **list_refusals(*GUARDED, 503),
    },
)  # fmt: skip
async def backup(request: Request, service: ServiceDep) -> Response:
    """As `backup` writes it, for `restore`; sprints continue meanwhile. It has all prompts and replies, and the key of
    the masks, so 403 from a daemon without a token (`--no-auth`). One at a time. A body that breaks off is no backup.
    """
    if service.environment.token is None:
        told = "a backup is handed out for a token alone, and this daemon was started with --no-auth"
        raise Refused(HTTPStatus.FORBIDDEN, told)
    if service.alone["backup"].locked():
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "another backup is being handed out")
    if request.scope.get(HEAD):
        return Response(media_type=GZIP, headers=_HEADERS)
    parts = _parts(service)
    first = await anext(parts)  # an error by then becomes a problem
    return Archive(first, parts, _HEADERS)


async def _parts(service: Service) -> AsyncGenerator[bytes]:
    async with service.alone["backup"], aclosing(stream_archive(service.environment)) as chunks:
        async for chunk in chunks:
            yield chunk


@router.post("/prune", **describe("prune", "Delete what is too old or too much", Pruned, *WRITES, takes=PruneBody))
async def prune(body: Prune, service: ServiceDep) -> Response:
    """As `prune --json` prints it. Sprints that are not finished, backlogs and the repository are never touched."""
    limits: dict[str, float | None] = {"days": body.days, "max_mb": body.max_mb}
    limits = {name: limit for name, limit in limits.items() if name in body.model_fields_set}
    done = await service.daemon.prune(limits, dry_run=body.dry_run)
    return await service.answer(lambda: done.model_dump(mode="json"))


@router.get("/doctor", **describe("doctor", "What a run needs where the daemon is", Examined, *GUARDED, 422, 503))
async def doctor(service: ServiceDep, sandbox: Sandbox = False) -> Response:
    """As `doctor --json` prints it there: keys are shown as present or absent. With `sandbox` it takes long; one look
    at a time.
    """
    if service.alone["doctor"].locked():
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "somebody is having a look already")
    async with service.alone["doctor"]:
        rows = await service.daemon.examine(sandbox=sandbox)
    told = [row.model_dump(mode="json") for row in rows]
    return await service.answer(lambda: {"ok": all(row.ok for row in rows), "rows": told})
