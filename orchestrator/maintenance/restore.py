"""`restore`: a backup becomes the state folder, here or at another place, whole or not at all."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from orchestrator.app.relocation import find_moved_inside, rebase, relocate
from orchestrator.core.daemon import BackupHeader, Restored
from orchestrator.core.errors import ConfigError
from orchestrator.core.sprint import SprintRecord
from orchestrator.files.archive import unpack
from orchestrator.git.repository import holds_commit
from orchestrator.settings import Environment
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.snapshots import read_in
from orchestrator.storage.state_folder import RESTORING, StateFolder

NOT_COUNTED = frozenset({".gitignore", "daemon", "lost+found"})
"""Names that an empty folder may contain, because it may be the root of a separate disk."""
LAST = "sprints"
"""Moved into place last: until it is there, no command finds a sprint."""


async def restore(
    environment: Environment,
    source: Path,
    tell: Callable[[str], None] = lambda _warning: None,
    *,
    repos: Sequence[str] = (),
    backlogs: Sequence[str] = (),
) -> Restored:
    """Makes a backup the state folder, which must be empty, and the database of DATABASE_URL, if it was one of those.

    Everything is unpacked and checked first; `tell` gets a warning when the folder was open to other users. Given again
    after a kill, it starts again; until it has ended no run begins in the folder. Where repositories and backlogs
    outside of it are now is given as `NEW` or `OLD=NEW`; without that they stay, in the folder that it was. Raises
    ConfigError, and SprintLocked while a daemon is at work in it.
    """
    folder = StateFolder.of(environment)
    await asyncio.to_thread(_expect_empty, folder.home)
    try:
        if warning := await asyncio.to_thread(folder.make_private):
            tell(warning)
        async with SprintLock(folder.daemon_lock, f"{folder.home} as its daemon"):
            header, files = await _checked(environment, folder.home, source, repos, backlogs)
            # The only step after which the folder is no longer empty.
            await asyncio.to_thread(_take_over, folder.home)
    except OSError as error:
        raise ConfigError(f"cannot use the state folder {folder.home}: {error.strerror or error}") from error
    return Restored(header=header, home=str(folder.home), files=files)


async def _checked(
    environment: Environment, home: Path, source: Path, repos: Sequence[str], backlogs: Sequence[str]
) -> tuple[BackupHeader, int]:
    """Does everything but the last step, which cannot fail for what the backup holds."""
    staging = home / RESTORING
    try:
        header, files = await asyncio.to_thread(_unpacked, environment, home, source)
        here = StateFolder(staging)
        moved = await asyncio.to_thread(_find_moved, here, header, home, repos, backlogs)
        await _expect_repositories(await asyncio.to_thread(here.records), moved, home)
        await asyncio.to_thread(relocate, here, moved)
        if header.database == "postgres" and environment.database_url is not None:
            await _fill(environment.database_url, staging / "postgres")
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


def _find_moved(
    here: StateFolder, header: BackupHeader, home: Path, repos: Sequence[str], backlogs: Sequence[str]
) -> dict[str, str]:
    """Returns each path of the records that is another one now → that one.

    What lies in the state folder follows it, and a backlog its repository. Raises ConfigError for other paths that were
    not given: elsewhere they may name a repository of another project, to which the sprint would push.
    """
    before = Path(header.home)
    inside = [(before, home)]
    if header.real_home:  # else a restore in place, below a link, would relocate what stays
        inside.append((Path(header.real_home), home.resolve()))
    moved = find_moved_inside(here, inside)
    # What was reset as a whole or pruned never runs again: it writes nowhere, and its repository may be gone.
    records = [one for one in here.records() if not one.cleared and one.pruned is None]
    outside = {
        "--repo": [path for path in dict.fromkeys(one.repo for one in records) if path not in moved],
        "--backlog": [path for path in dict.fromkeys(one.backlog for one in records) if path not in moved],
    }
    for old, new in _assign("--repo", repos, outside["--repo"]).items():
        moved[old] = os.path.realpath(new)
        mine = (one.backlog for one in records if one.repo == old)
        moved |= {path: str(there) for path in mine if (there := rebase(path, [(Path(old), Path(moved[old]))]))}
    for old, new in _assign("--backlog", backlogs, outside["--backlog"]).items():
        moved[old] = os.path.abspath(new)  # records keep its links
    missing = [(option, path) for option, paths in outside.items() for path in paths if path not in moved]
    if missing and before != home:
        wanted = "; ".join(f"{option} for {path} of {_name(records, path)}" for option, path in missing)
        raise ConfigError(
            f"the backup is of {before}, and paths that its sprints name may be another project's here: give {wanted} "
            "(as OLD=NEW where there are several; OLD=OLD: the same path)"
        )
    return moved


async def _expect_repositories(records: Sequence[SprintRecord], moved: Mapping[str, str], home: Path) -> None:
    """Raises ConfigError for a given path that is not the repository of its sprints."""
    # Of its latest sprint: the base of an older one may have been rewritten since.
    bases = {one.repo: one.base for one in records if not one.cleared and one.pruned is None}
    for old, base in bases.items():
        new = Path(moved.get(old, old))
        if old in moved and not new.is_relative_to(home) and not await holds_commit(new, base):
            what = f"repository with the commit {base[:12]}, from which" if base else "repository;"
            raise ConfigError(f"{new} is no {what} {_name(records, old)} began in {old}")


def _assign(option: str, given: Sequence[str], recorded: Sequence[str]) -> dict[str, str]:
    """Returns recorded path → the path given for it, of texts `NEW` or `OLD=NEW`. Raises ConfigError."""
    moved: dict[str, str] = {}
    for text in given:
        # A path may contain "=": only a recorded one before it is meant as OLD.
        old = next((path for path in recorded if text.startswith(f"{path}=")), None)
        if old is None and (len(recorded) != 1 or len(given) != 1):
            known = ", ".join(recorded) or "none outside of its state folder"
            raise ConfigError(f"{option} {text}: give OLD=NEW, where OLD is a path that the backup names ({known})")
        moved[old or recorded[0]] = text if old is None else text.removeprefix(f"{old}=")
    return moved


def _name(records: Iterable[SprintRecord], path: str) -> str:
    """Returns the sprints of a repository or backlog, for people."""
    return ", ".join(one.sprint for one in records if path in {one.repo, one.backlog})


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
