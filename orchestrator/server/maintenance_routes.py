"""Routes for the state folder of a daemon: what is pruned."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from orchestrator.core.command import PruneBody
from orchestrator.core.sprint import Pruned
from orchestrator.server.limits import read_body
from orchestrator.server.openapi import WRITES, describe
from orchestrator.server.service import ServiceDep

router = APIRouter(prefix="/api/v1", tags=["keeping"])
Prune = Annotated[PruneBody, Depends(read_body(PruneBody))]


@router.post("/prune", **describe("prune", "Delete what is too old", Pruned, *WRITES, takes=PruneBody))
async def prune(body: Prune, service: ServiceDep) -> Response:
    """As `prune --json` prints it. Sprints that are not finished, backlogs and the repository are never touched."""
    limits = {"days": body.days} if "days" in body.model_fields_set else {}
    done = await service.daemon.prune(limits, dry_run=body.dry_run)
    return await service.answer(lambda: done.model_dump(mode="json"))
