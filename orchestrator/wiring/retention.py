"""What of the past is given up: by age, by size, and at once what nobody needs once a sprint is finished."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.adapters.clock import SystemClock
from orchestrator.adapters.disk_use import disk_use
from orchestrator.adapters.mirror_upkeep import tidy
from orchestrator.adapters.sprint_lock import SprintLock, holder
from orchestrator.adapters.sqlite_shrink import shrink
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.retention import Gone, Pruned, Why
from orchestrator.domain.sprint import SprintRecord
from orchestrator.errors import SprintLocked, WorkspaceError
from orchestrator.ports import Clock
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.letting_go import LettingGo, Past
from orchestrator.wiring.sprints import finished

MB = 1024 * 1024
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


async def prune(
    environment: Environment,
    settings: Settings,
    busy: Collection[str] = (),
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Pruned:
    """One look at the past (settings `retention`): finished sprints and analyses that are too old, or the oldest while
    the state folder is too large, lose everything but record, report and result branch; younger ones their worktrees
    and environments.

    Nothing of a sprint that is not finished, is among `busy` or whose lock somebody holds; never a backlog or the
    user's repository. A kill at any moment leaves what the next look goes on with. Raises ConfigError when the database
    cannot be used.
    """
    return await _Look(environment, settings, frozenset(busy), dry_run, clock or SystemClock()).go()


class _Look:
    def __init__(
        self, environment: Environment, settings: Settings, busy: frozenset[str], dry_run: bool, clock: Clock
    ) -> None:
        self._environment, self._retention = environment, settings.retention
        self._busy, self._dry_run, self._clock = busy, dry_run, clock
        self._folder = StateFolder(environment.home)
        self._letting_go = LettingGo(environment, self._folder, clock)
        self._gone: list[Gone] = []
        self._skipped: list[str] = []
        self._marked: list[Past] = []
        """Pruned but for the upkeep of what they shared with others."""

    async def go(self) -> Pruned:
        if not await asyncio.to_thread(self._folder.home.is_dir):
            return Pruned(dry_run=self._dry_run, gone=())
        for past in await asyncio.to_thread(self._found):
            await self._let_go(past)
        size, over = await self._by_size()
        if not self._dry_run:
            await self._upkeep()
        gone, skipped = tuple(self._gone), tuple(self._skipped)
        return Pruned(dry_run=self._dry_run, gone=gone, skipped=skipped, size_bytes=size, over=over)

    def _found(self) -> list[Past]:
        """What a kill left half pruned, what is too old, and what has trees that nobody needs; oldest first."""
        days = self._retention.days
        limit = _LONG_AGO if days is None else self._clock.now() - timedelta(days=days)
        return [found for past in self._letting_go.all() if (found := self._judged(past, limit)) is not None]

    def _judged(self, past: Past, limit: datetime) -> Past | None:
        """It with why it goes, or None. The log is read only where something may come of it."""
        pruned = past.record.pruned
        if pruned is not None:
            return None if pruned.done else replace(past, why=Why.CUT_SHORT, ended=pruned.at)
        if past.record.started_at >= limit and not past.has_trees:
            return None
        ended = self._letting_go.ended(past)
        if ended is None or (ended >= limit and not past.has_trees):
            return None
        return replace(past, why=Why.AGE if ended < limit else Why.TREES, ended=ended)

    async def _by_size(self) -> tuple[int | None, bool]:
        """Prune the oldest while the folder is too large; its size and whether it still is."""
        if self._retention.max_mb is None:
            return None, False
        limit = self._retention.max_mb * MB
        size = whole = await self._size()
        if self._dry_run:
            size -= sum(one.freed_bytes for one in self._gone)
        settled = {one.name for one in self._gone if one.why is not Why.TREES}
        for past in await asyncio.to_thread(lambda: list(self._letting_go.all())):
            if size <= limit:
                break
            ended = await asyncio.to_thread(self._letting_go.ended, past) if past.name not in settled else None
            if ended is None:
                continue
            freed = await self._let_go(replace(past, why=Why.SIZE, ended=ended))
            if not self._dry_run:
                await asyncio.to_thread(self._shrink, always=True)
            size = size - freed if self._dry_run else await self._size()
        return (whole if self._dry_run else size), size > limit

    async def _size(self) -> int:
        return await asyncio.to_thread(disk_use, self._folder.home)

    async def _let_go(self, past: Past) -> int:
        """One of them, if nobody is at work on it; about how many bytes went."""
        lock = past.place / "lock"
        if past.name in self._busy or await asyncio.to_thread(holder, lock) is not None:
            self._skipped.append(past.name)
            return 0
        freed = await asyncio.to_thread(self._letting_go.weigh, past)
        if not self._dry_run and not await self._removed(past, lock):
            return 0
        self._gone.append(Gone(name=past.name, kind=past.kind, why=past.why, ended=past.ended, freed_bytes=freed))
        return freed

    async def _removed(self, past: Past, lock: Path) -> bool:
        try:
            async with SprintLock(lock) as held:
                left = await self._letting_go.remove(past, held.fd)
        except (SprintLocked, WorkspaceError) as error:
            self._skipped.append(f"{past.name} ({error.message})")
            return False
        if left is not None and left.record.pruned is not None:
            self._marked.append(left)
        return left is not None

    async def _upkeep(self) -> None:
        """Give the room back to the disk; only then nothing of them is left to do."""
        await asyncio.to_thread(self._shrink, always=bool(self._marked))
        repos = {past.record.repo for past in self._marked if isinstance(past.record, SprintRecord)}
        for mirror in {self._folder.mirror(Path(repo)) for repo in repos}:
            await self._tidy(mirror)
        for past in self._marked:
            await asyncio.to_thread(self._letting_go.finish, past)

    def _shrink(self, *, always: bool) -> None:
        for database in (self._folder.event_database, self._folder.engine_database):
            shrink(database, always=always)

    async def _tidy(self, mirror: Path) -> None:
        def unfinished() -> bool:
            mine = [one for one in self._folder.records() if self._folder.mirror(Path(one.repo)) == mirror]
            return not all(one.cleared or finished(self._environment, self._folder, one) for one in mine)

        try:
            await tidy(mirror, drop_unreachable=not await asyncio.to_thread(unfinished))
        except WorkspaceError as error:
            self._skipped.append(f"{mirror.name} ({error.message})")
