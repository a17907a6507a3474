"""A sprint that is followed is at every moment what a fresh reading of the whole log says."""

import asyncio
import copy
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.app.commands import SprintCommands
from orchestrator.board.cards import Cards
from orchestrator.cli.sprint_lines import read_shown
from orchestrator.core.command import OrderBody, Verb
from orchestrator.core.event import Event
from orchestrator.core.history import SPENT
from orchestrator.records.sprint_reader import FollowedSprint, Reader, SprintView
from orchestrator.records.views import sprint_json
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.state_folder import StateFolder
from tests.end_to_end.test_pause import Place
from tests.support import copy_state


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A sprint of two stories that are done; nothing changes it."""
    place = Place(tmp_path_factory.mktemp("followed"))
    place.run(waits=False, on={})
    return place


@pytest.fixture
def place(ended: Place, tmp_path: Path) -> Place:
    """A copy of it."""
    copied = copy.copy(ended)
    home = copy_state(ended.environment.home, tmp_path / "state")
    copied.environment = ended.environment.model_copy(update={"home": home})
    return copied


def shown(view: SprintView) -> tuple[object, ...]:
    cards = Cards(replace(view, running_pid=None))
    return read_shown(sprint_json(replace(view, running_pid=None)), ""), cards.page(0)


async def test_each_look_shows_what_the_whole_log_says(ended: Place, tmp_path: Path) -> None:
    def prepare() -> tuple[list[Event], StateFolder, Reader, FollowedSprint]:
        copied = ended.environment.model_copy(update={"home": tmp_path / "copy"})
        folder = StateFolder(copied.home)
        shutil.copytree(StateFolder(ended.environment.home).sprint("SP-001"), folder.sprint("SP-001"))
        recorded = [event for _, event in Reader(ended.environment).events("SP-001")]
        return recorded, folder, Reader(copied), Reader(copied).follow("SP-001")

    recorded, folder, reader, followed = await asyncio.to_thread(prepare)
    async with EventStore(sqlite_url(folder.event_database)) as store:
        for number, event in enumerate(recorded):
            await store.emit(event)
            if number % 7 == 0:
                now, whole = await asyncio.to_thread(lambda: (followed.look(), reader.sprint(None)))
                assert shown(now) == shown(whole)
    assert len(recorded) > 50


def test_a_story_that_was_reset_begins_anew(place: Place) -> None:
    reader = Reader(place.environment)
    followed = reader.follow(None)
    paid = sum(event.name in SPENT for event in place.events)
    assert Cards(followed.look()).head()["counts"] == {"done": 2}
    commands = SprintCommands(place.environment, place.settings)
    asyncio.run(commands.order("SP-001", "B", OrderBody(verb=Verb.RESET, by="ana")))
    view = followed.look()
    assert shown(view) == shown(reader.sprint(None))
    assert [history.status.value for history in view.histories.values()] == ["done", "pending"]
    assert Cards(view).head()["calls"] == paid, "what was paid before a reset was paid"


def test_a_view_tells_of_its_own_moment_and_a_pause_changes_every_story(place: Place) -> None:
    reader = Reader(place.environment)
    followed = reader.follow("SP-001")
    before = followed.look()
    seen = before.place
    commands = SprintCommands(place.environment, place.settings)
    asyncio.run(commands.order("SP-001", "B", OrderBody(verb=Verb.RESET, by="ana")))
    begun = followed.look()
    asyncio.run(commands.order("SP-001", None, OrderBody(verb=Verb.PAUSE, by="ana")))
    after = followed.look()
    # A later look, of another page, moves no view on: what comes in between would not be told.
    assert before.place == seen < begun.place < after.place == reader.head(), (
        "a later look of another page hides nothing"
    )
    assert after.paused
    assert {*after.changed.values()} == {after.place}
