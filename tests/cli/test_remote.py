"""Commands through a daemon: what they ask it, what they make of its answers, and every way it can go wrong."""

import asyncio
import json
import os
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from orchestrator.client.daemon import Daemon
from orchestrator.client.discovery import connect
from orchestrator.client.http import DaemonClient
from orchestrator.core.errors import ConfigError
from orchestrator.records.sprint_reader import Reader, find_history
from orchestrator.records.views import sprint_json, story_json
from orchestrator.reports.path import as_data, of_story
from orchestrator.settings import load
from orchestrator.storage.locks import SprintLock
from tests.cli.waiting import SPRINT, Waiting
from tests.daemon_server import Asked, FakeDaemon, Said, fake_daemon

SETTLED = {"order": "o1", "done": True, "message": "US-1 is paused", "stories": ["US-1"]}
GIVEN = {
    "sprint": SPRINT, "story": "US-1", "gate": 1, "counts": True, "choice": "approve", "by": "anna", "comment": "",
    "answered_at": "2026-01-02T12:00:00+00:00", "running_pid": 7, "begun_by": "serve",
    "message": "US-1: the plan is approved by anna",
}  # fmt: skip


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


def told_by(waiting: Waiting, **posts: Said) -> Callable[[Asked], Said]:
    """A daemon that tells what the state folder holds; `posts`: what becomes of what it is told, by the last word."""
    reader = Reader(load(None, (), waiting.environment(), waiting.folder)[1])

    def respond(asked: Asked) -> Said:
        word = asked.path.rpartition("/")[2]
        if asked.method != "GET":
            return posts[word]
        view = reader.sprint(None)
        if asked.path == "/api/v1/sprints":
            return Said(body=[sprint_json(view)])
        if asked.path == f"/api/v1/sprints/{SPRINT}":
            return Said(body=sprint_json(view))
        if "/stories/" in asked.path and word in view.histories:
            drawn = of_story(find_history(view, word), running=True, full=asked.query.get("full") == "true")
            return Said(body={**story_json(view, word, "no branch yet"), "timeline": as_data(drawn)})
        return Said(status=404, body={"error": f"sprint {SPRINT} has no story {word}"})

    return respond


def connected(waiting: Waiting, url: str) -> Daemon:
    settings, environment = load(None, (), waiting.environment(), waiting.folder)
    daemon = connect(environment, settings, url)
    assert isinstance(daemon, Daemon)
    return daemon


def sent(daemon: FakeDaemon) -> tuple[str, Any]:
    """Where the last thing was told, and what."""
    return daemon.asked[-1].path, json.loads(daemon.asked[-1].body)


def test_a_status_that_is_followed_outlives_a_daemon_that_is_away(waiting: Waiting) -> None:
    waiting.ask("US-1")
    story = {"id": "US-1", "title": "One", "status": "executing", "calls": 1}
    running = {"sprint": SPRINT, "stories": [story], "running_pid": 7, "waiting": []}
    ended = running | {"stories": [story | {"status": "done", "calls": 2}], "running_pid": None}
    told, waits = list[str](), list[float]()
    away = Said(status=502, body=""), Said(status=404, body="")
    with fake_daemon(Said(body=running), *away, Said(body=ended)) as daemon:
        there = connected(waiting, daemon.url)
        assert there.follow(SPRINT, told.append, waits.append) == running
        assert there.follow(SPRINT, told.append, waits.append) == ended
    assert waits == [1.0, 3.0]
    assert [text.rpartition(" ")[2] for text in told] == ["it", "again"]
    with fake_daemon(Said(body=ended)) as daemon:
        done = waiting.cli("status", "-f", "--sprint", SPRINT, "--url", daemon.url)
    assert "US-1         done                2 calls  One\n1 done\n" in done.stdout


@pytest.mark.parametrize("word", ["approve", "replan"])
def test_what_a_daemon_answers_is_told_as_json_and_too_late_by_the_exit_code(waiting: Waiting, word: str) -> None:
    waiting.ask("US-1")
    place = "replan" if word == "replan" else "answer"
    late = Said(status=409, body={**GIVEN, "counts": False, "message": "question 1 of US-1 was answered already"})
    with fake_daemon(told_by(waiting, **{place: Said(body=GIVEN)})) as daemon:
        assert json.loads(waiting.cli(word, "US-1", "--url", daemon.url, "--json").stdout) == GIVEN
    with fake_daemon(told_by(waiting, **{place: late})) as daemon:
        second = waiting.cli(word, "US-1", "--url", daemon.url)
    assert (second.exit_code, second.stdout) == (1, "")
    assert "was answered already" in second.stderr


