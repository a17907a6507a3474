"""The board: pages for browsers, their files, login, and the stream that keeps a page live."""

import asyncio
import inspect
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from orchestrator.board import logs
from orchestrator.board.cards import Cards
from orchestrator.board.changes_page import Asked, StoryChanges
from orchestrator.board.gates import read_branch, show_gate, show_gates
from orchestrator.board.story_page import StoryPage
from orchestrator.board.submit_page import show_backlogs
from orchestrator.board.templates import read_static, render
from orchestrator.core.event import Level
from orchestrator.core.secrets import redact, redacted
from orchestrator.server.events import EventStream, Last, Number
from orchestrator.server.feed import HEARTBEAT
from orchestrator.server.login import (
    LASTS_S,
    cookie_name,
    is_same_origin,
    is_token,
    make_session,
    path_within,
)
from orchestrator.server.models import Id
from orchestrator.server.service import Service, ServiceDep, Viewer

router = APIRouter(include_in_schema=False)
Values = Mapping[str, Any]
_MEDIA = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
GAP_S = 0.2
"""Between two fragments, at most: what comes meanwhile is drawn once."""
LOOK_S = 3.0
"""Between two looks whether a process still works on a sprint, while nothing is recorded; each shows that the process
lives."""
_LOGIN_FIELDS = 8
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
"""Of files whose address names the version."""


async def page(service: Service, template: str, build: Callable[[], Values | Awaitable[Values]]) -> HTMLResponse:
    """Returns a page: the template with the values that `build` returns, without what looks like a secret.

    `build` runs in a thread, unless it is a coroutine function.
    """
    values = await build() if inspect.iscoroutinefunction(build) else await service.in_thread(build)
    return HTMLResponse(await service.in_thread(lambda: render(template, redacted(values, service.secrets))))


@router.get("/")
async def root(service: ServiceDep) -> Response:
    """The latest sprint; without any, where a backlog is submitted, or where the first sprint appears."""
    latest = await service.in_thread(service.reader.latest_name)
    empty = "/sprints" if isinstance(service.served, Viewer) else "/submit"
    return RedirectResponse(f"/sprints/{quote(latest)}" if latest else empty, HTTPStatus.SEE_OTHER)


@router.get("/sprints/{sprint}")
async def sprint_page(sprint: Id, service: ServiceDep) -> Response:
    """A sprint's stories as cards."""

    def build() -> Values:
        view = service.boards.look(sprint)
        return Cards(view).page(view.place)

    return await page(service, "sprint.html", build)


@router.get("/sprints")
async def sprints_page(service: ServiceDep) -> Response:
    """All sprints, and how they go over time."""
    return await page(service, "sprints.html", service.throughput.values)


@router.get("/logs")
async def logs_page(request: Request, service: ServiceDep) -> Response:
    """Lines of the log."""
    settings, given = service.served.settings.log, dict(request.query_params)
    level, cap = Level(settings.level), settings.text_cap
    return await page(service, "logs.html", lambda: logs.values(service.reader, given, level=level, text_cap=cap))


@router.get("/sprints/{sprint}/stories/{story}")
async def story_page(sprint: Id, story: Id, service: ServiceDep) -> Response:
    """A story with all that is recorded of it."""

    def build() -> Values:
        view = service.boards.look(sprint)
        return StoryPage(service.reader, view, story).values(view.place)

    return await page(service, "story.html", build)


@router.get("/sprints/{sprint}/stories/{story}/calls/{call}")
async def call_page(sprint: Id, story: Id, call: Id, service: ServiceDep) -> Response:
    """One call of a model: prompt and answer whole."""

    def build() -> Values:
        view = service.boards.look(sprint)
        return StoryPage(service.reader, view, story).call(call)

    return await page(service, "call.html", build)


@router.get("/sprints/{sprint}/stories/{story}/calls/{call}/{part}.txt")
async def call_text(
    sprint: Id, story: Id, call: Id, part: Literal["prompt", "answer"], service: ServiceDep
) -> Response:
    """The prompt or the answer alone, however long."""

    def build() -> bytes:
        view = service.boards.look(sprint)
        text = StoryPage(service.reader, view, story).call_text(call, part)
        return redact(text, service.secrets).encode("utf-8", "replace")

    return PlainTextResponse(await service.in_thread(build))


