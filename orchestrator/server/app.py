"""The daemon's HTTP interface as one application."""

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Path
from starlette.responses import Response

from orchestrator import __version__
from orchestrator.answers import extract
from orchestrator.app.cases import schema_of
from orchestrator.app.judge import CheckOptions, check, check_any_plan, judged_json
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.server import (
    analysis_routes,
    board_routes,
    daemon_routes,
    events,
    maintenance_routes,
    sprint_routes,
)
from orchestrator.server.access import LOGIN, Access
from orchestrator.server.limits import BodyLimit, ResponseHeaders, read_body
from orchestrator.server.login import BODY_BYTES
from orchestrator.server.metrics import Metrics
from orchestrator.server.models import CheckBody, Checked, ExtractBody, Extracted
from orchestrator.server.openapi import WRITES, describe
from orchestrator.server.problems import Refused, handle_problems
from orchestrator.server.service import Service, ServiceDep, Viewer

if TYPE_CHECKING:
    from orchestrator.daemon.serve import Daemon

ANSWERS = ("/api/v1/extract", "/api/v1/check/")
"""Paths where a model's text is read: slow by the megabyte, and meanwhile everything else is slower."""


def build_app(served: "Daemon | Viewer", metrics: Metrics | None = None) -> FastAPI:
    """Returns everything that is answered over HTTP; `metrics` are those that the daemon's events are fed to.

    Requests need the token of `served.environment`, if it has one. Needs no start: what it begins in the background
    ends with `listen.serve_http`, or with `get_service(app).close()`.
    """
    app = make_routes()
    app.state.service = Service(served, metrics or Metrics())
    handle_problems(app)
    # The last one added is the first one asked.
    app.add_middleware(BodyLimit, limit=partial(_body_limit, served))
    app.add_middleware(Access, token=served.environment.token)
    app.add_middleware(ResponseHeaders)
    return app


def _body_limit(served: "Daemon | Viewer", path: str) -> tuple[int, str]:
    """Returns the bytes that a body for this path may have, and the setting that says so."""
    if path == LOGIN:  # anybody may send one
        return BODY_BYTES, "a login"
    limits = served.settings.serve
    whole = (limits.body_limit_kb * 1024, "serve.body_limit_kb")
    return min(whole, (limits.answer_limit_kb * 1024, "serve.answer_limit_kb")) if path.startswith(ANSWERS) else whole


def make_routes() -> FastAPI:
    """Returns the routes alone, for their OpenAPI document."""
    # No page of documentation: those load scripts of others.
    app = FastAPI(
        title="Sprint Orchestrator",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in (
        daemon_routes.health,
        daemon_routes.router,
        sprint_routes.router,
        sprint_routes.orders,
        analysis_routes.router,
        events.router,
        maintenance_routes.router,
        answers,
        board_routes.router,
    ):
        app.include_router(router)
    return app


# ---- reading and judging an answer by hand, as `extract` and `check` do: nothing is written and nothing run

answers = APIRouter(prefix="/api/v1", tags=["answers"])
Extract = Annotated[ExtractBody, Depends(read_body(ExtractBody))]
Check = Annotated[CheckBody, Depends(read_body(CheckBody))]
Kind = Annotated[Literal["breakdown", "plan", "delivery", "suite"], Path(description="What the answer is")]


@answers.post(
    "/extract", **describe("extract", "The value inside a model's text", Extracted, *WRITES, takes=ExtractBody)
)
async def extract_route(body: Extract, service: ServiceDep) -> Response:
    """As `extract --json` prints it: `status` says whether it is whole, and `problems` why it is not."""

    def extracted() -> dict[str, Any]:
        schema = schema_of(body.contract) if body.contract is not None else None
        found = extract(body.text, schema)
        return {"value": found.value} | found.model_dump(mode="json", exclude={"value"})

    return await service.answer(extracted, exact=True, alone=True)


@answers.post(
    "/check/{kind}",
    **describe("check", "What the checks of a run say about an answer", Checked, *WRITES, takes=CheckBody),
)
async def check_route(kind: Kind, body: Check, service: ServiceDep) -> Response:
    """As `check --json` prints it, without a repository: nothing of the daemon's machine is looked at."""

    def checked() -> dict[str, Any]:
        try:
            options = CheckOptions(story=body.story, context=body.context, plan=body.breakdown, file=body.file)
            if kind != "plan":
                return judged_json(check(kind, body.text, options))
            which, judged = check_any_plan(body.text, options)
            return {"kind": which.value, **judged_json(judged)}
        except UnknownName:
            raise
        except ConfigError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, error.message, error.findings) from error

    return await service.answer(checked, alone=True)
