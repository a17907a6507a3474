"""What of the past is given up: by age, by size, and at once what nobody needs once a sprint is finished.

Removing one finished sprint or analysis, in steps that a kill may cut anywhere: given again, the rest is done.
"""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.analysis.store import JOB, AnalysisStore
from orchestrator.app.sprints import ended_at, event_url, finished, histories_of
from orchestrator.core.analysis import AnalysisRecord
from orchestrator.core.errors import SprintLocked, WorkspaceError
from orchestrator.core.event import Event
from orchestrator.core.ports import Clock
from orchestrator.core.sprint import (
    ANALYSIS_PRUNED,
    SPRINT_PRUNED,
    Gone,
    Pruned,
    Pruning,
    SprintRecord,
    StoryStatus,
    Why,
)
from orchestrator.files.disk import disk_use
from orchestrator.files.process import SystemClock
from orchestrator.files.safe_files import discard
from orchestrator.files.safe_files import prune as sweep_folder
from orchestrator.git.mirror import drop_branches, tidy
from orchestrator.settings import Environment, Settings
from orchestrator.storage.event_store import EventPruner, EventStore
from orchestrator.storage.event_table import sqlite_url, usable
from orchestrator.storage.locks import SprintLock, holder
from orchestrator.storage.snapshots import shrink
from orchestrator.storage.state_folder import StateFolder

KEPT = frozenset({"sprint.json", "analysis.json", JOB, "lock", ".trash"})
"""What stays in the folder of a pruned sprint or analysis; its trash is emptied."""
TREES = ("worktrees", "environments")


@dataclass(frozen=True)
class Past:
    """A sprint or an analysis of the state folder."""

    name: str
    place: Path
    record: SprintRecord | AnalysisRecord
    why: Why = Why.AGE
    ended: datetime | None = None

    @property
    def kind(self) -> str:
        """How people call it."""
        return "sprint" if isinstance(self.record, SprintRecord) else "analysis"

    @property
    def has_trees(self) -> bool:
        """Whether it has what nobody needs once it is finished, or a kill left some of that. Blocks."""
        trash = self.place / ".trash"
        return any((self.place / name).exists() for name in TREES) or (trash.is_dir() and any(trash.iterdir()))


