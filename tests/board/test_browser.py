"""The windows themselves: each thing that no page may do is noticed."""

import http.server
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.board.browser import PHONE, open_window

pytestmark = pytest.mark.board
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'"
GOOD = '<!doctype html><html lang="en"><title>Good</title><h1>Good</h1><p>A text.</p></html>'
PAGES = {
    "/good": GOOD,
    "/inline": GOOD.replace("A text.", "<script>document.title = 'executed'</script>"),
    "/handler": GOOD.replace("A text.", "<img alt='' src='/nothing' onerror='document.title = 1'>"),
    "/style": GOOD.replace("A text.", "<b style='color: red'>A text</b>"),
    "/other": GOOD.replace("A text.", "<img alt='' src='http://localhost:1/x.png'>"),
    "/throws": GOOD.replace("A text.", "<script src='/throws.js'></script>"),
    "/throws.js": "throw new Error('it broke')",
    "/says": GOOD.replace("A text.", "<script src='/says.js'></script>"),
    "/says.js": "console.error('it complains')",
    "/asks": GOOD.replace("A text.", "<script src='/asks.js'></script>"),
    "/asks.js": "alert('hello')",
    "/pale": GOOD.replace("A text.", "<a href='/'></a><img src='/good'>"),
    "/wide": GOOD.replace("A text.", "x" * 500),
}


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = PAGES.get(self.path)
        self.send_response(200 if text else 404)
        self.send_header("content-type", "text/javascript" if self.path.endswith(".js") else "text/html")
        self.send_header("content-security-policy", POLICY)
        self.end_headers()
        self.wfile.write((text or "nothing").encode())

    def log_message(self, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/inline", "Content Security Policy"), ("/handler", "Content Security Policy"),
        ("/style", "Content Security Policy"), ("/other", "request to another host: http://localhost:1/x.png"),
        ("/throws", "uncaught: it broke"), ("/says", "console: it complains"), ("/asks", "a dialog: hello"),
        ("/missing", "404"),
    ],
)  # fmt: skip
def test_what_no_page_may_do_is_a_fault(browser: Browser, pages: str, path: str, fault: str) -> None:
    with open_window(browser, pages) as window:
        assert window.open(path).title() != "executed"
        window.page.wait_for_load_state("networkidle")
        assert fault in window.fault()


def test_a_good_page_has_no_fault_and_axe_and_the_width_find_the_bad_ones(browser: Browser, pages: str) -> None:
    with open_window(browser, pages, size=PHONE) as window:
        window.open("/good")
        assert (window.fault(), window.violations(), window.overflow()) == ("", [], [])
        window.open("/wide")
        assert window.overflow()[-1] == '<p class="" id="">'
        window.open("/pale")
        assert {one.partition(":")[0] for one in window.violations()} == {"image-alt", "link-name"}
