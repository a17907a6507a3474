"""Backlogs of the daemon: those it watches, what of each counts and why not, and those that are submitted to it."""

import json
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from orchestrator.app.spending import with_spending
from orchestrator.app.sprints import read_checked
from orchestrator.backlogs.files import SUFFIXES, markdown_files, open_backlog
from orchestrator.checks.backlog import all_problems, refusal
from orchestrator.core.daemon import Submitted
from orchestrator.core.errors import BacklogError, ConfigError
from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import BacklogContent, Story, closers, id_problem
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.dry_run import DryRun, dry_run
from orchestrator.storage.state_folder import StateFolder

# It becomes a file name: no separator, and no leading dot that would hide it.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAMED = 10
"""Rows that a message names."""
# Path, time, size and inode of each file: an editor that renames a new file into place changes the inode.
Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class News:
    """Result of checking a backlog."""

    refused: str = ""
    """Why the content was refused; "" when it was accepted."""
    problems: tuple[Finding, ...] = ()


class Watched:
    """One backlog. What was good last stays good over restarts: it is kept in the state folder. All methods block."""

    def __init__(self, path: Path, folder: StateFolder, masked: Callable[[BacklogContent], BacklogContent]) -> None:
        """`masked` takes the secrets out of what was read."""
        self.path, self._masked = path.absolute(), masked
        self._folder, self._sidecar = folder, folder.sidecar(self.path)
        self._kept = folder.last_good(self.path)
        self._seen: Signature | None = None
        self._judged: Signature | None = None
        self._unread = False
        self.content = self._last_good()
        """The last good content; None if there never was one."""
        self.read_at: datetime | None = None
        self.refused = ""
        self.problems: tuple[Finding, ...] = ()

    def look(self, settings: Settings, now: datetime) -> News | None:
        """Returns what is new, or None.

        A file that may still be written is ignored until it looks the same twice.
        """
        signature = self._signature()
        settled = signature == self._seen or self._seen is None
        self._seen = signature
        if signature == self._judged or not settled:
            return None
        news = self._read(settings, now)
        self._judged = None if self._unread else signature  # last: `is_current` is asked from another thread
        return news

    @property
    def is_current(self) -> bool:
        """Returns whether the current content was judged; `content` is then up to date."""
        return self._signature() == self._judged

    def _read(self, settings: Settings, now: datetime) -> News | None:
        self._unread = False
        try:
            if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
                # A pipe would keep the daemon waiting.
                raise BacklogError(f"the backlog {self.path} is neither a file nor a folder")
            content = self._masked(read_checked(self.path, settings, self._folder))
            if content != self.content:
                self._folder.write(self._kept, content.model_dump_json().encode())
        except (BacklogError, ConfigError) as error:
            return self._refuse(error.message, error.findings)
        except OSError as error:
            self._unread = True  # nothing about the backlog need change for it to be right again
            return self._refuse(f"{self.path} cannot be taken over: {error.strerror or error}", ())
        was_refused, self.refused, self.problems, self.read_at = bool(self.refused), "", (), now
        before, self.content = self.content, content
        fresh = before is None or _words(content) != _words(before)
        return News() if fresh or was_refused else None

    def _refuse(self, why: str, problems: tuple[Finding, ...]) -> News | None:
        self.problems = problems
        if why == self.refused:
            return None
        self.refused = why
        return News(why, problems)

    def untaken(self, records: list[SprintRecord]) -> dict[str, tuple[str, ...]]:
        """Sprint_ID cell → its rows that are not completed and in no sprint of `records` yet, in backlog order."""
        if self.content is None:
            return {}
        mine = [record for record in records if record.backlog == str(self.path) and not record.cleared]
        return _group_open_rows(self.content, {story for record in mine for story in record.story_ids})

    def _last_good(self) -> BacklogContent | None:
        try:
            return BacklogContent.model_validate_json(self._kept.read_bytes())
        except (OSError, ValueError):  # missing or damaged: the file is read again
            return None

    def _signature(self) -> Signature:
        """Returns what changes whenever the backlog does, or why it cannot be looked at."""
        try:
            files = markdown_files(self.path, str(self.path)) if self.path.is_dir() else [self.path]
            if self._sidecar.exists():
                files.append(self._sidecar)
            return tuple((str(file), *_stamp(file)) for file in files)
        except OSError as error:
            return ((os.strerror(error.errno or 0), 0, 0, 0),)
        except BacklogError as error:  # the folder cannot be listed
            return ((error.message, 0, 0, 0),)


