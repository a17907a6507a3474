"""The daemon's sprints: those at work, each from its lock to its report, those that wait, those that have ended."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from orchestrator.app.sprint_runtime import Site, SprintDriver
from orchestrator.core.daemon import SprintState
from orchestrator.core.errors import (
    BacklogError,
    BaseUnusable,
    ConfigError,
    RepositoryError,
    SprintLocked,
    WorkspaceError,
)
from orchestrator.core.event import Level
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import BacklogContent
from orchestrator.daemon.shared_stories import AGAIN_S, Host, Place, Sites
from orchestrator.git.repositories import SharedRepository
from orchestrator.records.histories import read_histories
from orchestrator.records.sprint_reader import end_event, save_report


class ServedSprint:
    """Drives one sprint until it has ended; `driver` is there while it is at work."""

    def __init__(self, record: SprintRecord, content: BacklogContent, host: Host, sites: Sites) -> None:
        self.record, self._content = record, content
        self._host, self._sites, self._works = host, sites, host.equipment.works
        self.driver: SprintDriver | None = None

    async def drive(self) -> None:
        """Until every story has its outcome or the sprint was reset. Raises SprintLocked, RepositoryError,
        WorkspaceError, ConfigError before anything is done when it cannot be worked on now; BaseUnusable also when
        nothing has changed since its base could not be run."""
        folder, sprint = self._works.folder, self.record.sprint
        async with self._works.lease.holding(sprint):
            await asyncio.to_thread(folder.refresh)
            now = await asyncio.to_thread(folder.record, sprint)
            if now is not None:  # another machine may have written it since it was read here
                self.record = now
            async with self._sites.opened(self.record) as place:
                place.site.record = self.record
                if await self._moved(place):
                    return
                repository = self._host.repository
                await repository.check_push(place.workspace, self.record)
                looked_at = self._looked_at(place)  # the settings may change while it is tried
                try:
                    await self._work(place.site)
                except BaseUnusable as error:
                    self._works.refused[sprint] = (looked_at, error.message)
                    raise
                finally:
                    self.driver = None
                if not self.record.cleared:
                    await self._conclude(place, repository)

    def _looked_at(self, place: Place) -> object:
        """Returns what a sprint whose base cannot be run waits for another one of."""
        return place.head, self._content, place.site.settings

    async def _moved(self, place: Place) -> bool:
        """Returns whether the sprint starts from another commit, as its base could not be run and there is a newer one.

        The record is another one then, and the daemon begins with that. Raises BaseUnusable when nothing has changed.
        """
        record, refused, head = self.record, self._works.refused.get(self.record.sprint), place.head
        if refused is None:
            return False
        if head != record.base:
            await place.workspace.remove_result()
            moved = record.model_copy(update={"base": head})
            await asyncio.to_thread(self._works.folder.save, moved)
            del self._works.refused[record.sprint]
            return True
        looked_at, why = refused
        if looked_at == self._looked_at(place):
            raise BaseUnusable(why)
        return False

    async def _work(self, site: Site) -> None:
        record, works = self.record, self._works
        histories = await asyncio.to_thread(read_histories, self._host.equipment.environment, works.folder, record)
        continued = any(history.started for history in histories.values())
        runner = self._sites.sharing
        self.driver = driver = SprintDriver(site, self._content, histories, continued=continued, runner=runner)
        await driver.begin()
        for warning in () if continued else record.warnings:
            await self._warn(str(warning))
        await driver.drive(self._warn, stays=True)
        self.record = site.record

    async def _warn(self, text: str) -> None:
        await self._works.emit(self.record.sprint, "backlog_warning", text, level=Level.WARN)

    async def _conclude(self, place: Place, repository: SharedRepository) -> None:
        record = self.record
        # In this order: a sprint with a report and this event is not looked at again.
        unpushed = await repository.push(place.workspace, record)
        report, path, ended = await asyncio.to_thread(
            save_report, self._host.equipment.environment, record, None, place.secrets
        )
        branch = repository.branch(record.sprint)
        await self._works.sink.emit(end_event(record, report, path, ended, push_to=branch, unpushed=unpushed))


NOT_NOW = (SprintLocked, RepositoryError, WorkspaceError, ConfigError, BacklogError)
"""Errors that may pass by themselves, or after a person's action."""
MOMENT_S = 1.0
"""The same where another process has the sprint's lock: to apply an order there takes a moment."""


