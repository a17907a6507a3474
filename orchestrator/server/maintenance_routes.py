"""Routes for the state folder of a daemon: what is pruned, what its machine lacks."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from orchestrator.core.command import PruneBody
from orchestrator.core.sprint import Pruned
from orchestrator.server.limits import read_body
from orchestrator.server.models import Examined
from orchestrator.server.openapi import GUARDED, WRITES, describe
from orchestrator.server.problems import Refused
from orchestrator.server.service import ServiceDep

router = APIRouter(prefix="/api/v1", tags=["keeping"])
Prune = Annotated[PruneBody, Depends(read_body(PruneBody))]
Sandbox = Annotated[bool, Query(description="true: a hundred harmless hostile actions are tried in every tier as well")]


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
