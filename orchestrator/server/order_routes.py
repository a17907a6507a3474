"""Routes by which people order and answer: the same functions as the commands', so that the first answer counts."""

import json
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.control import Settled, Verb
from orchestrator.domain.gate import Choice, GateAnswer
from orchestrator.domain.words import printable
from orchestrator.errors import ConfigError, UnknownName, WorkspaceError
from orchestrator.server.bodies import body_of
from orchestrator.server.models import AnswerBody, AnswerGiven, OrderBody, ReplanBody, Replanned
from orchestrator.server.openapi import WRITES, refusals, takes
from orchestrator.server.problems import Problem, Refused
from orchestrator.server.service import Service, ServiceDep
from orchestrator.server.sprint_routes import SprintId, StoryId
from orchestrator.sprint.answering import kept_comment
from orchestrator.sprint.plan_edit import read_edit
from orchestrator.wiring.control import order, reset_or_order
from orchestrator.wiring.gates import Asked, give, given_json, project, question, waits
from orchestrator.wiring.replanning import replan as replan_ended
from orchestrator.wiring.reset import reset_json

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
    await service.in_thread(service.reader.expect, sprint, story)
    comment = _kept(body.comment)
    settings, environment = service.served.settings, service.environment
    by = _who(body.by)
    try:
        if body.verb is Verb.RESET:
            done = await reset_or_order(environment, settings, story or sprint, sprint, by=by, comment=comment)
        else:
            done = await order(environment, settings, body.verb, sprint=sprint, story=story, by=by, comment=comment)
    except ConfigError as error:
        raise _conflict(error) from error
    return await service.answer(
        lambda: done.model_dump(mode="json"), HTTPStatus.OK if done.done else HTTPStatus.CONFLICT
    )


@router.post("/stories/{story}/answer", operation_id="answer", summary="Answer a story's question",
             responses=_GIVEN, openapi_extra=takes(AnswerBody))  # fmt: skip
async def answer(sprint: SprintId, story: StoryId, body: Answer, service: ServiceDep) -> Response:
    """As approve, reject, edit, replan and cancel do. The first answer counts.

    422: the plan of an edit is not accepted, with its findings. 409: nothing is asked that can be answered so.
    """
    return await _answer(service, sprint, story, body)


async def _answer(service: Service, sprint: str, story: str, body: AnswerBody) -> Response:
    await service.in_thread(service.reader.expect, sprint, story)
    comment = _kept(body.comment)
    if body.choice is Choice.REJECT and not comment:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "the comment is empty: say what is to change")
    try:
        asked = await service.in_thread(
            question, service.environment, story, body.choice, sprint=sprint, number=body.gate
        )
        plan = await _edited(service, asked, body)
        mine = GateAnswer(number=asked.gate.number, choice=body.choice, comment=comment, plan=plan, by=_who(body.by))
        given = await give(service.environment, asked, mine)
    except ConfigError as error:
        raise _conflict(error) from error
    return await service.answer(lambda: given_json(asked, given), HTTPStatus.OK if given.first else HTTPStatus.CONFLICT)


async def _edited(service: Service, asked: Asked, body: AnswerBody) -> Breakdown | None:
    """The plan of an edit. Raises Refused for one that is not accepted."""
    if body.choice is not Choice.EDIT:
        if body.plan is not None:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"{body.choice} takes no plan: that is what edit is for")
        return None
    if body.plan is None:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "edit needs the plan")
    text = body.plan if isinstance(body.plan, str) else json.dumps(body.plan)
    try:
        files, packages = await project(service.environment, asked)
    except WorkspaceError as error:
        raise Refused(HTTPStatus.CONFLICT, error.message) from error
    edited = await service.in_thread(read_edit, text, asked.story, files, packages)
    if not edited.accepted(force=body.force):
        why = f"cannot be carried out: {edited.barred}" if edited.barred else "has something major against it"
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"nothing was answered: the plan {why}", edited.findings)
    return edited.plan


@router.post("/stories/{story}/replan", operation_id="replan", summary="Have a story planned from the start",
             openapi_extra=takes(ReplanBody),
             responses={**_GIVEN, 200: {"model": AnswerGiven | Replanned}})  # fmt: skip
async def replan(sprint: SprintId, story: StoryId, body: Replan, service: ServiceDep) -> Response:
    """One that waits for a person is answered so; one that ended without being done needs a comment."""
    await service.in_thread(service.reader.expect, sprint, story)
    if body.gate is not None or await service.in_thread(waits, service.environment, story, sprint):
        choice = AnswerBody(choice=Choice.REPLAN, comment=body.comment, gate=body.gate, by=body.by)
        return await _answer(service, sprint, story, choice)
    comment = _kept(body.comment)
    try:
        settings, environment, by = service.served.settings, service.environment, _who(body.by)
        done = await replan_ended(story, sprint, settings, environment, comment=comment, by=by)
    except ConfigError as error:
        raise _conflict(error) from error
    return await service.answer(lambda: reset_json(done))


def _kept(comment: str) -> str:
    try:
        return kept_comment(comment)
    except ConfigError as error:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, error.message) from error


def _who(by: str) -> str:
    """One line; the log says who it was, and nobody vouches for it."""
    return " ".join(printable(by, keep="").split()) or SOMEBODY


def _conflict(error: ConfigError) -> Exception:
    return error if isinstance(error, UnknownName) else Refused(HTTPStatus.CONFLICT, error.message, error.findings)
