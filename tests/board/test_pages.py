"""Each page of the board shows what it is there for, to everyone, on every screen."""

import pytest

from tests.board.browser import DESK, PHONE, OpenWindow, Window
from tests.daemon_server import RealDaemon

pytestmark = pytest.mark.board
PAGES = ("/login", "/sprints/SP-001")


@pytest.fixture
def window(library: RealDaemon, window_at: OpenWindow) -> Window:
    """Logged in."""
    return window_at(library).log_in()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shuts_nobody_out_and_fits_every_screen(window: Window, path: str) -> None:
    window.open(path)
    for size in (PHONE, DESK):
        for scheme in ("light", "dark"):
            window.look(size, scheme)
            assert window.violations() == [], (path, size, scheme)
        assert window.overflow() == [], (path, size)


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
