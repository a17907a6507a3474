"""Which daemon works on which sprint, where a database is shared: a lease per process, and a row per sprint it holds.

A file lock does that within one state folder. In a Postgres that others use too, a process has a row that it renews;
whoever finds a holder stale deletes its row and takes its sprints. One that only stood still learns of it at its next
write or paid call: each checks, in its own transaction, that the row is still there.
"""

import asyncio
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from orchestrator.core.errors import ConfigError, EventLogAway, SprintLocked
from orchestrator.storage.event_table import NOT_IDLE, connected, lock, usable

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
HOLDERS = sa.Table(
    "orchestrator_holders",
    sa.MetaData(),
    sa.Column("sprint", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
)
"""Sprint → the token of the process that works on it; the row stays until that process ends its work."""
NEW = "(new)"
"""Held by the process that gives out the next id or takes rows of a backlog; no sprint has this name."""
MERGE = "(merge) "
"""Before a sprint's name: held by the process that merges one of its stories."""
NEW_S = 10.0
"""How long that is waited for."""
# Renewed four times in it: one lost renewal is no lost lease.
TTL_S = 15.0
"""A holder that has not been seen for so long may be replaced."""
_LOOK_S = 0.5  # between two attempts to take the lease
_NOW = sa.func.clock_timestamp()


_HELD = (
    sa.select(DAEMONS.c.token, NOT_IDLE)
    .where(DAEMONS.c.executor_id == sa.bindparam("id"), DAEMONS.c.token == sa.bindparam("mine"))
    .with_for_update(read=True, key_share=True)
)


class Lease:
    """`async with Lease(...)` works as `executor_id`, alone; on SQLite nothing is done, for the file lock holds there.

    The caller holds the file lock of its state `folder`: a former holder in the same folder has ended, so that no one
    waits for it after a crash.
    Entering waits up to `wait_s` for another holder to end or to go stale, and up to `patience_s` for the database;
    `tell` hears what is waited for. Raises SprintLocked, EventLogAway. It is renewed by a thread of its own, however
    busy the loop is; an unavailable database does not end the lease, because no one else can take it then.

    `lost` is called once when another process has taken it over, or the table is gone: by that thread, or by a write
    that finds it so. This process must end without doing anything more.
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
        self._url, self.executor_id, self._folder = url, executor_id, folder
        self._lost, self._tell = lost, tell
        self._wait_s, self._patience_s, self._ttl_s = wait_s, patience_s, ttl_s
        self.token = uuid.uuid4().hex
        """Name of this process in the tables."""
        self._ending = threading.Event()
        self._told = threading.Lock()
        self._thread: threading.Thread | None = None
        self._engine: sa.Engine | None = None
        self._work: sa.Engine | None = None
        """For all else: those who wait for a lock must not keep the lease from being renewed."""

    async def __aenter__(self) -> "Lease":
        engine = await asyncio.to_thread(connected, self._url, writes=True)
        if engine.dialect.name != "postgresql":
            return self
        try:
            await self._take(engine)
        except BaseException:
            await asyncio.to_thread(self._give_up, engine)
            raise
        self._engine, self._work = engine, await asyncio.to_thread(connected, self._url, writes=True)
        self._thread = threading.Thread(target=self._beat, args=(engine,), name="daemon-lease", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        if self._thread is not None and self._engine is not None:
            # A connection that it has in its hand now would be left open.
            await asyncio.to_thread(self._thread.join, TTL_S)
            await asyncio.to_thread(self._give_up, self._engine)
            self._engine = None
        if self._work is not None:
            await asyncio.to_thread(self._work.dispose)

    @property
    def is_shared(self) -> bool:
        """Returns whether other processes may use the database: a Postgres."""
        return self._engine is not None

    @asynccontextmanager
    async def holding(self, sprint: str, *, wait_s: float = 0.0) -> AsyncIterator[None]:
        """Inside, no other process of the database works on the sprint, or on what else has such a name.

        Raises SprintLocked where another one still does after `wait_s`, and EventLogAway unless that is without end.
        """
        until = time.monotonic() + wait_s
        while (holder := await self._claim_soon(sprint, wait_s)) is not None:
            if time.monotonic() >= until:
                raise SprintLocked(f"{holder} works on {sprint}; wait for it or end it", pid=0)
            await asyncio.sleep(_LOOK_S)
        try:
            yield
        finally:
            await asyncio.to_thread(self._release, sprint)

    def others(self) -> frozenset[str]:
        """Returns the sprints and analyses that other living processes hold. Blocks. Raises EventLogAway."""
        if self._engine is None:
            return frozenset()
        alive = sa.select(HOLDERS.c.sprint).join(DAEMONS, DAEMONS.c.token == HOLDERS.c.token)
        theirs = alive.where(DAEMONS.c.seen >= stale_before(self._ttl_s), HOLDERS.c.token != self.token)
        with usable(), self._engine.connect() as connection:
            return frozenset(connection.execute(theirs).scalars())

    def guard(self, connection: sa.Connection, sprint: str) -> None:
        """Checks in the caller's transaction that what we hold was not taken over; until the transaction ends nobody
        can. Calls `lost` and raises SprintLocked where it was. Blocks."""
        if self._engine is None or not sprint:
            return
        # The renewal of the row is no change of its key, and is not held up by this; whoever takes over is, as long as
        # we do not stand still.
        if connection.execute(_HELD, {"id": self.executor_id, "mine": self.token}).first() is None:
            why = f"another daemon has taken over what {self.executor_id} worked on"
            self._lose(why)
            raise SprintLocked(why, pid=0)

    def expect_held(self, sprint: str) -> None:
        """Checks the same by itself, before something that cannot be taken back. Waits for a database that is away.

        Blocks. Raises SprintLocked.
        """
        while self._engine is not None:
            try:
                with self.writing(sprint):
                    return
            except EventLogAway:
                time.sleep(_LOOK_S)

    @contextmanager
    def writing(self, sprint: str) -> Iterator[sa.Connection]:
        """Yields a transaction that is guarded so. Blocks. Raises SprintLocked, EventLogAway."""
        assert self._work is not None
        with usable(), self._work.begin() as connection:
            self.guard(connection, sprint)
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Yields a connection to look. Blocks. Raises EventLogAway."""
        assert self._work is not None
        with usable(), self._work.connect() as connection:
            yield connection

    async def _claim_soon(self, sprint: str, wait_s: float) -> str | None:
        try:
            return await asyncio.to_thread(self._claim, sprint)
        except EventLogAway as error:
            if wait_s < math.inf:
                raise
            return error.message

    def _claim(self, sprint: str) -> str | None:
        """Takes the sprint if it is free, ours, or its holder is stale; else returns who holds it."""
        if self._engine is None:
            return None
        theirs = sa.select(HOLDERS.c.token).where(HOLDERS.c.sprint == sprint, HOLDERS.c.token != self.token)
        stale = sa.delete(DAEMONS).where(
            DAEMONS.c.token.in_(theirs.scalar_subquery()), DAEMONS.c.seen < stale_before(self._ttl_s)
        )
        taken = (
            postgresql.insert(HOLDERS)
            .values(sprint=sprint, token=self.token)
            .on_conflict_do_update(
                index_elements=[HOLDERS.c.sprint],
                set_={"token": self.token},
                where=sa.or_(HOLDERS.c.token == self.token, HOLDERS.c.token.not_in(sa.select(DAEMONS.c.token))),
            )
            .returning(HOLDERS.c.token)
        )
        with _begun(self._engine) as connection:
            connection.execute(stale)
            if connection.execute(taken).first() is not None:
                return None
        return find_holder(self._engine, sprint) or "another process"

    def _release(self, sprint: str) -> None:
        if self._engine is None:
            return
        mine = sa.delete(HOLDERS).where(HOLDERS.c.sprint == sprint, HOLDERS.c.token == self.token)
        with suppress(ConfigError), _begun(self._engine) as connection:  # it goes stale with the lease
            connection.execute(mine)

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
            "executor_id": self.executor_id, "token": self.token, "host": socket.gethostname(), "pid": os.getpid(),
            "folder": self._folder, "place": _place(self._folder), "seen": _NOW,
        }  # fmt: skip
        stale = DAEMONS.c.seen < stale_before(self._ttl_s)
        taken = (
            postgresql.insert(DAEMONS)
            .values(row)
            .on_conflict_do_update(
                index_elements=[DAEMONS.c.executor_id],
                set_={name: value for name, value in row.items() if name != "executor_id"},
                where=sa.or_(stale, DAEMONS.c.token == self.token, DAEMONS.c.place == row["place"]),
            )
            .returning(DAEMONS.c.token)
        )
        query = sa.select(DAEMONS.c.host, DAEMONS.c.pid, DAEMONS.c.folder)
        with _begun(engine) as connection:
            if connection.execute(taken).first() is not None:
                return None
            held = connection.execute(query.where(DAEMONS.c.executor_id == self.executor_id)).first()
        who = f" (host {held.host}, pid {held.pid}, state folder {held.folder})" if held else ""
        return f"another daemon works as {self.executor_id}{who}"

    def _beat(self, engine: sa.Engine) -> None:
        renewed = sa.update(DAEMONS).where(*self._mine()).values(seen=_NOW)
        why = ""
        while not why and not self._ending.wait(self._ttl_s / 4):
            try:
                with _begun(engine) as connection:
                    if connection.execute(renewed).rowcount == 0:
                        why = f"another daemon has taken over as {self.executor_id}"
            except EventLogAway:  # an unavailable database does not end the lease
                continue
            except ConfigError as error:  # the table is gone, or the right to it
                why = error.message
        if why:
            self._lose(why)

    def _lose(self, why: str) -> None:
        if self._told.acquire(blocking=False):  # kept: it is said once
            self._lost(why)

    def _give_up(self, engine: sa.Engine) -> None:
        with suppress(ConfigError), _begun(engine) as connection:  # the lease expires by itself
            connection.execute(sa.delete(HOLDERS).where(HOLDERS.c.token == self.token))
            connection.execute(sa.delete(DAEMONS).where(*self._mine()))
        engine.dispose()

    def _mine(self) -> tuple[sa.ColumnElement[Any], ...]:
        return DAEMONS.c.executor_id == self.executor_id, DAEMONS.c.token == self.token