Part = Annotated[str, Query(max_length=4096)]


async def _asked(sprint: Id, story: Id, task: Part = "", since: Part = "", until: Part = "", file: Part = "") -> Asked:
    return Asked(sprint=sprint, story=story, task=task, since=since, until=until, file=file)


ChangesAsked = Annotated[Asked, Depends(_asked)]


@router.get("/sprints/{sprint}/stories/{story}/diff")
async def diff_page(asked: ChangesAsked, service: ServiceDep) -> Response:
    """What a story has changed, or one of its tasks."""
    return await page(service, "diff.html", StoryChanges(service.reader, service.in_thread, asked).values)


@router.get("/sprints/{sprint}/stories/{story}/diff.txt")
async def diff_text(asked: ChangesAsked, service: ServiceDep) -> Response:
    """The same as git's patch."""
    patch = await StoryChanges(service.reader, service.in_thread, asked).patch(service.secrets)
    return PlainTextResponse(patch.encode("utf-8", "replace"))


@router.get("/gates")
async def gates_page(service: ServiceDep) -> Response:
    """The open questions of all sprints."""

    def build() -> Values:
        # First: what is recorded while the sprints are read changes the page once more.
        place = service.reader.head()
        return show_gates(service.boards.unfinished(), datetime.now(UTC)) | {"place": place}

    return await page(service, "gates.html", build)


@router.get("/sprints/{sprint}/stories/{story}/gate")
async def gate_page(sprint: Id, story: Id, service: ServiceDep) -> Response:
    """A story's question, with all that is needed to answer it."""

    async def build() -> Values:
        place = await service.in_thread(service.reader.head)
        view = await service.in_thread(service.reader.story, sprint, story)
        branch = await read_branch(service.environment, view, story)
        return await service.in_thread(show_gate, view, story, branch, datetime.now(UTC)) | {"place": place}

    return await page(service, "gate.html", build)


@router.get("/submit")
async def submit_page(service: ServiceDep) -> Response:
    """Where a backlog is handed in, and those that are watched."""
    limit_kb = service.served.settings.serve.body_limit_kb

    async def build() -> Values:
        place, backlogs = await service.in_thread(service.reader.head), service.daemon.state().backlogs
        return show_backlogs(backlogs, service.environment, limit_kb) | {"place": place}

    return await page(service, "submit.html", build)


@router.get("/static/{name}")
async def static(name: str, service: ServiceDep, v: str = "") -> Response:
    """A file of the board's own; a module that another one imports is asked for without a version."""
    content = await service.in_thread(read_static, name)
    if content is None:
        return Response(status_code=HTTPStatus.NOT_FOUND)
    media = _MEDIA.get(name.rpartition(".")[2], "text/plain")
    return Response(content, headers=_FOREVER if v else None, media_type=media)


@router.get("/board/questions")
async def count_questions(service: ServiceDep) -> Response:
    """How many questions wait for a person, in all sprints."""
    return await service.answer(lambda: {"count": service.boards.count_questions()})


@router.get("/board/events")
async def board_events(
    service: ServiceDep,
    after: Number = 0,
    sprint: Annotated[Id | None, Query()] = None,
    cards: Annotated[bool, Query(description="true: also the cards that change, as HTML")] = False,
    last_event_id: Last = "",
) -> Response:
    """What changes behind a number of the log: `changed` names stories and events, `fragment` has cards as HTML."""
    return EventStream(service, _changes(service, int(last_event_id or after), sprint, cards=cards))


async def _changes(service: Service, after: int, sprint: str | None, *, cards: bool) -> AsyncGenerator[bytes]:
    feed, place, shown = service.feed, after, sprint if cards else None
    was_running = await service.in_thread(service.reader.is_running, shown) if shown else False
    yield HEARTBEAT  # a proxy passes the head on with the first byte behind it
    while not feed.is_ending:
        found = await feed.page(place, sprint)
        if found.place < place:  # another state folder: what the page shows is another log's
            yield b"event: reload\ndata: {}\n\n"
            return
        before, place = place, found.place
        # No event tells that a process has ended.
        runs = await service.in_thread(service.reader.is_running, shown) if shown else False
        if shown and (found.lines or runs != was_running):
            html, place = await _shared_fragment(service, shown, 0 if runs != was_running else before)
            was_running = runs
            yield _chunk("fragment", html, place)
        if found.lines:
            changed = {(line.event.sprint, line.event.story, line.event.name) for line in found.lines}
            told = [{"sprint": one, "story": story, "name": name} for one, story, name in sorted(changed, key=str)]
            yield _chunk("changed", json.dumps(told), place)
            # All pages go on at the same moments, so that they share what is read and drawn then.
            await asyncio.sleep(GAP_S - asyncio.get_running_loop().time() % GAP_S)
        elif not found.more and not await feed.more(place, LOOK_S):
            yield HEARTBEAT


