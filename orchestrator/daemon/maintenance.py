"""What the daemon sees to now and then: its past."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from orchestrator.core.errors import OrchestratorError
from orchestrator.core.event import Level
from orchestrator.core.sprint import Pruned
from orchestrator.maintenance.retention import prune
from orchestrator.settings import Environment, Settings


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
        self._looking = asyncio.Lock()

    async def keep(self, emit: Tell) -> None:
        """Look again and again, until cancelled; what goes wrong is told, and tried again."""
        while True:
            await self._look(emit)
            await asyncio.sleep(self._settings().retention.every_s)

    async def _look(self, emit: Tell) -> None:
        try:
            await self.prune(emit, {}, dry_run=False)
        except (OrchestratorError, OSError) as error:
            await emit("pruning_failed", f"the past was not pruned: {error}", level=Level.WARN)

    async def prune(self, emit: Tell, limits: Mapping[str, float | None], *, dry_run: bool) -> Pruned:
        """One look now, one at a time; `limits`: names of `retention` with what counts in their place.

        What went is told, unless nothing did. Raises ConfigError when the database cannot be used.
        """
        settings = self._settings()
        wanted = settings.model_copy(update={"retention": settings.retention.model_copy(update=limits)})
        async with self._looking:
            pruned = await prune(self._environment, wanted, self._at_work(), dry_run=dry_run)
        if not dry_run:
            await self._told(emit, pruned)
        return pruned

    async def _told(self, emit: Tell, pruned: Pruned) -> None:
        if pruned.gone or pruned.over:
            freed = f"{pruned.freed_bytes / 2**20:.0f} MB freed"
            over = "; the state folder is still larger than retention.max_mb" if pruned.over else ""
            names = [one.name for one in pruned.gone]
            level = Level.WARN if pruned.over else Level.INFO
            told = f"pruned: {', '.join(names) or 'nothing'}, {freed}{over}"
            await emit("past_pruned", told, level=level, gone=names, freed_bytes=pruned.freed_bytes)
