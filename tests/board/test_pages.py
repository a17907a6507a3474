"""Each page of the board shows what it is there for, to everyone, on every screen."""

import re

import pytest
from playwright.sync_api import expect

from tests.board.browser import DESK, PHONE, OpenWindow, Window, crawl, kind_of
from tests.daemon_server import RealDaemon

pytestmark = pytest.mark.board
SPRINT = "/sprints/SP-001"
STORY = "/sprints/N/stories/N"
KINDS = {
    *("/", "/sprints", "/sprints/N", "/gates", "/submit", "/logs", "/login"),
    *(STORY, f"{STORY}/gate", f"{STORY}/diff", f"{STORY}/calls/N"),
}
"""Every page."""
LOOKS = ((PHONE, "dark"), (DESK, "light"))
"""Each size and each scheme: no colour depends on the size, and no size on the colours."""


@pytest.fixture
def window(library: RealDaemon, window_at: OpenWindow) -> Window:
    """Logged in."""
    return window_at(library).log_in()


def test_no_page_shuts_anybody_out_and_each_fits_every_screen(window: Window) -> None:
    problems, kinds = list[str](), set[str]()
    done, plan, conflict = (f"{SPRINT}/stories/{story}" for story in ("US-004", "US-003", "US-006"))
    given = (f"{plan}/gate", f"{conflict}/gate", f"{done}/diff", f"{SPRINT}/stories/US-005", "/logs?at=50")
    for path in crawl(window, "/", done, *given, "/login"):
        kinds.add(kind_of(path))
        window.unfold()
        for size, scheme in LOOKS:
            window.look(size, scheme)
            problems += [f"{path} ({scheme}, {size['width']} px): {one}" for one in window.violations()]
            problems += [f"{path} ({size['width']} px): too wide: {one}" for one in window.overflow()]
    assert problems == []
    assert kinds == KINDS


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


def test_a_card_leads_to_what_was_asked_answered_written_and_criticised(window: Window) -> None:
    page = window.open(SPRINT)
    page.locator("#card-US-002 .id").click()
    for name in ("Path", "Tasks", "Cost per stage", "Plan", "Contract", "Reviews", "Tests"):
        expect(page.get_by_role("heading", name=re.compile(f"^{name}"), level=2)).to_be_visible()
    expect(page.locator("#tests")).to_contain_text("10 of 10 passed")
    expect(page.locator("#contract")).to_contain_text("email-validator")
    page.locator("#calls").get_by_role("link", name="alex delivery T-US-002-01").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("alex: delivery T-US-002-01")
    expect(page.locator("#prompt pre")).to_contain_text("T-US-002-01")
    expect(page.locator("#answer pre")).to_contain_text("Check addresses with a package")
    page.get_by_role("link", name="US-002").click()
    page.locator("#tasks").get_by_role("link", name="Changes").first.click()
    expect(page.get_by_role("region", name="The changes")).to_contain_text("shelf/members.py")
    word = page.locator(".gi").first
    colours = [
        word.evaluate("one => getComputedStyle(one).color"),
        page.evaluate("getComputedStyle(document.body).color"),
    ]
    assert colours[0] != colours[1], "added lines are coloured"
