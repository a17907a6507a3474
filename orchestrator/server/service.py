"""What every route works with: the daemon, threads for what blocks, the feed of events, the metrics."""

import asyncio
import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, ParamSpec, TypeVar

from fastapi import Depends, FastAPI, Request
from starlette.responses import Response

from orchestrator.domain.redaction import redacted, secrets_of
from orchestrator.server.feed import Feed
from orchestrator.server.metrics import Metrics
from orchestrator.server.problems import JSON, dumped
from orchestrator.server.readiness import Readiness
from orchestrator.server.served import Served
from orchestrator.settings import Environment
from orchestrator.wiring.read import Reader

P = ParamSpec("P")
R = TypeVar("R")
RESERVED = 256
"""Descriptors that connections leave to the work."""
ALONE = ("backup", "doctor")
THREADS = 4
"""Requests that read at a time; the others wait. The loop's own threads are left to the work."""


def most_connections() -> int:
    """Connections at a time: the work needs descriptors too."""
    return max(64, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED, 10_000))


class Service:
    """One per app; `close` ends what it started."""

    def __init__(self, served: Served, metrics: Metrics) -> None:
        self.served, self.metrics = served, metrics
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="http")
        self._alone = ThreadPoolExecutor(1, thread_name_prefix="http-judge")
        self.alone = {name: asyncio.Lock() for name in ALONE}
        """What is done for one request at a time; others are refused meanwhile."""
        self._secrets = secrets_of(served.environment.variables)
        self.readiness = Readiness(served)
        self.reader = Reader(served.environment)
        self.most_streams = most_connections() * 3 // 4
        """Streams of events at a time; other requests need connections too."""
        self.feed = Feed(self.reader.log, self.in_thread, text_cap=lambda: served.settings.log.text_cap)

    @property
    def environment(self) -> Environment:
        """Of the daemon."""
        return self.served.environment

    async def in_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """What blocks, in one of our threads."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(function, *args, **kwargs))

    async def answer(
        self, build: Callable[[], Any], status: int = HTTPStatus.OK, *, exact: bool = False, alone: bool = False
    ) -> Response:
        """What `build` returns as JSON, both in a thread; without what looks like a secret unless `exact`.

        `alone`: one at a time, for what only computes; more of it side by side would be no faster, and slow the work.
        """

        def body() -> bytes:
            value = build()
            return dumped(value if exact else redacted(value, self._secrets))

        pool = self._alone if alone else self._pool
        return Response(await asyncio.get_running_loop().run_in_executor(pool, body), status, media_type=JSON)

    def end(self) -> None:
        """Streams end, and no new one begins."""
        self.feed.end()

    async def close(self) -> None:
        """Everything that was started has ended; a text that is still being read by then is waited for by nobody."""
        await self.readiness.close()
        await self.feed.close()
        for pool in (self._pool, self._alone):
            pool.shutdown(wait=False, cancel_futures=True)


def service_of(app: FastAPI) -> Service:
    """The app's."""
    service = app.state.service
    assert isinstance(service, Service)
    return service


async def _service(request: Request) -> Service:
    return service_of(request.app)


ServiceDep = Annotated[Service, Depends(_service)]
