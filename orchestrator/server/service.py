"""What every route works with: the daemon, threads for what blocks, readiness, the feed of events, the metrics."""

import asyncio
import resource
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, ParamSpec, Protocol, TypeVar

from fastapi import Depends, FastAPI, Request
from starlette.responses import Response

from orchestrator.app.sprint_reader import Reader
from orchestrator.core.analysis import AnalysisRequest, AnalysisState
from orchestrator.core.daemon import DaemonState, DoctorRow, Submitted
from orchestrator.core.secrets import redacted, secrets_of
from orchestrator.core.sprint import Pruned
from orchestrator.server.feed import Feed
from orchestrator.server.metrics import Metrics
from orchestrator.server.problems import JSON, dumped
from orchestrator.settings import Environment, Settings


class Analysing(Protocol):
    """Who carries analyses out. Both raise SprintLocked for what cannot be while another one, or none, is at work."""

    async def begin(self, asked: AnalysisRequest) -> AnalysisState:
        """Keep what is asked, begin it. Raises ConfigError for what cannot be used, WorkspaceError when the disk takes
        nothing; nothing is kept then.
        """

    async def cancel(self, analysis: str) -> AnalysisState:
        """End the one that is at work. Raises UnknownName."""


class Served(Protocol):
    """The daemon, or whoever stands for it in a test."""

    @property
    def environment(self) -> Environment:
        """What the process was started with; never changes."""

    @property
    def settings(self) -> Settings:
        """As they are now: a reload puts others in their place."""

    @property
    def analyses(self) -> Analysing:
        """One analysis of its repository at a time."""

    def state(self) -> DaemonState:
        """How the daemon is at this moment. Called on the event loop; blocks for nothing."""

    async def readiness(self) -> Mapping[str, str]:
        """Component (database, engine, disk) → "" while it is fine, else why it is not."""

    async def submit(self, name: str, suffix: str, content: bytes) -> Submitted:
        """Watch a backlog from now on, new or in place of the one of this name; `suffix` is .csv, .yaml or .json.

        Raises BacklogError with findings, and ConfigError where the name is taken by another form; nothing is stored
        then.
        """

    async def withdraw(self, name: str) -> None:
        """Watch a backlog that was submitted no more. Raises ConfigError for one that is not there."""

    async def prune(self, limits: Mapping[str, float | None], *, dry_run: bool) -> Pruned:
        """Give up what is too old or too much, by the settings of `retention` with `limits` in their place.

        Raises ConfigError.
        """

    async def examine(self, *, sandbox: bool) -> list[DoctorRow]:
        """What `doctor` says of the machine and the settings; with `sandbox` hostile actions are tried as well."""

    async def reload(self) -> str:
        """Read the configuration anew; what changed, in one sentence. Raises UserError: the last good one stays."""


ANSWER_S = 5.0
"""Seconds that the components get to say how they are."""
FRESH_S = 1.0
"""Anybody may ask: the components are looked at so often at most."""


class Readiness:
    """What the components said last; those who ask at once share one look."""

    def __init__(self, served: Served, *, fresh_s: float = FRESH_S) -> None:
        self._served, self._fresh_s = served, fresh_s
        self._look: asyncio.Task[Mapping[str, str]] | None = None
        self._until = 0.0

    async def components(self) -> Mapping[str, str]:
        """Component → "" while it is fine, else why it is not."""
        loop = asyncio.get_running_loop()
        if self._look is None or (self._look.done() and loop.time() >= self._until):
            self._look = loop.create_task(self._looked(), name="readiness")
            self._until = loop.time() + self._fresh_s
        return await asyncio.shield(self._look)

    async def _looked(self) -> Mapping[str, str]:
        try:
            found = dict(await asyncio.wait_for(self._served.readiness(), ANSWER_S))
        except TimeoutError:
            found = {"components": f"they did not answer within {ANSWER_S:g} s"}
        phase = self._served.state().phase
        return {"daemon": "" if phase == "ready" else f"it is {phase}", **found}

    async def close(self) -> None:
        """No look is under way any more."""
        if self._look is not None:
            self._look.cancel()
            with suppress(asyncio.CancelledError):
                await self._look


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
