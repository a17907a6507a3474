"""The daemon's look at the past, now and then."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from orchestrator.domain.events import Level
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.retention import prune


class Tell(Protocol):
    """Records something that concerns the daemon."""

    def __call__(self, name: str, message: str, *, level: Level = Level.INFO, **data: object) -> Awaitable[None]:
        """See Daemon.emit."""
        ...


class Keeper:
    """Prunes what is too old or too much, beside the sprints at work."""

    def __init__(
        self, environment: Environment, settings: Callable[[], Settings], at_work: Callable[[], Collection[str]]
    ) -> None:
        self._environment, self._settings, self._at_work = environment, settings, at_work

    async def keep(self, emit: Tell) -> None:
        """Look again and again, until cancelled; what goes wrong is told, and tried again."""
        while True:
            await self._look(emit)
            await asyncio.sleep(self._settings().retention.every_s)

    async def _look(self, emit: Tell) -> None:
        try:
            pruned = await prune(self._environment, self._settings(), self._at_work())
        except (OrchestratorError, OSError) as error:
            await emit("pruning_failed", f"the past was not pruned: {error}", level=Level.WARN)
            return
        if pruned.gone or pruned.over:
            freed = f"{pruned.freed_bytes / 2**20:.0f} MB freed"
            over = "; the state folder is still larger than retention.max_mb" if pruned.over else ""
            names = [one.name for one in pruned.gone]
            level = Level.WARN if pruned.over else Level.INFO
            told = f"pruned: {', '.join(names) or 'nothing'}, {freed}{over}"
            await emit("past_pruned", told, level=level, gone=names, freed_bytes=pruned.freed_bytes)
