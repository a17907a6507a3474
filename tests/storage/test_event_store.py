"""The event log: each id once, in order, also from many writers at once, and never stopped by who listens."""

import asyncio
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.command import CONTROL_MARK
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.event_store import EventStore

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def event(number: int | str, sprint: str = "SP-001", **data: Any) -> Event:
    return Event(id=f"{sprint}/A:{number}", time=NOW, name="told", message="m", sprint=sprint, story="A", data=data)


def read(url: str, sprint: str | None = None, after: int = 0) -> list[tuple[int, Event]]:
    reader = EventReader(url)
    try:
        return list(reader.read(sprint, after))
    finally:
        reader.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Everything that is promised holds on both databases."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "events.sqlite")
    return str(request.getfixturevalue("postgres"))


async def test_an_event_is_stored_and_shown_once_and_the_first_stays(url: str) -> None:
    shown: list[Event] = []
    first = event(1, text="half \ud83d", findings=[{"code": "x"}], none=None)
    async with EventStore(url, on_event=shown.append) as store:
        assert await store.emit(first)
        assert not await store.emit(event(1, text="later"))
    async with EventStore(url, on_event=shown.append) as store:
        assert not await store.emit(first)
    assert shown == [first]
    assert [stored for _, stored in await asyncio.to_thread(read, url)] == [first]


ANSWERS = """
import asyncio, sys
from tests.storage.test_event_store import EventStore, event

async def answer():
    async with EventStore(sys.argv[1]) as store:
        await store.emit(event(sys.argv[2]))

asyncio.run(answer())
"""


async def test_what_another_process_writes_is_seen_whoever_opens_and_closes_the_file(tmp_path: Path) -> None:
    """A file that is closed takes the locks of its process with it: the next one to leave would take our log along."""
    url = sqlite_url(tmp_path / "events.sqlite")
    async with EventStore(url) as store, EventStore(url):
        await store.emit(event(1))
        for name in ("first", "second"):
            command = [sys.executable, "-c", ANSWERS, url, name]
            await asyncio.to_thread(subprocess.run, command, cwd=Path(__file__).parents[2], check=True)
            assert await store.find([event(name).id])


async def test_many_at_once_are_all_there_each_once(url: str) -> None:
    shown: list[str] = []
    async with EventStore(url, on_event=lambda one: shown.append(one.id)) as store:
        results = await asyncio.gather(*(store.emit(event(number % 300)) for number in range(900)))
    assert sum(results) == 300
    stored = await asyncio.to_thread(read, url)
    assert [one.id for _, one in stored] == shown
    assert len(set(shown)) == 300


async def test_reading_by_sprint_and_from_a_place_on(url: str) -> None:
    async with EventStore(url) as store:
        await asyncio.gather(*(store.emit(event(n, "SP-001" if n % 2 else "SP-002")) for n in range(2400)))
    mine = await asyncio.to_thread(read, url, "SP-002")
    assert len(mine) == 1200
    assert [seq for seq, _ in mine] == sorted(seq for seq, _ in mine)
    rest = await asyncio.to_thread(read, url, "SP-002", mine[600][0])
    assert rest == mine[601:]

    def third(one: Event) -> bool:
        return int(one.id.rpartition(":")[2]) % 3 == 0

    def last(count: int, sprint: str | None) -> int:
        with closing(EventReader(url)) as log:
            return log.start_of_last(count, sprint, third)

    start = await asyncio.to_thread(last, 250, "SP-002")  # over more than one look
    assert [seq for seq, one in mine if third(one)][-250:] == [seq for seq, one in mine if third(one) and seq > start]
    assert await asyncio.to_thread(last, 801, None) == 0


async def test_orders_are_found_by_their_mark_without_a_look_at_the_rest(url: str) -> None:
    marked = [event(n).model_copy(update={"id": f"SP-001:control:{n}"}) for n in range(4)]
    async with EventStore(url) as store:
        await asyncio.gather(*(store.emit(event(n)) for n in range(50)))
        for number, one in enumerate(marked):
            await store.emit(one)
            await store.emit(event(f"x{number}", "SP-control"))
        found = await store.since(0, mark=CONTROL_MARK)
        assert [one for _, one in found] == marked
        assert await store.since(found[1][0], mark=CONTROL_MARK) == found[2:]
        assert len(await store.since(0, mark="SP-001/A:4")) == 11
        assert await store.since(found[-1][0], mark=CONTROL_MARK) == []


