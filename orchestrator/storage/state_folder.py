"""The state folder `.orchestrator/`: where everything lies, and the sprint records in it."""

import hashlib
import json
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from orchestrator.core.analysis import AnalysisRecord, Packed
from orchestrator.core.errors import ConfigError
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.suite import TriedBase
from orchestrator.core.value import Value
from orchestrator.files.atomic_file import replace_content, stage, unstage
from orchestrator.settings import Environment
from orchestrator.storage.locks import SERVES

if TYPE_CHECKING:
    from orchestrator.storage.shared_state import SharedState

V = TypeVar("V", bound=Value)
# What `secrets.token_urlsafe` makes; 32 characters are 192 bits.
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,200}")
FORMAT = 1
"""Of everything in the folder; a folder of another one is refused."""
BASES_KEPT = 100
"""Tried base commits whose results are kept."""
PRUNED = "pruned.json"
"""The record of a sprint or an analysis that is deleted, in its folder."""


class StateFolder:
    """Paths below one home folder; nothing is created before it is needed.

    With `shared` the records and other small files are also in the database that it names, and are written there first;
    methods that read or write then raise ConfigError, EventLogAway for it as well, and block.
    """

    def __init__(self, home: Path, shared: "SharedState | None" = None, mask_secret: str | None = None) -> None:
        self.home, self.shared, self._mask_secret = home, shared, mask_secret

    @classmethod
    def of(cls, environment: Environment, *, asked: bool = False) -> "StateFolder":
        """Returns the folder of this process's environment, shared where DATABASE_URL names a Postgres.

        `asked` for what answers people: they are told at once that it is away.
        """
        shared = None
        if environment.database_url is not None:
            # Imported here: SQLAlchemy takes longer than what most commands do.
            from orchestrator.storage.shared_state import find_shared_state

            shared = find_shared_state(environment.database_url, environment.home, asked=asked)
        return cls(environment.home, shared, environment.variables.get("ORCHESTRATOR_MASK_KEY"))

    def holder_elsewhere(self, sprint: str) -> str:
        """Returns which process of another machine works on the sprint, for people; "" when none does. Blocks."""
        return self.shared.holder(sprint) if self.shared is not None else ""

    def refresh(self) -> None:
        """Brings a folder up to date with what other machines wrote. Blocks."""
        if self.shared is not None:
            self.shared.refresh()

    def share(self, path: Path) -> None:
        """Takes a file that was just written into the database, if it lies in a shared folder. Blocks."""
        if self.shared is not None and path.is_relative_to(self.home):
            self.shared.keep([str(path.relative_to(self.home))])

    def delete(self, *paths: Path) -> None:
        """Deletes files, in the database as well. Blocks. Raises OSError."""
        if self.shared is not None:
            self.shared.put({str(path.relative_to(self.home)): None for path in paths})
        for path in paths:
            path.unlink(missing_ok=True)

    def forget(self, place: Path) -> None:
        """Deletes the files below a folder from the database, for ever; here they stay. Blocks."""
        if self.shared is not None:
            self.shared.forget(f"{place.relative_to(self.home)}/")

    def write(self, path: Path, content: bytes, *, sprint: str = "") -> None:
        """Writes a file whole or not at all; with `sprint` as long as this process may write for it. Blocks."""
        if self.shared is not None:
            self.shared.put({str(path.relative_to(self.home)): content}, sprint=sprint)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_content(path, content)

    def make(self) -> str | None:
        """Create the folder with a `.gitignore`, so that a repository around it never takes it in.

        Returns a warning when it was there and open to other users, which it is no more. Raises ConfigError when it
        cannot be written or closed to them, or is of another format.
        """
        try:
            warning = self.make_private()
            self.ignore()
        except OSError as error:
            raise ConfigError(f"cannot use the state folder {self.home}: {error.strerror}") from error
        if not os.access(self.home, os.W_OK):
            raise ConfigError(f"cannot write to the state folder {self.home}")
        if self.find_format() is None:
            replace_content(self._format, f"{FORMAT}\n".encode())
        return warning

    def make_private(self) -> str | None:
        """Create the folder alone, for its owner alone. Returns and raises as `make` does, and OSError."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _close(self.home)

    def ignore(self) -> None:
        """Write the `.gitignore` if there is none. Raises OSError."""
        ignore = self.home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")

    def find_format(self) -> int | None:
        """Returns the folder's format; None for a new folder. Raises ConfigError for one of another format."""
        try:
            found = self._format.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None
        if found != str(FORMAT):
            raise ConfigError(
                f"the state folder {self.home} is of format {found[:20]}, and this version works with {FORMAT}: "
                "move it away to begin with a new one, or use the version that made it"
            )
        return FORMAT

    @property
    def _format(self) -> Path:
        return self.home / "format"

    @property
    def engine_database(self) -> Path:
        """dbos's SQLite file."""
        return self.home / "engine.sqlite"

    @property
    def event_database(self) -> Path:
        """Returns the event log's SQLite file."""
        return self.home / "events.sqlite"

    @property
    def replies(self) -> Path:
        """Returns the reply journal."""
        return self.home / "replies"

    def mask_key(self) -> bytes:
        """Returns what the names of secrets in prompts are made with: from ORCHESTRATOR_MASK_KEY, which machines that
        share a database need, else a file that is made when it is not there yet.

        Only its owner may read it, and it is never in the database: with it, a guessed secret could be verified by its
        name.
        """
        if self._mask_secret:
            return hashlib.sha256(b"orchestrator masks\0" + self._mask_secret.encode()).digest()
        path = self.home / "mask.key"
        _make_private(path, secrets.token_bytes(32))
        return path.read_bytes()

    def mirror(self, repo: Path) -> Path:
        """Returns the bare mirror of one repository."""
        return self.home / "mirrors" / f"{_slug(repo, self.home.parent)}.git"

    def sprint(self, sprint: str) -> Path:
        """Everything that belongs to one sprint alone."""
        return self.home / "sprints" / sprint

    def worktrees(self, sprint: str) -> Path:
        """Returns the sprint's worktrees."""
        return self.sprint(sprint) / "worktrees"

    def environments(self, sprint: str) -> Path:
        """Returns the sprint's dependency environments."""
        return self.sprint(sprint) / "environments"

    def lock(self, sprint: str) -> Path:
        """Returns the sprint's lock file."""
        return self.sprint(sprint) / "lock"

    def report(self, sprint: str) -> Path:
        """report.json."""
        return self.home / "reports" / sprint / "report.json"

    @property
    def daemon_lock(self) -> Path:
        """Held by the daemon of this folder while it lives."""
        return self.home / "daemon" / "lock"

    @property
    def daemon_address(self) -> Path:
        """Returns where the living daemon listens, as {"url", "pid"}."""
        return self.home / "daemon" / "address.json"

    @property
    def daemon_token(self) -> Path:
        """Returns what requests to the daemon carry where ORCHESTRATOR_TOKEN is not set."""
        return self.home / "daemon" / "token"

    def make_token(self) -> str:
        """Returns the token in `daemon_token`; made when it is not there yet. Raises ConfigError. Blocks."""
        path = self.daemon_token
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _make_private(path, secrets.token_urlsafe(32).encode())
            found, token = path.lstat(), self.token()
        except OSError as error:
            raise ConfigError(f"cannot use {path}: {error.strerror}") from error
        ours_alone = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077 and found.st_uid == os.geteuid()
        if token is None or not ours_alone:
            raise ConfigError(
                f"{path} is no token that its owner alone can read: delete it, and the next start makes another one; "
                "or set ORCHESTRATOR_TOKEN"
            )
        return token

    def token(self) -> str | None:
        """Returns what `daemon_token` holds; None where there is none for us. Blocks."""
        try:
            told = self.daemon_token.read_text(errors="replace")
        except OSError:
            return None
        return told if _TOKEN.fullmatch(told) else None

    @property
    def submitted(self) -> Path:
        """Backlogs that were handed in."""
        return self.home / "backlogs"

    def last_good(self, backlog: Path) -> Path:
        """Returns what a watched backlog last was when it could be taken over."""
        return self.home / "daemon" / "backlogs" / f"{_slug(backlog, self.home.parent)}.json"

    def executor_id(self) -> str:
        """Who this folder's daemon is in a database that others may use too; made when it is not there yet. Blocks."""
        path = self.home / "daemon" / "id"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_content(path, secrets.token_hex(4).encode())
        return f"{SERVES}{path.read_text().strip()}"

    def sidecar(self, backlog: Path) -> Path:
        """Cells that could not be written into this backlog file."""
        return self.home / "sidecars" / f"{_slug(backlog, self.home.parent)}.json"

    def records(self, *, pruned: bool = False) -> list[SprintRecord]:
        """Returns all sprints of this folder, oldest first; with `pruned` those that were deleted. Raises
        ConfigError for a record that cannot be read."""
        self.refresh()
        places = _record_files(self.home / "sprints", "sprint.json", pruned=pruned)
        found = [self.read_record(path) for path in places]
        return sorted((record for record in found if record), key=lambda record: record.started_at)

    def record(self, sprint: str) -> SprintRecord | None:
        """One sprint's record, or None."""
        return self.read_record(self.sprint(sprint) / "sprint.json")

    def read_record(self, path: Path) -> SprintRecord | None:
        """Returns the record in a file; None where there is none. Raises ConfigError when it cannot be read."""
        found = _read(path, SprintRecord)
        if found is None:
            return None
        paths = {"repo": str(self.home.parent / found.repo), "backlog": str(self.home.parent / found.backlog)}
        return found.model_copy(update=paths)

    def record_stamp(self, sprint: str) -> object:
        """Returns what differs once a sprint's record was written again; None while there is none."""
        try:
            found = (self.sprint(sprint) / "sprint.json").stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def save(self, record: SprintRecord) -> None:
        """Write a record whole or not at all.

        Paths below the folder around the state folder are kept relative to it, so that both can be moved together.
        """
        paths = {
            "repo": _relative(record.repo, self.home.parent),
            "backlog": _relative(record.backlog, self.home.parent),
        }
        self._save(self.sprint(record.sprint) / "sprint.json", record.model_copy(update=paths), record.sprint)

    def analysis(self, analysis: str) -> Path:
        """Everything that belongs to one analysis alone."""
        return self.home / "analyses" / analysis

    def analyses(self, *, pruned: bool = False) -> list[AnalysisRecord]:
        """Returns all analyses of this folder, oldest first; `pruned` as for `records`. Raises ConfigError for a record
        that cannot be read."""
        self.refresh()
        places = _record_files(self.home / "analyses", "analysis.json", pruned=pruned)
        found = [_read(path, AnalysisRecord) for path in places]
        home = self.home.parent
        at_home = [one.model_copy(update={"repo": str(home / one.repo)}) for one in found if one is not None]
        return sorted(at_home, key=lambda record: record.started_at)

    def save_analysis(self, record: AnalysisRecord) -> None:
        """Write a record whole or not at all; paths as `save` does."""
        paths = {"repo": _relative(record.repo, self.home.parent)}
        self._save(self.analysis(record.analysis) / "analysis.json", record.model_copy(update=paths))

    def give_up(self, place: Path) -> None:
        """Takes the record in a sprint's or an analysis's folder out of sight: only `prune` finds it. Blocks."""
        for name in ("sprint.json", "analysis.json"):
            if (place / name).exists():
                self.write(place / PRUNED, (place / name).read_bytes())
                self.delete(place / name)

    def base(self, key: str) -> TriedBase | None:
        """Returns what came of a base commit when it was tried; None where that is not kept, or cannot be read."""
        try:
            return _read(self._bases / f"{key}.json", TriedBase)
        except ConfigError:  # a damaged record is measured again
            return None

    def save_base(self, key: str, tried: TriedBase) -> None:
        """Keep what came of a base commit, whole or not at all; the oldest are given up."""
        self._save(self._bases / f"{key}.json", tried)
        kept = sorted(self._bases.glob("*.json"), key=lambda path: path.stat().st_mtime)
        self.delete(*kept[:-BASES_KEPT])

    @property
    def _bases(self) -> Path:
        return self.home / "bases"

    def save_packed(self, analysis: str, packed: Packed) -> None:
        """Keep what the prompts of an analysis hold of the repository."""
        self._save(self.analysis(analysis) / "codebase.json", packed)

    def packed(self, analysis: str) -> Packed | None:
        """Returns what `save_packed` kept, or None. Raises ConfigError when it cannot be read."""
        return _read(self.analysis(analysis) / "codebase.json", Packed)

    def _save(self, path: Path, value: Value, sprint: str = "") -> None:
        self.write(path, json.dumps(value.model_dump(mode="json"), indent=1).encode(), sprint=sprint)

    def save_report(self, sprint: str, text: str, markdown: str) -> Path:
        """Write report.md, then report.json, which a finished run is known by; returns the path of the latter."""
        path = self.report(sprint)
        self.write(path.with_suffix(".md"), markdown.encode("utf-8", "replace"))
        self.write(path, text.encode())
        return path


