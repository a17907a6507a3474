"""`/api/v1/events`: the log as server-sent events, from any point on, without loss or duplicates."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import BeforeValidator
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Level
from orchestrator.records.logs import LogQuery
from orchestrator.server.limits import send_until_gone
from orchestrator.server.models import Id
from orchestrator.server.openapi import READS, list_refusals
from orchestrator.server.problems import JSON, Refused
from orchestrator.server.service import Service, ServiceDep
from orchestrator.storage.event_reader import HIGHEST

router = APIRouter(prefix="/api/v1", tags=["events"])
LOG = logging.getLogger("orchestrator.server")
SSE = "text/event-stream"
Number = Annotated[int, Query(ge=0, le=HIGHEST, description="Only what lies behind this number")]
Last = Annotated[str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,18}$", description="As `after`, and before it")]
Name = Annotated[str | None, Query(max_length=200)]


def _iso(text: object) -> object:
    """Parses a text as ISO 8601 only: pydantic would also accept a number, as seconds since 1970."""
    return datetime.fromisoformat(text) if isinstance(text, str) else text


Since = Annotated[
    Annotated[datetime, BeforeValidator(_iso)] | None, Query(description="ISO 8601; UTC unless it says otherwise")
]
_EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$", "description": "The event's number in the log"},
        "event": {"const": "log"},
        "data": {"type": "string", "contentMediaType": JSON, "description": "One log line, with `seq`"},
    },
    "required": ["id", "event", "data"],
}
_HEADERS = {"x-accel-buffering": "no"}
"""Proxies hand on what comes at once."""


@router.get(
    "/events", operation_id="events", summary="Events as they are recorded", response_class=Response,
    responses={
        200: {"content": {SSE: {"schema": _EVENT}}, "description": "Server-sent events"},
        **list_refusals(*READS),
    },
)  # fmt: skip
async def events(
    service: ServiceDep,
    after: Number = 0,
    sprint: Annotated[Id | None, Query()] = None,
    story: Name = None,
    task: Name = None,
    persona: Name = None,
    level: Annotated[Level | None, Query(description="This and above; else log.level")] = None,
    since: Since = None,
    tail: Annotated[
        int | None, Query(ge=1, le=HIGHEST, description="Only the last so many of those before; not for a last id")
    ] = None,
    follow: Annotated[bool, Query(description="false: end with what is there now")] = True,
    last_event_id: Last = "",
) -> Response:
    """Each has the event's number as its id and a log line as its data, with `seq`; whoever comes back with the last
    id misses nothing and gets nothing twice. A comment is sent when there was nothing to tell for a while.
    """
    query = LogQuery(
        sprint=sprint, story=story, task=task, persona=persona, since=_aware(since), tail=tail,
        level=level or Level(service.served.settings.log.level),
    )  # fmt: skip
    await service.in_thread(_expect, service, query, follow)
    chunks = service.feed.chunks(
        int(last_event_id or after), query.sprint, query.wants, follow=follow,
        tail=query.tail if not int(last_event_id or 0) else None,
        heartbeat_s=lambda: service.served.settings.serve.heartbeat_s,
    )  # fmt: skip
    return EventStream(service, chunks)


def _aware(time: datetime | None) -> datetime | None:
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)


def _expect(service: Service, query: LogQuery, follow: bool) -> None:
    """Raises UnknownName for a name that is not there; a story that is followed may come yet."""
    if query.sprint is not None:
        service.reader.expect_run(query.sprint)
    if query.story is not None and not follow:
        service.reader.expect_story(query.story, query.sprint)


class EventStream(Response):
    """Sends chunks until the client leaves, there are no more, or the daemon ends."""

    media_type = SSE

    def __init__(self, service: Service, chunks: AsyncGenerator[bytes]) -> None:
        """Raises Refused when there are too many streams."""
        if service.feed.streams >= service.most_streams:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{service.feed.streams} streams are open, which is the most")
        super().__init__(None, headers=_HEADERS)
        del self.headers["content-length"]
        self._service, self._chunks = service, chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        with self._service.feed.stream():
            await send_until_gone(self._tell(send), receive)
        await send({"type": "http.response.body", "body": b""})

    async def _tell(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            try:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except ConfigError as error:  # a follower comes back with the last id
                LOG.warning("a stream of events ends: %s", error.message)
