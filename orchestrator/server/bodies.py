"""JSON bodies: read in a thread, since a large one takes long to parse."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from orchestrator.server.problems import JSON, Refused, told_of
from orchestrator.server.service import ServiceDep

B = TypeVar("B", bound=BaseModel)


def body_of(model: type[B]) -> Callable[[Request, ServiceDep], Awaitable[B]]:
    """A dependency: the body as this model. Raises Refused for what is none.

    Other content types are refused: a form of a foreign web page may send them without being asked back.
    """

    async def read(request: Request, service: ServiceDep) -> B:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body is to be {JSON}")
        raw = await request.body()
        try:
            return await service.in_thread(model.model_validate_json, raw)
        except ValidationError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, told_of(error.errors())) from None

    return read
