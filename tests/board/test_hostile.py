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
        window.page.wait_for_timeout(50)  # a script that is inserted acts a moment later
        elements = window.page.locator(ACTIVE).evaluate_all("all => all.map((one) => one.outerHTML.slice(0, 200))")
        found = (window.page.evaluate(f"window.{MARK}"), elements, window.overflow(), window.fault())
        problems += [f"{path}: {one}" for one in found if one]
        window.faults.clear()
    assert problems == []
