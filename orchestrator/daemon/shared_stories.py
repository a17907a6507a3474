"""Stories that the daemons of one database share: the one that holds the sprint offers them, all of them run them."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Container
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar

from orchestrator.app.runtime import Works, run_to_end
from orchestrator.app.secrets import find_secrets
from orchestrator.app.sprint_runtime import Equipment, Site
from orchestrator.app.sprints import workspace_of
from orchestrator.core.errors import ConfigError, EventLogAway
from orchestrator.core.event import Level
from orchestrator.core.sprint import SprintRecord, StoryOutcome
from orchestrator.git.repositories import SharedRepository
from orchestrator.git.repository import expect_there, open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import Environment, Settings
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.story_claims import Look, StoryClaims, StoryRow

P = ParamSpec("P")
T = TypeVar("T")
POLL_S = 0.5
"""Seconds between two looks at the shared stories."""
IDLE_S = 1.0
"""The same while no story is at work anywhere."""
LEFT_S = 3.0
"""How long a story is left to the daemons with the fewest; then any takes it."""
AGAIN_S = 30.0
"""Seconds until a sprint that could not be worked on is tried again."""


class Host(Protocol):
    """The daemon."""

    environment: Environment
    settings: Settings
    repository: SharedRepository
    equipment: Equipment


@dataclass
class Place:
    """An open sprint."""

    site: Site
    workspace: GitWorkspace
    secrets: tuple[str, ...]
    head: str
    """Commit that the repository had when it was opened."""
    stack: AsyncExitStack
    users: int = 0


class Sites:
    """The sprints that are open in a daemon, each once, for those that hold it and for those that run its stories."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._places: dict[str, Place] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self.sharing: SharedStories | None = None

    @asynccontextmanager
    async def opened(self, record: SprintRecord) -> AsyncIterator[Place]:
        """Yields the open sprint. Raises SprintLocked, RepositoryError, WorkspaceError, ConfigError when it cannot be
        worked on now."""
        name = record.sprint
        async with self._opening.setdefault(name, asyncio.Lock()):
            place = self._places.get(name)
            if place is None:
                async with AsyncExitStack() as stack:
                    place = await self._open(record, stack)
                    place.stack = stack.pop_all()
                self._places[name] = place
            place.users += 1
        try:
            yield place
        finally:
            place.users -= 1
            if not place.users:
                async with self._opening[name]:
                    if not place.users and self._places.get(name) is place:
                        del self._places[name]
                        await place.stack.aclose()

    def place(self, sprint: str) -> Place | None:
        """Returns the sprint if it is open."""
        return self._places.get(sprint)

    async def _open(self, record: SprintRecord, stack: AsyncExitStack) -> Place:
        equipment, settings = self._host.equipment, self._host.settings
        works = equipment.works
        lock = await stack.enter_async_context(SprintLock(works.folder.lock(record.sprint)))
        source = Path(record.repo)
        if record.sprint in works.refused or not await asyncio.to_thread(source.exists):
            # It may hold something better now.
            await self._host.repository.now()
        if record.base:
            await asyncio.to_thread(expect_there, source)
        found = await open_repository(source)
        workspace = workspace_of(works.folder, record, (lock.fd,), kept=True, lease=works.lease)
        stack.push_async_callback(workspace.release)
        await workspace.prepare(source)
        secrets = await find_secrets(workspace, works.sink.hidden, lambda _text: None)
        site = await asyncio.to_thread(
            Site, equipment, record, workspace, settings, secrets=secrets, lock_fd=lock.fd, sharing=self.sharing
        )
        await stack.enter_async_context(site)
        return Place(site=site, workspace=workspace, secrets=secrets, head=found.base, stack=stack)


def choose_story(look: Look, running: Container[str], is_open: Callable[[str], bool]) -> StoryRow | None:
    """Returns a story that this daemon should take, beside those that it runs; `is_open`: whether one of a sprint may
    be taken on."""

    def is_ours(row: StoryRow) -> bool:
        if row.workflow_id in running or row.cut or row.state == "ended" or (row.is_held and not row.is_mine):
            return False
        if row.is_mine:  # it was taken over with its sprint
            return True
        return is_open(row.sprint) and (look.is_behind or row.age_s > LEFT_S)

    # Not the oldest: all daemons would try to claim the same one, one after the other, and all but one for nothing.
    return random.choice([row for row in look.stories.values() if is_ours(row)] or [None])


