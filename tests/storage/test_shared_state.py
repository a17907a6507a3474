"""Small files of the state folder in a real Postgres: written there first, fetched by others, refused where foreign."""

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from orchestrator.core.errors import ConfigError, SprintLocked
from orchestrator.core.event import Event
from orchestrator.core.sprint import SprintRecord
from orchestrator.settings import Environment
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.reply_journal import ReplyJournal
from orchestrator.storage.shared_state import SharedState
from orchestrator.storage.state_folder import StateFolder
from tests.storage.test_reply_journal import prompt, reply

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def tell(url: str) -> None:
    """Records an event of the sprint."""
    async with EventStore(url) as log:
        await log.emit(Event(id="S1:x", time=NOW, name="sprint_started", message="", sprint="S1"))


Folders = Callable[[Path, str], StateFolder]


@pytest.fixture
def folder_of() -> Iterator[Folders]:
    """Makes a machine's folder over a database."""
    made: list[SharedState] = []

    def make(home: Path, url: str) -> StateFolder:
        made.append(SharedState(url, home))
        return StateFolder(home, made[-1])

    yield make
    for shared in made:
        shared.close()


def record_of(**more: Any) -> SprintRecord:
    return SprintRecord(sprint="S1", backlog="/b.csv", repo="/r", base="", story_ids=("A",), started_at=NOW, **more)


def test_what_one_machine_writes_another_one_reads(tmp_path: Path, postgres: str, folder_of: Folders) -> None:
    first, second = folder_of(tmp_path / "a", postgres), folder_of(tmp_path / "b", postgres)
    first.save(record_of())
    assert [record.sprint for record in second.records()] == ["S1"]
    second.save(record_of(cleared=True))
    assert [record.cleared for record in first.records()] == [True]
    first.write(first.submitted / "x.csv", b"rows")
    second.refresh()
    assert (second.submitted / "x.csv").read_bytes() == b"rows"
    made = first.analysis("AN-001") / "results" / "plan.md"
    made.parent.mkdir(parents=True)
    made.write_text("# Plan\n")
    first.share(made)
    second.refresh()
    assert (second.analysis("AN-001") / "results" / "plan.md").read_text() == "# Plan\n"
    second.delete(second.submitted / "x.csv")
    first.refresh()
    assert not (first.submitted / "x.csv").exists()
    shutil.rmtree(first.home)
    assert folder_of(tmp_path / "a", postgres).records() == second.records()


def test_a_reply_is_found_on_another_machine_also_one_that_a_kill_left_behind(
    tmp_path: Path, postgres: str, folder_of: Folders
) -> None:
    first, second = folder_of(tmp_path / "a", postgres), folder_of(tmp_path / "b", postgres)
    journal = ReplyJournal(first.replies, first.shared).workflow("S1/A")
    journal.record_reply(1, prompt(), reply())
    journal.share()
    journal.record_reply(2, prompt(), reply(text="two"))
    found = ReplyJournal(second.replies, second.shared).workflow("S1/A")
    assert (found.reply(1), found.reply(2)) == (reply(), None)
    ReplyJournal(first.replies, first.shared).workflow("S1/A")  # the same machine again: what was never shared is
    assert ReplyJournal(second.replies, second.shared).workflow("S1/A").reply(2) == reply(text="two")
    second.forget(second.replies / "S1")
    third = folder_of(tmp_path / "c", postgres).shared
    assert third is not None
    assert third.missing(["replies/S1/A/1-1.json"]) == ["replies/S1/A/1-1.json"]


def test_a_folder_of_another_database_or_of_a_later_state_is_refused(
    tmp_path: Path, fresh_postgres: Any, folder_of: Folders
) -> None:
    ours, theirs = fresh_postgres(), fresh_postgres()
    folder = folder_of(tmp_path, ours)
    folder.save(record_of())
    folder.refresh()
    with pytest.raises(ConfigError, match="belongs to another database than the one of DATABASE_URL"):
        folder_of(tmp_path, theirs).records()
    with psycopg.connect(ours) as connection:
        connection.execute("DELETE FROM orchestrator_files")  # as a database that was restored from before
    with pytest.raises(ConfigError, match="is newer than the database of DATABASE_URL"):
        folder_of(tmp_path, ours).records()


def test_a_folder_of_the_release_before_is_taken_in_one_of_sqlite_refused(
    tmp_path: Path, postgres: str, folder_of: Folders
) -> None:
    old = StateFolder(tmp_path / "old")
    old.save(record_of())
    (old.replies / "S1" / "A").mkdir(parents=True)
    (old.replies / "S1" / "A" / "1-1.json").write_text("{}")
    old.event_database.touch()  # it was used without DATABASE_URL as well
    with pytest.raises(ConfigError, match="holds sprint S1, of which the database of DATABASE_URL knows nothing"):
        folder_of(old.home, postgres).records()
    asyncio.run(tell(postgres))
    assert [record.sprint for record in folder_of(old.home, postgres).records()] == ["S1"]
    new = folder_of(tmp_path / "new", postgres)
    assert [record.sprint for record in new.records()] == ["S1"]
    ReplyJournal(new.replies, new.shared).stories()
    assert (new.replies / "S1" / "A" / "1-1.json").read_text() == "{}"


def test_nothing_is_written_for_a_sprint_that_was_taken_over(tmp_path: Path, postgres: str, folder_of: Folders) -> None:
    folder = folder_of(tmp_path / "a", postgres)
    assert folder.shared is not None
    folder.save(record_of())

    def taken_over(_connection: sa.Connection, sprint: str) -> None:
        raise SprintLocked(f"{sprint} is another one's", pid=0)

    folder.shared.guard = taken_over
    with pytest.raises(SprintLocked):
        folder.save(record_of(cleared=True))
    assert json.loads((folder.sprint("S1") / "sprint.json").read_text())["cleared"] is False
    assert [record.cleared for record in folder_of(tmp_path / "b", postgres).records()] == [False]


def test_only_a_postgres_is_shared(tmp_path: Path) -> None:
    def of(url: str | None) -> StateFolder:
        return StateFolder.of(Environment(home=tmp_path, config_file=None, base_dir=tmp_path, database_url=url))

    assert of(None).shared is None
    assert of(sqlite_url(tmp_path / "x.sqlite")).shared is None
    assert of("postgres://user@host/name").shared is of("postgres://user@host/name").shared is not None
