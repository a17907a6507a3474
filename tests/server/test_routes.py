"""The API over real HTTP: what it tells is what the commands print, and what is wrong is told in one shape."""

import json
from typing import Any

import pytest

from tests.cli.waiting import Waiting
from tests.server.stand import BEARER, SECRET, Daemon, Stand, running
from tests.server.test_commands import cli
from tests.support import breakdown

SPRINT = "/api/v1/sprints/S1"
STORY = f"{SPRINT}/stories/US-1"


def printed(stand: Stand, *args: str) -> Any:
    done = cli(*args, "--json", **stand.environment.variables)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


async def get(daemon: Daemon, path: str) -> Any:
    answer = await daemon.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def commands(stand: Stand) -> dict[str, Any]:
    return {
        SPRINT: printed(stand, "status"),
        STORY: printed(stand, "show", "US-1"),
        f"{STORY}?full=true": printed(stand, "show", "US-1", "--full"),
        f"{STORY}/contract": printed(stand, "contract", "US-1"),
        f"{SPRINT}/stories/US-2": printed(stand, "show", "US-2"),
    }


async def test_what_is_read_is_what_the_commands_print(stand: Stand, commands: dict[str, Any]) -> None:
    async with running(stand) as daemon:
        for path, expected in commands.items():
            assert await get(daemon, path) == expected
        assert await get(daemon, "/api/v1/sprints") == [commands[SPRINT]]
        report = await daemon.client.get(f"{SPRINT}/report")
        assert report.headers["content-type"] == "text/markdown; charset=utf-8"
        assert report.text.startswith("# Sprint S1")
        told = await get(daemon, "/api/v1/daemon")
        assert (told["phase"], told["stories_queued"]) == ("ready", 4)
        assert SECRET not in json.dumps(told)


WRONG = [
    ("GET", "/api/v1/sprints/S2", 404, "unknown sprint S2"),
    ("GET", f"{SPRINT}/stories/US-9", 404, "has no story US-9"),
    ("GET", f"{SPRINT}/stories/US-2/contract", 404, "US-2 has no contract"),
    ("GET", "/api/v1/events?sprint=S2", 404, "unknown sprint S2"),
    ("GET", "/api/v1/events?story=US-9&follow=false", 404, "unknown story US-9"),
    ("GET", "/api/v1/nothing", 404, "nothing at this address"),
    ("GET", "/api/v1/sprints/", 404, "nothing at this address"),
    ("GET", "/docs", 404, "nothing at this address"),
    ("GET", "/api/v1/sprints/%2e%2e%2f%2e%2e%2fetc", 404, "nothing at this address"),
    ("GET", "/api/v1/sprints/..%2F..%2Fetc/report", 404, "nothing at this address"),
    ("GET", "/api/v1/sprints/%00", 422, "path.sprint"),
    ("GET", "/api/v1/sprints/%ff%fe", 422, "path.sprint"),
    ("GET", f"/api/v1/sprints/{'S' * 9000}", 422, "path.sprint"),
    ("GET", "/api/v1/sprints?limit=0", 422, "query.limit"),
    ("GET", "/api/v1/events?after=-1", 422, "query.after"),
    ("GET", "/api/v1/events?after=99999999999999999999999", 422, "query.after"),
    ("GET", "/api/v1/events?after=NaN", 422, "query.after"),
    ("GET", "/api/v1/events?level=loud", 422, "query.level"),
    ("GET", "/api/v1/events?since=yesterday", 422, "query.since"),
    ("GET", "/api/v1/events?since=9e99", 422, "query.since"),
    ("PUT", "/api/v1/backlogs/..%2Fx", 404, "nothing at this address"),
    ("PUT", "/api/v1/backlogs/.hidden", 422, "neither starts nor ends with a dot"),
    ("PUT", "/api/v1/backlogs/a?format=exe", 422, "query.format"),
    ("DELETE", "/api/v1/backlogs/a", 404, "no backlog a was handed in"),
    ("PATCH", "/api/v1/backlogs/a", 405, "DELETE, PUT"),
    ("OPTIONS", SPRINT, 405, "GET"),
    ("TRACE", "/healthz", 405, "GET"),
    ("BREW", "/api/v1/prune", 405, "POST"),
]


