"""One process per sprint: a file lock that also outlives us in every child that inherited it (decisions.md#processes).

git processes and command launchers get the descriptor, so the lock stays held after a kill -9 until the last of them
has ended; a new run waits for that instead of meeting a half-finished git command.

Who works as which executor, in the database: of two daemons with one executor id, on whatever machines, one works.

The engine takes what an executor of its own id has left behind for its own: two at once would pay every call twice. In
one state folder a file lock sees to that; where the database is shared, a row with a time does, by its own clock.
"""

import asyncio
import fcntl
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from orchestrator.core.errors import ConfigError, EventLogAway, SprintLocked
from orchestrator.files.atomic_file import is_alive
from orchestrator.storage.event_table import connected, lock, usable

ORPHAN_WAIT_S = 30.0
"""Seconds that children of a killed process may take to end."""


class SprintLock:
    """`async with SprintLock(path) as lock:` holds it; raises SprintLocked naming the pid of a living holder."""

    def __init__(self, path: Path, what: str = "this sprint") -> None:
        """`what` is what the lock stands for, in messages."""
        self._path, self._what = path, what
        self.fd = -1

    async def __aenter__(self) -> "SprintLock":
        await asyncio.to_thread(self._acquire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # a disk that takes nothing any more: the pid is a dead one's soon
            os.ftruncate(self.fd, 0)
        self._close()

    def _acquire(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + ORPHAN_WAIT_S
        while not self._taken():
            pid = self._holder()
            if pid and is_alive(pid):
                self._close()
                raise SprintLocked(
                    f"another process (pid {pid}) is at work on {self._what}; wait for it or end it", pid=pid
                )
            if time.monotonic() > deadline:
                self._close()
                raise SprintLocked(f"commands left by a killed run still hold {self._what}; end them first", pid=pid)
            time.sleep(0.05)
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, str(os.getpid()).encode(), 0)

    def _taken(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process holds it
            return False
        return True

    def _holder(self) -> int:
        text = os.pread(self.fd, 32, 0).decode(errors="replace").strip()
        return int(text) if text.isdigit() else 0

    def _close(self) -> None:
        os.close(self.fd)
        self.fd = -1


def holder(path: Path) -> int | None:
    """Pid of the living process that holds the lock, else None."""
    try:
        with path.open("rb") as file:
            # The pid alone would not do: after a kill it may belong to any other process.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
    except BlockingIOError:
        text = path.read_text().strip()
    except OSError:  # no holder has written its pid
        return None
    return int(text) if text.isdigit() and is_alive(int(text)) else None


DAEMONS = sa.Table(
    "orchestrator_daemons",
    sa.MetaData(),
    sa.Column("executor_id", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
)
# Renewed four times in it: one lost renewal is no lost lease.
TTL_S = 15.0
"""A holder that has not been seen for so long may be replaced."""
_LOOK_S = 0.5  # between two attempts to take the lease
_NOW = sa.func.clock_timestamp()


class Lease:
    """`async with Lease(...)` works as `executor_id`, alone; on SQLite nothing is done, for the file lock holds there.

    The caller holds the file lock of its state `folder`: a former holder in the same folder has ended, so that no one
    waits for it after a crash.
    Entering waits up to `wait_s` for another holder to end or to go stale, and up to `patience_s` for the database;
    `tell` hears what is waited for. Raises SprintLocked, EventLogAway. It is renewed by a thread of its own, however
    busy the loop is; an unavailable database does not end the lease, because no one else can take it then.

    `lost` is called once, in that thread, when another process has taken it over, or the table is gone: this process
    must end without doing anything more.
    """

    def __init__(
        self,
        url: str,
        executor_id: str,
        *,
        folder: str,
        lost: Callable[[str], None],
        tell: Callable[[str], None] = lambda _: None,
        wait_s: float = TTL_S + 5.0,
        patience_s: float = 0.0,
        ttl_s: float = TTL_S,
    ) -> None:
        self._url, self._executor_id, self._folder = url, executor_id, folder
        self._lost, self._tell = lost, tell
        self._wait_s, self._patience_s, self._ttl_s = wait_s, patience_s, ttl_s
        self._token = uuid.uuid4().hex
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._engine: sa.Engine | None = None

    async def __aenter__(self) -> "Lease":
        engine = await asyncio.to_thread(connected, self._url, writes=True)
        if engine.dialect.name != "postgresql":
            return self
        try:
            await self._take(engine)
        except BaseException:
            await asyncio.to_thread(self._give_up, engine)
            raise
        self._engine = engine
        self._thread = threading.Thread(target=self._beat, args=(engine,), name="daemon-lease", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        if self._thread is not None and self._engine is not None:
            await asyncio.to_thread(self._thread.join, self._ttl_s)
            await asyncio.to_thread(self._give_up, self._engine)

    async def _take(self, engine: sa.Engine) -> None:
        await self._prepare(engine)
        deadline, told = time.monotonic() + self._wait_s, ""
        while (holder := await asyncio.to_thread(self._try, engine)) is not None:
            if time.monotonic() >= deadline:
                raise SprintLocked(f"{holder}; end it, or give this one another executor id", pid=0)
            if holder != told:
                self._tell(f"{holder}; waiting for its end")
                told = holder
            await asyncio.sleep(_LOOK_S)

    async def _prepare(self, engine: sa.Engine) -> None:
        """Whatever begins together with its database may be the first of the two."""
        deadline, told = time.monotonic() + self._patience_s, False
        while True:
            try:
                return await asyncio.to_thread(_prepare, engine)
            except EventLogAway as error:
                if time.monotonic() >= deadline:
                    raise
                if not told:
                    self._tell(f"{error.message}; waiting for it")
                    told = True
            await asyncio.sleep(_LOOK_S)

    def _try(self, engine: sa.Engine) -> str | None:
        """Take it if it is free, stale or ours already; else who holds it."""
        row = {
            "executor_id": self._executor_id, "token": self._token, "host": socket.gethostname(), "pid": os.getpid(),
            "folder": self._folder, "place": _place(self._folder), "seen": _NOW,
        }  # fmt: skip
        stale = DAEMONS.c.seen < _NOW - sa.func.make_interval(0, 0, 0, 0, 0, 0, self._ttl_s)
        taken = (
            postgresql.insert(DAEMONS)
            .values(row)
            .on_conflict_do_update(
                index_elements=[DAEMONS.c.executor_id],
                set_={name: value for name, value in row.items() if name != "executor_id"},
                where=sa.or_(stale, DAEMONS.c.token == self._token, DAEMONS.c.place == row["place"]),
            )
            .returning(DAEMONS.c.token)
        )
        query = sa.select(DAEMONS.c.host, DAEMONS.c.pid, DAEMONS.c.folder)
        with usable(), engine.begin() as connection:
            if connection.execute(taken).first() is not None:
                return None
            held = connection.execute(query.where(DAEMONS.c.executor_id == self._executor_id)).first()
        who = f" (host {held.host}, pid {held.pid}, state folder {held.folder})" if held else ""
        return f"another daemon works as {self._executor_id}{who}"

    def _beat(self, engine: sa.Engine) -> None:
        renewed = sa.update(DAEMONS).where(*self._mine()).values(seen=_NOW)
        why = ""
        while not why and not self._ending.wait(self._ttl_s / 4):
            try:
                with usable(), engine.begin() as connection:
                    if connection.execute(renewed).rowcount == 0:
                        why = f"another daemon has taken over as {self._executor_id}"
            except EventLogAway:  # an unavailable database does not end the lease
                continue
            except ConfigError as error:  # the table is gone, or the right to it
                why = error.message
        if why:
            self._lost(why)

    def _give_up(self, engine: sa.Engine) -> None:
        with suppress(ConfigError), usable(), engine.begin() as connection:  # the lease expires by itself
            connection.execute(sa.delete(DAEMONS).where(*self._mine()))
        engine.dispose()

    def _mine(self) -> tuple[sa.ColumnElement[Any], ...]:
        return DAEMONS.c.executor_id == self._executor_id, DAEMONS.c.token == self._token


def _place(folder: str) -> str:
    """Returns an id of a folder on a running machine, independent of mounts; a unique one if that is unknown."""
    try:
        found = os.stat(folder)
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return uuid.uuid4().hex
    return f"{booted}:{found.st_dev}:{found.st_ino}"


def _prepare(engine: sa.Engine) -> None:
    with usable(), engine.begin() as connection:
        lock(connection)
        connection.execute(sa.schema.CreateTable(DAEMONS, if_not_exists=True))