_OURS = frozenset(
    {".gitignore", "engine.sqlite", "events.sqlite", "mask.key", "sprints", "daemon", "sidecars", "analyses", "replies"}
)
_NOBODYS = frozenset({"lost+found"})


def _close(home: Path) -> str | None:
    """Closes the state folder to others, which guards all that lies in it; returns a warning when it was open.

    Raises ConfigError when the folder cannot be closed, or when it is open and holds what others put there.
    """
    mode = stat.S_IMODE(home.stat().st_mode)
    if not mode & 0o077:
        return None
    names = {path.name for path in home.iterdir()} - _NOBODYS
    if names and not names & _OURS:
        raise ConfigError(
            f"{home} is no state folder, and not empty: other users may need what lies there, so it is not closed to "
            "them; name an empty or a new folder with ORCHESTRATOR_HOME"
        )
    with suppress(OSError):
        home.chmod(mode & ~0o077)
    if home.stat().st_mode & 0o077:
        raise ConfigError(
            f"the state folder {home} is open to other users (mode {mode:04o}), and its mode cannot be changed: "
            "name a folder of your own with ORCHESTRATOR_HOME"
        )
    return f"the state folder {home} was open to other users (mode {mode:04o}); now only to you"


def _make_private(path: Path, content: bytes) -> None:
    """Make a file that only its owner may read, if there is none. Raises OSError."""
    if not path.exists():
        beside = stage(path, content)
        with suppress(FileExistsError):  # another process was first, and never shows half a file
            os.link(beside, path)
        unstage(beside)


