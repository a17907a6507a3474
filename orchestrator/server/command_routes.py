"""Routes by which people give commands and answers: the same functions as the command line's, so the first counts."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from orchestrator.app.commands import SprintCommands
from orchestrator.core.command import AnswerBody, OrderBody, ReplanBody, Settled
from orchestrator.core.errors import ConfigError, RequestRefused, UnknownName, WorkspaceError
from orchestrator.core.value import printable
from orchestrator.server.limits import body_of
from orchestrator.server.models import AnswerGiven, Replanned
from orchestrator.server.openapi import WRITES, refusals, takes
from orchestrator.server.problems import Problem, Refused
from orchestrator.server.service import Service, ServiceDep
from orchestrator.server.sprint_routes import SprintId, StoryId

router = APIRouter(prefix="/api/v1/sprints/{sprint}", tags=["orders"])
SOMEBODY = "somebody over HTTP"
OrderGiven = Annotated[OrderBody, Depends(body_of(OrderBody))]
Answer = Annotated[AnswerBody, Depends(body_of(AnswerBody))]
Replan = Annotated[ReplanBody, Depends(body_of(ReplanBody))]
_SETTLED: dict[int | str, dict[str, Any]] = {
    **refusals(*WRITES),
    200: {"model": Settled},
    409: {"model": Settled | Problem, "description": "It was refused"},
}
_GIVEN: dict[int | str, dict[str, Any]] = {
    **refusals(*WRITES),
    200: {"model": AnswerGiven},
    409: {"model": AnswerGiven | Problem, "description": "Nothing is asked, or the answer that came before counts"},
}


@router.post("/orders", operation_id="order_sprint", summary="Order something of a sprint", responses=_SETTLED,
             openapi_extra=takes(OrderBody))  # fmt: skip
async def order_sprint(sprint: SprintId, body: OrderGiven, service: ServiceDep) -> Response:
    """Pause, resume, cancel, retry or reset it; the answer comes when that is settled."""
    return await _order(service, body, sprint, None)


@router.post("/stories/{story}/orders", operation_id="order_story", summary="Order something of a story",
             responses=_SETTLED, openapi_extra=takes(OrderBody))  # fmt: skip
async def order_story(sprint: SprintId, story: StoryId, body: OrderGiven, service: ServiceDep) -> Response:
    """Pause, resume, cancel, retry, replan or reset it; the answer comes when that is settled."""
    return await _order(service, body, sprint, story)


async def _order(service: Service, body: OrderBody, sprint: str, story: str | None) -> Response:
    async with _commands(service, sprint, story) as commands:
        done = await commands.order(sprint, story, body.model_copy(update={"by": _who(body.by)}))
    return await _answered(service, lambda: done.model_dump(mode="json"), good=done.done)


@router.post("/stories/{story}/answer", operation_id="answer", summary="Answer a story's question",
             responses=_GIVEN, openapi_extra=takes(AnswerBody))  # fmt: skip
async def answer(sprint: SprintId, story: StoryId, body: Answer, service: ServiceDep) -> Response:
    """As approve, reject, edit, replan and cancel do. The first answer counts.

    422: the plan of an edit is not accepted, with its findings. 409: nothing is asked that can be answered so.
    """
    async with _commands(service, sprint, story) as commands:
        given = await commands.answer(sprint, story, body.model_copy(update={"by": _who(body.by)}))
    return await _answered(service, lambda: given, good=given["counts"])


@router.post("/stories/{story}/replan", operation_id="replan", summary="Have a story planned from the start",
             openapi_extra=takes(ReplanBody),
             responses={**_GIVEN, 200: {"model": AnswerGiven | Replanned}})  # fmt: skip
async def replan(sprint: SprintId, story: StoryId, body: Replan, service: ServiceDep) -> Response:
    """One that waits for a person is answered so; one that ended without being done needs a comment."""
    async with _commands(service, sprint, story) as commands:
        done = await commands.replan(sprint, story, body.model_copy(update={"by": _who(body.by)}))
    return await _answered(service, lambda: done, good=done.get("counts", True))


@asynccontextmanager
async def _commands(service: Service, sprint: str, story: str | None) -> AsyncIterator[SprintCommands]:
    """Hands out what gives commands; what it refuses ends the request with the status that says why."""
    await service.in_thread(service.reader.expect, sprint, story)
    try:
        yield SprintCommands(service.environment, service.served.settings)
    except UnknownName:
        raise
    except RequestRefused as error:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, error.message, error.findings) from error
    except (ConfigError, WorkspaceError) as error:
        raise Refused(HTTPStatus.CONFLICT, error.message, error.findings) from error


async def _answered(service: Service, build: Callable[[], Any], *, good: bool) -> Response:
    return await service.answer(build, HTTPStatus.OK if good else HTTPStatus.CONFLICT)


def _who(by: str) -> str:
    """One line for the log; nothing proves that it is true."""
    return " ".join(printable(by, keep="").split()) or SOMEBODY
