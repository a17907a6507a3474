"""Routes for who keeps a daemon: its backup, the past that is given up, what its machine lacks."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from orchestrator.domain.requests import PruneBody
from orchestrator.domain.retention import Pruned
from orchestrator.server.archive_stream import GZIP, Archive, archive_chunks
from orchestrator.server.bodies import body_of
from orchestrator.server.limits import HEAD
from orchestrator.server.models import Examined
from orchestrator.server.openapi import GUARDED, WRITES, refusals, takes
from orchestrator.server.problems import Refused
from orchestrator.server.service import Service, ServiceDep

router = APIRouter(prefix="/api/v1", tags=["keeping"])
_HEADERS = {"content-disposition": 'attachment; filename="backup.tar.gz"'}
Prune = Annotated[PruneBody, Depends(body_of(PruneBody))]
Sandbox = Annotated[bool, Query(description="true: a hundred harmless hostile actions are tried in every tier as well")]


@router.get(
    "/backup", operation_id="backup", summary="Everything that the state folder cannot get again",
    response_class=Response,
    responses={
        200: {"content": {GZIP: {"schema": {"type": "string", "format": "binary"}}}, "description": "The archive"},
        **refusals(*GUARDED, 503),
    },
)  # fmt: skip
async def backup(request: Request, service: ServiceDep) -> Response:
    """As `backup` writes it, for `restore`; sprints go on meanwhile. It holds every prompt and reply and the key of the
    masks, so 403 from a daemon without a token (`--no-auth`). One at a time. A body that breaks off is no backup.
    """
    if service.environment.token is None:
        told = "a backup is handed out for a token alone, and this daemon was started with --no-auth"
        raise Refused(HTTPStatus.FORBIDDEN, told)
    if service.alone["backup"].locked():
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "another backup is being handed out")
    if request.scope.get(HEAD):
        return Response(media_type=GZIP, headers=_HEADERS)
    parts = _parts(service)
    first = await anext(parts)  # what goes wrong by then is told as a problem
    return Archive(first, parts, _HEADERS)


async def _parts(service: Service) -> AsyncGenerator[bytes]:
    async with service.alone["backup"], aclosing(archive_chunks(service.environment)) as chunks:
        async for chunk in chunks:
            yield chunk


@router.post(
    "/prune", operation_id="prune", summary="Give up what is too old or too much",
    responses={200: {"model": Pruned}, **refusals(*WRITES)}, openapi_extra=takes(PruneBody),
)  # fmt: skip
async def prune(body: Prune, service: ServiceDep) -> Response:
    """As `prune --json` prints it. Sprints that are not finished, backlogs and the repository are never touched."""
    limits: dict[str, float | None] = {"days": body.days, "max_mb": body.max_mb}
    limits = {name: limit for name, limit in limits.items() if name in body.model_fields_set}
    done = await service.served.prune(limits, dry_run=body.dry_run)
    return await service.answer(lambda: done.model_dump(mode="json"))


@router.get(
    "/doctor", operation_id="doctor", summary="What a run needs where the daemon is",
    responses={200: {"model": Examined}, **refusals(*GUARDED, 422, 503)},
)  # fmt: skip
async def doctor(service: ServiceDep, sandbox: Sandbox = False) -> Response:
    """As `doctor --json` prints it there: keys are told as present or absent. With `sandbox` it takes a while; one look
    at a time.
    """
    if service.alone["doctor"].locked():
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "somebody is having a look already")
    async with service.alone["doctor"]:
        rows = await service.served.examine(sandbox=sandbox)
    told = [row.model_dump(mode="json") for row in rows]
    return await service.answer(lambda: {"ok": all(row.ok for row in rows), "rows": told})
