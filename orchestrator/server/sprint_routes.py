"""Routes about sprints and stories: what the record says, and commands and answers; the same functions as the command
line's, so the first counts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from orchestrator.app.commands import SprintCommands
from orchestrator.core.command import AnswerBody, OrderBody, ReplanBody, Settled
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.errors import ConfigError, RequestRefused, UnknownName, WorkspaceError
from orchestrator.core.value import printable
from orchestrator.records.sprint_reader import SprintView
from orchestrator.records.views import read_contract, sprint_json, story_json
from orchestrator.reports.path import as_data, of_story
from orchestrator.server.limits import read_body
from orchestrator.server.models import AnswerGiven, Id, Replanned, SprintShown, StoryShown
from orchestrator.server.openapi import READS, WRITES, describe, describe_body, list_refusals
from orchestrator.server.problems import Problem, Refused
from orchestrator.server.service import Service, ServiceDep

router = APIRouter(prefix="/api/v1/sprints", tags=["sprints"])
orders = APIRouter(prefix="/api/v1/sprints/{sprint}", tags=["orders"])
SprintId = Annotated[Id, Path(description="A sprint's id")]
StoryId = Annotated[Id, Path(description="A story's id")]
Full = Annotated[bool, Query(description="true: the timeline holds every event, not only what was decided")]
Having = Annotated[Id | None, Query(description="Only sprints with this story")]
Most = Annotated[int, Query(ge=1, le=1000, description="So many of the latest")]
MARKDOWN = "text/markdown"


@router.get("", **describe("sprints", "The latest sprints, the newest last", list[SprintShown], *READS))
async def sprints(service: ServiceDep, limit: Most = 50, story: Having = None) -> Response:
    """Each as `status --json` prints it. 404: no sprint has the story."""
    return await service.answer(lambda: [sprint_json(view) for view in service.reader.latest(limit, story=story)])


@router.get("/{sprint}", **describe("sprint", "A sprint", SprintShown, *READS))
async def sprint_route(sprint: SprintId, service: ServiceDep) -> Response:
    """The object of report.json as it is now, who works on the sprint, and which stories wait for a person."""
    return await service.answer(lambda: sprint_json(service.reader.sprint(sprint)))


@router.get(
    "/{sprint}/report", operation_id="report", summary="A sprint's report for people", response_class=Response,
    responses={200: {"content": {MARKDOWN: {"schema": {"type": "string"}}}}, **list_refusals(*READS)},
)  # fmt: skip
async def report(sprint: SprintId, service: ServiceDep) -> Response:
    """In Markdown, as it is now."""
    text = await service.in_thread(_report, service, sprint)
    return Response(text, media_type=MARKDOWN)


def _report(service: Service, sprint: str) -> bytes:
    return service.reader.markdown(service.reader.sprint(sprint)).encode("utf-8", "replace")


@router.get("/{sprint}/stories/{story}", **describe("story", "A story", StoryShown, *READS))
async def story_route(sprint: SprintId, story: StoryId, service: ServiceDep, full: Full = False) -> Response:
    """As `show --json` prints it."""
    view = await service.in_thread(service.reader.story, sprint, story)
    stat = await service.reader.diff_stat(view.record, story)
    return await service.answer(lambda: _shown(view, story, stat, full))


def _shown(view: SprintView, story: str, stat: str, full: bool) -> dict[str, Any]:
    drawn = of_story(view.histories[story], running=view.is_running, full=full, orders=view.events)
    return {**story_json(view, story, stat), "timeline": as_data(drawn)}


@router.get(
    "/{sprint}/stories/{story}/contract", **describe("contract", "A story's contract", ArchitectureContract, *READS)
)
async def contract(sprint: SprintId, story: StoryId, service: ServiceDep) -> Response:
    """The files and packages its developer may use, as in contracts/architecture.schema.json. 404: it has none."""
    view = await service.in_thread(service.reader.story, sprint, story)
    return await service.answer(lambda: _contract(view, story), exact=True)


def _contract(view: SprintView, story: str) -> dict[str, Any]:
    try:
        return read_contract(view, story).model_dump(mode="json")
    except ConfigError as error:
        raise UnknownName(error.message) from error


SOMEBODY = "somebody over HTTP"
OrderGiven = Annotated[OrderBody, Depends(read_body(OrderBody))]
Answer = Annotated[AnswerBody, Depends(read_body(AnswerBody))]
Replan = Annotated[ReplanBody, Depends(read_body(ReplanBody))]
_SETTLED: dict[int | str, dict[str, Any]] = {
    **list_refusals(*WRITES),
    200: {"model": Settled},
    409: {"model": Settled | Problem, "description": "It was refused"},
}
_GIVEN: dict[int | str, dict[str, Any]] = {
    **list_refusals(*WRITES),
    200: {"model": AnswerGiven},
    409: {"model": AnswerGiven | Problem, "description": "Nothing is asked, or the answer that came before counts"},
}


@orders.post("/orders", operation_id="order_sprint", summary="Order something of a sprint", responses=_SETTLED,
             openapi_extra=describe_body(OrderBody))  # fmt: skip
async def order_sprint(sprint: SprintId, body: OrderGiven, service: ServiceDep) -> Response:
    """Pause, resume, cancel, retry or reset it; the answer comes when that is settled."""
    return await _order(service, body, sprint, None)


@orders.post("/stories/{story}/orders", operation_id="order_story", summary="Order something of a story",
             responses=_SETTLED, openapi_extra=describe_body(OrderBody))  # fmt: skip
async def order_story(sprint: SprintId, story: StoryId, body: OrderGiven, service: ServiceDep) -> Response:
    """Pause, resume, cancel, retry, replan or reset it; the answer comes when that is settled."""
    return await _order(service, body, sprint, story)


async def _order(service: Service, body: OrderBody, sprint: str, story: str | None) -> Response:
    with _commands(service) as commands:
        done = await commands.order(sprint, story, body.model_copy(update={"by": _who(body.by)}))
    return await _answered(service, lambda: done.model_dump(mode="json"), good=done.done)


@orders.post("/stories/{story}/answer", operation_id="answer", summary="Answer a story's question",
             responses=_GIVEN, openapi_extra=describe_body(AnswerBody))  # fmt: skip
async def answer(sprint: SprintId, story: StoryId, body: Answer, service: ServiceDep) -> Response:
    """As approve, reject, edit, replan and cancel do. The first answer counts.

    422: the plan of an edit is not accepted, with its findings. 409: nothing is asked that can be answered so.
    """
    with _commands(service) as commands:
        given = await commands.answer(sprint, story, body.model_copy(update={"by": _who(body.by)}))
    return await _answered(service, lambda: given, good=given["counts"])


@orders.post("/stories/{story}/replan", operation_id="replan", summary="Have a story planned from the start",
             openapi_extra=describe_body(ReplanBody),
             responses={**_GIVEN, 200: {"model": AnswerGiven | Replanned}})  # fmt: skip
async def replan(sprint: SprintId, story: StoryId, body: Replan, service: ServiceDep) -> Response:
    """One that waits for a person is answered so; one that ended without being done needs a comment."""
    with _commands(service) as commands:
        done = await commands.replan(sprint, story, body.model_copy(update={"by": _who(body.by)}))
    return await _answered(service, lambda: done, good=done.get("counts", True))


@contextmanager
def _commands(service: Service) -> Iterator[SprintCommands]:
    """Hands out what gives commands; what it refuses ends the request with the status that says why."""
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
    """Returns one line for the log; nothing proves that it is true."""
    return " ".join(printable(by, keep="").split()) or SOMEBODY