async def test_what_is_asked_wrongly_is_told_in_one_sentence(stand: Stand) -> None:
    body = b'{"text": ""}'
    async with running(stand) as daemon:
        for method, path, status, said in WRONG:
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{BEARER}"
            kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            answer = await daemon.raw(f"{head}{kind}".encode() + body)
            assert answer.split(b" ", 2)[1] == str(status).encode(), (method, path, answer)
            problem = json.loads(answer.partition(b"\r\n\r\n")[2])
            assert said in problem["error"]
            assert set(problem) == {"error", "findings"}
            assert len(problem["error"]) < 1000


BODIES: list[tuple[bytes, int]] = [
    (b"", 422),
    (b"x", 422),
    (b"[]", 422),
    (b"null", 422),
    (b'"x"', 422),
    (b'{"dry_run": true}', 200),
    (b'{"dry_run": "true"}', 422),
    (b'{"dry_run": true, "more": 1}', 422),
    (b'{"dry_run": true, "days": NaN}', 422),
    (b'{"dry_run": true, "days": ' + b"9" * 5000 + b"}", 422),
    (b'{"dry_run": true, "\xff": 1}', 422),
    (b"[" * 200_000, 422),
    (b'\xef\xbb\xbf{"dry_run": true}', 422),
]


async def test_bodies_that_are_none(stand: Stand) -> None:
    async with running(stand) as daemon:
        for body, status in BODIES:
            answer = await daemon.client.post(
                "/api/v1/prune", content=body, headers={"content-type": "application/json; charset=utf-8"}
            )
            assert answer.status_code == status, (body[:40], answer.text)
            json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"):
            answer = await daemon.client.post(
                "/api/v1/prune", content=b'{"dry_run": true}', headers={"content-type": kind}
            )
            assert answer.status_code == 415


async def test_backlogs_are_handed_in_replaced_and_withdrawn(stand: Stand) -> None:
    async with running(stand) as daemon:
        path = "/api/v1/backlogs/team-a"
        new = await daemon.client.put(path, content=b"Story_ID\nA-1\n")
        assert (new.status_code, new.json()["replaced"]) == (201, False)
        again = await daemon.client.put(f"{path}?format=yaml", content=b"Story_ID")
        assert (again.status_code, again.json()["replaced"]) == (200, True)
        bad = await daemon.client.put(f"{path}?format=json", content=b"\x00")
        assert bad.status_code == 422
        assert bad.json()["findings"][0]["message"] == ".json without ids"
        assert [one["name"] for one in await get(daemon, "/api/v1/backlogs")] == ["team-a"]
        assert (await daemon.client.delete(path)).status_code == 204
        assert (await daemon.client.delete(path)).status_code == 404


async def test_orders_are_carried_out_or_refused_in_the_same_words(stand: Stand) -> None:
    async with running(stand) as daemon:

        async def order(place: str, **body: Any) -> tuple[int, Any]:
            answer = await daemon.client.post(f"{place}/orders", json=body)
            return answer.status_code, answer.json()

        code, refused = await order(SPRINT, verb="pause")
        assert (code, refused["done"], "has ended" in refused["message"]) == (409, False, True)
        code, done = await order(f"{SPRINT}/stories/US-2", verb="retry", comment=f"  try\n{SECRET} ", by="Ann")
        assert (code, done["done"], done["stories"]) == (200, True, ["US-2", "US-3"])
        assert [story["status"] for story in (await get(daemon, SPRINT))["stories"]] == ["done", "pending", "pending"]
        given = (await daemon.client.get("/api/v1/events?follow=false")).text
        assert "retry US-2, ordered by Ann: try [redacted]" in given
        for verb in ("explode", "", None, 7):
            assert (await order(SPRINT, verb=verb))[0] == 422
        assert (await order(f"{SPRINT}/stories/US-9", verb="cancel"))[0] == 404
        assert (await order("/api/v1/sprints/S2", verb="cancel"))[0] == 404


