"""`backup`: one file with everything that a state folder cannot get again, taken while others work in it.

What it shows is one moment, as a kill then would have left it (`wiring/moment.py`): databases, branches and records.
The rest is copied afterwards, because it may be newer than the moment but never older: a reply is journalled before its
step is recorded, so the journal is read after the databases and what came later is left out; objects of git are written
before a branch names them, so they are read after the refs and those that came later are nobody's; reports and sidecars
are written again by whoever goes on. Worktrees and environments are made again when a story goes on.
"""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from orchestrator import __version__
from orchestrator.adapters.archive import ArchiveWriter, passed_on
from orchestrator.adapters.leftovers import leftovers, named
from orchestrator.adapters.mirror_copy import object_files, undisturbed
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.backup import BackedUp, BackupHeader, SprintKept
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment
from orchestrator.wiring.analysis_store import JOB_FILES
from orchestrator.wiring.moment import ENGINE, EVENTS, Moment, moment
from orchestrator.wiring.sprints import finished

_SCRATCH = ".backup-"
_APART = frozenset(
    {"sprints", "mirrors", "replies", "analyses", "daemon", "repositories", "environments", "bases", ".restoring"}
    | {".gitignore"}
)
"""What is not copied as it stands: it is looked at on its own, or made again."""


async def backup(environment: Environment, target: Path | IO[bytes]) -> BackedUp:
    """Write a backup of the state folder, and of the tables in the database of DATABASE_URL, to a file or a stream.

    Others may work in it meanwhile. A file is there whole or not at all, for its owner alone: it holds every reply and
    the key of the masks. Raises ConfigError.
    """
    folder = StateFolder(environment.home)
    if not await asyncio.to_thread(folder.home.is_dir):
        raise ConfigError(f"there is no state folder {folder.home} to back up")
    target = await asyncio.to_thread(_expect_file, folder.home, target) if isinstance(target, Path) else target
    mirrors = await asyncio.to_thread(lambda: sorted(folder.home.glob("mirrors/*.git")))
    sprints = await asyncio.to_thread(_sprints, environment, folder)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(undisturbed(mirrors))
        now = await moment(environment, folder, mirrors)
        header = BackupHeader(
            version=__version__,
            created=datetime.fromtimestamp(now.at, UTC),
            home=str(folder.home),
            database="sqlite" if environment.database_url is None else "postgres",
            sprints=sprints,
        )
        stack.push_async_callback(asyncio.to_thread, now.databases.end)
        try:
            return await asyncio.to_thread(_write, folder.home, header, now, mirrors, target)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"the backup could not be written: {reason}") from error


def received(environment: Environment, parts: Iterator[bytes], target: Path | IO[bytes]) -> BackedUp:
    """Write a backup that a daemon hands out to a file or a stream, checked; a file is there whole or not at all.

    Raises ConfigError. Blocks.
    """
    target = _expect_file(environment.home, target) if isinstance(target, Path) else target
    try:
        with _stream(target) as stream:
            header, files = passed_on(parts, stream)
            size = stream.tell() if isinstance(target, Path) else 0
    except OSError as error:
        raise ConfigError(f"the backup could not be written: {error.strerror or error}") from error
    place = str(target) if isinstance(target, Path) else None
    # Beside what it is unpacked to, its own header counts.
    return BackedUp(header=header, path=place, files=files + 1, size_bytes=size)


def _expect_file(home: Path, target: Path) -> Path:
    """The file that is meant, links followed: nothing but a file is ever replaced."""
    meant = Path(os.path.realpath(target))
    if home.resolve() in meant.parents:
        raise ConfigError(f"{target} lies in the state folder, which is backed up; name a file elsewhere")
    if meant.exists() and not meant.is_file():
        raise ConfigError(f"{target} is there and is no file; name a file, or - for standard output")
    return meant


def _write(home: Path, header: BackupHeader, now: Moment, mirrors: list[Path], target: Path | IO[bytes]) -> BackedUp:
    with _scratch(home) as scratch, _stream(target) as stream:
        copied = now.databases.copy(scratch)
        now.databases.end()
        with ArchiveWriter(stream, header) as writer:
            for path in copied:
                name = path.name if header.database == "sqlite" else f"postgres/{path.name}"
                writer.add_file(name, path)
                path.unlink()
            for name, data in now.records.items():
                writer.add(name, data, (home / name).stat().st_mtime)
            for mirror in mirrors:
                writer.add(f"mirrors/{mirror.name}/packed-refs", now.refs[mirror.name].encode(), now.at)
            for name, path in _files(home, now, mirrors):
                writer.add_file(name, path)
        size = stream.tell() if isinstance(target, Path) else 0
    place = str(target) if isinstance(target, Path) else None
    return BackedUp(header=header, path=place, files=writer.files, size_bytes=size)


def _sprints(environment: Environment, folder: StateFolder) -> tuple[SprintKept, ...]:
    records = [record for record in folder.records() if not record.cleared]
    return tuple(
        SprintKept(sprint=record.sprint, going_on=not finished(environment, folder, record)) for record in records
    )


def _files(home: Path, now: Moment, mirrors: list[Path]) -> Iterator[tuple[str, Path]]:
    """(name in the archive, file) of all that is copied as it stands."""
    objects = (path for mirror in mirrors for path in object_files(mirror))
    kept = [*home.glob("analyses/*/codebase.json"), *home.glob("daemon/id"), *home.glob("daemon/backlogs/*.json")]
    served = [path for pattern in JOB_FILES for path in home.glob(f"analyses/*/{pattern}")]
    for path in (*objects, *_replies(home / "replies", now), *kept, *served, *_others(home)):
        yield str(path.relative_to(home)), path


def _replies(folder: Path, now: Moment) -> Iterator[Path]:
    """Entries of the reply journal, and their prompts, that belong to the moment."""
    for path in _below(folder):
        step = path.name.split("-")[0].split(".")[0]
        workflow = str(path.parent.relative_to(folder))
        if step.isdecimal() and path.suffix != ".tmp" and now.holds(workflow, int(step), path.stat().st_mtime):
            yield path


def _others(home: Path) -> Iterator[Path]:
    """Everything that needs no care: reports, sidecars, edits, the key of the masks."""
    for entry in sorted(home.iterdir()):
        if entry.name not in _APART and not entry.name.startswith((ENGINE, EVENTS, _SCRATCH)):
            found = [entry] if entry.is_file() else _below(entry)
            yield from (path for path in found if path.suffix not in {".lock", ".tmp"})


def _below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in sorted(names))


@contextmanager
def _scratch(home: Path) -> Iterator[Path]:
    """A folder for the copies of the databases, on the state folder's disk; what killed backups left goes."""
    for left in leftovers(home, _SCRATCH):
        shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=named(_SCRATCH), dir=home))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _stream(target: Path | IO[bytes]) -> Iterator[IO[bytes]]:
    """Where the archive is written: beside the file first, for its owner alone."""
    if not isinstance(target, Path):
        yield target
        return
    prefix = f".{target.name[:100]}."
    for left in leftovers(target.parent, prefix):
        left.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix=named(prefix), suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
