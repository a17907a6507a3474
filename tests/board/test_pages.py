"""Each page of the board shows what it is there for, to everyone, on every screen."""

import pytest

from tests.board.browser import DESK, PHONE, OpenWindow, Window, crawl
from tests.daemon_server import RealDaemon

pytestmark = pytest.mark.board
LOOKS = ((PHONE, "dark"), (DESK, "light"), (PHONE, "light"), (DESK, "dark"))


@pytest.fixture
def window(library: RealDaemon, window_at: OpenWindow) -> Window:
    """Logged in."""
    return window_at(library).log_in()


def test_no_page_shuts_anybody_out_and_each_fits_every_screen(window: Window) -> None:
    problems: list[str] = []
    for path in crawl(window, "/", "/login", most=2):
        for size, scheme in LOOKS:
            window.look(size, scheme)
            problems += [f"{path} ({scheme}, {size['width']} px): {one}" for one in window.violations()]
            problems += [f"{path} ({size['width']} px): too wide: {one}" for one in window.overflow()]
        print(path, len(problems))
    assert problems == []


def test_a_sprint_shows_its_stories_by_state(window: Window) -> None:
    page = window.open("/")
    columns = {
        one.locator("h2").inner_text().rsplit(" ", 1)[0]: one.locator(".card .id").all_inner_texts()
        for one in page.locator(".column").filter(has=page.locator(".card")).all()
    }
    assert columns == {
        "Waiting for a person": ["US-003", "US-006"],
        "At work": ["US-005"],
        "To come": ["US-007"],
        "Done": ["NFR-001", "US-001", "US-002", "US-004"],
    }
