"""The small files of the state folder in a Postgres that several machines share; the folder is then a cache of them.

A file is written to the table first and to the folder second. Each write has a number, and the folder knows which one
it has seen, so that another machine's writes are fetched by number. An id on both sides tells a folder of another
database.
"""

import atexit
import fcntl
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from orchestrator.core.errors import ConfigError, EventLogAway
from orchestrator.core.value import Value
from orchestrator.files.atomic_file import replace_content
from orchestrator.storage.commit_store import PostgresCommitStore
from orchestrator.storage.event_table import EVENTS, Guard, connected, is_postgres, lock, usable
from orchestrator.storage.leases import find_holder

T = TypeVar("T")

FILES = sa.Table(
    "orchestrator_files",
    sa.MetaData(),
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False, index=True),
    sa.Column("content", sa.LargeBinary),
)
"""A file by its path in the state folder; without content: deleted."""
FOLDERS = sa.Table("orchestrator_state", sa.MetaData(), sa.Column("id", sa.Text, primary_key=True))
"""One row: the id that the database and its state folders share."""
MARK = "database.json"
"""File of a state folder that names its database."""
REPLIES = "replies/"
"""Fetched by sprint, when one is worked on or asked about: there are many."""
DURABLE = (
    "sprints/*/*.json", "analyses/*/*.json", "replies/*/*/*-*.json", "sidecars/*.json",
    "backlogs/*", "daemon/backlogs/*.json", "reports/*/*", "bases/*.json",
)  # fmt: skip
"""Files that must survive the folder, as patterns below it."""
_PAUSE_S = 0.5  # between two attempts to reach the database
_FETCHED = 100  # files at a time


class Mark(Value):
    """What a state folder knows of its database."""

    id: str
    seq: int = 0
    """Number of the newest write that the folder has."""


