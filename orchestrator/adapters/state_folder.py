"""The state folder `.orchestrator/`: where everything lies, and the sprint records in it (DESIGN 7)."""

import hashlib
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

from orchestrator.adapters.atomic_file import replace_content
from orchestrator.domain.sprint import SprintRecord
from orchestrator.errors import ConfigError


class StateFolder:
    """Paths below one home folder; nothing is created before it is needed."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def make(self) -> None:
        """Create the folder with a `.gitignore`, so that a repository around it never takes it in.

        Raises ConfigError when it cannot be written.
        """
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            ignore = self.home / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
        except OSError as error:
            raise ConfigError(f"cannot use the state folder {self.home}: {error.strerror}") from error
        if not os.access(self.home, os.W_OK):
            raise ConfigError(f"cannot write to the state folder {self.home}")

    @property
    def engine_database(self) -> Path:
        """dbos's SQLite file."""
        return self.home / "engine.sqlite"

    @property
    def event_database(self) -> Path:
        """The event log's SQLite file."""
        return self.home / "events.sqlite"

    @property
    def replies(self) -> Path:
        """The reply journal."""
        return self.home / "replies"

    def mask_key(self) -> bytes:
        """What the names of secrets in prompts are made with; made when it is not there yet.

        Only its owner may read it: with it, a guessed secret could be told from its name.
        """
        path = self.home / "mask.key"
        if not path.exists():
            beside = path.with_name(f"mask.key.{os.getpid()}.new")
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as stream:
                stream.write(secrets.token_bytes(32))
            with suppress(FileExistsError):  # another process was first, and never shows half a key
                os.link(beside, path)
            beside.unlink()
        return path.read_bytes()

    def mirror(self, repo: Path) -> Path:
        """The bare mirror of one repository."""
        return self.home / "mirrors" / f"{_slug(repo)}.git"

    def sprint(self, sprint: str) -> Path:
        """Everything that belongs to one sprint alone."""
        return self.home / "sprints" / sprint

    def worktrees(self, sprint: str) -> Path:
        """The sprint's worktrees."""
        return self.sprint(sprint) / "worktrees"

    def environments(self, sprint: str) -> Path:
        """The sprint's dependency environments."""
        return self.sprint(sprint) / "environments"

    def edits(self, sprint: str) -> Path:
        """Plans that people are editing, or that were kept because they did not become an answer."""
        return self.home / "edits" / sprint

    def lock(self, sprint: str) -> Path:
        """The sprint's lock file."""
        return self.sprint(sprint) / "lock"

    def report(self, sprint: str) -> Path:
        """report.json."""
        return self.home / "reports" / sprint / "report.json"

    def sidecar(self, backlog: Path) -> Path:
        """Cells that could not be written into this backlog file."""
        return self.home / "sidecars" / f"{_slug(backlog)}.json"

    def records(self) -> list[SprintRecord]:
        """All sprints of this folder, oldest first. Raises ConfigError for a record that cannot be read."""
        found = [self.record(path.parent.name) for path in (self.home / "sprints").glob("*/sprint.json")]
        return sorted((record for record in found if record), key=lambda record: record.started_at)

    def record(self, sprint: str) -> SprintRecord | None:
        """One sprint's record, or None."""
        path = self.sprint(sprint) / "sprint.json"
        try:
            return SprintRecord.model_validate(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"{path} holds no sprint record; move it away to start anew") from error

    def save(self, record: SprintRecord) -> None:
        """Write a record whole or not at all."""
        self.sprint(record.sprint).mkdir(parents=True, exist_ok=True)
        text = json.dumps(record.model_dump(mode="json"), indent=1)
        replace_content(self.sprint(record.sprint) / "sprint.json", text.encode())

    def save_report(self, sprint: str, text: str, markdown: str) -> Path:
        """Write report.md, then report.json, which a finished run is known by; returns the path of the latter."""
        path = self.report(sprint)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_content(path.with_suffix(".md"), markdown.encode("utf-8", "replace"))
        replace_content(path, text.encode())
        return path


def _slug(path: Path) -> str:
    """Readable and unique for an absolute path."""
    absolute = str(path.absolute())
    return f"{path.name[:40] or 'root'}-{hashlib.sha256(absolute.encode()).hexdigest()[:10]}"