def _group_open_rows(content: BacklogContent, taken: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Returns Sprint_ID cell → its rows that are not completed, closed or `taken`, in backlog order."""
    closed = closers(content.stories)
    groups: dict[str, list[str]] = {}
    for story in content.stories:
        if not story.completed and story.id not in taken and story.id not in closed:
            groups.setdefault(story.sprint_id.strip(), []).append(story.id)
    return {name: tuple(stories) for name, stories in groups.items()}


def _words(content: BacklogContent) -> list[Story]:
    """Returns the stories without the cells that we write ourselves."""
    ours = {"sprint_id": "", "execution_status": "", "line": 0}
    return [story.model_copy(update=ours) for story in content.stories]


def _stamp(file: Path) -> tuple[int, int, int]:
    told = os.stat(file)
    return told.st_mtime_ns, told.st_size, told.st_ino


def find_backlogs(path: Path) -> list[Path]:
    """Returns the backlogs that a path names: itself, or the backlog files of a folder without Markdown stories."""
    try:
        if not path.is_dir():
            return [path]
        listed = sorted(path.iterdir())
    except OSError:  # reading it says why
        return [path]
    files = [file for file in listed if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")]
    markdown = any(file.suffix == ".md" for file in listed)
    return [path] if markdown and not files else files


def submit(folder: StateFolder, settings: Settings, name: str, suffix: str, content: bytes) -> Submitted:
    """Keeps `content` as the backlog `name`, in place of what it held. Blocks.

    Raises ConfigError for a name or a format we do not take, BacklogError with every problem of the content, rows of
    sprints that have begun without them included; what was there before then stays.
    """
    _check(name, suffix)
    folder.submitted.mkdir(parents=True, exist_ok=True)
    target = folder.submitted / f"{name}{suffix}"
    others = [path for path in _of(folder, name) if path != target]
    if others:
        raise ConfigError(f"the backlog {name} was handed in as {others[0].name}: withdraw it first, or take this form")
    with _beside(folder, target.name, content) as beside:
        read = read_checked(beside, settings, folder)
        if begun := _find_begun_sprints(read, target, folder):
            raise refusal(read.source, begun)
        replaced = target.exists()
        folder.write(target, content)
    warnings = tuple(all_problems(read))
    return Submitted(name=name, path=str(target), stories=len(read.stories), replaced=replaced, warnings=warnings)


def plan_backlog(environment: Environment, settings: Settings, name: str, suffix: str, content: bytes) -> DryRun:
    """Returns what a run of all rows would do and cost; nothing of `content` is kept. Blocks.

    Raises ConfigError for a name or a format we do not take, BacklogError for what cannot be read at all.
    """
    _check(name, suffix)
    folder = StateFolder.of(environment, asked=True)
    with _beside(folder, f"{name}{suffix}", content) as beside:
        read = open_backlog(beside, settings, folder).read()
        made = with_spending(dry_run(read, stories=None, settings=settings), settings, environment)
        begun = _find_begun_sprints(read, folder.submitted / f"{name}{suffix}", folder)
        made = made.model_copy(update={"problems": (*made.problems, *begun)})
        return DryRun.model_validate_json(_renamed(made.model_dump_json(), f"{name}{suffix}", beside))


def _find_begun_sprints(content: BacklogContent, target: Path, folder: StateFolder) -> list[Finding]:
    """Returns a finding for each Sprint_ID whose sprint has begun without open rows that carry it.

    Such rows would wait for ever. A backlog that is a copy of another one has them: its sprints are those of the other.
    """
    found = []
    for name, stories in _group_open_rows(content, ()).items():
        record = folder.record(name) if name and not id_problem(name) else None
        if record is None or record.cleared:
            continue
        own = record.backlog == str(target)
        rows = [story for story in stories if not (own and story in record.story_ids)]
        if rows:
            named = ", ".join(rows[:_NAMED]) + (f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else "")
            how = "that has begun without them" if own else f"that has begun with the backlog {record.backlog}"
            message = f"rows carry the Sprint_ID {name} of a sprint {how}: {named}"
            where = Where(file=content.source or None, story=rows[0], field="Sprint_ID")
            fix = "clear their Sprint_ID to run them in a sprint of their own, or take the rows out"
            found.append(major("backlog.sprint_begun", message, where=where, fix=fix))
    return found


@contextmanager
def _beside(folder: StateFolder, name: str, content: bytes) -> Iterator[Path]:
    """Yields the content under its name in a separate folder, so that findings name it and no watcher sees it."""
    beside = folder.home / "daemon" / "incoming" / secrets.token_hex(8) / name
    beside.parent.mkdir(parents=True)
    try:
        beside.write_bytes(content)
        yield beside
    except BacklogError as error:
        raise _about(name, beside, error) from error
    finally:
        beside.unlink(missing_ok=True)
        beside.parent.rmdir()


def _renamed(text: str, name: str, beside: Path) -> str:
    """Returns JSON that names the file as its sender knows it."""
    return text.replace(json.dumps(str(beside))[1:-1], name)


def _about(name: str, beside: Path, error: BacklogError) -> BacklogError:
    """Returns the error with the file as its sender knows it: by its name."""
    findings = [
        Finding.model_validate_json(_renamed(finding.model_dump_json(), name, beside)) for finding in error.findings
    ]
    return BacklogError(error.message.replace(str(beside), name), findings=findings)


def withdraw(folder: StateFolder, name: str) -> None:
    """Stops watching it. Raises ConfigError when there is none of this name. Blocks."""
    _check(name, SUFFIXES[0])
    found = _of(folder, name)
    if not found:
        raise ConfigError(f"no backlog {name} was handed in")
    for path in found:
        # The last good content is kept in the daemon's state, so that running sprints continue with it.
        folder.write(folder.submitted / "withdrawn" / path.name, path.read_bytes())
    folder.delete(*found)


def _of(folder: StateFolder, name: str) -> list[Path]:
    return [path for suffix in SUFFIXES if (path := folder.submitted / f"{name}{suffix}").exists()]


def _check(name: str, suffix: str) -> None:
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise ConfigError(f"{name[:80]!r} cannot name a backlog: letters, digits, dots, dashes, at most 64")
    if suffix not in SUFFIXES:
        raise ConfigError(f"{suffix[:20]!r} is no form of a backlog that can be handed in: {', '.join(SUFFIXES)}")
