"""`backup`: one file with everything that a state folder cannot get again, taken while others work in it.

What it shows is one moment, as a kill then would have left it: databases, branches and records. The rest is copied
afterwards, because it may be newer than the moment but never older: a reply is journalled before its step is recorded,
so the journal is read after the databases and what came later is left out; objects of git are written before a branch
names them, so they are read after the refs, and later ones belong to no branch; reports and sidecars are written again
by the next run. Worktrees and environments are made again when a story resumes.
"""

import asyncio
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from orchestrator import __version__
from orchestrator.analysis.store import JOB_FILES
from orchestrator.core.daemon import BackedUp, BackupHeader, SprintKept
from orchestrator.core.errors import ConfigError
from orchestrator.files.archive import ArchiveWriter, passed_on
from orchestrator.files.atomic_file import leftovers, let_go, make_file, make_folder
from orchestrator.git.mirror import object_files, refs_text, undisturbed
from orchestrator.records.histories import is_sprint_finished
from orchestrator.settings import Environment
from orchestrator.storage.shared_state import MARK
from orchestrator.storage.snapshots import PostgresMoment, SqliteMoment
from orchestrator.storage.state_folder import StateFolder

ENGINE, EVENTS = "engine.sqlite", "events.sqlite"
_LAST_STEPS = "SELECT workflow_uuid, max(function_id) FROM operation_outputs GROUP BY workflow_uuid"
_PATIENCE_S = 60.0  # for a writer to finish


@dataclass(frozen=True)
class Moment:
    """Snapshot of everything that must be of one moment. `end` releases the databases."""

    databases: SqliteMoment | PostgresMoment
    at: float
    """Seconds since the epoch: what was written before is part of it."""
    records: Mapping[str, bytes]
    """Records of sprints and analyses by their path in the state folder."""
    refs: Mapping[str, str]
    """Name of a mirror → its refs."""
    last_steps: dict[str, int] = field(default_factory=dict)
    """Workflow → its last step that is recorded as done."""

    def holds(self, workflow: str, step: int, written: float) -> bool:
        """Returns whether an entry of the reply journal belongs to it: written by then, or of the running step.

        Later replies would be given to steps that may differ when they run again.
        """
        return written <= self.at or step <= self.last_steps.get(workflow, 0) + 1


