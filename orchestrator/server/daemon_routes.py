"""Routes about the daemon: whether it lives and can work, its metrics, its state, the backlogs that it watches, and
what is pruned."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from orchestrator.core.command import PruneBody
from orchestrator.core.daemon import BacklogState, DaemonState, Submitted
from orchestrator.core.errors import ConfigError
from orchestrator.core.sprint import Pruned
from orchestrator.core.story import id_problem
from orchestrator.daemon.backlog_watcher import plan_backlog
from orchestrator.server.access import AUTHORIZED
from orchestrator.server.limits import read_body
from orchestrator.server.metrics import CONTENT_TYPE
from orchestrator.server.models import Health, Id, Readiness
from orchestrator.server.openapi import GUARDED, NEEDS_NOTHING, WRITES, describe, list_refusals, make_document
from orchestrator.server.problems import JSON, Refused, dump_json
from orchestrator.server.service import ServiceDep
from orchestrator.sprint.dry_run import DryRun

health = APIRouter(tags=["health"])
router = APIRouter(prefix="/api/v1", tags=["daemon"])
keeping = APIRouter(prefix="/api/v1", tags=["keeping"])
Prune = Annotated[PruneBody, Depends(read_body(PruneBody))]
BacklogName = Annotated[Id, Path(description="Name of a backlog that was handed in")]
Form = Annotated[Literal["csv", "yaml", "json"], Query(alias="format", description="What the body is")]
_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@health.get("/healthz", openapi_extra=NEEDS_NOTHING, **describe("health", "Whether the process lives", Health))
async def healthz() -> Response:
    """Always 200 while the event loop turns."""
    return Response(dump_json({"status": "ok"}), media_type=JSON)


@health.get(
    "/readyz", operation_id="readiness", summary="Whether the daemon can work", openapi_extra=NEEDS_NOTHING,
    responses={200: {"model": Readiness}, 503: {"model": Readiness}, **list_refusals()},
)  # fmt: skip
async def readiness(request: Request, service: ServiceDep) -> Response:
    """200 when every component is fine, else 503. The reasons are shown only with a token."""
    found = await service.readiness.components()
    ready = not any(found.values())
    told: dict[str, Any] = {"ready": ready, "components": found}
    if request.scope.get(AUTHORIZED):
        # A waiting sprint does not make the daemon unready: everything else continues.
        told["waiting"] = {one.sprint: one.reason for one in service.daemon.state().sprints if one.reason}
    else:
        told["components"] = {name: "not ready" if why else "" for name, why in found.items()}
    return Response(dump_json(told), HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE, media_type=JSON)


@health.get(
    "/metrics", operation_id="metrics", summary="Counters and gauges for Prometheus", response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **list_refusals(401, 403)},
)  # fmt: skip
async def metrics(service: ServiceDep) -> Response:
    """In its text format; counters begin at zero with each process."""
    return Response(service.metrics.text(service.daemon.state(), service.feed.streams), media_type=CONTENT_TYPE)


@router.get(
    "/openapi.json", operation_id="openapi", summary="This document",
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}, **list_refusals(*GUARDED)},
)  # fmt: skip
async def openapi(request: Request, service: ServiceDep) -> Response:
    """As contracts/openapi.json."""
    return await service.answer(lambda: make_document(request.app), exact=True)


@router.get("/daemon", **describe("daemon", "The daemon at this moment", DaemonState, *GUARDED))
async def daemon(service: ServiceDep) -> Response:
    """Its phase, backlogs, sprints, and how much is at work."""
    state = service.daemon.state()
    return await service.answer(lambda: state.model_dump(mode="json"))


@router.get("/backlogs", **describe("backlogs", "The backlogs that are watched", list[BacklogState], *GUARDED))
async def backlogs(service: ServiceDep) -> Response:
    """With what is wrong where the present content is refused."""
    state = service.daemon.state()
    return await service.answer(lambda: [backlog.model_dump(mode="json") for backlog in state.backlogs])


@router.put(
    "/backlogs/{name}", operation_id="submit", summary="Hand a backlog in", openapi_extra=_FILE,
    responses={
        200: {"model": Submitted, "description": "In place of another content"},
        201: {"model": Submitted, "description": "New"},
        **list_refusals(*WRITES),
    },
)  # fmt: skip
async def submit(
    name: BacklogName,
    request: Request,
    service: ServiceDep,
    form: Form = "csv",
) -> Response:
    """The body is the file. It is validated before anything of it counts: 422 says what is wrong."""
    wrong = id_problem(name)
    if wrong:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name} cannot be a backlog's name: {wrong}")
    try:
        submitted = await service.daemon.submit(name, f".{form}", await request.body())
    except ConfigError as error:
        raise Refused(HTTPStatus.CONFLICT, error.message, error.findings) from error
    status = HTTPStatus.OK if submitted.replaced else HTTPStatus.CREATED
    return await service.answer(lambda: submitted.model_dump(mode="json"), status)


@router.post("/dry-run", openapi_extra=_FILE, **describe("dry_run", "What a backlog would come to", DryRun, *WRITES))
async def dry_run(
    request: Request,
    service: ServiceDep,
    form: Form = "csv",
    name: Annotated[Id, Query(description="What findings call the file")] = "backlog",
) -> Response:
    """The body is the file. Waves, problems and calls, as `run --dry-run` tells them; nothing is kept or spent."""
    settings, body = service.served.settings, await request.body()

    def told() -> dict[str, Any]:
        try:
            return plan_backlog(service.environment, settings, name, f".{form}", body).model_dump(mode="json")
        except ConfigError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, error.message, error.findings) from error

    return await service.answer(told)


@router.delete(
    "/backlogs/{name}", operation_id="withdraw", summary="Watch a backlog no more", status_code=HTTPStatus.NO_CONTENT,
    response_class=Response, responses={204: {"description": "It is not watched any more"}, **list_refusals(*WRITES)},
)  # fmt: skip
async def withdraw(name: BacklogName, service: ServiceDep) -> Response:
    """Sprints that it has started continue."""
    try:
        await service.daemon.withdraw(name)
    except ConfigError as error:
        raise Refused(HTTPStatus.NOT_FOUND, error.message, error.findings) from error
    return Response(status_code=HTTPStatus.NO_CONTENT)


@keeping.post("/prune", **describe("prune", "Delete what is too old", Pruned, *WRITES, takes=PruneBody))
async def prune(body: Prune, service: ServiceDep) -> Response:
    """As `prune --json` prints it. Sprints that are not finished, backlogs and the repository are never touched."""
    limits = {"days": body.days} if "days" in body.model_fields_set else {}
    done = await service.daemon.prune(limits, dry_run=body.dry_run)
    return await service.answer(lambda: done.model_dump(mode="json"))