class SharedStories:
    """Runs stories that this daemon has claimed, and follows those of its sprints that others run (`StoryRunner`).

    Use as an async context manager. `is_open` returns whether this daemon may take on a further story.
    """

    def __init__(
        self, works: Works, claims: StoryClaims, host: Host, sites: Sites, is_open: Callable[[], bool]
    ) -> None:
        self._works, self._claims, self._host, self._sites, self._is_open = works, claims, host, sites, is_open
        self._look = Look()
        self._looked, self._wanted = asyncio.Event(), asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._offering = asyncio.Lock()
        self._here: set[str] = set()
        """Stories whose branch is here: their workflows may run."""
        self._followed: dict[str, asyncio.Task[Any]] = {}
        """Those of our sprints, whoever runs them."""
        self._cannot: dict[str, float] = {}
        """Sprint that cannot be worked on here → when it may be tried again, on the loop's clock."""
        self._poller: asyncio.Task[None] | None = None
        self._closing = False
        self.led: Callable[[], frozenset[str]] = frozenset
        """Returns the sprints that this daemon holds."""

    async def __aenter__(self) -> "SharedStories":
        self._poller = asyncio.create_task(self._poll(), name="shared-stories")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Runs nothing any more, before the engine ends. Others take the stories once this process's lease has ended.

        May be called twice.
        """
        self._closing = True
        tasks = [task for task in (self._poller, *self._running.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def expect_alive(self) -> None:
        """Raises what has ended the looks, an error of ours: without them no story would go on."""
        if self._poller is not None and self._poller.done() and not self._closing:
            self._poller.result()

    async def run_story(self, workflow_id: str, payload: dict[str, Any]) -> StoryOutcome:
        """Offers the story, as soon as `concurrency.stories` allows it, and returns its outcome."""
        task = asyncio.current_task()
        assert task is not None
        self._followed[workflow_id] = task
        try:
            await self._ended(workflow_id, payload)
            outcome = await self._works.engine.run_story(workflow_id, payload)
            await self._do(self._claims.delete, workflow_id)
            return outcome
        finally:
            if self._followed.get(workflow_id) is task:
                del self._followed[workflow_id]

    async def cut_story(self, workflow_id: str) -> None:
        """Has the story interrupted wherever it runs."""
        await self._do(self._claims.cut, workflow_id)
        self._wanted.set()
        while not await self._do(self._claims.claim_cut, workflow_id):
            row = (await self._look_now()).stories.get(workflow_id)
            if row is None:
                return await self._works.engine.cut_story(workflow_id)
            if row.state == "ended":
                if (task := self._followed.get(workflow_id)) is not None:  # it takes the outcome
                    await asyncio.wait({task})
                return None
            await self._moved()
        return None

    async def end_story(self, workflow_id: str) -> None:
        """See StoryRunner."""
        await self._works.engine.end_story(workflow_id)
        await self._do(self._claims.delete, workflow_id)

    async def resume_story(self, workflow_id: str) -> None:
        """See StoryRunner."""
        await self._do(self._claims.give_back, workflow_id, cut=False)
        self._wanted.set()

    async def held(self, workflow_id: str) -> None:
        """See Sharing."""
        while workflow_id not in self._here:
            await self._moved()

    async def take_over(self, sprint: str) -> tuple[str, ...]:
        """See Sharing."""
        await self._do(self._claims.claim_sprint, sprint)
        rows = (await self._look_now()).stories.values()
        return tuple(row.workflow_id for row in rows if row.sprint == sprint and not row.is_mine)

    @asynccontextmanager
    async def waiting(self, workflow_id: str) -> AsyncIterator[None]:
        """See Sharing."""
        if workflow_id not in self._running:
            yield
            return
        await self._do(self._claims.wait, workflow_id)
        yield
        while not await self._do(self._claims.return_, workflow_id, self._limit):
            await self._moved()

    @property
    def _limit(self) -> int:
        return self._host.settings.concurrency.stories

    async def _ended(self, workflow_id: str, payload: dict[str, Any]) -> None:
        """Until somebody has run the story to its outcome."""
        text = json.dumps(payload)
        while True:
            row = self._look.stories.get(workflow_id)
            if row is None:
                # One at a time, and none while all places are taken: every story that waits for one comes here.
                async with self._offering:
                    if has_room := self._look.at_work < self._limit:
                        await self._do(self._claims.offer, workflow_id, payload["sprint"], text, self._limit)
                        await self._look_now()
                if has_room:
                    self._wanted.set()
                    continue
            elif row.state == "ended":
                return
            elif row.state == "waiting" and not row.is_mine:
                async with self._works.slots.given_back(workflow_id):
                    while (now := self._look.stories.get(workflow_id)) is not None and now.state == "waiting":
                        await self._moved()
                continue
            await self._moved()

    async def _poll(self) -> None:
        while True:
            with suppress(EventLogAway):  # tried again
                await self._look_now()
                if await self._act():
                    continue
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S if self._look.stories else IDLE_S):
                    await self._wanted.wait()
            self._wanted.clear()

    async def _look_now(self) -> Look:
        self._look = await self._do(self._claims.look)
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()
        return self._look

    async def _moved(self) -> None:
        """Until the next look."""
        await self._looked.wait()

    async def _act(self) -> bool:
        """Does what the last look asks for; returns whether to look again at once."""
        led = self.led()
        for workflow_id, task in self._running.items():
            row = self._look.stories.get(workflow_id)
            if task.cancelling():
                continue
            if row is not None and row.cut:
                task.cancel()
            elif row is None or row.sprint in led:
                continue
            elif (place := self._sites.place(row.sprint)) is not None and place.site.board.refused:
                # Its own daemon says so, and waits for a person, if it fares no better.
                self._cannot[row.sprint] = asyncio.get_running_loop().time() + AGAIN_S
                task.cancel()
        row = choose_story(self._look, self._running, self._may_take)
        if row is None:
            return False
        payload = await self._do(self._claims.claim, row.workflow_id)
        if payload is not None:
            work = self._run(row.workflow_id, row.sprint, json.loads(payload))
            self._running[row.workflow_id] = task = asyncio.create_task(work, name=f"story-{row.workflow_id}")
            task.add_done_callback(lambda _task: self._wanted.set())
        return True

    def _may_take(self, sprint: str) -> bool:
        return self._is_open() and self._cannot.get(sprint, 0.0) <= asyncio.get_running_loop().time()

    async def _run(self, workflow_id: str, sprint: str, payload: dict[str, Any]) -> None:
        """Runs a claimed story to its outcome, or gives it back."""
        engine, slots = self._works.engine, self._works.slots
        try:
            async with self._sites.opened(await self._record(sprint)) as place:
                try:
                    slots.take(workflow_id)
                    await place.workspace.take_over(payload["story"])
                    await engine.adopt_story(workflow_id)
                    self._here.add(workflow_id)
                    await place.site.admit()
                    try:
                        await engine.run_story(workflow_id, payload)
                    except Exception:  # the holder of the sprint meets an error of ours as well
                        if not await engine.has_ended(workflow_id):
                            raise
                    await self._do(self._claims.end, workflow_id)
                except asyncio.CancelledError:
                    if not self._closing:
                        await engine.give_up_story(workflow_id)
                        await place.workspace.settle()
                        await self._do(self._claims.give_back, workflow_id)
                    raise
                finally:
                    self._here.discard(workflow_id)
                    slots.release(workflow_id)
        except Exception as error:  # noqa: BLE001 - a story's task boundary: one that cannot be run here is left to others
            self._cannot[sprint] = asyncio.get_running_loop().time() + AGAIN_S
            told = f"stories of {sprint} cannot be run here now, and are left to other daemons: {error}"
            await self._works.emit("", "story_given_back", told, "", level=Level.WARN, what=workflow_id)
            await self._do(self._claims.give_back, workflow_id)
        finally:
            del self._running[workflow_id]

    async def _record(self, sprint: str) -> SprintRecord:
        await asyncio.to_thread(self._works.folder.refresh)
        record = await asyncio.to_thread(self._works.folder.record, sprint)
        if record is None:
            raise ConfigError(f"the record of sprint {sprint} is gone")
        return record

    async def _do(self, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Returns the result of a call of the database, as soon as that can be reached."""
        while True:
            try:
                return await run_to_end(call, *args, **named)
            except EventLogAway:
                await asyncio.sleep(POLL_S)