async def take_moment(environment: Environment, folder: StateFolder, mirrors: list[Path]) -> Moment:
    """Returns the present moment, with the databases held as they are until `databases.end`.

    A step first changes a branch and is then recorded as done. So the databases are looked at between two looks at
    branches and records that saw the same: as a kill at that moment would have left them. Raises ConfigError when they
    change all the time.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        before = await _look(folder, mirrors)
        databases = _databases(environment, folder)
        try:
            await asyncio.to_thread(databases.begin)
            at = time.time()
            if await _look(folder, mirrors) == before:
                steps = await asyncio.to_thread(databases.pairs, ENGINE, _LAST_STEPS)
                return Moment(databases=databases, at=at, records=before[0], refs=before[1], last_steps=steps)
        except BaseException:
            await asyncio.to_thread(databases.end)
            raise
        await asyncio.to_thread(databases.end)
    raise ConfigError("branches or records change all the time; back up at a quieter moment")


def _databases(environment: Environment, folder: StateFolder) -> SqliteMoment | PostgresMoment:
    if environment.database_url is not None:
        return PostgresMoment(environment.database_url)
    # The engine's first: an answer or an outcome that it knows must not be missing in the log.
    return SqliteMoment({ENGINE: folder.engine_database, EVENTS: folder.event_database})


async def _look(folder: StateFolder, mirrors: list[Path]) -> tuple[dict[str, bytes], dict[str, str]]:
    refs = await asyncio.gather(*(refs_text(path) for path in mirrors))
    records = await asyncio.to_thread(_records, folder)
    return records, {path.name: text for path, text in zip(mirrors, refs, strict=True)}


def _records(folder: StateFolder) -> dict[str, bytes]:
    found = [*folder.home.glob("sprints/*/sprint.json"), *folder.home.glob("analyses/*/analysis.json")]
    return {str(path.relative_to(folder.home)): path.read_bytes() for path in sorted(found)}


_SCRATCH = ".backup-"
_APART = frozenset(
    {"sprints", "mirrors", "replies", "analyses", "daemon", "repositories", "environments", "bases", ".restoring"}
    | {".gitignore", "place.json", MARK, f"{MARK}.lock"}  # the database that it is restored into has an id of its own
)
"""Files that are not copied directly: they are handled separately, or made again."""


async def backup(environment: Environment, target: Path | IO[bytes]) -> BackedUp:
    """Writes a backup of the state folder, and of the tables in the database of DATABASE_URL, to a file or a stream.

    Others may work in it meanwhile. A file is there whole or not at all, for its owner alone: it holds every reply and
    the key of the masks. Raises ConfigError.
    """
    folder = StateFolder.of(environment)
    if not await asyncio.to_thread(folder.home.is_dir):
        raise ConfigError(f"there is no state folder {folder.home} to back up")
    target = await asyncio.to_thread(_expect_file, folder.home, target) if isinstance(target, Path) else target
    mirrors = await asyncio.to_thread(lambda: sorted(folder.home.glob("mirrors/*.git")))
    place = await asyncio.to_thread(folder.place)  # as its paths are, also if it was moved since
    # For people alone, so that it need not be of the same moment.
    sprints = await asyncio.to_thread(_sprints, environment, folder)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(undisturbed(mirrors))
        now = await take_moment(environment, folder, mirrors)
        header = BackupHeader(
            version=__version__,
            created=datetime.fromtimestamp(now.at, UTC),
            home=place.home if place is not None else str(folder.home),
            real_home=place.real if place is not None else "",
            database="sqlite" if environment.database_url is None else "postgres",
            sprints=sprints,
        )
        stack.push_async_callback(asyncio.to_thread, now.databases.end)
        try:
            return await asyncio.to_thread(_write, folder.home, header, now, mirrors, target)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"the backup could not be written: {reason}") from error


def receive(environment: Environment, parts: Iterator[bytes], target: Path | IO[bytes]) -> BackedUp:
    """Writes a backup that a daemon hands out to a file or a stream, checked; a file is there whole or not at all.

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
    """Returns the file that is meant, links followed: nothing but a file is ever replaced."""
    meant = Path(os.path.realpath(target))
    if home.resolve() in meant.parents:
        raise ConfigError(f"{target} lies in the state folder, which is backed up; name a file elsewhere")
    if meant.exists() and not meant.is_file():
        raise ConfigError(f"{target} is there and is no file; name a file, or - for standard output")
    return meant


def _write(home: Path, header: BackupHeader, now: Moment, mirrors: list[Path], target: Path | IO[bytes]) -> BackedUp:
    with _scratch(home) as scratch, _stream(target) as stream:
        copied = now.databases.copy(scratch)
        # Released before the long part: others write again.
        now.databases.end()
        with ArchiveWriter(stream, header) as writer:
            for path in copied:
                name = path.name if header.database == "sqlite" else f"postgres/{path.name}"
                writer.add_file(name, path)
                # Its disk space may be needed for the archive.
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
        SprintKept(sprint=record.sprint, going_on=not is_sprint_finished(environment, folder, record))
        for record in records
    )


def _files(home: Path, now: Moment, mirrors: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yields (name in the archive, file) of all files that are copied directly."""
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
    """Yields everything that needs no care: reports, sidecars, edits, the key of the masks."""
    for entry in sorted(home.iterdir()):
        if entry.name not in _APART and not entry.name.startswith((ENGINE, EVENTS, _SCRATCH)):
            found = [entry] if entry.is_file() else _below(entry)
            yield from (path for path in found if path.suffix not in {".lock", ".tmp"})


def _below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in sorted(names))


@contextmanager
def _scratch(home: Path) -> Iterator[Path]:
    """Yields a folder for the copies of databases, on the state folder's disk; removes leftovers of killed backups."""
    for left in leftovers(home, _SCRATCH):
        shutil.rmtree(left, ignore_errors=True)
    made = make_folder(_SCRATCH, home)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        let_go(made)


@contextmanager
def _stream(target: Path | IO[bytes]) -> Iterator[IO[bytes]]:
    """Yields the stream for the archive: `target` itself, or a private temporary file beside that path."""
    if not isinstance(target, Path):
        yield target
        return
    prefix = f".{target.name[:100]}."
    for left in leftovers(target.parent, prefix):
        left.unlink(missing_ok=True)
    handle, name = make_file(prefix, target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            # A backup must outlive a power failure right after it.
            os.fsync(stream.fileno())
        os.replace(name, target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
    finally:
        let_go(name)
