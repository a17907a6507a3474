"""Who gets in: by the token once, then by a cookie that scripts, other sites and frames have nothing of."""

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from orchestrator.server.login import LASTS_S, cookie_name, make_session
from tests.board.browser import OpenWindow, Window
from tests.daemon_server import RealDaemon

pytestmark = pytest.mark.board
SPRINT = "/sprints/SP-001"


@pytest.fixture
def window(library: RealDaemon, window_at: OpenWindow) -> Window:
    """Not logged in yet."""
    return window_at(library)


def test_a_wrong_token_is_refused_and_the_right_one_leads_to_where_one_was(window: Window) -> None:
    page = window.open(f"{SPRINT}?from=a%20link")
    expect(page).to_have_title("Log in · Sprint Orchestrator")
    expect(page.get_by_label("Token")).to_be_focused()
    window.allowed.append("401")
    page.keyboard.type("not the token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This is not the daemon's token.")
    page.get_by_label("Token").fill(window.token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{window.url}{SPRINT}?from=a%20link")
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (
        cookie_name(window.token),
        True,
        "Lax",
        "/",
    )
    assert 0 < cookie["expires"] - time.time() <= LASTS_S
    assert window.token not in cookie["value"]
    assert page.evaluate("document.cookie") == ""


def test_logging_out_ends_the_session(window: Window) -> None:
    page = window.log_in().open(SPRINT)
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{window.url}/login")
    assert page.context.cookies() == []
    assert window.open(SPRINT).url.startswith(f"{window.url}/login?next=")


def test_an_address_with_the_token_logs_in_and_forgets_it(window: Window) -> None:
    page = window.page
    page.goto(f"{window.url}/login?next={SPRINT}#{window.token}")
    page.wait_for_url(f"{window.url}{SPRINT}")
    assert window.token not in page.evaluate(
        "[location.href, document.referrer, document.documentElement.outerHTML]+''"
    )
    page.go_back()
    assert window.token not in page.url


@pytest.mark.parametrize("leads_to", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:1"])
def test_a_login_leads_nowhere_else(window: Window, leads_to: str) -> None:
    page = window.page
    page.goto(f"{window.url}/login?next={leads_to}#{window.token}")
    page.wait_for_url(f"{window.url}{SPRINT}")


def test_an_expired_session_leads_to_login_and_back(window: Window) -> None:
    page = window.log_in().open(SPRINT)
    expired = make_session(window.token, now=time.time() - LASTS_S - 1)
    page.context.add_cookies([{"name": cookie_name(window.token), "value": expired, "url": window.url}])
    page.reload()
    assert page.url == f"{window.url}/login?next={SPRINT}"
    page.get_by_label("Token").fill(window.token)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{window.url}{SPRINT}")


# ---- pages of others


@contextmanager
def other_site(html: str) -> Iterator[str]:
    """A site of somebody else, on this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *args: object) -> None:
            """Nothing is printed."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield str(server.server_port)
        finally:
            server.shutdown()
            thread.join()


ORDER = """<!doctype html><form id=order method=post enctype="text/plain" action="{api}">
<input name='{{"verb": "pause", "x": "' value='"}}'></form>
<form id=out method=post action="{url}/logout"></form>
<script>
const send = (more) => fetch("{api}", {{method: "POST", credentials: "include", body: '{{"verb": "pause"}}', ...more}});
addEventListener("load", async () => {{
  const results = [];
  for (const more of [{{}}, {{mode: "no-cors"}}, {{headers: {{"content-type": "application/json"}}}}]) {{
    await send(more).then((answer) => results.push(answer.type), () => results.push("refused"));
  }}
  document.title = results.join(" ");
}});
</script>"""


@pytest.mark.parametrize(
    ("host", "status"),
    # Another port is the same site, for which a browser sends a strict cookie, too.
    [("127.0.0.1", 403), ("localhost", 401)],
)
def test_a_page_of_another_origin_orders_nothing(library: RealDaemon, window: Window, host: str, status: int) -> None:
    page, api = window.log_in().page, f"{window.url}/api/v1/sprints/SP-001/orders"
    window.allowed += ["request to another host", "CORS", "ERR_", str(status), "401", "favicon.ico"]
    with other_site(ORDER.format(api=api, url=window.url)) as port:
        for form in ("order", "out"):
            page.goto(f"http://{host}:{port}/")
            expect(page).to_have_title("refused refused refused")
            with page.expect_navigation() as answer:  # of a fetch, the browser shows the page no answer
                page.locator(f"#{form}").evaluate("form => form.submit()")
            assert answer.value.status == status
    assert "paused" not in library.log.read_text()
    expect(window.open(SPRINT).get_by_text("running", exact=True)).to_be_visible()  # still logged in


def test_no_page_is_shown_in_a_frame(window: Window) -> None:
    page = window.log_in().page
    window.allowed += ["request to another host", "frame-ancestors", "X-Frame-Options", "ERR_BLOCKED", "frame"]
    with other_site(f"<iframe src='{window.url}{SPRINT}'></iframe><iframe src='{window.url}/login'></iframe>") as port:
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_load_state("networkidle")
        shown = [frame.evaluate("document.body ? document.body.innerText : ''") for frame in page.frames[1:]]
    assert len(shown) == 2
    assert not any("SP-001" in text or "Token" in text for text in shown)