class SharedState:
    """Files of one state folder in the database at `url`. Everything blocks: call it in threads.

    Raises ConfigError for a folder that is not this database's, EventLogAway when the database stays away longer than
    `patience_s`.
    """

    def __init__(self, url: str, home: Path) -> None:
        self._home = home
        self._engine = connected(url, writes=True)
        self._joined = False
        self._once = threading.RLock()
        self._ending = threading.Event()
        self.patience_s = 0.0
        """How long a database that is away is waited for; a process that runs sprints waits for as long as it lives."""
        self.guard: Guard = _allow
        self.commits = PostgresCommitStore(url, guard=lambda connection, sprint: self.guard(connection, sprint))

    def close(self) -> None:
        """Closes the connections; the next use opens them again."""
        self._engine.dispose()

    def stop_waiting(self) -> None:
        """Ends all waiting for a database that is away; what is written then raises EventLogAway."""
        self._ending.set()

    def put(self, files: Mapping[str, bytes | None], *, sprint: str = "") -> None:
        """Writes files by their path in the folder, or deletes them, in the database and then in the folder.

        With `sprint` only as long as that is ours to write for (see `guard`).
        """
        self._join()
        self._do(lambda connection: self._write(connection, files, sprint))
        with self._folder_to_ourselves():
            for name, content in files.items():
                _lay(self._home / name, content)

    def refresh(self) -> None:
        """Brings the folder up to date, replies excepted."""
        self._join()
        self._refresh()

    def fetch(self, prefix: str) -> None:
        """Brings the files whose path in the state folder begins so, such as a story's replies."""
        self._join()
        kept = sa.select(FILES.c.path).where(FILES.c.path.startswith(prefix, autoescape=True))
        names = [row.path for row in self._rows(kept.order_by(FILES.c.path))]
        for start in range(0, len(names), _FETCHED):
            for row in self._rows(sa.select(FILES).where(FILES.c.path.in_(names[start : start + _FETCHED]))):
                _lay(self._home / row.path, row.content)

    def keep(self, names: list[str], *, sprint: str = "") -> None:
        """Writes files that are in the folder already to the database."""
        contents = {name: (self._home / name).read_bytes() for name in names}
        if contents:
            self._join()
            self._do(lambda connection: self._write(connection, contents, sprint))

    def forget(self, prefix: str) -> None:
        """Deletes the rows of files whose path begins so; folders that have them keep them."""
        self._join()
        rows = sa.delete(FILES).where(FILES.c.path.startswith(prefix, autoescape=True))
        self._do(lambda connection: connection.execute(rows))

    def holder(self, sprint: str) -> str:
        """Returns which living process of any machine works on the sprint, for people; "" when none does."""
        try:
            with usable():
                return find_holder(self._engine, sprint) or ""
        except EventLogAway:
            return ""

    def missing(self, names: list[str]) -> list[str]:
        """Returns those of the files of the folder that the database lacks."""
        self._join()
        kept = {row.path for row in self._rows(sa.select(FILES.c.path).where(FILES.c.path.in_(names)))}
        return [name for name in names if name not in kept]

    def _write(self, connection: sa.Connection, files: Mapping[str, bytes | None], sprint: str) -> None:
        lock(connection)  # numbers become visible in order
        if sprint:
            self.guard(connection, sprint)
        seq = connection.execute(sa.select(sa.func.coalesce(sa.func.max(FILES.c.seq), 0))).scalar_one()
        for number, (name, content) in enumerate(files.items(), start=seq + 1):
            row = postgresql.insert(FILES).values(path=name, seq=number, content=content)
            changed = {"seq": row.excluded.seq, "content": row.excluded.content}
            connection.execute(row.on_conflict_do_update(index_elements=[FILES.c.path], set_=changed))

    def _refresh(self) -> None:
        # The folder is let go between two tries: others, who wait for no database, must get their answer.
        self._patiently(self._refresh_now)

    def _refresh_now(self) -> None:
        with self._folder_to_ourselves():
            mark = self._mark()
            assert mark is not None
            newer = sa.select(FILES).where(FILES.c.seq > mark.seq, ~FILES.c.path.startswith(REPLIES))
            rows = self._try(lambda connection: connection.execute(newer.order_by(FILES.c.seq)).all())
            for row in rows:
                _lay(self._home / row.path, row.content)
            if rows:
                self._save(mark.model_copy(update={"seq": rows[-1].seq}))

    def _join(self) -> None:
        """Makes the tables, and sees that folder and database belong together; once per process."""
        with self._once:
            if self._joined:
                return
            id_, newest, files = self._do(_prepare)
            with self._folder_to_ourselves():
                mark = self._mark()
                if mark is None:
                    self._adopt(id_, files)
                elif mark.id != id_:
                    raise ConfigError(
                        f"the state folder {self._home} belongs to another database than the one of DATABASE_URL; name "
                        "that one, or another folder with ORCHESTRATOR_HOME"
                    )
                elif mark.seq > newest:
                    raise ConfigError(
                        f"the state folder {self._home} is newer than the database of DATABASE_URL, which was set back "
                        f"to an earlier state; to go on from that, move the folder away: it is made again"
                    )
            self._joined = True
            self._refresh()

    def _adopt(self, id_: str, known: set[str]) -> None:
        """Takes a folder in that has no mark: a new one, or one of a release whose files were in no database."""
        found = [path for pattern in DURABLE for path in sorted(self._home.glob(pattern)) if path.is_file()]
        names = [str(path.relative_to(self._home)) for path in found]
        if (self._home / "events.sqlite").exists():
            records = {name.split("/")[1] for name in names if name.startswith("sprints/")}
            strangers = sorted(records - self._do(_logged_sprints))
            if strangers:
                raise ConfigError(
                    f"the state folder {self._home} holds sprint {strangers[0]}, of which the database of DATABASE_URL "
                    "knows nothing: leave DATABASE_URL out, or name another folder with ORCHESTRATOR_HOME"
                )
        fresh = {name: path.read_bytes() for name, path in zip(names, found, strict=True) if name not in known}
        if fresh:
            self._do(lambda connection: self._write(connection, fresh, ""))
        self._save(Mark(id=id_))

    def _rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        return self._do(lambda connection: connection.execute(query).all())

    def _do(self, work: Callable[[sa.Connection], T]) -> T:
        """Returns what `work` returns in a transaction; a database that is away is waited for."""
        return self._patiently(lambda: self._try(work))

    def _try(self, work: Callable[[sa.Connection], T]) -> T:
        with usable(), self._engine.begin() as connection:
            return work(connection)

    def _patiently(self, attempt: Callable[[], T]) -> T:
        until = time.monotonic() + self.patience_s
        while True:
            try:
                return attempt()
            except EventLogAway:
                if time.monotonic() >= until or self._ending.wait(_PAUSE_S):
                    raise

    def _mark(self) -> Mark | None:
        try:
            return Mark.model_validate(json.loads((self._home / MARK).read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self._home / MARK} cannot be read: {error}; move the state folder away") from error

    def _save(self, mark: Mark) -> None:
        replace_content(self._home / MARK, mark.model_dump_json().encode())

    @contextmanager
    def _folder_to_ourselves(self) -> Iterator[None]:
        """Keeps other processes of the folder from laying an older file over a newer one."""
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._home / f"{MARK}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


@lru_cache(maxsize=8)
def find_shared_state(url: str, home: Path, *, asked: bool = False) -> SharedState | None:
    """Returns the shared state of a folder: one per process, with its connections; None where `url` is no Postgres.

    Another one is `asked` by people: it waits for no database, whatever the process that works on sprints does.
    """
    if not is_postgres(url):
        return None
    made = SharedState(url, home)
    atexit.register(made.close)
    return made


def _allow(_connection: sa.Connection, _sprint: str) -> None:
    """Lets everybody write: a process that holds no sprint."""


def _prepare(connection: sa.Connection) -> tuple[str, int, set[str]]:
    """Makes the tables; returns the database's id, the number of the newest write and the paths of all files."""
    lock(connection)
    for table in (FILES, FOLDERS):
        connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
    for index in FILES.indexes:
        connection.execute(sa.schema.CreateIndex(index, if_not_exists=True))
    id_ = connection.execute(sa.select(FOLDERS.c.id)).scalar()
    if id_ is None:
        id_ = uuid.uuid4().hex
        connection.execute(sa.insert(FOLDERS).values(id=id_))
    newest = connection.execute(sa.select(sa.func.coalesce(sa.func.max(FILES.c.seq), 0))).scalar_one()
    return id_, newest, set(connection.execute(sa.select(FILES.c.path)).scalars())


def _logged_sprints(connection: sa.Connection) -> set[str]:
    if not sa.inspect(connection).has_table(EVENTS.name):
        return set()
    return set(connection.execute(sa.select(EVENTS.c.sprint).distinct()).scalars())


def _lay(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    try:
        if path.read_bytes() == content:
            return
    except OSError:  # not there yet
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_content(path, content)
