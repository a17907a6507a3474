"""Retention: finished sprints and analyses that are too old are deleted, in steps that a kill may cut anywhere."""

import asyncio
import shutil
import sqlite3
import uuid
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.core.analysis import AnalysisRecord
from orchestrator.core.errors import RepositoryError, SprintLocked, WorkspaceError
from orchestrator.core.ports import Clock
from orchestrator.core.sprint import Gone, Pruned, SprintRecord
from orchestrator.files.disk import disk_use
from orchestrator.files.process import SystemClock
from orchestrator.files.safe_files import discard
from orchestrator.files.safe_files import prune as sweep_folder
from orchestrator.git.mirror import drop_branches, tidy
from orchestrator.records.histories import event_url, find_end, is_sprint_finished
from orchestrator.settings import Environment, Settings
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import delete_events
from orchestrator.storage.event_table import usable
from orchestrator.storage.leases import Lease
from orchestrator.storage.locks import SprintLock, holder
from orchestrator.storage.state_folder import PRUNED, StateFolder

TREES = ("worktrees", "environments")
"""Files that a finished sprint does not need, at any age."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)


async def prune(
    environment: Environment,
    settings: Settings,
    busy: Collection[str] = (),
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Pruned:
    """Deletes finished sprints and analyses older than `retention.days`, but for the report, the result branch and the
    record of a sprint, which keeps its id and its rows from being taken again; of younger ones worktrees and
    environments.

    Nothing of a sprint goes that is not finished, is among `busy` or whose lock is held; never a backlog or the user's
    repository. After a kill at any moment the next call does the rest. Raises ConfigError when the database cannot be
    used.
    """
    folder, gone, skipped = StateFolder.of(environment), list[Gone](), list[str]()
    if not await asyncio.to_thread(folder.home.is_dir):
        return Pruned(dry_run=dry_run, gone=())
    days, mirrors = settings.retention.days, set[Path]()
    limit = LONG_AGO if days is None else (clock or SystemClock()).now() - timedelta(days=days)
    for past, ended in await asyncio.to_thread(lambda: [*_find(environment, folder, limit)]):
        is_old = ended is None or ended < limit
        if past.name in busy or await asyncio.to_thread(holder, past.place / "lock") is not None:
            skipped.append(past.name)
            continue
        freed = await asyncio.to_thread(disk_use, *past.places(folder))
        try:
            if not dry_run and not await _prune_one(past, environment, folder, is_old=is_old):
                continue
        except (SprintLocked, WorkspaceError, RepositoryError) as error:
            skipped.append(f"{past.name} ({error.message})")
            continue
        if is_old:
            gone.append(Gone(name=past.name, kind=past.kind, ended=ended, freed_bytes=freed))
            mirrors |= {folder.mirror(Path(past.record.repo))} if isinstance(past.record, SprintRecord) else set()
    if gone and not dry_run:
        await asyncio.to_thread(_shrink, folder.event_database, folder.engine_database)
        for mirror in mirrors:
            try:
                is_needed = await asyncio.to_thread(_is_needed, mirror, environment, folder)
                await tidy(mirror, drop_unreachable=not is_needed)
            except WorkspaceError as error:
                skipped.append(f"{mirror.name} ({error.message})")
    return Pruned(dry_run=dry_run, gone=tuple(gone), skipped=tuple(skipped))


@dataclass(frozen=True)
class _Past:
    """A sprint or an analysis of the state folder."""

    name: str
    place: Path
    record: SprintRecord | AnalysisRecord
    is_cut: bool
    """An earlier look began to delete it and was killed."""

    @property
    def kind(self) -> str:
        return "sprint" if isinstance(self.record, SprintRecord) else "analysis"

    def places(self, folder: StateFolder) -> tuple[Path, Path]:
        """Returns the folders that go with it."""
        return self.place, folder.replies / self.name


def _find(environment: Environment, folder: StateFolder, limit: datetime) -> Iterator[tuple[_Past, datetime | None]]:
    """Yields what is to be looked at and when it ended: None where an earlier look began to delete it. Blocks."""
    for past in _all(folder):
        if past.is_cut:
            yield past, None
        # The log is read only where something could go.
        elif past.record.started_at < limit or any((past.place / name).exists() for name in TREES):
            ended = _ended(past, environment, folder)
            yield from [(past, ended)] if ended is not None else ()


def _all(folder: StateFolder) -> Iterator[_Past]:
    """Yields every sprint that was not reset as a whole, and every analysis. Blocks."""
    for is_cut in (False, True):
        for sprint in folder.records(pruned=is_cut):
            place = folder.sprint(sprint.sprint)
            # Nothing but the record is left of one that is deleted.
            if not sprint.cleared and (not is_cut or len([*place.iterdir()]) > 1):
                yield _Past(sprint.sprint, place, sprint, is_cut)
        for analysis in folder.analyses(pruned=is_cut):
            yield _Past(analysis.analysis, folder.analysis(analysis.analysis), analysis, is_cut)


def _ended(past: _Past, environment: Environment, folder: StateFolder) -> datetime | None:
    """Returns when it ended; None while it may continue. Blocks."""
    if isinstance(past.record, SprintRecord):
        return find_end(environment, folder, past.record)
    if not past.record.finished:
        return None
    return datetime.fromtimestamp((past.place / "analysis.json").stat().st_mtime, UTC)


async def _prune_one(past: _Past, environment: Environment, folder: StateFolder, *, is_old: bool) -> bool:
    """Deletes it under its lock, or its trees. Returns False when it was continued meanwhile."""
    url = event_url(environment, folder)
    lease = Lease(url, f"prune-{uuid.uuid4().hex[:12]}", folder=str(folder.home), lost=lambda _why: None)
    async with SprintLock(past.place / "lock") as held, lease, lease.holding(past.name):
        if not is_old:
            for name in TREES:
                await asyncio.to_thread(discard, past.place / name, past.place / ".trash")
            return True
        if not past.is_cut:
            if await asyncio.to_thread(_ended, past, environment, folder) is None:
                return False
            # First of all the record: from now on no command finds it, and each step below may be done again.
            await asyncio.to_thread(folder.give_up, past.place)
        await asyncio.to_thread(delete_events, url, past.name)
        await asyncio.to_thread(_delete_workflows, past.name, environment, folder)
        if isinstance(past.record, SprintRecord):
            await drop_branches(folder.mirror(Path(past.record.repo)), past.name, past.record.story_ids, (held.fd,))
            if folder.shared is not None:
                await asyncio.to_thread(folder.shared.commits.delete, past.name)
        await asyncio.to_thread(_delete_files, past, folder)
    return True


def _delete_workflows(name: str, environment: Environment, folder: StateFolder) -> None:
    if environment.database_url is None and not folder.engine_database.exists():
        return
    # Imported here: the engine takes a second to import, and most looks find nothing.
    from orchestrator.engine.database import forget_workflows

    with usable():
        forget_workflows(environment.database_url or sqlite_url(folder.engine_database), name)


def _delete_files(past: _Past, folder: StateFolder) -> None:
    place, replies = past.places(folder)
    folder.forget(replies)
    discard(replies, place / ".trash")
    sweep_folder(place, {PRUNED, "lock", ".trash"})
    if past.kind == "analysis":
        folder.delete(place / PRUNED)
        shutil.rmtree(place)
    else:
        (place / ".trash").rmdir()
        (place / "lock").unlink()


def _shrink(*databases: Path) -> None:
    for database in databases:
        if database.is_file():
            # Another process may hold the file for long: then the next prune gives the space back.
            opened = closing(sqlite3.connect(database, isolation_level=None, timeout=10))
            with opened as connection, suppress(sqlite3.OperationalError):
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _is_needed(mirror: Path, environment: Environment, folder: StateFolder) -> bool:
    """Returns whether a sprint of this mirror is not finished. Blocks."""
    mine = [one for one in folder.records() if folder.mirror(Path(one.repo)) == mirror]
    return not all(one.cleared or is_sprint_finished(environment, folder, one) for one in mine)
