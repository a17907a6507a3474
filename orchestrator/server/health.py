"""`/healthz`: the process lives; `/readyz`: it can work; `/metrics`."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from orchestrator.server.access import AUTHORIZED
from orchestrator.server.metrics import CONTENT_TYPE
from orchestrator.server.models import Health, Readiness
from orchestrator.server.openapi import NEEDS_NOTHING, refusals
from orchestrator.server.problems import JSON, dumped
from orchestrator.server.service import ServiceDep

router = APIRouter(tags=["health"])


@router.get(
    "/healthz", operation_id="health", summary="Whether the process lives", openapi_extra=NEEDS_NOTHING,
    responses={200: {"model": Health}, **refusals()},
)  # fmt: skip
async def health() -> Response:
    """Always 200 while the event loop turns."""
    return Response(dumped({"status": "ok"}), media_type=JSON)


@router.get(
    "/readyz", operation_id="readiness", summary="Whether the daemon can work", openapi_extra=NEEDS_NOTHING,
    responses={200: {"model": Readiness}, 503: {"model": Readiness}, **refusals()},
)  # fmt: skip
async def readiness(request: Request, service: ServiceDep) -> Response:
    """200 when every component is fine, else 503. Why one is not is told to those who may know."""
    found = await service.readiness.components()
    ready = not any(found.values())
    told: dict[str, Any] = {"ready": ready, "components": found}
    if request.scope.get(AUTHORIZED):
        # A sprint that waits is no reason to be unready: everything else goes on.
        told["waiting"] = {one.sprint: one.reason for one in service.served.state().sprints if one.reason}
    else:
        told["components"] = {name: "not ready" if why else "" for name, why in found.items()}
    return Response(dumped(told), HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE, media_type=JSON)


@router.get(
    "/metrics", operation_id="metrics", summary="Counters and gauges for Prometheus", response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **refusals(401, 403)},
)  # fmt: skip
async def metrics(service: ServiceDep) -> Response:
    """In its text format; counters begin at zero with each process."""
    return Response(service.metrics.text(service.served.state(), service.feed.streams), media_type=CONTENT_TYPE)
