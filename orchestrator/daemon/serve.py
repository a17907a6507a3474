"""`serve`: the daemon. It watches backlogs, runs their sprints side by side, applies commands and
stops cleanly."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from rich import filesize

from orchestrator import __version__
from orchestrator.app.runtime import Works
from orchestrator.app.secrets import backlog_secrets, mask_backlog, masks_of
from orchestrator.app.sprint_runtime import Equipment
from orchestrator.core.daemon import DaemonState, SprintState, Submitted
from orchestrator.core.errors import ConfigError, EventLogAway, OrchestratorError
from orchestrator.core.event import Event, Level
from orchestrator.core.sprint import Pruned, SprintRecord
from orchestrator.core.story import BacklogContent
from orchestrator.daemon.backlog_watcher import News, submit, withdraw
from orchestrator.daemon.planning import Planner
from orchestrator.daemon.shared_stories import SharedStories, Sites
from orchestrator.daemon.sprint_registry import NOT_NOW, Fleet
from orchestrator.daemon.startup import open_daemon
from orchestrator.files.atomic_file import replace_content
from orchestrator.files.disk import is_full
from orchestrator.files.process import SystemClock
from orchestrator.git.repositories import SharedRepository
from orchestrator.maintenance.retention import prune
from orchestrator.settings import Environment, Settings
from orchestrator.settings.options import ServeOptions
from orchestrator.storage.state_folder import StateFolder
from orchestrator.storage.story_claims import StoryClaims

Phase = Literal["starting", "ready", "stopping"]


PRUNE_EVERY_S = 3600.0
"""Between two looks for what is old enough to be pruned."""
LAST_S = 2.0
"""Seconds that each last deed gets."""


async def run_within(work: Coroutine[Any, Any, object], since: asyncio.Event | None = None) -> None:
    """Does `work`, but give it up some seconds after `since` was set, or from now on. Raises what it raises."""
    task = asyncio.ensure_future(work)
    told = asyncio.ensure_future(since.wait() if since is not None else asyncio.sleep(0))
    try:
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({task}, timeout=LAST_S)
    finally:
        for one in (told, task):
            one.cancel()
        await asyncio.gather(told, task, return_exceptions=True)
    if not task.cancelled():
        task.result()


class Daemon:
    """Use as an async context manager; `run` then works until `stop`.

    `listen` gets every event as it is recorded.
    """

    def __init__(
        self,
        options: ServeOptions,
        settings: Settings,
        environment: Environment,
        *,
        listen: Callable[[Event], None],
    ) -> None:
        self.settings, self.environment = settings, environment
        self._options, self._listen = options, listen
        self._clock = SystemClock()
        self._folder = StateFolder.of(environment)
        self._started = self._clock.now()
        self._phase: Phase = "starting"
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._wake = asyncio.Event()
        self._stack = AsyncExitStack()
        self._beginning: asyncio.Task[None] | None = None
        self._fleet = Fleet(self._tell_waiting, self.wake)
        self._sites = Sites(self)
        self._shared: SharedStories | None = None
        self._planner = Planner(options, environment, self._folder, self._clock)
        self._pruning = asyncio.Lock()

    repository: SharedRepository
    equipment: Equipment
    works: Works

    async def __aenter__(self) -> "Daemon":
        """Raises UserError for what would fail at the first call, and when another daemon has this state folder."""
        async with AsyncExitStack() as stack:
            self.repository, self.equipment = await open_daemon(
                stack, self._options, self.settings, self.environment, self._listen
            )
            self.works = self.equipment.works
            self._planner.lease, executor_id = self.works.lease, self.works.executor_id
            self._planner.masked = self._masked
            if self.works.claims is not None:
                self._shared = await stack.enter_async_context(self._share(self.works.claims))
            stack.push_async_callback(self._fleet.end)
            self._stack = stack.pop_all()
        self._phase = "ready"
        await self.emit(
            "daemon_ready", "the daemon is ready", version=__version__, pid=os.getpid(), executor_id=executor_id
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def _share(self, claims: StoryClaims) -> SharedStories:
        def is_open() -> bool:
            return self._phase == "ready" and not self._stopping.is_set()

        shared = SharedStories(self.works, claims, self, self._sites, is_open)
        shared.led = lambda: self._fleet.at_work
        self.works.sharing = self._sites.sharing = shared
        return shared

    async def run(self) -> None:
        """Works until `stop`; then nothing new begins and what is at work gets its grace."""
        pruning = asyncio.create_task(self._prune_regularly(), name="pruning")
        try:
            while not self._stopping.is_set():
                await run_within(self._tick(), self._stopping)
                await self._nap()
        finally:
            beside = [pruning] if self._beginning is None else [pruning, self._beginning]
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
        self._phase = "stopping"
        grace = self.settings.shutdown.grace_s
        at_work = self.works.switchboard.at_work
        told = f"the daemon stops: {at_work} calls and commands may end within {grace} s"
        await run_within(self.emit("daemon_stopping", told, grace_s=grace, at_work=at_work))
        cut = await self.works.drain(grace, self._hurry)
        # Waits until sprints have stopped in an orderly way, unless the log cannot be written.
        await (run_within(self._fleet.end()) if self.works.sink.waits else self._fleet.end())
        if self._shared is not None:
            await self._shared.close()
        await self.works.halt()
        done = "the daemon has stopped" + (f"; {cut} cut, done again at the next start" if cut else "")
        await run_within(self.emit("daemon_stopped", done, cut=cut))

    def stop(self) -> None:
        """Ends soon and cleanly; called a second time: at once."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()
        self._wake.set()

    @property
    def hurried(self) -> bool:
        """True after a second request to stop."""
        return self._hurry.is_set()

    def wake(self) -> None:
        """Looks now, as something changed."""
        self._wake.set()

    async def _nap(self) -> None:
        with suppress(TimeoutError):  # the time is up
            async with asyncio.timeout(self.settings.serve.poll_s):
                await self._wake.wait()
        self._wake.clear()

    async def _tick(self) -> None:
        """Looks at what there is, reaps what ended, begins what can begin. Raises what a sprint failed of."""
        await self._fleet.reap()
        if self._shared is not None:
            self._shared.expect_alive()
        for watched, news in await asyncio.to_thread(self._planner.look, self.settings):
            await self._tell_news(watched.path, news)
        for sprint, why in self._planner.broken.items():
            await self._fleet.waits(sprint, why)
        try:
            others = await asyncio.to_thread(self.works.lease.others)
        except EventLogAway:  # the next look begins them
            return
        for record in await asyncio.to_thread(
            self._planner.unfinished, self._fleet.ended, self._fleet.at_work | others
        ):
            if self._fleet.is_free(record.sprint):
                await self._begin(record)
        if self._beginning is None or self._beginning.done():
            if self._beginning is not None:
                self._beginning.result()
            # Beside the ticks: a remote repository may keep it waiting.
            self._beginning = asyncio.create_task(self._begin_new(others), name="begin-new")

    async def _begin_new(self, others: frozenset[str]) -> None:
        busy = self._fleet.backlogs
        busy |= {record.backlog for record in self._planner.own if record.sprint in others}
        busy |= {record.backlog for record in self._planner.own if self._fleet.why_waiting(record.sprint)}
        for watched in self._planner.watched:
            path = str(watched.path)
            if path in busy or not self._fleet.is_free(path):
                continue
            try:
                record = await self._planner.new_sprint(watched, self.repository)
            except NOT_NOW as error:
                await self._fleet.waits(path, error.message)
                continue
            self._fleet.goes(path)
            if record is not None:
                await self._begin(record)

    async def _begin(self, record: SprintRecord) -> None:
        content = await asyncio.to_thread(self._planner.content, record)
        if content is None:
            await self._fleet.waits(record.sprint, f"its backlog {record.backlog} is gone")
        elif self._fleet.is_free(record.sprint):
            self._fleet.begin(record, content, self, self._sites)

    def _masked(self, content: BacklogContent) -> BacklogContent:
        """Returns a backlog without secrets, which nothing of this process shows from now on. Blocks."""
        self.works.sink.hide(backlog_secrets(content))
        return mask_backlog(content, masks_of(self._folder, self.works.sink.hidden))

    async def _tell_waiting(self, what: str, reason: str) -> None:
        await self.emit("sprint_waits", f"{what} cannot be worked on now: {reason}", level=Level.ERROR, what=what)

    async def _tell_news(self, path: Path, news: News) -> None:
        if news.refused:
            problems = [finding.model_dump(mode="json") for finding in news.problems]
            told = f"the backlog {path} is refused, what was good last goes on: {news.refused}"
            await self.emit("backlog_refused", told, level=Level.ERROR, backlog=str(path), problems=problems)
        else:
            await self.emit("backlog_taken", f"the backlog {path} is taken over", backlog=str(path))

    async def emit(self, name: str, message: str, *, level: Level = Level.INFO, **data: object) -> None:
        """Records something that concerns the daemon and no sprint."""
        await self.works.emit("", name, message, "", level=level, **data)

    @asynccontextmanager
    async def announced(self, url: str) -> AsyncIterator[None]:
        """Lets commands of its state folder find the daemon at `url` inside."""
        place = self._folder.daemon_address
        await asyncio.to_thread(replace_content, place, json.dumps({"url": url, "pid": os.getpid()}).encode())
        await self.emit("daemon_listens", f"the daemon answers at {url}; its board is there for browsers", url=url)
        try:
            yield
        finally:
            with suppress(OSError):  # a full disk: a command that reads the address finds no process there
                await asyncio.to_thread(place.unlink, missing_ok=True)

    def state(self) -> DaemonState:
        """Returns how it is now. Blocks for nothing."""
        fleet, works = self._fleet, self.works
        waiting = [  # sprints with work left that cannot be worked on now
            SprintState(sprint=record.sprint, backlog=record.backlog, phase="paused", reason=reason)
            for record in self._planner.own
            if record.sprint not in fleet.at_work and (reason := fleet.why_waiting(record.sprint))
        ]
        return DaemonState(
            version=__version__,
            pid=os.getpid(),
            started_at=self._started,
            phase=self._phase,
            executor_id=self.works.executor_id,
            backlogs=self._planner.states(fleet.why_waiting),
            sprints=(*fleet.states(), *waiting),
            calls_in_flight=works.switchboard.at_work,
            stories_at_work=works.slots.at_work,
            stories_waiting=len(works.slots.waiting),
            stories_queued=sum(served.driver.queued for served in fleet.served if served.driver is not None),
            budgets=works.budgets.states(),
        )

    async def readiness(self) -> Mapping[str, str]:
        """Returns component → what is wrong with it, "" when nothing is."""
        try:
            await self.works.sink.find(["-"])
            database = self.works.sink.waits
        except ConfigError as error:
            database = error.message
        engine = "" if self._phase == "ready" else f"the daemon is {self._phase}"
        disk = f"{self._folder.home} is on a full disk" if await asyncio.to_thread(is_full, self._folder.home) else ""
        return {"database": database, "engine": engine, "disk": disk}

    async def submit(self, name: str, suffix: str, content: bytes) -> Submitted:
        """Watches a backlog that was handed in. Raises BacklogError with its problems; nothing is kept then."""
        folder = StateFolder.of(self.environment, asked=True)
        done = await asyncio.to_thread(submit, folder, self.settings, name, suffix, content)
        self.wake()
        return done

    async def withdraw(self, name: str) -> None:
        """Stops watching a backlog that was handed in; its sprints go on. Raises ConfigError for an unknown one."""
        await asyncio.to_thread(withdraw, StateFolder.of(self.environment, asked=True), name)
        self.wake()

    async def prune(self, limits: Mapping[str, float | None], *, dry_run: bool) -> Pruned:
        """Prunes now, one call at a time; `limits`: names of `retention` with what counts in their place.

        Raises ConfigError when the database cannot be used.
        """
        retention = self.settings.retention.model_copy(update=limits)
        wanted = self.settings.model_copy(update={"retention": retention})
        # Who asks is told at once that the database is away; the work below would wait for it.
        await asyncio.to_thread(StateFolder.of(self.environment, asked=True).refresh)
        async with self._pruning:
            pruned = await prune(self.environment, wanted, self._fleet.at_work, dry_run=dry_run)
        if not dry_run and pruned.gone:
            names = [one.name for one in pruned.gone]
            freed = f", {filesize.decimal(pruned.freed_bytes)} freed" if pruned.freed_bytes else ""
            told = f"pruned: {', '.join(names)}{freed}"
            await self.emit("past_pruned", told, gone=names, freed_bytes=pruned.freed_bytes)
        return pruned

    async def _prune_regularly(self) -> None:
        while True:
            try:
                await self.prune({}, dry_run=False)
            except (OrchestratorError, OSError) as error:
                await self.emit("pruning_failed", f"the past was not pruned: {error}", level=Level.WARN)
            await asyncio.sleep(PRUNE_EVERY_S)