@dataclass(frozen=True)
class _Waiting:
    """Something that could not be worked on."""

    reason: str
    until: float
    """On the loop's clock."""
    told: bool


class Fleet:
    """`tell(what, reason)` is called once for each reason for which something cannot be worked on."""

    def __init__(self, tell: Callable[[str, str], Awaitable[None]], wake: Callable[[], None]) -> None:
        self._tell, self._wake = tell, wake
        self._tasks: dict[asyncio.Task[None], ServedSprint] = {}
        self._waiting: dict[str, _Waiting] = {}
        self.ended: dict[str, SprintRecord] = {}
        """Sprint → its record when it had ended."""

    @property
    def served(self) -> list[ServedSprint]:
        """The sprints at work."""
        return [*self._tasks.values()]

    @property
    def at_work(self) -> frozenset[str]:
        """Names of the sprints at work."""
        return frozenset(served.record.sprint for served in self.served)

    @property
    def backlogs(self) -> frozenset[str]:
        """Backlogs of sprints at work."""
        return frozenset(served.record.backlog for served in self.served)

    def states(self) -> tuple[SprintState, ...]:
        """Returns how each sprint is."""
        states = []
        for served in self.served:
            # Why it could not be worked on before stays until it has its site.
            reason = served.driver.held if served.driver is not None else self.why_waiting(served.record.sprint)
            phase: Literal["paused", "running"] = "paused" if reason else "running"
            name, backlog = served.record.sprint, served.record.backlog
            budgets = served.driver.budgets if served.driver is not None else ()
            states.append(SprintState(sprint=name, backlog=backlog, phase=phase, reason=reason, budgets=budgets))
        return tuple(states)

    def is_free(self, sprint: str) -> bool:
        """Returns whether a sprint is not at work and may be tried now."""
        waiting = self._waiting.get(sprint)
        return sprint not in self.at_work and (waiting is None or waiting.until <= asyncio.get_running_loop().time())

    def why_waiting(self, what: str) -> str:
        """Returns why a sprint or a backlog cannot be worked on now; "" when it can."""
        waiting = self._waiting.get(what)
        return waiting.reason if waiting is not None else ""

    def begin(self, record: SprintRecord, content: BacklogContent, host: Host, sites: Sites) -> None:
        """Works on a sprint from now on."""
        served = ServedSprint(record, content, host, sites)
        task = asyncio.create_task(served.drive(), name=f"sprint-{record.sprint}")
        task.add_done_callback(lambda _task: self._wake())
        self._tasks[task] = served

    async def reap(self) -> None:
        """Looks what became of sprints that are at work no more. Raises what one failed of that no person can mend."""
        done = [task for task in self._tasks if task.done()]
        for task in done:
            served = self._tasks.pop(task)
            try:
                task.result()
            except NOT_NOW as error:
                await self.waits(served.record.sprint, error.message, for_a_moment=isinstance(error, SprintLocked))
            else:
                self.goes(served.record.sprint)
                self.ended[served.record.sprint] = served.record

    async def waits(self, what: str, reason: str, *, for_a_moment: bool = False) -> None:
        """Records that it cannot be worked on for a while; reports it once until the reason changes.

        What may be over in a moment is said only when it is not.
        """
        before = self._waiting.get(what)
        said = before is not None and before.told and before.reason == reason
        tell = not said and (before is not None or not for_a_moment)
        until = asyncio.get_running_loop().time() + (MOMENT_S if for_a_moment else AGAIN_S)
        self._waiting[what] = _Waiting(reason, until, said or tell)
        if tell:
            await self._tell(what, reason)

    def goes(self, what: str) -> None:
        """Records that it could be worked on."""
        self._waiting.pop(what, None)

    async def end(self) -> None:
        """Cancels what is at work; the next start resumes it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