def test_an_order_that_a_daemon_refuses_ends_with_its_reason(waiting: Waiting) -> None:
    refused = SETTLED | {"done": False, "message": "it is paused by bob already"}
    with fake_daemon(told_by(waiting, orders=Said(status=409, body=refused))) as daemon:
        done = waiting.cli("pause", "--url", daemon.url)
        assert (done.exit_code, done.stderr) == (1, "error: it is paused by bob already\n")
        path, said = sent(daemon)
    assert (path, said["verb"], said["by"]) == (f"/api/v1/sprints/{SPRINT}/orders", "pause", "anna")


def test_an_edited_plan_is_judged_by_the_daemon(waiting: Waiting, tmp_path: Path) -> None:
    waiting.ask("US-1")
    plan = tmp_path / "plan.yaml"
    plan.write_text("tasks: []\n")
    finding = {"code": "breakdown.no_tasks", "severity": "critical", "message": "the plan has no task"}
    refused = Said(status=422, body={"error": "nothing was answered: the plan is empty", "findings": [finding]})
    with fake_daemon(told_by(waiting, answer=refused)) as daemon:
        done = waiting.cli("edit", "US-1", "--file", str(plan), "--url", daemon.url)
    assert done.exit_code == 1
    assert "[critical] breakdown.no_tasks: the plan has no task" in done.stderr
    assert "tasks: []" in done.stderr
    with fake_daemon(told_by(waiting, answer=Said(body=GIVEN))) as daemon:
        done = waiting.cli("edit", "US-1", "--file", str(plan), "--force", "--comment", "mine", "--url", daemon.url)
        assert done.exit_code == 0, done.output
        assert sent(daemon)[1] == {
            "choice": "edit", "comment": "mine", "gate": 1, "by": "anna", "force": True, "plan": "tasks: []\n",
        }  # fmt: skip
        assert waiting.cli("edit", "US-2", "--file", str(plan), "--url", daemon.url).exit_code == 2
    away = waiting.cli("edit", "US-1", "--file", str(plan), "--url", daemon.url)
    assert (away.exit_code, "cannot be reached" in away.stderr) == (2, True)
    assert plan.read_text() == "tasks: []\n"


def test_a_backlog_is_handed_in_and_what_is_wrong_with_it_told(waiting: Waiting, tmp_path: Path) -> None:
    backlog = tmp_path / "shop.yml"
    backlog.write_bytes(b"\xff stories")
    made = {"name": "shop", "path": "/data/shop.yaml", "stories": 3, "replaced": False, "warnings": []}
    finding = {"code": "backlog.cycle", "severity": "major", "message": "US-1 waits for itself", "fix": "Break it."}
    with fake_daemon(Said(status=201, body=made)) as daemon:
        done = waiting.cli("submit", str(backlog), "--url", daemon.url, ORCHESTRATOR_TOKEN="tok-12345678901234567")
        assert (done.exit_code, done.output) == (
            0,
            "backlog shop with 3 stories is new there, and is watched from now on\n",
        )
        (asked,) = daemon.asked
        assert (asked.method, asked.path, asked.query) == ("PUT", "/api/v1/backlogs/shop", {"format": "yaml"})
        assert (asked.body, asked.headers["authorization"]) == (b"\xff stories", "Bearer tok-12345678901234567")
    with fake_daemon(Said(status=422, body={"error": "the backlog cannot be used", "findings": [finding]})) as daemon:
        done = waiting.cli("submit", str(backlog), "--name", "other", "--url", daemon.url)
        assert done.exit_code == 2
        assert (
            "error: the backlog cannot be used\n  [major] backlog.cycle: US-1 waits for itself; Break it."
            in done.stderr
        )
        assert daemon.asked[-1].path == "/api/v1/backlogs/other"


