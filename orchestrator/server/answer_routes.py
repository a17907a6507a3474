"""Routes that read and judge an answer by hand, as `extract` and `check` do; nothing is written and nothing run."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from orchestrator.answers import extract
from orchestrator.app.cases import schema_of
from orchestrator.app.judge import CheckOptions, check, check_any_plan, judged_json
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.server.limits import read_body
from orchestrator.server.models import CheckBody, Checked, ExtractBody, Extracted
from orchestrator.server.openapi import WRITES, describe
from orchestrator.server.problems import Refused
from orchestrator.server.service import ServiceDep

router = APIRouter(prefix="/api/v1", tags=["answers"])
Extract = Annotated[ExtractBody, Depends(read_body(ExtractBody))]
Check = Annotated[CheckBody, Depends(read_body(CheckBody))]
Kind = Annotated[Literal["breakdown", "plan", "delivery", "suite"], Path(description="What the answer is")]


@router.post(
    "/extract", **describe("extract", "The value inside a model's text", Extracted, *WRITES, takes=ExtractBody)
)
async def extract_route(body: Extract, service: ServiceDep) -> Response:
    """As `extract --json` prints it: `status` says whether it is whole, and `problems` why it is not."""

    def extracted() -> dict[str, Any]:
        schema = schema_of(body.contract) if body.contract is not None else None
        found = extract(body.text, schema)
        return {"value": found.value} | found.model_dump(mode="json", exclude={"value"})

    return await service.answer(extracted, exact=True, alone=True)


@router.post(
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
