"""Following the log, here and of a daemon elsewhere: from any point, without loss or duplicates, whatever breaks."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from orchestrator.client.http import DaemonClient, RemoteLog
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event, Level
from orchestrator.records.logs import LocalLog, LogQuery
from orchestrator.settings import Environment, load
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventStore
from tests.cli.waiting import Waiting
from tests.daemon_server import FakeDaemon, Said, fake_daemon, log_event
from tests.support import plain_environment

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def event(number: int, **more: str) -> Event:
    return Event(**{"id": str(number), "time": NOON, "name": "x", "message": f"m{number}", "sprint": "S", **more})


class Pauses:
    """What happens while a follower waits: the next of these, then the test is over."""

    def __init__(self, *deeds: Callable[[], object]) -> None:
        self.waits: list[float] = []
        self._deeds = iter(deeds)

    def __call__(self, wait_s: float) -> None:
        self.waits.append(wait_s)
        deed = next(self._deeds, None)
        if deed is None:
            raise KeyboardInterrupt
        deed()


def until_interrupted(events: Iterator[tuple[int, Event]]) -> list[int]:
    seen = []
    with suppress(KeyboardInterrupt):
        for seq, _ in events:
            seen.append(seq)
        pytest.fail("nobody ends what is followed")
    return seen


def asking(daemon: FakeDaemon, query: LogQuery | None = None, **more: Any) -> closing[RemoteLog]:
    return closing(RemoteLog(DaemonClient(daemon.url, {}), query or LogQuery(), **more))


@pytest.fixture
def recorded(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


def here(recorded: Waiting) -> Environment:
    return load(None, (), recorded.environment(), recorded.folder)[1]


def test_what_is_wanted_is_the_same_for_people_here_and_for_a_daemon() -> None:
    query = LogQuery(sprint="S", story="A", level=Level.WARN, since=NOON)
    assert query.wants(event(1, story="A", level="error"))
    for other in ({"story": "B"}, {"level": "info"}, {"time": "2026-01-02T11:59:59Z"}):
        assert not query.wants(event(1, **{"story": "A", "level": "warn", **other}))
    assert query.words() == {"sprint": "S", "story": "A", "level": "warn", "since": "2026-01-02T12:00:00Z"}


def test_a_log_that_is_away_for_a_moment_is_followed(recorded: Waiting, tmp_path: Path) -> None:
    base, told = recorded.state.event_database, list[str]()
    recorded.emit(event(1), event(2), event(3))

    def broken() -> None:
        base.rename(tmp_path / "aside")
        base.write_text("no database at all, but long enough to be taken for one" * 20)

    def mended() -> None:
        (tmp_path / "aside").rename(base)
        recorded.emit(event(4, level="debug"), event(5))

    log = LocalLog(here(recorded), LogQuery(), after=3, pause=Pauses(broken, lambda: None, mended))
    assert until_interrupted(log.to_come(told.append)) == [5]
    assert len(told) == 2
    assert "trying again from event 3" in told[0]
    assert told[1] == "the event log can be read again"
    log.close()


@pytest.mark.parametrize(
    ("after", "tail", "right"), [(0, 2, [3, 4]), (1, 2, [3, 4]), (3, 2, [4]), (1, None, [2, 3, 4])]
)
def test_of_what_lies_behind_a_number_the_last_ones(
    tmp_path: Path, after: int, tail: int | None, right: list[int]
) -> None:
    environment = load(None, (), plain_environment(ORCHESTRATOR_HOME=str(tmp_path)), tmp_path)[1]

    async def record() -> None:
        async with EventStore(sqlite_url(tmp_path / "events.sqlite")) as store:
            for number in range(1, 5):
                await store.emit(event(number))

    asyncio.run(record())
    with closing(LocalLog(environment, LogQuery(tail=tail), after=after)) as log:
        assert [seq for seq, _ in log.recorded()] == right


def test_a_daemon_that_goes_away_is_followed_without_loss_or_duplicates() -> None:
    told = list[str]()
    with fake_daemon(
        Said(parts=(log_event(5), ": heartbeat\n\n", log_event(6), log_event(7)[:40]), breaks=True),
        Said(status=502, body="<html>"),
        Said(status=404, body="Application not found"),
        Said(parts=(log_event(6), log_event(7), "event: other\ndata: {}\n\n")),
        Said(parts=(log_event(8),)),
    ) as daemon:
        pauses = Pauses(*[lambda: None] * 4)
        with asking(daemon, LogQuery(story="US-1", level=Level.WARN), after=4, pause=pauses) as log:
            assert until_interrupted(log.followed(told.append)) == [5, 6, 7, 8]
    assert [asked.headers.get("last-event-id") for asked in daemon.asked] == [None, "6", "6", "6", "7"]
    assert daemon.asked[0].query == {"story": "US-1", "level": "warn", "after": "4", "follow": "true"}
    assert pauses.waits == [0.5, 1, 2, 4, 8]
    lost, back, ended, *_ = told
    assert "trying again from event 6" in lost
    assert "is there again" in back
    assert "has ended its stream" in ended


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Said(status=401, body={"error": "no"}), "wants a token: set ORCHESTRATOR_TOKEN"),
        (Said(status=404, body={"error": "unknown sprint X"}), "unknown sprint X"),
        (Said(status=404, body={"detail": "Not Found"}), "does not answer as a daemon: HTTP 404"),
        (Said(status=502, body="<html>"), "does not answer as a daemon: HTTP 502"),
        (Said(body="<html>"), "does not answer as a daemon"),
        (Said(parts=("id: 3\nevent: log\ndata: []\n\n",)), "no log line"),
        (Said(parts=("id: three\nevent: log\ndata: {}\n\n",)), "no log line"),
        (Said(parts=('id: 3\nevent: log\ndata: {"level": "loud"}\n\n',)), "event 3 is no log line"),
        (Said(status=308, headers={"location": "https://elsewhere.example"}), "redirects to https://elsewhere.example"),
    ],
)
def test_what_trying_again_does_not_change_is_an_error(said: Said, why: str) -> None:
    with fake_daemon(said) as daemon, asking(daemon, pause=Pauses()) as log:
        for events in (log.followed(pytest.fail), log.recorded()):
            with pytest.raises(ConfigError) as caught:
                list(islice(events, 1))
            assert why in caught.value.message