def test_what_cannot_be_handed_in_is_told(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(waiting.folder)
    (waiting.folder / "b.csv").write_text("Story_ID\n")
    (waiting.folder / "b.md").write_text("x")
    refused = {
        "b.csv": "start one with `orchestrator serve`, or name one with --url",
        "b.md": "use one of .csv, .yaml, .yml, .json",
        "none.csv": "cannot read none.csv: No such file or directory",
        "b.csv --name ../x --url http://127.0.0.1:1": "../x is the name of nothing",
        "b.csv --url http://127.0.0.1:1": "cannot be reached: Connection refused",
    }
    for words, why in refused.items():
        done = waiting.cli("submit", *words.split())
        assert (done.exit_code, done.stdout) == (2, ""), words
        assert why in done.stderr


async def test_the_daemon_of_the_state_folder_is_found_while_it_lives(waiting: Waiting) -> None:
    folder = waiting.state.home / "daemon"
    backlog = waiting.folder / "b.csv"
    backlog.write_text("Story_ID\n")
    made = {"name": "b", "path": "b.csv", "stories": 1, "replaced": True, "warnings": []}

    def submit(*words: str) -> str:
        return waiting.cli("submit", str(backlog), *words).output

    with fake_daemon(Said(body=made)) as daemon:
        folder.mkdir()
        address = folder / "address.json"
        address.write_text(json.dumps({"url": daemon.url, "pid": os.getpid()}))
        assert "no daemon answers" in await asyncio.to_thread(submit), "what a killed one has left"
        async with SprintLock(folder / "lock"):
            assert "with 1 story replaces what was there" in await asyncio.to_thread(submit)
            for other in ("{", "[]", '{"url": 7}', json.dumps({"url": daemon.url, "pid": 1})):
                address.write_text(other)
                assert "no daemon answers" in await asyncio.to_thread(submit)
        assert [asked.path for asked in daemon.asked] == ["/api/v1/backlogs/b"]


async def test_the_log_of_a_daemon_that_is_elsewhere_is_not_taken_for_an_empty_one(waiting: Waiting) -> None:
    waiting.state.event_database.unlink(missing_ok=True)
    waiting.state.daemon_lock.parent.mkdir()
    async with SprintLock(waiting.state.daemon_lock):
        waiting.state.daemon_address.write_text(json.dumps({"url": "http://127.0.0.1:1", "pid": os.getpid()}))
        done = await asyncio.to_thread(waiting.cli, "status")
    assert (done.exit_code, "uses another database: set DATABASE_URL" in done.stderr) == (2, True)


def test_what_is_no_daemon_is_told_in_one_line(waiting: Waiting) -> None:
    bodies: tuple[Any, ...] = ({}, [1], "<html>", [{"sprint": 1}])
    for body, words in product(bodies, (["status"], ["contract", "US-1"], ["approve", "US-1"])):
        with fake_daemon(Said(body=body)) as daemon:
            done = waiting.cli(*words, "--url", daemon.url)
            assert done.exit_code == 2, body
            assert done.stderr.startswith(f"error: {daemon.url} does not answer as a daemon")
            assert done.stderr.count("\n") == 1


NOWHERE = {
    "http://example.org": "is plain http: ORCHESTRATOR_TOKEN is sent over https",
    "http://localhost.example.org": "is plain http",
    "https://u:geheim@example.org": "an address of a daemon holds no password",
    "example.org": "give one like https://",
    "http://a b": "is no address of a daemon",
    "http://[::1": "is no address of a daemon",
    "http://127.0.0.1:1/?x=1": "ends before the question mark",
    "http://127.0.0.1:1": "cannot be reached",
}


def test_the_token_goes_nowhere_it_could_be_read(waiting: Waiting) -> None:
    for url, why in NOWHERE.items():
        done = waiting.cli("status", "--url", url, ORCHESTRATOR_TOKEN="tok-12345678901234567")
        assert done.exit_code == 2, url
        assert why in done.stderr
        assert "geheim" not in done.output


def test_a_daemon_of_this_machine_gets_its_token_at_any_address() -> None:
    variables = {"ORCHESTRATOR_TOKEN": "tok-12345678901234567"}
    DaemonClient("http://192.0.2.1:8080", variables, own=True).close()
    with pytest.raises(ConfigError, match="plain http"):
        DaemonClient("http://192.0.2.1:8080", variables)


async def test_the_token_of_the_state_folder_goes_to_its_own_daemon_alone(waiting: Waiting) -> None:
    token = await asyncio.to_thread(waiting.state.make_token)

    async def sent(*words: str, **variables: str) -> str | None:
        await asyncio.to_thread(partial(waiting.cli, "status", *words, **variables))
        return daemon.asked[-1].headers.get("authorization")

    with fake_daemon(Said(status=404, body={"error": "there is no sprint"})) as daemon:
        assert await sent("--url", daemon.url) is None, "nobody is alive in the state folder"
        async with SprintLock(waiting.state.daemon_lock):
            waiting.state.daemon_address.write_text(json.dumps({"url": daemon.url, "pid": os.getpid()}))
            assert await sent("--url", daemon.url) == f"Bearer {token}"
            assert await sent("--url", daemon.url.replace("127.0.0.1", "localhost")) == f"Bearer {token}"
            named = {"ORCHESTRATOR_TOKEN": "tok-12345678901234567", "ORCHESTRATOR_URL": daemon.url}
            assert await sent(**named) == "Bearer tok-12345678901234567"