def find_holder(engine: sa.Engine, sprint: str) -> str | None:
    """Returns which living process of the database works on the sprint, for people; None when none does. Blocks."""
    query = (
        sa.select(DAEMONS.c.executor_id, DAEMONS.c.host, DAEMONS.c.pid)
        .join(HOLDERS, DAEMONS.c.token == HOLDERS.c.token)
        .where(HOLDERS.c.sprint == sprint, DAEMONS.c.seen >= stale_before(TTL_S))
    )
    with usable(), engine.connect() as connection:
        if not sa.inspect(connection).has_table(HOLDERS.name):
            return None
        found = connection.execute(query).first()
    return f"{found.executor_id} (host {found.host}, pid {found.pid})" if found else None


@contextmanager
def _begun(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yields a transaction that is cut off when its process stands still, for others wait for it."""
    with usable(), engine.begin() as connection:
        connection.execute(sa.select(NOT_IDLE))
        yield connection


def drop_stale(connection: sa.Connection, tokens: sa.ScalarSelect[Any]) -> None:
    """Deletes the rows of those of these processes that were not seen for long: what they hold can be taken then."""
    gone = sa.delete(DAEMONS).where(DAEMONS.c.token.in_(tokens), DAEMONS.c.seen < stale_before(TTL_S))
    connection.execute(gone)


def stale_before(ttl_s: float = TTL_S) -> sa.ColumnElement[Any]:
    """Returns the time before which a process must have been seen last to count as gone."""
    return _NOW - sa.func.make_interval(0, 0, 0, 0, 0, 0, ttl_s)


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
        connection.execute(sa.schema.CreateTable(HOLDERS, if_not_exists=True))
