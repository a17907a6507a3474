"""Routes by which the daemon's repository is analysed: what `analyse` does, where the daemon is."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from orchestrator.analysis.store import AnalysisStore
from orchestrator.core.analysis import AnalysisRequest, AnalysisState, AnalysisView
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.server.limits import read_body
from orchestrator.server.models import Id
from orchestrator.server.openapi import GUARDED, READS, WRITES, describe
from orchestrator.server.problems import Refused
from orchestrator.server.service import ServiceDep

router = APIRouter(prefix="/api/v1/analyses", tags=["analyses"])
AnalysisId = Annotated[Id, Path(description="An analysis's id")]
Asked = Annotated[AnalysisRequest, Depends(read_body(AnalysisRequest))]


@router.post(
    "",
    status_code=HTTPStatus.ACCEPTED,
    **describe(
        "analyse",
        "Begin an analysis of the daemon's repository",
        AnalysisState,
        *WRITES,
        status=202,
        takes=AnalysisRequest,
    ),
)
async def analyse(body: Asked, service: ServiceDep) -> Response:
    """It is kept first, then carried out beside the sprints, also over restarts. 409: another one is at work."""
    try:
        state = await service.daemon.analyses.begin(body)
    except ConfigError as error:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, error.message, error.findings) from error
    return await service.answer(lambda: state.model_dump(mode="json"), HTTPStatus.ACCEPTED)


@router.get(
    "", **describe("analyses", "The analyses of the state folder, the newest last", list[AnalysisState], *GUARDED, 503)
)
async def analyses(service: ServiceDep) -> Response:
    """Those that the daemon was asked for, and those of the command."""
    jobs = AnalysisStore(service.environment, asked=True)
    return await service.answer(lambda: [state.model_dump(mode="json") for state in jobs.states()])


@router.get("/{analysis}", **describe("analysis", "An analysis, and what it has come to", AnalysisView, *READS))
async def analysis_route(analysis: AnalysisId, service: ServiceDep) -> Response:
    """Its status, the location of its files, and their texts up to 4 MB each."""
    jobs = AnalysisStore(service.environment, asked=True)
    return await service.answer(lambda: jobs.view(analysis).model_dump(mode="json"))


# No DELETE: what it has come to stays to be read.
@router.post(
    "/{analysis}/cancel", **describe("cancel_analysis", "End an analysis that is at work", AnalysisState, *WRITES)
)
async def cancel(analysis: AnalysisId, service: ServiceDep) -> Response:
    """Paid results are kept: a request with its id resumes it. 409: it is not running."""
    try:
        state = await service.daemon.analyses.cancel(analysis)
    except UnknownName as error:
        raise Refused(HTTPStatus.NOT_FOUND, error.message, error.findings) from error
    return await service.answer(lambda: state.model_dump(mode="json"))