def _record_files(folder: Path, name: str, *, pruned: bool) -> list[Path]:
    if not pruned:
        return [*folder.glob(f"*/{name}")]
    # Both are there between the two steps of `give_up`: it is not given up then.
    return [path for path in folder.glob(f"*/{PRUNED}") if not (path.parent / name).exists()]


def _read(path: Path, kind: type[V]) -> V | None:
    try:
        return kind.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError:  # not written yet
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        names = {SprintRecord: "sprint record", AnalysisRecord: "analysis"}
        what = names.get(kind, "packed repository")
        if isinstance(error, ValidationError) and all(one["type"] == "extra_forbidden" for one in error.errors()):
            raise ConfigError(f"{path} is of a newer version: use that one (docs/upgrading.md)") from error
        raise ConfigError(f"{path} holds no {what}; move it away to start again") from error


def _relative(path: str, around: Path) -> str:
    """Returns a path below `around` relative to it; any other as it is."""
    return str(Path(path).relative_to(around)) if Path(path).is_relative_to(around) else path


def _slug(path: Path, around: Path) -> str:
    """Returns a readable and unique name for a path; the same one when `around` is moved with what is in it."""
    place = _relative(str(path.absolute()), around)
    return f"{path.name[:40] or 'root'}-{hashlib.sha256(place.encode()).hexdigest()[:10]}"
