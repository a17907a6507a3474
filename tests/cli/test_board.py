"""`board` as a process of its own: it shows a state folder to who has its link, takes orders, and ends on Ctrl-C."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import load
from orchestrator.storage.locks import SprintLock
from tests.board.past import keep, make_record, story_events
from tests.support import plain_environment, run_cli
from tests.zygote import Forked, zygote

DAEMONS = "a-token-of-the-daemon-that-is-not-told"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder with a sprint of one story that is done and one to come."""
    _, environment = load(None, (), plain_environment(), tmp_path)
    record = make_record(1, 2)
    asyncio.run(keep(environment, record, [*story_events(record, "US-1", 1)], report=False))
    return tmp_path


def client_of(url: str, **headers: str) -> httpx2.Client:
    return httpx2.Client(base_url=url, headers=headers, trust_env=False, verify=False)


@contextmanager
def serving(folder: Path, *words: str, **variables: str) -> Iterator[tuple[Forked, str, str]]:
    """The process, its address and its token."""
    env = plain_environment(ORCHESTRATOR_TOKEN=DAEMONS, **variables)
    process = zygote().start("orchestrator", ["board", *words], cwd=folder, env=env)
    try:
        while process.printed().count("\n") < 2:
            assert process.poll() is None
            time.sleep(0.01)
        first, link = process.printed().splitlines()
        assert first == f"The board of {folder / '.orchestrator'}, until Ctrl-C:"
        url, _, token = link.partition("/login#")
        yield process, url, token
    finally:
        process.kill()
        process.communicate()


def test_it_shows_sprints_to_who_has_the_link_takes_orders_and_ends_when_it_is_told_to(folder: Path) -> None:
    with serving(folder, "--port", "0") as (process, url, token):
        assert url.startswith("http://127.0.0.1:")
        page = {"accept": "text/html", "origin": url}
        with client_of(url) as client:
            assert client.get("/api/v1/sprints").status_code == 401
            assert client.get("/api/v1/sprints", headers={"authorization": f"Bearer {DAEMONS}"}).status_code == 401
            led = client.get("/", headers=page)
            assert (led.status_code, led.headers["location"]) == (303, "/login?next=/")
            assert client.post("/login", data={"token": DAEMONS}, headers=page).status_code == 401
            assert client.post("/login", data={"token": token}, headers=page).status_code == 303
            assert client.get("/", headers=page).headers["location"] == "/sprints/SP-001"
            for path in ("/sprints", "/sprints/SP-001", "/sprints/SP-001/stories/US-1", "/gates", "/logs"):
                answer = client.get(path, headers=page)
                assert (answer.status_code, "SP-001" in answer.text or path == "/gates") == (200, True), path
        expect_orders(folder, url, token)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        printed, said = process.communicate()
        assert (printed.count("\n"), said) == (2, ""), "nothing after its address"


def expect_orders(folder: Path, url: str, token: str) -> None:
    """Orders are recorded, and what needs a daemon says so."""
    with client_of(url, authorization=f"Bearer {token}") as client:
        order = client.post("/api/v1/sprints/SP-001/orders", json={"verb": "pause", "by": "anna"})
        assert (order.status_code, order.json()["done"]) == (200, True)
        for method, path in (
            ("GET", "/api/v1/daemon"), ("GET", "/readyz"), ("GET", "/metrics"),
            ("PUT", "/api/v1/backlogs/b"), ("DELETE", "/api/v1/backlogs/b"), ("GET", "/submit"),
        ):  # fmt: skip
            answer = client.request(method, path, content=b"Story_ID\n" if method == "PUT" else None)
            assert (answer.status_code, "no daemon runs here" in answer.text) == (503, True), (method, path)
        assert client.get("/healthz").status_code == 200
    _, environment = load(None, (), plain_environment(), folder)
    assert "is paused by anna" in Reader(environment).sprint("SP-001").paused


async def test_a_browser_is_opened_and_the_daemon_of_the_folder_is_named(folder: Path) -> None:
    state = folder / ".orchestrator"
    (folder / "browser").write_text('#!/bin/sh\nprintf %s "$1" > opened.tmp\nmv opened.tmp opened\n')
    (folder / "browser").chmod(0o755)

    def look() -> tuple[str, str, str]:
        with serving(folder, "--open", BROWSER=f"{folder / 'browser'} %s") as (process, url, token):
            while not (folder / "opened").exists():
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
            return f"{url}/login#{token}", (folder / "opened").read_text(), process.communicate()[1]

    (state / "daemon").mkdir()
    async with SprintLock(state / "daemon" / "lock", "it as its daemon"):
        told = json.dumps({"url": "http://127.0.0.1:1", "pid": os.getpid()})
        (state / "daemon" / "address.json").write_text(told)
        link, opened, said = await asyncio.to_thread(look)
    assert (opened, said) == (
        link, f"the daemon of {state} has its own board, which takes backlogs, too: http://127.0.0.1:1\n",
    )  # fmt: skip


def test_an_address_that_is_taken_is_a_users_error(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_cli(["board", "--host", "127.0.0.1", "--port", port], folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"port {port} of 127.0.0.1 is in use by another program" in done.stderr
