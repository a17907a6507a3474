"""What stands where a watched backlog should: each thing is told once, and what was good last goes on."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.core.sprint import SprintRecord
from orchestrator.daemon.planning import Planner
from orchestrator.files.process import SystemClock
from orchestrator.settings import load
from orchestrator.settings.options import ServeOptions
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.leases import Lease
from orchestrator.storage.state_folder import StateFolder
from tests.support import plain_environment, write_backlog


def test_whatever_takes_a_backlogs_place_is_refused_with_its_reason_and_nothing_waits_for_it(tmp_path: Path) -> None:
    path = write_backlog(tmp_path / "backlog.csv", "A", "B")
    good = path.read_bytes()
    settings, environment = load(None, (), plain_environment(), tmp_path)
    options = ServeOptions(backlogs=(path,), provider=None, script=None, call_log=None)
    planner = Planner(options, environment, StateFolder(environment.home), SystemClock())

    def told() -> list[str]:
        """The second look takes what looks the same twice."""
        return [news.refused for _ in range(3) for _, news in planner.look(settings)]

    def instead(put: Callable[[], object]) -> str:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
        put()
        [why] = told()
        return why

    assert told() == [""]
    assert "holds no story files" in instead(path.mkdir)
    assert "neither a file nor a folder" in instead(lambda: os.mkfifo(path))
    assert "symbolic links" in instead(lambda: path.symlink_to(path))
    assert "No such file" in instead(lambda: None)
    assert "is empty" in instead(path.touch)
    assert "no rows" in instead(lambda: path.write_bytes(good.splitlines()[0]))
    assert "holds a NUL byte" in instead(lambda: path.write_bytes(b"\0" * 100))
    [watched] = planner.watched
    assert watched.content is not None
    assert [story.id for story in watched.content.stories] == ["A", "B"]
    assert instead(lambda: path.write_bytes(good)) == ""


def test_what_waits_is_counted_by_a_look_and_not_by_who_asks(tmp_path: Path) -> None:
    path = write_backlog(tmp_path / "backlog.csv", "A", "B")
    settings, environment = load(None, (), plain_environment(), tmp_path)
    options = ServeOptions(backlogs=(path,), provider=None, script=None, call_log=None)
    folder = StateFolder(environment.home)
    planner = Planner(options, environment, folder, SystemClock())
    planner.lease = Lease(sqlite_url(tmp_path / "events.sqlite"), "x", folder=str(folder.home), lost=print)

    def waiting() -> list[tuple[str, ...]]:
        return [state.waiting for state in planner.states(lambda _path: "")]

    for _ in range(2):
        planner.look(settings)
    assert waiting() == [("A", "B")]
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    folder.save(
        SprintRecord(
            sprint="S1", backlog=str(path), repo="/r", base="", story_ids=("A",), started_at=noon, executor="x"
        )
    )
    assert waiting() == [("A", "B")]
    planner.look(settings)
    assert waiting() == [("B",)]