async def test_a_defect_of_ours_tells_nothing_to_strangers(
    stand: Stand, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_limits: object, **_options: object) -> str:
        raise RuntimeError(f"the key {SECRET} broke")

    monkeypatch.setattr(stand, "prune", fails)
    async with running(stand) as daemon:
        answer = await daemon.client.post("/api/v1/prune", json={})
        assert (answer.status_code, set(answer.json())) == (500, {"error", "findings"})
        assert "key" not in answer.text
        assert (await daemon.client.get("/healthz")).status_code == 200
    assert "POST '/api/v1/prune' failed" in caplog.text


@pytest.fixture
def waiting(tmp_path: Any) -> Waiting:
    made = Waiting(tmp_path)
    made.open_branch("US-1", {"app.py": "x = 1\n"})
    made.ask("US-1")
    made.ask("US-2")
    return made


@pytest.fixture
def asking(waiting: Waiting) -> Stand:
    return Stand(waiting.state.home)


async def test_the_first_answer_counts(asking: Stand) -> None:
    async with running(asking) as daemon:
        shown = await get(daemon, STORY)
        assert shown["question"]["number"] == 1
        assert [one["story"] for one in (await get(daemon, SPRINT))["waiting"]] == ["US-1", "US-2"]

        async def say(**body: Any) -> Any:
            return await daemon.client.post(f"{STORY}/answer", json=body)

        assert (await say(choice="reject", comment=" ")).status_code == 422
        assert (await say(choice="time_out")).status_code == 422
        assert (await say(choice="approve", gate=7)).status_code == 409
        assert (await say(choice="approve", plan={})).status_code == 422
        assert (await say(choice="approve", comment="x" * 10_001)).status_code == 422
        given = await say(choice="approve", comment=f"  fine, {SECRET}", by="Ann\nX\x1b[31m")
        assert given.status_code == 200, given.text
        told = given.json()
        assert (told["counts"], told["choice"], told["comment"]) == (True, "approve", "fine, [redacted]")
        assert told["by"].startswith("Ann X")
        late = await say(choice="cancel")
        assert late.status_code == 409
        assert "US-1 waits for no answer" in late.json()["error"]
        other = await daemon.client.post(f"{SPRINT}/stories/US-2/replan", json={"comment": "again", "gate": 1})
        assert (other.json()["choice"], other.json()["by"]) == ("replan", "somebody over HTTP")


async def test_to_cancel_a_story_that_asks_is_the_answer(asking: Stand) -> None:
    async with running(asking) as daemon:
        order = {"verb": "cancel", "comment": "no longer wanted", "by": "Ann"}
        first, again = [await daemon.client.post(f"{STORY}/orders", json=order) for _ in range(2)]
        assert (first.status_code, first.json()["done"], first.json()["stories"]) == (200, True, ["US-1"])
        assert again.status_code == 409
        told = (await get(daemon, STORY))["history"][-1]
        assert told["event"] == "gate_answered"


async def test_an_edited_plan_is_checked_before_it_is_an_answer(asking: Stand) -> None:
    async with running(asking) as daemon:

        async def edit(plan: Any, **more: Any) -> Any:
            return await daemon.client.post(f"{STORY}/answer", json={"choice": "edit", "plan": plan, **more})

        assert (await edit(None)).status_code == 422
        bad = await edit("tasks: [}")
        assert (bad.status_code, bad.json()["findings"][0]["code"]) == (422, "gate.edit_syntax")
        unsafe = await edit(breakdown("US-1", ["../../etc/passwd"]), force=True)
        assert unsafe.status_code == 422
        good = await edit(breakdown("US-1", ["app.py"]))
        assert (good.status_code, good.json()["choice"]) == (200, "edit")


async def test_replanning_needs_words_for_a_story_that_has_ended(waiting: Waiting, asking: Stand) -> None:
    async with running(asking) as daemon:
        answer = await daemon.client.post(f"{SPRINT}/stories/US-3/replan", json={"comment": "again"})
        assert (answer.status_code, "US-3 is pending" in answer.json()["error"]) == (409, True)
