"""The board's answers over HTTP: headers that browsers obey, the cookie, and what it does not allow."""

import time
from functools import partial
from pathlib import Path

import pytest

from orchestrator.server.login import LASTS_S, cookie_name, make_session
from tests.server.stand import TOKEN, Daemon, Stand, running

POLICY = {
    "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'",
    "connect-src": "'self'", "form-action": "'self'", "frame-ancestors": "'none'", "base-uri": "'none'",
}  # fmt: skip
PAGES = (
    "/sprints/S1",
    "/login",
    "/sprints/nothing",
    "/nothing",
    "/api/v1/daemon",
    "/static/board.js",
    "/static/board.js?v=1",
    "/healthz",
)
ORDER = "/api/v1/sprints/S1/orders"


@pytest.fixture
def stand(home: Path) -> Stand:
    """With a token, on loopback."""
    return Stand(home, ORCHESTRATOR_TOKEN=TOKEN)


def session(value: str = "") -> dict[str, str]:
    """Headers of a browser that has logged in, and sends no token."""
    return {
        "authorization": "",
        "cookie": f"{cookie_name(TOKEN)}={value or make_session(TOKEN)}",
        "accept": "text/html",
    }


async def ask(daemon: Daemon, method: str, path: str, headers: dict[str, str], body: str = "") -> tuple[int, str]:
    """Status and Location of a request whose empty headers are left out."""
    request = daemon.client.build_request(method, path, headers=headers, content=body)
    for name in [name for name, value in request.headers.items() if not value]:
        del request.headers[name]
    answer = await daemon.client.send(request)
    return answer.status_code, answer.headers.get("location", "")


async def test_every_answer_has_the_headers_that_close_a_page(stand: Stand) -> None:
    async with running(stand) as daemon:
        for path in PAGES:
            answer = await daemon.client.get(path)
            head = answer.headers
            rules = [rule.strip().partition(" ") for rule in head["content-security-policy"].split(";")]
            assert {name: value for name, _, value in rules} == POLICY, path
            assert len(head.get_list("content-security-policy")) == 1
            assert head["x-frame-options"] == "DENY"
            assert head["x-content-type-options"] == "nosniff"
            assert head["referrer-policy"] == "same-origin"
            assert head["cross-origin-resource-policy"] == head["cross-origin-opener-policy"] == "same-origin"
            assert "access-control-allow-origin" not in head
            is_file = "?v=" in path
            assert head["cache-control"] == ("public, max-age=31536000, immutable" if is_file else "no-store"), path
            assert is_file or TOKEN not in answer.text


async def test_only_the_boards_own_files_are_served_and_each_by_its_kind(stand: Stand) -> None:
    async with running(stand) as daemon:
        for name, kind in (("board.js", "text/javascript"), ("board.css", "text/css"), ("icon.svg", "image/svg+xml")):
            assert (await daemon.client.get(f"/static/{name}")).headers["content-type"].partition(";")[0] == kind
        for name in ("", "%2e%2e", "%2e%2e%2fcards.py", "..%5ccards.py", "board.js%00", "templates"):
            assert (await daemon.client.get(f"/static/{name}")).status_code == 404, name


async def test_a_login_makes_a_cookie_for_this_server_alone(stand: Stand) -> None:
    async with running(stand) as daemon:
        log_in = partial(daemon.client.post, "/login")
        here = daemon.address
        answer = await log_in(data={"token": TOKEN, "next": "/sprints/S1"}, headers={"origin": here})
        assert (answer.status_code, answer.headers["location"]) == (303, "/sprints/S1")
        name_and_value, *attributes = answer.headers["set-cookie"].lower().split("; ")
        assert set(attributes) == {"httponly", "samesite=lax", "path=/", f"max-age={LASTS_S}"}
        assert TOKEN not in name_and_value
        behind_tls = await log_in(
            data={"token": TOKEN}, headers={"origin": here, "x-forwarded-proto": "https"}
        )  # what a platform's edge adds
        assert "secure" in behind_tls.headers["set-cookie"].lower().split("; ")
        refused = await log_in(data={"token": f"{TOKEN}x"}, headers={"origin": here})
        assert (refused.status_code, "set-cookie" in refused.headers) == (401, False)
        for foreign in ({}, {"origin": "https://evil.example"}, {"origin": here, "sec-fetch-site": "same-site"}):
            answer = await log_in(data={"token": TOKEN}, headers=foreign)
            assert "set-cookie" not in answer.headers, foreign
        for address in ("https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example", "sprints"):
            answer = await log_in(data={"token": TOKEN, "next": address}, headers={"origin": here})
            assert answer.headers["location"] == "/", address


