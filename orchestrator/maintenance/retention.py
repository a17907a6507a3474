"""Retention: finished sprints and analyses are pruned by age and by size, in steps that a kill may cut anywhere."""

import asyncio
import sqlite3
import uuid
from collections.abc import Collection
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.core.analysis import AnalysisRecord
from orchestrator.core.errors import RepositoryError, SprintLocked, WorkspaceError
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
from orchestrator.records.histories import event_url, find_end, is_sprint_finished, read_histories
from orchestrator.settings import Environment, Settings
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventPruner, EventStore
from orchestrator.storage.event_table import usable
from orchestrator.storage.leases import Lease
from orchestrator.storage.locks import SprintLock, holder
from orchestrator.storage.state_folder import StateFolder

KEPT = frozenset({"sprint.json", "analysis.json", "lock", ".trash"})
"""Files that stay in the folder of a pruned sprint or analysis; its trash is emptied."""
TREES = ("worktrees", "environments")
"""Files that a finished sprint does not need."""
MB = 1024 * 1024
LONG_AGO = datetime.min.replace(tzinfo=UTC)


async def prune(
    environment: Environment,
    settings: Settings,
    busy: Collection[str] = (),
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Pruned:
    """Prunes once by the settings of `retention`: finished sprints and analyses that are too old, or the oldest while
    the state folder is too large, lose everything but record, report and result branch; younger ones their worktrees
    and environments.

    Nothing of a sprint goes that is not finished, is among `busy` or whose lock is held; never a backlog or the user's
    repository. After a kill at any moment the next call does the rest. Raises ConfigError when the database cannot be
    used.
    """
    return await _Pruner(environment, settings, frozenset(busy), dry_run, clock or SystemClock()).prune()


@dataclass(frozen=True)
class _Past:
    """A sprint or an analysis of the state folder."""

    name: str
    place: Path
    record: SprintRecord | AnalysisRecord
    why: Why = Why.AGE
    ended: datetime | None = None

    @property
    def kind(self) -> str:
        return "sprint" if isinstance(self.record, SprintRecord) else "analysis"

    @property
    def has_trees(self) -> bool:
        """Returns whether its trees exist, or a kill left some in its trash. Blocks."""
        trash = self.place / ".trash"
        return any((self.place / name).exists() for name in TREES) or (trash.is_dir() and any(trash.iterdir()))


class _Pruner:
    def __init__(
        self, environment: Environment, settings: Settings, busy: frozenset[str], dry_run: bool, clock: Clock
    ) -> None:
        self._environment, self._retention = environment, settings.retention
        self._busy, self._dry_run, self._clock = busy, dry_run, clock
        self._folder = StateFolder.of(environment)
        self._url = event_url(environment, self._folder)
        self._commits = self._folder.shared.commits if self._folder.shared is not None else None
        self._gone: list[Gone] = []
        self._skipped: list[str] = []
        self._marked: list[_Past] = []
        """Pruned but for the upkeep of what they shared with others."""

    async def prune(self) -> Pruned:
        if not await asyncio.to_thread(self._folder.home.is_dir):
            return Pruned(dry_run=self._dry_run, gone=())
        for past in await asyncio.to_thread(self._find):
            await self._prune_one(past)
        size, over = await self._prune_by_size()
        if not self._dry_run:
            await self._give_space_back()
        gone, skipped = tuple(self._gone), tuple(self._skipped)
        return Pruned(dry_run=self._dry_run, gone=gone, skipped=skipped, size_bytes=size, over=over)

    def _all(self) -> list[_Past]:
        """Returns every sprint that was not reset as a whole, and every analysis, oldest first."""
        found = [
            _Past(one.sprint, self._folder.sprint(one.sprint), one) for one in self._folder.records() if not one.cleared
        ]
        found += [_Past(one.analysis, self._folder.analysis(one.analysis), one) for one in self._folder.analyses()]
        return sorted(found, key=lambda past: past.record.started_at)

    def _find(self) -> list[_Past]:
        """Returns what a kill left half pruned, what is too old, and what has trees; reads the log only if needed."""
        days, chosen = self._retention.days, []
        limit = LONG_AGO if days is None else self._clock.now() - timedelta(days=days)
        for past in self._all():
            pruned = past.record.pruned
            if pruned is not None and not pruned.done:
                chosen.append(replace(past, why=Why.CUT_SHORT, ended=pruned.at))
            elif pruned is None and (past.record.started_at < limit or past.has_trees):
                ended = self._ended(past)
                if ended is not None and (ended < limit or past.has_trees):
                    chosen.append(replace(past, why=Why.AGE if ended < limit else Why.TREES, ended=ended))
        return chosen

    def _ended(self, past: _Past) -> datetime | None:
        """Returns when it ended; None while it may continue, or when it was pruned."""
        record = past.record
        if record.pruned is not None:
            return None
        if isinstance(record, SprintRecord):
            known = self._folder.report(past.name).exists()
            return find_end(self._environment, self._folder, record) if known else None
        if not record.finished:
            return None
        return datetime.fromtimestamp((past.place / "analysis.json").stat().st_mtime, UTC)

    async def _prune_by_size(self) -> tuple[int | None, bool]:
        """Prunes the oldest while the folder is too large. Returns its size and whether it still is."""
        if self._retention.max_mb is None:
            return None, False
        limit = self._retention.max_mb * MB
        size = whole = await asyncio.to_thread(disk_use, self._folder.home)
        if self._dry_run:
            size -= sum(one.freed_bytes for one in self._gone)
        settled = {one.name for one in self._gone if one.why is not Why.TREES}
        for past in await asyncio.to_thread(self._all):
            if size <= limit:
                break
            ended = await asyncio.to_thread(self._ended, past) if past.name not in settled else None
            if ended is None:
                continue
            # Databases shrink only when they are rewritten, and what one frees is known only then.
            freed = await self._prune_one(replace(past, why=Why.SIZE, ended=ended))
            if self._dry_run:
                size -= freed
            else:
                await asyncio.to_thread(self._shrink)
                size = await asyncio.to_thread(disk_use, self._folder.home)
        return (whole if self._dry_run else size), size > limit

    async def _prune_one(self, past: _Past) -> int:
        """Prunes one, if no one is at work on it. Returns about how many bytes went."""
        lock = past.place / "lock"
        if past.name in self._busy or await asyncio.to_thread(holder, lock) is not None:
            self._skipped.append(past.name)
            return 0
        freed = await asyncio.to_thread(self._weigh, past)
        if not self._dry_run:
            try:
                url, one_time = self._url, f"prune-{uuid.uuid4().hex[:12]}"
                lease = Lease(url, one_time, folder=str(self._folder.home), lost=lambda _why: None)
                async with SprintLock(lock) as held, lease, lease.holding(past.name):
                    if not await self._remove(past, held.fd):
                        return 0
            except (SprintLocked, WorkspaceError, RepositoryError) as error:
                self._skipped.append(f"{past.name} ({error.message})")
                return 0
        self._gone.append(Gone(name=past.name, kind=past.kind, why=past.why, ended=past.ended, freed_bytes=freed))
        return freed

    def _weigh(self, past: _Past) -> int:
        if past.why is Why.TREES:
            return disk_use(*(past.place / name for name in TREES))
        inside = [entry for entry in past.place.iterdir() if entry.name not in KEPT]
        files = disk_use(*inside, self._folder.replies / past.name, self._folder.edits(past.name))
        if self._environment.database_url is None and not self._folder.event_database.exists():
            return files
        commits = self._commits.size(past.name) if self._commits is not None and past.kind == "sprint" else 0
        with closing(EventPruner(self._url)) as events:
            return files + commits + events.weigh(past.name)

    async def _remove(self, past: _Past, lock_fd: int) -> bool:
        """Removes it under its lock. Returns False when it was restarted meanwhile."""
        record = await asyncio.to_thread(self._read_again, past)
        if record is None:
            return False
        if past.why is Why.TREES:
            kept = {entry.name for entry in await asyncio.to_thread(lambda: [*past.place.iterdir()])} - {*TREES}
            await asyncio.to_thread(sweep_folder, past.place, kept)
            return True
        # First of all the mark: from now on no command looks for what is about to go.
        pruning = record.pruned
        if pruning is None:
            pruning = await asyncio.to_thread(self._mark, record)
        # Events, rows, files, branches: each may be dropped again, so that a kill between two of them costs nothing.
        await self._drop_events(past, pruning)
        await asyncio.to_thread(self._drop_rows, past)
        await asyncio.to_thread(self._drop_files, past)
        if isinstance(record, SprintRecord):
            done = [story for story, status in pruning.statuses.items() if status is StoryStatus.DONE]
            await drop_branches(self._folder.mirror(Path(record.repo)), past.name, done, (lock_fd,))
            if self._commits is not None:
                await asyncio.to_thread(self._commits.delete, past.name)
        self._marked.append(replace(past, record=record.model_copy(update={"pruned": pruning})))
        return True

    def _read_again(self, past: _Past) -> SprintRecord | AnalysisRecord | None:
        """Returns the current record; None when it was reset as a whole, is gone, or may continue again."""
        now = next((one for one in self._all() if (one.kind, one.name) == (past.kind, past.name)), None)
        if now is None or (now.record.pruned is None and self._ended(now) is None):
            return None
        return now.record

    def _mark(self, record: SprintRecord | AnalysisRecord) -> Pruning:
        statuses = {}
        if isinstance(record, SprintRecord):
            histories = read_histories(self._environment, self._folder, record)
            statuses = {story: history.status for story, history in histories.items()}
        pruning = Pruning(at=self._clock.now(), statuses=statuses)
        self._save(record.model_copy(update={"pruned": pruning}))
        return pruning

    def _save(self, record: SprintRecord | AnalysisRecord) -> None:
        if isinstance(record, SprintRecord):
            self._folder.save(record)
        else:
            self._folder.save_analysis(record)

    async def _drop_events(self, past: _Past, pruning: Pruning) -> None:
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

        def drop() -> None:
            with closing(EventPruner(self._url)) as events:
                events.prune(past.name, event.id)

        await asyncio.to_thread(drop)

    def _drop_rows(self, past: _Past) -> None:
        if self._environment.database_url is None and not self._folder.engine_database.exists():
            return
        # Imported here: the engine takes a second to import, and most looks find nothing.
        from orchestrator.engine.database import forget_workflows

        with usable():
            forget_workflows(self._environment.database_url or sqlite_url(self._folder.engine_database), past.name)

    def _drop_files(self, past: _Past) -> None:
        self._folder.forget(self._folder.replies / past.name)
        for place in (self._folder.replies / past.name, self._folder.edits(past.name)):
            discard(place, past.place / ".trash")
        sweep_folder(past.place, KEPT)

    async def _give_space_back(self) -> None:
        """Shrinks databases and mirrors; only then nothing of the pruned ones is left to do."""
        if self._marked:
            await asyncio.to_thread(self._shrink)
        repos = {past.record.repo for past in self._marked if isinstance(past.record, SprintRecord)}
        for mirror in {self._folder.mirror(Path(repo)) for repo in repos}:
            try:
                await tidy(mirror, drop_unreachable=not await asyncio.to_thread(self._is_needed, mirror))
            except WorkspaceError as error:
                self._skipped.append(f"{mirror.name} ({error.message})")
        for past in self._marked:
            assert past.record.pruned is not None
            pruning = past.record.pruned.model_copy(update={"done": True})
            await asyncio.to_thread(self._save, past.record.model_copy(update={"pruned": pruning}))

    def _shrink(self) -> None:
        for database in (self._folder.event_database, self._folder.engine_database):
            if database.is_file():
                opened = closing(sqlite3.connect(database, isolation_level=None, timeout=10))
                # Another process may hold the file for long: then the next prune gives the space back.
                with opened as connection, suppress(sqlite3.OperationalError):
                    connection.execute("VACUUM")
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _is_needed(self, mirror: Path) -> bool:
        """Returns whether a sprint of this mirror is not finished."""
        mine = [one for one in self._folder.records() if self._folder.mirror(Path(one.repo)) == mirror]
        return not all(one.cleared or is_sprint_finished(self._environment, self._folder, one) for one in mine)