class LettingGo:
    """Looks at what a state folder holds of the past, and removes it."""

    def __init__(self, environment: Environment, folder: StateFolder, clock: Clock) -> None:
        self._environment, self._folder, self._clock = environment, folder, clock
        self._url = event_url(environment, folder)

    def all(self) -> Iterator[Past]:
        """Every sprint that was not reset as a whole, and every analysis, oldest first. Blocks."""
        sprints = [one for one in self._folder.records() if not one.cleared]
        found = [Past(one.sprint, self._folder.sprint(one.sprint), one) for one in sprints]
        found += [Past(one.analysis, self._folder.analysis(one.analysis), one) for one in self._folder.analyses()]
        yield from sorted(found, key=lambda one: one.record.started_at)

    def ended(self, past: Past) -> datetime | None:
        """When it ended; None while it may go on, or when it was pruned. Blocks."""
        record = past.record
        if record.pruned is not None:
            return None
        if isinstance(record, SprintRecord):
            known = self._folder.report(past.name).exists()
            return ended_at(self._environment, self._folder, record) if known else None
        if not record.finished:
            return None
        return datetime.fromtimestamp((past.place / "analysis.json").stat().st_mtime, UTC)

    def weigh(self, past: Past) -> int:
        """About how many bytes would go with it. Blocks."""
        if past.why is Why.TREES:
            return disk_use(*(past.place / name for name in TREES))
        inside = [entry for entry in past.place.iterdir() if entry.name not in KEPT]
        files = disk_use(*inside, self._folder.replies / past.name, self._folder.edits(past.name))
        if self._environment.database_url is None and not self._folder.event_database.exists():
            return files
        events = EventPruner(self._url)
        try:
            return files + events.weigh(past.name)
        finally:
            events.close()

    async def remove(self, past: Past, lock_fd: int) -> Past | None:
        """Do it; the caller holds its lock. What is left of it, or None when it was begun anew meanwhile."""
        same = await asyncio.to_thread(self._again, past)
        if same is None or (same.record.pruned is None and await asyncio.to_thread(self.ended, same) is None):
            return None
        if past.why is Why.TREES:
            await asyncio.to_thread(self._drop_trees, past)
            return past
        pruning = same.record.pruned
        if pruning is None:
            pruning = await asyncio.to_thread(self._mark, same)
        await self._drop_events(past, pruning)
        await asyncio.to_thread(self._drop_rows, past)
        await asyncio.to_thread(self._drop_files, past)
        if isinstance(past.record, SprintRecord):
            done = [story for story, status in pruning.statuses.items() if status is StoryStatus.DONE]
            await drop_branches(self._folder.mirror(Path(past.record.repo)), past.name, done, (lock_fd,))
        return replace(past, record=same.record.model_copy(update={"pruned": pruning}))

    def _again(self, past: Past) -> Past | None:
        """As it is now; None when it was reset as a whole or is gone."""
        record: SprintRecord | AnalysisRecord | None = self._folder.record(past.name)
        if isinstance(past.record, AnalysisRecord):
            record = next((one for one in self._folder.analyses() if one.analysis == past.name), None)
        cleared = isinstance(record, SprintRecord) and record.cleared
        return None if record is None or cleared else replace(past, record=record)

    def finish(self, past: Past) -> None:
        """Nothing of it is left to remove. Blocks."""
        if past.record.pruned is not None:
            self._save(past, past.record.pruned.model_copy(update={"done": True}))

    def _mark(self, past: Past) -> Pruning:
        """First of all: from now on nobody looks for what is about to go."""
        statuses = {}
        if isinstance(past.record, SprintRecord):
            histories = histories_of(self._environment, self._folder, past.record)
            statuses = {story: history.status for story, history in histories.items()}
        pruning = Pruning(at=self._clock.now(), statuses=statuses)
        self._save(past, pruning)
        return pruning

    def _save(self, past: Past, pruning: Pruning) -> None:
        after = past.record.model_copy(update={"pruned": pruning})
        if isinstance(after, SprintRecord):
            self._folder.save(after)
        else:
            self._folder.save_analysis(after)

    async def _drop_events(self, past: Past, pruning: Pruning) -> None:
        name = SPRINT_PRUNED if past.kind == "sprint" else ANALYSIS_PRUNED
        left = "its record, its report and its result branch are" if past.kind == "sprint" else "its record is"
        event = Event(
            id=f"{past.name}:{name}",
            time=pruning.at,
            name=name,
            message=f"{past.kind} {past.name} was pruned: {left} left",
            sprint=past.name,
            data={"statuses": {story: status.value for story, status in pruning.statuses.items()}},
        )
        async with EventStore(self._url) as sink:
            await sink.emit(event)
        await asyncio.to_thread(self._prune_events, past.name, event.id)

    def _prune_events(self, name: str, last_word: str) -> None:
        events = EventPruner(self._url)
        try:
            events.prune(name, last_word)
        finally:
            events.close()

    def _drop_rows(self, past: Past) -> None:
        if self._environment.database_url is None and not self._folder.engine_database.exists():
            return
        # Imported here: the engine takes a second to import, and most looks find nothing.
        from orchestrator.engine.database import forget_workflows

        with usable():
            forget_workflows(self._environment.database_url or sqlite_url(self._folder.engine_database), past.name)

    def _drop_files(self, past: Past) -> None:
        for place in (self._folder.replies / past.name, self._folder.edits(past.name)):
            discard(place, past.place / ".trash")
        if past.kind == "analysis":
            AnalysisStore(self._environment).strip(past.name)
        sweep_folder(past.place, KEPT)

    def _drop_trees(self, past: Past) -> None:
        sweep_folder(past.place, {entry.name for entry in past.place.iterdir()} - {*TREES})


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
