"""The log on its bad days: many processes at once, broken connections, servers that restart, full disks."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from orchestrator.core.errors import EventLogAway
from orchestrator.core.event import Event
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.event_store import EventStore
from tests.postgres import IMMEDIATE, PostgresServer
from tests.storage.log_writer import AT_ONCE
from tests.storage.test_event_store import event, read, url
from tests.support import full_disk, plain_environment
from tests.zygote import ROOT, zygote

__all__ = ["url"]


def test_a_reader_that_follows_many_writers_misses_nothing_and_sees_nothing_twice(url: str) -> None:
    writers = [
        zygote().start("tests.storage.log_writer", [url, name, "12"], cwd=ROOT, env=plain_environment())
        for name in "abc"
    ]
    reader = EventReader(url)
    seen: list[tuple[int, str]] = []
    alive = True
    while alive:
        alive = any(writer.poll() is None for writer in writers)
        seen += [(seq, one.id) for seq, one in reader.read("S", seen[-1][0] if seen else 0)]
    reader.close()
    assert [writer.communicate()[1] for writer in writers] == [""] * 3
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert seen == [(seq, one.id) for seq, one in read(url)]
    assert len({name for _, name in seen}) == len(seen) == 3 * 12 * AT_ONCE


async def test_what_is_told_while_the_server_restarts_is_stored_once_and_shown_once(
    postgres_server: PostgresServer,
) -> None:
    url, shown, told = postgres_server.fresh(), list[str](), list[str]()
    async with EventStore(url, on_event=lambda one: shown.append(one.id), tell=told.append) as store:
        following = asyncio.create_task(asyncio.to_thread(follow, url, 60))
        await asyncio.gather(*(store.emit(event(n)) for n in range(20)))
        postgres_server.stop(IMMEDIATE)
        meanwhile = [asyncio.create_task(store.emit(event(n))) for n in range(15, 40)]
        while not told:
            await asyncio.sleep(0.01)
        with pytest.raises(EventLogAway):
            await store.since(0, mark="x")
        postgres_server.start()
        assert await asyncio.gather(*meanwhile) == [False] * 5 + [True] * 20
        postgres_server.restart()
        assert await asyncio.gather(*(store.emit(event(n)) for n in range(40, 60))) == [True] * 20
        ids = [f"SP-001/A:{n}" for n in range(60)]
        assert sorted(shown) == sorted(ids)
        assert sorted(await following) == sorted(ids)
    assert (told[0][:36], told[1]) == ("the event log waits for its database", "the event log is written again")


def follow(url: str, count: int) -> list[str]:
    """The first `count` events, read one after the other as `logs -f` does."""
    reader = EventReader(url, patience_s=60)
    seen: list[tuple[int, str]] = []
    while len(seen) < count:
        seen += [(seq, one.id) for seq, one in reader.read(after=seen[-1][0] if seen else 0)]
    reader.close()
    return [name for _, name in seen]


class Torn(EventStore):
    """The connection breaks after the commit: whether it took place the store cannot know."""

    torn = False

    def _insert(self, items: Any, claimed: set[int]) -> list[bool]:
        fresh = super()._insert(items, claimed)
        if not self.torn:
            self.torn = True
            raise sa.exc.OperationalError("", {}, psycopg.OperationalError("server closed the connection unexpectedly"))
        return fresh


async def test_a_commit_whose_answer_is_lost_is_neither_doubled_nor_taken_for_somebody_elses(url: str) -> None:
    shown: list[Event] = []
    async with EventStore(url) as other:
        await other.emit(event(2))
    async with Torn(url, on_event=shown.append) as store:
        stored = await asyncio.gather(*(store.emit(event(n)) for n in (1, 1, 2)))
    assert stored == [True, False, False]
    assert [one.id for one in shown] == ["SP-001/A:1"]
    assert len(await asyncio.to_thread(read, url)) == 2


async def test_one_that_the_database_refuses_takes_no_other_with_it(url: str) -> None:
    odd = event(1).model_copy(update={"story": "A\0" if url.startswith("postgres") else "\ud83d"})
    async with EventStore(url) as store:
        results = await asyncio.gather(*map(store.emit, (event(2), odd, event(3))), return_exceptions=True)
    assert (results[0], results[2]) == (True, True)
    assert isinstance(results[1], Exception)
    assert len(await asyncio.to_thread(read, url)) == 2


async def test_what_is_told_while_the_disk_is_full_is_written_when_there_is_room(tmp_path: Path) -> None:
    file, shown, told = tmp_path / "events.sqlite", list[str](), list[str]()
    async with EventStore(sqlite_url(file), on_event=lambda one: shown.append(one.id), tell=told.append) as store:
        await asyncio.gather(*(store.emit(event(n)) for n in range(20)))
        with full_disk():
            meanwhile = [asyncio.create_task(store.emit(event(n, text="x" * 100_000))) for n in range(20, 30)]
            while not told:
                await asyncio.sleep(0.01)
            assert len(await asyncio.to_thread(read, sqlite_url(file))) == len(shown) == 20
        assert await asyncio.gather(*meanwhile) == [True] * 10
    assert [one.id for _, one in await asyncio.to_thread(read, sqlite_url(file))] == shown
    assert told[1] == "the event log is written again"
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