async def test_events_of_the_sprint_itself_are_read_by_themselves(url: str) -> None:
    async with EventStore(url) as store:
        for number, one in enumerate([event(1), event(2), event(3, "SP-002"), event(4)]):
            await store.emit(one.model_copy(update={"story": None}) if number else one)

    def of_sprint() -> list[Event]:
        reader = EventReader(url)
        try:
            return reader.of_sprint("SP-001")
        finally:
            reader.close()

    assert [one.id for one in await asyncio.to_thread(of_sprint)] == ["SP-001/A:2", "SP-001/A:4"]


async def test_a_listener_that_fails_ends_the_showing_not_the_record(url: str) -> None:
    calls: list[Event] = []

    def closed_pipe(one: Event) -> None:
        calls.append(one)
        raise BrokenPipeError

    async with EventStore(url, on_event=closed_pipe) as store:
        assert await asyncio.wait_for(store.emit(event(1)), 5)
        assert await asyncio.wait_for(store.emit(event(2)), 5)
    assert len(calls) == 1
    assert len(await asyncio.to_thread(read, url)) == 2


async def test_what_is_queued_is_stored_before_the_end_also_when_the_emitter_is_gone(url: str) -> None:
    async with EventStore(url) as store:
        task = asyncio.create_task(store.emit(event(1)))
        await asyncio.sleep(0)
        task.cancel()
    assert len(await asyncio.to_thread(read, url)) == 1


async def test_an_event_that_is_no_json_fails_its_emitter_only(url: str) -> None:
    async with EventStore(url) as store:
        with pytest.raises(ValueError, match="serialize"):
            await asyncio.wait_for(store.emit(event(1, what=object())), 5)
        assert await asyncio.wait_for(store.emit(event(2)), 5)


@pytest.mark.parametrize(
    "address",
    [
        "secret word",
        "nosuch://u:secret@h/x",
        "postgresql://u:secret/more@h/x",
        "sqlite:////nonexistent/x.sqlite",
        "file",
    ],
)
async def test_a_database_that_cannot_be_used_is_told_without_its_address(tmp_path: Path, address: str) -> None:
    (tmp_path / "file").write_text("this is no database, however long one looks at it " * 50)
    url = sqlite_url(tmp_path / "file") if address == "file" else address
    with pytest.raises(ConfigError, match="DATABASE_URL") as refused:
        await asyncio.to_thread(lambda: EventReader(url).sprints())
    assert "secret" not in refused.value.message
    with pytest.raises(ConfigError):
        async with EventStore(url):
            pass


async def test_secrets_are_neither_stored_nor_shown(url: str) -> None:
    token, known, shown = "ghp_" + "a1B2" * 9, "the one that is known", []
    told = event(1, findings=[{"message": f"{token} and {known}"}], **{known: 1}).model_copy(update={"message": token})
    async with EventStore(url, on_event=shown.append, secrets=[known]) as store:
        assert await store.emit(told)
        assert await store.emit(told.model_copy(update={"id": "SP-001/A:2", "name": "gate_answered"}))
    stored = [one for _, one in await asyncio.to_thread(read, url)]
    assert stored == shown
    assert (stored[0].message, stored[0].data) == (
        "[redacted]", {"findings": [{"message": "[redacted] and [redacted]"}], "[redacted]": 1},
    )  # fmt: skip
    assert stored[1].message == token


async def test_a_secret_learned_later_is_hidden_from_then_on(url: str) -> None:
    async with EventStore(url, secrets=["rather long"]) as store:
        store.hide(["a rather long secret"])
        await store.emit(event(1, text="a rather long secret, rather long"))
    assert [one.data["text"] for _, one in await asyncio.to_thread(read, url)] == ["[redacted], [redacted]"]
