"""Shared resources of all sprints and analyses of one process: the event log, the slots, the engine, the providers."""

import asyncio
import tempfile
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar

from anyio import CapacityLimiter

from orchestrator.core.calls.exchange import Prompt
from orchestrator.core.errors import ConfigError, EventLogAway, says_full
from orchestrator.core.event import Event, Level
from orchestrator.core.history import SPENT
from orchestrator.core.ports import Clock, Step
from orchestrator.core.value import Value
from orchestrator.engine.database import make_tables
from orchestrator.engine.dispatcher import Switchboard
from orchestrator.engine.durable import WORKFLOW_NAMES, Body, DurableEngine
from orchestrator.engine.durable_step import Services
from orchestrator.engine.gates import POLL_S, GateKeeper
from orchestrator.engine.progress import CallsUnderWay
from orchestrator.engine.turns import TurnTaker
from orchestrator.files.disk import is_full
from orchestrator.files.process import FULL, SystemClock, end_at_once
from orchestrator.providers.routing import RoutedProvider
from orchestrator.records.histories import event_url
from orchestrator.settings import Environment, PriceSettings, Settings
from orchestrator.settings.prices import find_price
from orchestrator.sprint.budgets import Budgets
from orchestrator.sprint.slots import Slots
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import FOREVER, EventStore
from orchestrator.storage.event_table import usable
from orchestrator.storage.leases import Lease
from orchestrator.storage.reply_journal import ReplyJournal
from orchestrator.storage.state_folder import StateFolder
from orchestrator.storage.story_claims import StoryClaims

P = ParamSpec("P")
T = TypeVar("T")
TABLES = "(tables)"
"""Held by the process that makes or updates the engine's tables."""
TABLES_S = 60.0
"""How long that is waited for."""
TURN_POLL_S = 0.25
"""Seconds between two attempts to begin a call while as many as may be are under way."""


class Place(Protocol):
    """The own part of a sprint or an analysis."""

    @property
    def bodies(self) -> Mapping[str, Body]:
        """Bodies of its workflows, by workflow name."""
        ...

    async def is_current(self, workflow_id: str) -> bool:
        """Returns whether the workflow should continue."""
        ...

    def saw(self, event: Event) -> None:
        """Is called after an event of the sprint was recorded."""
        ...


class Sharing(Protocol):
    """The stories of this process's sprints that other daemons may run, and those of others that it runs."""

    async def held(self, workflow_id: str) -> None:
        """Returns once this process has claimed the story."""
        ...

    async def take_over(self, sprint: str) -> tuple[str, ...]:
        """Claims a sprint's stories that nobody runs; returns the workflow ids of those that other daemons run."""
        ...

    def waiting(self, workflow_id: str) -> AbstractAsyncContextManager[None]:
        """Gives the story's place among all that are at work back inside; leaving waits for one."""
        ...