async def _shared_fragment(service: Service, sprint: str, after: int) -> tuple[str, int]:
    """Returns the same as `_fragment`; pages that ask at once, as all do that wait for the same event, get the same."""
    task = service.fragments.get((sprint, after))
    if task is None:
        work = service.in_thread(_fragment, service, sprint, after)
        task = service.fragments[sprint, after] = asyncio.create_task(work, name="board-fragment")
        task.add_done_callback(lambda _: service.fragments.pop((sprint, after)))
    return await asyncio.shield(task)


def _fragment(service: Service, sprint: str, after: int) -> tuple[str, int]:
    """Returns the cards that changed behind a number, and the line above them, as HTML; and up to where they tell."""
    view = service.boards.look(sprint)
    shown = Cards(view)
    changed = {story for story, place in view.changed.items() if place > after and story in view.histories}
    # A card also says which of the stories that it waits for are done.
    changed |= {story for story, needs in view.record.needs.items() if not changed.isdisjoint(needs)}
    cards = [shown.card(story) for story in view.histories if story in changed]
    return render("_fragment.html", redacted({"cards": cards, "sprint": shown.head()}, service.secrets)), view.place


def _chunk(event: str, data: str, place: int) -> bytes:
    """Returns one server-sent event, numbered by the place in the log."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"id: {place}\nevent: {event}\n{lines}\n".encode("utf-8", "replace")


# ---- login


@router.get("/login")
async def login_page(request: Request, service: ServiceDep) -> Response:
    """Asks for the token."""
    return await _login(service, path_within(request.query_params.get("next", "/")))


@router.post("/login")
async def login(request: Request, service: ServiceDep) -> Response:
    """Takes the token, and leads to where one was."""
    try:
        given = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=_LOGIN_FIELDS)
    except ValueError:  # no form of ours; a million fields, which nobody needs a token to send, would hold up the loop
        given = {}
    leads_to = path_within(given.get("next", ["/"])[-1])
    token = service.token
    if not is_same_origin(request.scope["headers"]):
        return RedirectResponse("/", HTTPStatus.SEE_OTHER)
    address = request.client.host if request.client else ""
    if wait_s := service.logins.wait_s(address, time.monotonic()):
        told = f"Too many wrong tokens came from here: wait {wait_s} seconds."
        response = await _login(service, leads_to, told, HTTPStatus.TOO_MANY_REQUESTS)
        response.headers["retry-after"] = str(wait_s)
        return response
    if not is_token(given.get("token", [""])[-1].strip().encode("utf-8", "replace"), token):
        service.logins.note_wrong(address, time.monotonic())
        return await _login(service, leads_to, "This is not the daemon's token.", HTTPStatus.UNAUTHORIZED)
    leading = RedirectResponse(leads_to, HTTPStatus.SEE_OTHER)
    # Behind a proxy that ends TLS the request itself is plain.
    is_secure = "https" in {request.url.scheme, request.headers.get("x-forwarded-proto", "")}
    leading.set_cookie(
        cookie_name(token), make_session(token), max_age=LASTS_S, httponly=True, samesite="lax", secure=is_secure
    )
    return leading


async def _login(service: Service, leads_to: str, problem: str = "", status: int = HTTPStatus.OK) -> HTMLResponse:
    return HTMLResponse(await service.in_thread(render, "login.html", {"next": leads_to, "problem": problem}), status)


@router.post("/logout")
async def logout(service: ServiceDep) -> Response:
    """Ends the session in this browser."""
    response = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    response.delete_cookie(cookie_name(service.token), httponly=True, samesite="lax")
    return response
