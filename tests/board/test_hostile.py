"""What a model or a backlog says never acts: it is shown as the text that it is, on every page, and breaks none."""

import re
from collections.abc import Callable

import pytest

from tests.board.browser import PHONE, OpenWindow, Window, crawl
from tests.board.sprints import MARK
from tests.daemon_server import RealDaemon

pytestmark = pytest.mark.board
ACTIVE = (
    "img, iframe, base, meta[http-equiv], script:not([src]), a[href^='javascript'], "
    "[onerror], [onload], [onmouseover], [srcdoc], [style]"
)
"""Elements and attributes that the hostile texts would make; no page of ours has one of them."""

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069].{40}")
"""Characters that change what stands beside them; pages show a sign in their place."""


def without_call(path: str) -> str:
    """Returns the path of a page, one for all calls of a story."""
    return re.sub(r"/\d+-\d+$", "", path.partition("?")[0])


@pytest.fixture
def window(start: Callable[[str], RealDaemon], window_at: OpenWindow) -> Window:
    """Of a telephone."""
    return window_at(start("hostile"), size=PHONE).log_in()


def test_hostile_texts_act_on_no_page_and_widen_none(window: Window) -> None:
    problems = []
    stories = [f"/sprints/SP-001/stories/H-{number}" for number in range(1, 10)]
    for path in crawl(window, "/", *stories, "/logs?level=debug", most=2, kind=without_call):
        window.unfold()
        window.page.wait_for_timeout(50)  # a script that is inserted acts a moment later
        elements = window.page.locator(ACTIVE).evaluate_all("all => all.map((one) => one.outerHTML.slice(0, 200))")
        shown = CONTROLS.findall(window.page.locator("body").inner_text())
        found = (window.page.evaluate(f"window.{MARK}"), elements, shown, window.overflow(), window.fault())
        problems += [f"{path}: {one}" for one in found if one]
        window.faults.clear()
    assert problems == []