async def run_to_end(call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Returns the result of a blocking call; when cancelled, only after it has ended, so that what it does is undone
    by what follows."""
    running = asyncio.ensure_future(asyncio.to_thread(call, *args, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


class SharedTurns:
    """`concurrency.turns` over all processes of a database. An async context manager for the calls of all tasks."""

    def __init__(self, lanes: CapacityLimiter, claims: StoryClaims) -> None:
        """`lanes` are those of this process; they have the limit."""
        self._lanes, self._claims = lanes, claims
        self._calls: dict[asyncio.Task[Any] | None, str] = {}
        self._over: set[str] = set()
        """Calls that have ended and are counted still, as the database was away."""

    async def __aenter__(self) -> None:
        await self._lanes.acquire()
        self._calls[asyncio.current_task()] = call = uuid.uuid4().hex
        try:
            await self._begin(call)
        except BaseException:
            await self._end()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _begin(self, call: str) -> None:
        while True:
            with suppress(EventLogAway):  # tried again
                await self._forget()
                if await run_to_end(self._claims.begin_call, call, int(self._lanes.total_tokens)):
                    return
            await asyncio.sleep(TURN_POLL_S)

    async def _end(self) -> None:
        self._over.add(self._calls.pop(asyncio.current_task()))
        try:
            with suppress(EventLogAway):  # the next call does it
                await self._forget()
        finally:
            self._lanes.release()

    async def _forget(self) -> None:
        if over := frozenset(self._over):
            await run_to_end(self._claims.end_calls, over)
            self._over -= over


class PaidElsewhere:
    """Adds what other processes of an event log pay to the budgets, and notices when a day is over. Use as an async
    context manager.

    Where no budget needs it, nothing is read; `always`: other processes may run stories of the same sprints.
    """

    def __init__(self, log: EventStore, budgets: Budgets, *, always: bool) -> None:
        self._log, self._budgets, self._always = log, budgets, always
        self._after = 0
        self._has_day = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._always:
            self._after = await self._log.head()  # a sprint that is worked on reads what is before
        await self._look()
        self._task = asyncio.create_task(self._poll(), name="paid-elsewhere")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self) -> None:
        """Raises ConfigError while the log is away."""
        today = self._budgets.today()
        if self._budgets.limits_days and not self._has_day:
            head = await self._log.head()  # else a day without calls has the next look begin at the first event
            for _, event in await self._log.named(SPENT, 0, day=today):
                self._budgets.add(event)
            self._after = max(self._after, head)
        elif self._budgets.limits_days or self._always:
            for seq, event in await self._log.named(SPENT, self._after):
                self._after = seq
                self._budgets.add(event)
        self._has_day = self._budgets.limits_days

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            with suppress(ConfigError):
                await self._look()


class Works:
    """Use as an async context manager, once at a time in a process.

    Workflows that the engine resumes by itself wait until their sprint has its place here.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Environment,
        provider: RoutedProvider,
        *,
        lease: Lease,
        listen: Callable[[Event], None],
    ) -> None:
        """`lease` is held by the caller while the works are in use."""
        self._environment, self.lease, self.executor_id = environment, lease, lease.executor_id
        self._listen: Callable[[Event], None] | None = listen
        self.folder = StateFolder.of(environment)
        self.clock: Clock = SystemClock()
        self.slots = Slots(settings.concurrency.stories)
        self._lanes = CapacityLimiter(settings.concurrency.turns)
        self.claims = StoryClaims(lease) if lease.is_shared else None
        self.sharing: Sharing | None = None
        """Where the stories of a sprint run on several daemons."""
        lanes: AbstractAsyncContextManager[object] = self._lanes
        if self.claims is not None:
            lanes = SharedTurns(self._lanes, self.claims)
        self.calls = CallsUnderWay()

        def price(prompt: Prompt) -> PriceSettings | None:
            return find_price(settings.prices, provider.model_of(prompt))

        self.budgets = Budgets(settings.budget, self.clock.now, price)
        self.turns = TurnTaker(provider, settings, lanes, self.budgets)
        self.commands = CapacityLimiter(settings.concurrency.commands)
        """Suites and commands run inside."""
        self._url = url = event_url(environment, self.folder)
        self.sink = EventStore(url, on_event=self._saw, tell=self._log_waits, patience_s=FOREVER, guard=lease.guard)
        if (shared := self.folder.shared) is not None:
            shared.guard, shared.patience_s = lease.guard, FOREVER
        self.gates = GateKeeper(self.sink, self.clock, self._given_back)
        self.switchboard = Switchboard(self.sink, self._given_back)
        self.budgets.on_change = self.switchboard.look_again
        self._paid = PaidElsewhere(self.sink, self.budgets, always=self.claims is not None)
        self.engine = self._engine()
        self.bases: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Lock per key of a base commit, held while the commit is tried."""
        self.refused: dict[str, tuple[object, str]] = {}
        """Sprint whose base cannot be run → the state that was tried, and the reason."""
        self._places: dict[str, asyncio.Future[Place]] = {}
        self._stack, self._running = AsyncExitStack(), AsyncExitStack()

    async def __aenter__(self) -> "Works":
        async with AsyncExitStack() as stack:
            if self.claims is not None:
                await asyncio.to_thread(self.claims.prepare)
                # The engine's own lock for it is one of a session, which a pooler may give to another.
                async with self.lease.holding(TABLES, wait_s=TABLES_S):
                    with usable():
                        await asyncio.to_thread(make_tables, self._url)
            # The engine starts last and ends first, because its workflows use the other resources.
            if self.folder.shared is not None:
                stack.callback(self.folder.shared.stop_waiting)
            for part in (self.sink, self.gates, self.switchboard, self._paid):
                await stack.enter_async_context(part)
            stack.push_async_callback(self.halt)
            with usable():
                await self._running.enter_async_context(self.engine)
            self._stack = stack.pop_all()
        return self

    async def emit(
        self, sprint: str, name: str, message: str, which: str = "", *, level: Level = Level.INFO, **data: object
    ) -> None:
        """Records an event of a sprint; with "" of this process. One with the same `which` is recorded once, one
        without each time."""
        now = self.clock.now()
        which = which or now.isoformat()
        event_id = f"{sprint}:{name}:{which}" if sprint else f"{name}:{self.executor_id}:{which}"
        await self.sink.emit(
            Event(id=event_id, time=now, level=level, name=name, message=message, sprint=sprint, data=data)
        )

    async def drain(self, grace_s: float, hurry: asyncio.Event) -> int:
        """Starts no new turn; waits for running ones within the grace or until `hurry`; returns how many are left."""
        draining = asyncio.create_task(self.switchboard.drain(grace_s), name="drain")
        hurried = asyncio.create_task(hurry.wait(), name="hurry")
        await asyncio.wait({draining, hurried}, return_when=asyncio.FIRST_COMPLETED)
        for task in (draining, hurried):
            task.cancel()
        await asyncio.gather(draining, hurried, return_exceptions=True)
        return self.switchboard.at_work

    async def halt(self) -> None:
        """Ends the engine and its workflows, after which nothing of a sprint is recorded. May be called twice."""
        await self._running.aclose()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def admit(self, sprint: str, place: Place) -> None:
        """Registers the place that runs the workflows of the sprint."""
        future = self._place(sprint)
        if future.done():
            self._places[sprint] = future = asyncio.get_running_loop().create_future()
        future.set_result(place)

    def dismiss(self, sprint: str) -> None:
        """Removes the sprint's place; workflows that the engine still resumes wait for the next one."""
        self._places.pop(sprint, None)

    @asynccontextmanager
    async def _given_back(self, workflow_id: str) -> AsyncIterator[None]:
        away = self.sharing.waiting(workflow_id) if self.sharing is not None else nullcontext()
        async with away, self.slots.given_back(workflow_id):
            yield

    def _place(self, sprint: str) -> "asyncio.Future[Place]":
        if sprint not in self._places:
            self._places[sprint] = asyncio.get_running_loop().create_future()
        return self._places[sprint]

    async def _of(self, sprint: str) -> Place:
        # Shielded: a waiter that is cancelled must not cancel it for the others.
        return await asyncio.shield(self._place(sprint))

    async def _body(self, name: str, step: Step, payload: dict[str, Any]) -> Value:
        return await (await self._of(payload["sprint"])).bodies[name](step, payload)

    async def _is_current(self, workflow_id: str) -> bool:
        return await (await self._of(workflow_id.partition("/")[0])).is_current(workflow_id)

    def _saw(self, event: Event) -> None:
        self.budgets.add(event)
        place = self._places.get(event.sprint)
        if place is not None and place.done():
            place.result().saw(event)
        self._show(event)

    def _log_waits(self, told: str) -> None:
        """Shows the message without storing it, because the log cannot be written."""
        now = self.clock.now()
        event = Event(
            id=f"event_log_waits:{now.isoformat()}",
            time=now,
            level=Level.WARN,
            name="event_log_waits",
            message=told,
            sprint="",
        )
        self._show(event)

    def _show(self, event: Event) -> None:
        if self._listen is not None:
            try:
                self._listen(event)
            except OSError:  # the reader of the output has gone
                self._listen = None

    async def _expect_held(self, sprint: str) -> None:
        if self.lease.is_shared:
            await asyncio.to_thread(self.lease.expect_held, sprint)

    async def _expect_room(self, error: BaseException | None) -> None:
        places = self.folder.home, Path(tempfile.gettempdir())
        if (error is not None and says_full(error)) or await asyncio.to_thread(is_full, *places):
            end_at_once(f"there is no disk space at {places[0]} or {places[1]}: free some and start again", FULL)

    def _engine(self) -> DurableEngine:
        return DurableEngine(
            url=self._environment.database_url or sqlite_url(self.folder.engine_database),
            executor_id=self.executor_id,
            bodies={name: partial(self._body, name) for name in WORKFLOW_NAMES},
            services=Services(
                turns=self.turns,
                calls=self.calls,
                journals=ReplyJournal(self.folder.replies, self.folder.shared),
                gates=self.gates,
                sink=self.sink,
                clock=self.clock,
                tickets=self.switchboard.ticket,
                expect_held=self._expect_held,
                expect_room=self._expect_room,
            ),
            is_current=self._is_current,
        )
