"""`restore`: a backup becomes the state folder, here or at another place, whole or not at all."""

import asyncio
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from orchestrator.core.daemon import BackupHeader, Restored
from orchestrator.core.errors import ConfigError
from orchestrator.files.archive import unpack
from orchestrator.settings import Environment
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.snapshots import read_in
from orchestrator.storage.state_folder import RESTORING, StateFolder

NOT_COUNTED = frozenset({".gitignore", "daemon", "lost+found"})
"""Names that an empty folder may contain, because it may be the root of a separate disk."""
LAST = "sprints"
"""Moved into place last: until it is there, no command finds a sprint."""


async def restore(
    environment: Environment, source: Path, tell: Callable[[str], None] = lambda _warning: None
) -> Restored:
    """Makes a backup the state folder, which must be empty, and the database of DATABASE_URL, if it was one of those.

    Everything is unpacked and checked first; `tell` gets a warning when the folder was open to other users. Given again
    after a kill, it starts again; until it has ended no run begins in the folder. Raises ConfigError, and SprintLocked
    while a daemon is at work in it.
    """
    folder = StateFolder.of(environment)
    await asyncio.to_thread(_expect_empty, folder.home)
    try:
        if warning := await asyncio.to_thread(folder.make_private):
            tell(warning)
        async with SprintLock(folder.daemon_lock, f"{folder.home} as its daemon"):
            header, files = await _checked(environment, folder.home, source)
            # The only step after which the folder is no longer empty.
            await asyncio.to_thread(_take_over, folder.home)
    except OSError as error:
        raise ConfigError(f"cannot use the state folder {folder.home}: {error.strerror or error}") from error
    return Restored(header=header, home=str(folder.home), files=files)


async def _checked(environment: Environment, home: Path, source: Path) -> tuple[BackupHeader, int]:
    """Does everything but the last step, which cannot fail for what the backup holds."""
    staging = home / RESTORING
    try:
        header, files = await asyncio.to_thread(_unpacked, environment, home, source)
        if header.database == "postgres" and environment.database_url is not None:
            await _fill(environment.database_url, staging / "postgres")
        await asyncio.to_thread(_relocate, staging, Path(header.home), home)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)
        raise
    return header, files


def _expect_empty(home: Path) -> None:
    """Raises ConfigError; what an earlier restore that was cut short has left counts as nothing."""
    if not home.exists() or (home / RESTORING).is_dir():
        return
    held = sorted(entry.name for entry in home.iterdir() if entry.name not in NOT_COUNTED)
    if held:
        raise ConfigError(f"{home} is not empty (it holds {held[0]}); a backup is restored into an empty state folder")


def _unpacked(environment: Environment, home: Path, source: Path) -> tuple[BackupHeader, int]:
    staging = home / RESTORING
    staging.mkdir(exist_ok=True)
    _clear(entry for entry in home.iterdir() if entry.name not in {*NOT_COUNTED, RESTORING})
    _clear(staging.iterdir())
    header, files = unpack(source, staging)
    wanted = "postgres" if environment.database_url is not None else "sqlite"
    if header.database != wanted:
        hint = "set DATABASE_URL to an empty one" if wanted == "sqlite" else "restore it without DATABASE_URL"
        raise ConfigError(f"this backup is of a {header.database} database; {hint}")
    return header, files


async def _fill(url: str, tables: Path) -> None:
    # Imported here: the engine takes a second to import.
    from orchestrator.engine.database import make_tables
    from orchestrator.storage.event_store import EventStore

    await asyncio.to_thread(make_tables, url)
    async with EventStore(url):
        pass
    await asyncio.to_thread(read_in, url, tables)


def _relocate(staging: Path, before: Path, after: Path) -> None:
    """Makes the state folder in `staging`, which lay at `before`, one that lies at `after`.

    Backlogs that were handed in and copies of remote repositories lie in the state folder itself: records name them by
    their paths, and mirrors, sidecars and what a backlog last was are called after them.
    """
    if before == after:
        return
    here, old, new = StateFolder(staging), StateFolder(before), StateFolder(after)

    def moved(path: str) -> str:
        inside = Path(path).is_relative_to(before)
        return str(after / Path(path).relative_to(before)) if inside else path

    repos: set[str] = set()
    backlogs = {str(before / path.relative_to(staging)) for path in (staging / "backlogs").glob("*")}
    for record in here.records():
        repos.add(record.repo)
        backlogs.add(record.backlog)
        here.save(record.model_copy(update={"repo": moved(record.repo), "backlog": moved(record.backlog)}))
    renamed = [(old.mirror(Path(repo)), new.mirror(Path(moved(repo)))) for repo in repos]
    for backlog in backlogs:
        was, now = Path(backlog), Path(moved(backlog))
        renamed += [(old.sidecar(was), new.sidecar(now)), (old.last_good(was), new.last_good(now))]
    for source, target in renamed:
        source = staging / source.relative_to(before)
        if source.exists():
            source.rename(staging / target.relative_to(after))


def _take_over(home: Path) -> None:
    """Moves everything, which is there and checked, into its place."""
    staging = home / RESTORING
    shutil.rmtree(staging / "postgres", ignore_errors=True)
    for mirror in staging.glob("mirrors/*.git"):
        # Empty folders are in no archive, and without them git sees no repository.
        for name in ("refs/heads", "refs/tags", "objects/info", "objects/pack"):
            (mirror / name).mkdir(parents=True, exist_ok=True)
    for path in sorted((staging / "daemon").rglob("*")):
        # Beside the lock, which is held.
        target = home / path.relative_to(staging)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            path.rename(target)
    shutil.rmtree(staging / "daemon", ignore_errors=True)
    for entry in sorted(staging.iterdir(), key=lambda one: one.name == LAST):
        entry.rename(home / entry.name)
    StateFolder(home).ignore()
    staging.rmdir()


def _clear(entries: Iterable[Path]) -> None:
    for entry in [*entries]:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