async def test_a_cookie_reads_and_orders_only_for_pages_of_the_same_origin(stand: Stand) -> None:
    pause, json = '{"verb": "pause"}', {"content-type": "application/json"}
    async with running(stand) as daemon:
        here = daemon.address
        assert await ask(daemon, "GET", "/sprints/S1", session()) == (200, "")
        assert (await ask(daemon, "GET", "/api/v1/daemon", session()))[0] == 200
        foreign: tuple[dict[str, str], ...] = (
            {},  # an old browser that says nothing, or a form of another site before these headers
            {"origin": "null"},
            {"origin": "https://evil.example"},
            {"origin": f"{here}0"},
            {"origin": "http://localhost:1"},
            {"origin": here, "sec-fetch-site": "cross-site"},
            {"origin": here, "sec-fetch-site": "same-site"},
            {"sec-fetch-site": "none"},
            {"origin": "http://[::1"},
        )
        for headers in foreign:
            for method, path in (("POST", ORDER), ("PUT", "/api/v1/backlogs/b"), ("DELETE", "/api/v1/backlogs/b")):
                assert (await ask(daemon, method, path, session() | json | headers, pause))[0] == 403, headers
            assert (await ask(daemon, "POST", "/logout", session() | headers))[0] == 403
        for headers in ({"origin": here}, {"sec-fetch-site": "same-origin"}):
            assert (await ask(daemon, "POST", ORDER, session() | json | headers, pause))[0] not in {401, 403}
        for headers in (
            {},
            {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        ):  # a bearer is no browser
            bearer = {"authorization": f"Bearer {TOKEN}"}
            assert (await ask(daemon, "POST", ORDER, bearer | json | headers, pause))[0] not in {401, 403}


async def test_what_is_no_session_leads_pages_to_login_and_the_api_to_401(stand: Stand) -> None:
    good, now = make_session(TOKEN), time.time()
    ends, _, proof = good.partition(".")
    bad = (
        make_session(TOKEN, now=now - LASTS_S - 1), make_session("another-token"), f"{int(ends) + 1}.{proof}", proof,
        f".{proof}", ends, f"{ends}.", "x", TOKEN, f"{ends}.{proof}0", f"-1.{proof}",
    )  # fmt: skip
    async with running(stand) as daemon:
        for value in bad:
            where = await ask(daemon, "GET", "/sprints/S1?a=b&c", session(value))
            assert where == (303, "/login?next=/sprints/S1%3Fa%3Db%26c"), value
            assert (await ask(daemon, "GET", "/api/v1/daemon", session(value)))[0] == 401
            assert (await ask(daemon, "GET", "/board/events", session(value) | {"accept": "text/event-stream"}))[
                0
            ] == 401
            assert (await ask(daemon, "POST", ORDER, session(value) | {"sec-fetch-site": "same-origin"}))[0] == 401
        # A wrong token beside a good session is no slip of a browser.
        assert (await ask(daemon, "GET", "/sprints/S1", session() | {"authorization": "Bearer wrong"}))[0] == 401


async def test_no_address_of_ours_leads_to_another_server(stand: Stand) -> None:
    async with running(stand) as daemon:
        for site in ("cross-site", "none"):
            headers = {"accept": "text/html", "sec-fetch-site": site}
            request = daemon.client.build_request("GET", f"{daemon.address}//evil.example/x", headers=headers)
            del request.headers["authorization"]
            assert request.url.raw_path.startswith(b"//")
            answer = await daemon.client.send(request)
            assert "//evil.example" not in answer.text + answer.headers.get("location", ""), site


async def test_a_login_is_small_and_has_a_limit_of_tries(stand: Stand) -> None:
    async with running(stand) as daemon:
        headers = {"origin": daemon.address, "content-type": "application/x-www-form-urlencoded"}
        log_in = partial(daemon.client.post, "/login", headers=headers)
        assert (await log_in(content=f"token={TOKEN}&next={'x' * 4096}")).status_code == 413
        said = [(await log_in(content=f"token=wrong-{number}")).status_code for number in range(11)]
        assert said == [401] * 10 + [429]
        answer = await log_in(content=f"token={TOKEN}")
        assert (answer.status_code, 0 < int(answer.headers["retry-after"]) <= 60) == (429, True)
        assert "wait" in answer.text


async def test_what_is_not_there_is_a_page_for_people_and_an_object_for_programs(stand: Stand) -> None:
    async with running(stand) as daemon:
        for path, status in (("/nonsense", 404), ("/sprints/no%20name", 422), ("/sprints/S1/nothing", 404)):
            page = await daemon.client.get(path, headers={"accept": "text/html"})
            assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
            assert "<h1>" in page.text
            assert (await daemon.client.get(path)).json()["error"]
