"""A backlog that the daemon watches: what of it counts, and why what stands there now does not."""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from orchestrator.app.sprints import read_checked
from orchestrator.core.errors import BacklogError, ConfigError
from orchestrator.core.finding import Finding
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import BacklogContent, Story, closers
from orchestrator.files.atomic_file import replace_content
from orchestrator.settings import Settings
from orchestrator.storage.state_folder import StateFolder

SUFFIXES = (".csv", ".yaml", ".yml", ".json")
# Path, time, size and inode of each file: an editor that renames a new file into place changes the inode.
Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class News:
    """What a look at a backlog brought."""

    refused: str = ""
    """Why what stands there was not taken; "" when it was."""
    problems: tuple[Finding, ...] = ()


class Watched:
    """One backlog. What was good last stays good over restarts: it is kept in the state folder. All methods block."""

    def __init__(self, path: Path, folder: StateFolder) -> None:
        self.path = path.absolute()
        self._folder, self._sidecar = folder, folder.sidecar(self.path)
        self._kept = folder.last_good(self.path)
        self._seen: Signature | None = None
        self._judged: Signature | None = None
        self._unread = False
        self.content = self._last_good()
        """What counts; None while there never was anything good."""
        self.read_at: datetime | None = None
        self.refused = ""
        self.problems: tuple[Finding, ...] = ()

    def look(self, settings: Settings, now: datetime) -> News | None:
        """Returns what is new, or None.

        Something that somebody may still be writing is left alone until it looks the same twice.
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
        """Whether what stands there now was judged; `content` is then no older."""
        return self._signature() == self._judged

    def look_again(self) -> None:
        """Judges what stands there again, as other settings may read it otherwise."""
        self._judged = None

    def _read(self, settings: Settings, now: datetime) -> News | None:
        self._unread = False
        try:
            if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
                # A pipe would keep the daemon waiting.
                raise BacklogError(f"the backlog {self.path} is neither a file nor a folder")
            content = read_checked(self.path, settings, self._folder)
            if content != self.content:
                self._kept.parent.mkdir(parents=True, exist_ok=True)
                replace_content(self._kept, content.model_dump_json().encode())
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
        taken = {story for record in mine for story in record.story_ids}
        closed = closers(self.content.stories)
        groups: dict[str, list[str]] = {}
        for story in self.content.stories:
            if not story.completed and story.id not in taken and story.id not in closed:
                groups.setdefault(story.sprint_id.strip(), []).append(story.id)
        return {name: tuple(stories) for name, stories in groups.items()}

    def _last_good(self) -> BacklogContent | None:
        try:
            return BacklogContent.model_validate_json(self._kept.read_bytes())
        except (OSError, ValueError):
            return None

    def _signature(self) -> Signature:
        """Returns what changes whenever the backlog does, or why it cannot be looked at."""
        try:
            files = sorted(self.path.rglob("*.md")) if self.path.is_dir() else [self.path]
            if self._sidecar.exists():
                files.append(self._sidecar)
            return tuple((str(file), *_stamp(file)) for file in files)
        except OSError as error:
            return ((os.strerror(error.errno or 0), 0, 0, 0),)


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
