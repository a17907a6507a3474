"""Shared services of all routes: the daemon, threads for blocking work, readiness, the feed of events, the metrics."""

import asyncio
import resource
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

from fastapi import Depends, FastAPI, Request
from starlette.responses import Response

from orchestrator.board.throughput import Throughput
from orchestrator.core.history import is_finished
from orchestrator.core.secrets import redacted, secrets_of
from orchestrator.core.sprint import SprintRecord
from orchestrator.records.sprint_reader import FollowedSprint, Reader, SprintView
from orchestrator.server.feed import Feed
from orchestrator.server.login import LoginTries
from orchestrator.server.metrics import Metrics
from orchestrator.server.problems import JSON, Refused, dump_json
from orchestrator.settings import Environment, Settings

if TYPE_CHECKING:
    from orchestrator.daemon.serve import Daemon

ANSWER_S = 5.0
"""Seconds that the components get to say how they are."""
FRESH_S = 1.0
"""Seconds that a look at the components counts: requests for it need no token."""


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """What is served where no daemon is: a state folder, to look at and to record orders in."""

    settings: Settings
    environment: Environment


class Readiness:
    """Latest state of the components; concurrent requests share one check."""

    def __init__(self, served: "Daemon | Viewer") -> None:
        self._served = served
        self._look: asyncio.Task[Mapping[str, str]] | None = None
        self._until = 0.0

    async def components(self) -> Mapping[str, str]:
        """Returns component → "" while it is fine, else why it is not."""
        loop = asyncio.get_running_loop()
        if self._look is None or (self._look.done() and loop.time() >= self._until):
            self._look = loop.create_task(self._looked(), name="readiness")
            self._until = loop.time() + FRESH_S
        return await asyncio.shield(self._look)

    async def _looked(self) -> Mapping[str, str]:
        daemon = expect_daemon(self._served)
        try:
            found = dict(await asyncio.wait_for(daemon.readiness(), ANSWER_S))
        except TimeoutError:
            found = {"components": f"they did not answer within {ANSWER_S:g} s"}
        phase = daemon.state().phase
        return {"daemon": "" if phase == "ready" else f"it is {phase}", **found}

    async def close(self) -> None:
        """Ends the look that is under way."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])  # what it came to, those who asked were told


def expect_daemon(served: "Daemon | Viewer") -> "Daemon":
    """Returns the daemon. Raises Refused where none is served."""
    if isinstance(served, Viewer):
        told = "no daemon runs here: this is `orchestrator board`, which shows sprints and records orders to them"
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{told}; for all else start `orchestrator serve`")
    return served


P = ParamSpec("P")
R = TypeVar("R")
RESERVED = 256
"""Descriptors that connections leave to the work."""
MOST_FOLLOWED = 64
"""Sprints that are kept folded for pages: more than have open stories, whose questions are counted again and again."""
THREADS = 4
"""Requests that read at a time; the others wait. The loop's own threads are left to the work."""


def count_connections() -> int:
    """Returns how many connections are held at a time: the work needs descriptors too."""
    return max(64, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED, 10_000))


class Boards:
    """Sprints that pages look at, each read once for all pages. Blocks; from any thread."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._lock = reader, Lock()
        self._followed: OrderedDict[str, FollowedSprint] = OrderedDict()
        self._ended: dict[str, SprintRecord] = {}
        """Sprints whose stories have all ended; one whose story begins anew has another record."""

    def look(self, sprint: str) -> SprintView:
        """Returns a sprint, as it is now. Raises UnknownName."""
        with self._lock:
            followed = self._followed.pop(sprint, None) or self._reader.follow(sprint)
            self._followed[sprint] = followed
            while len(self._followed) > MOST_FOLLOWED:
                self._followed.popitem(last=False)
            return followed.look()

    def unfinished(self) -> list[SprintView]:
        """Returns the sprints that have a story without an outcome, oldest first."""
        found = []
        for record in self._reader.records():
            if self._ended.get(record.sprint) == record:
                continue
            view = self.look(record.sprint)
            if is_finished(view.histories):
                self._ended[record.sprint] = record
            else:
                found.append(view)
        return found

    def count_questions(self) -> int:
        """Returns how many stories wait for a person."""
        views = self.unfinished()
        return sum(history.waits_for is not None for view in views for history in view.histories.values())


class Service:
    """One per app; `close` ends what it started."""

    def __init__(self, served: "Daemon | Viewer", metrics: Metrics) -> None:
        self.served, self.metrics = served, metrics
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="http")
        self.secrets = secrets_of(served.environment.variables)
        self.logins = LoginTries()
        self.readiness = Readiness(served)
        self.reader = Reader(served.environment)
        self.boards = Boards(self.reader)
        self.throughput = Throughput(self.reader, self.boards.look)
        self.fragments: dict[tuple[str, int], asyncio.Task[tuple[str, int]]] = {}
        """(sprint, place) → what is being drawn of the sprint behind the place."""
        self.most_streams = count_connections() * 3 // 4
        """Streams of events at a time; other requests need connections too."""
        self.feed = Feed(self.reader.log, self.in_thread, text_cap=lambda: served.settings.log.text_cap)

    @property
    def daemon(self) -> "Daemon":
        """The daemon. Raises Refused where none is served."""
        return expect_daemon(self.served)

    @property
    def environment(self) -> Environment:
        """Of the daemon, or of the viewer."""
        return self.served.environment

    @property
    def token(self) -> str:
        """What lets requests and logins in."""
        return self.environment.token or ""

    async def in_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs what blocks in one of our threads."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(function, *args, **kwargs))

    async def answer(self, build: Callable[[], Any], status: int = HTTPStatus.OK, *, exact: bool = False) -> Response:
        """Returns what `build` returns as JSON, both in a thread; without what looks like a secret unless `exact`."""

        def body() -> bytes:
            value = build()
            return dump_json(value if exact else redacted(value, self.secrets))

        return Response(await asyncio.get_running_loop().run_in_executor(self._pool, body), status, media_type=JSON)

    def end(self) -> None:
        """Ends all streams; no new one begins."""
        self.feed.end()

    async def close(self) -> None:
        """Ends everything that was started; a text that is still being read by then is not waited for."""
        await self.readiness.close()
        await self.feed.close()
        self._pool.shutdown(wait=False, cancel_futures=True)


def get_service(app: FastAPI) -> Service:
    """Returns the service of an app."""
    service = app.state.service
    assert isinstance(service, Service)
    return service


async def _service(request: Request) -> Service:
    return get_service(request.app)


ServiceDep = Annotated[Service, Depends(_service)]
