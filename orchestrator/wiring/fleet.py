"""The sprints that the daemon has at work, those that cannot be worked on now, and those that have ended."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.domain.daemon import SprintState
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.story import BacklogContent
from orchestrator.errors import BacklogError, ConfigError, RepositoryError, SprintLocked, WorkspaceError
from orchestrator.settings import Settings
from orchestrator.wiring.repositories import SharedRepository
from orchestrator.wiring.serving import Equipment, ServedSprint

AGAIN_S = 30.0
"""Seconds until a sprint that could not be worked on is tried again."""
MOMENT_S = 1.0
"""The same where somebody has the sprint's lock: whoever carries out an order there is done in a moment."""
NOT_NOW = (SprintLocked, RepositoryError, WorkspaceError, ConfigError, BacklogError)
"""What may pass by itself, or once somebody has seen to it."""


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
        """How each sprint is."""
        return tuple(_state(served, self.why_waiting(served.record.sprint)) for served in self.served)

    def is_free(self, sprint: str) -> bool:
        """Whether a sprint is not at work and may be tried now."""
        waiting = self._waiting.get(sprint)
        return sprint not in self.at_work and (waiting is None or waiting.until <= asyncio.get_running_loop().time())

    def why_waiting(self, what: str) -> str:
        """Why a sprint or a backlog cannot be worked on now; "" when it can."""
        waiting = self._waiting.get(what)
        return waiting.reason if waiting is not None else ""

    def begin(
        self,
        record: SprintRecord,
        content: BacklogContent,
        equipment: Equipment,
        settings: Settings,
        repository: SharedRepository,
    ) -> None:
        """Work on a sprint from now on."""
        served = ServedSprint(record, content, equipment, settings)
        task = asyncio.create_task(served.drive(repository), name=f"sprint-{record.sprint}")
        task.add_done_callback(lambda _task: self._wake())
        self._tasks[task] = served

    async def reap(self) -> bool:
        """See what became of sprints that are at work no more; whether there are any. Raises what one failed of that
        nobody can see to."""
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
        return bool(done)

    async def waits(self, what: str, reason: str, *, for_a_moment: bool = False) -> None:
        """It cannot be worked on for a while; said once until the reason is another one.

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
        """It could be worked on."""
        self._waiting.pop(what, None)

    def change(self, settings: Settings) -> None:
        """What begins from now on goes by these; what could not be worked on is tried again."""
        self._waiting.clear()
        for served in self.served:
            served.change(settings)

    async def end(self) -> None:
        """Cut whatever is at work; it is gone on with at the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _state(served: ServedSprint, waited: str) -> SprintState:
    """`waited` is why it could not be worked on before: that stays until it has its site."""
    reason = served.site.held if served.site is not None else waited
    return SprintState(
        sprint=served.record.sprint,
        backlog=served.record.backlog,
        phase="paused" if reason else "running",
        reason=reason,
    )
