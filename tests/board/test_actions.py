"""What people do on the board: answer, order, submit. Each thing shows as sent, then in the daemon's own words."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.board.browser import OpenWindow, Window
from tests.daemon_server import RealDaemon
from tests.support import breakdown, task

pytestmark = pytest.mark.board
SPRINT = "/sprints/SP-001"


@pytest.fixture(scope="module")
def daemon(start: Callable[[], RealDaemon]) -> RealDaemon:
    """One for all tests here, each of which answers or orders another story."""
    return start()


@pytest.fixture
def window(daemon: RealDaemon, window_at: OpenWindow) -> Window:
    return window_at(daemon).log_in()


def test_a_plan_edited_in_the_page_is_checked_as_every_plan(
    start: Callable[[], RealDaemon], window_at: OpenWindow
) -> None:
    window = window_at(start()).log_in()
    page = window.open(f"{SPRINT}/stories/US-003/gate")
    expect(page.locator("#gate-about")).to_contain_text("T-US-003-02")
    expect(page.locator("#gate-about .findings li").first).to_be_visible()
    field = page.get_by_label("Plan that is built in place")
    assert "shelf/search.py" in field.input_value()
    window.allowed.append("422")
    field.fill(json.dumps(breakdown("US-003", task("US-003", 1, ["../outside.py"]))))
    page.get_by_role("button", name="Check and build this plan").click()
    refused = page.locator("output", has_text="Refused at")
    expect(refused.locator(".findings li").first).to_contain_text("../outside.py")
    assert "../outside.py" in field.input_value(), "what was typed stays"
    field.fill(json.dumps(breakdown("US-003", task("US-003", 1, ["shelf/words.py"]))))
    page.get_by_role("button", name="Check and build this plan").click()
    expect(page.get_by_role("region", name="What is asked")).to_contain_text("with a plan of their own")


def press(page: Page, name: str) -> None:
    """Reaches a button with the Tab key alone, and presses Enter."""
    for _ in range(60):
        page.keyboard.press("Tab")
        at = page.evaluate("[document.activeElement.matches('button'), document.activeElement.textContent.trim()]")
        if at == [True, name]:
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", "one sees where one is"
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"no way by keyboard to {name}")


def test_a_sprint_is_paused_and_resumed_by_keyboard_alone(window: Window) -> None:
    page = window.open(SPRINT)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    press(page, "Pause")
    expect(page.locator("output", has_text="Done at")).to_be_visible()
    expect(page.locator(".head")).to_contain_text("SP-001 is paused")
    expect(page.get_by_role("button", name="Resume")).to_be_enabled()
    press(page, "Resume")
    expect(page.locator(".head")).not_to_contain_text("is paused")


BACKLOG = "Story_ID,Title,Acceptance_Criteria\nNEW-1,Fresh,1. It works\nNEW-2,Again,1. It works\n"


def test_a_backlog_is_tried_submitted_and_withdrawn(window: Window, tmp_path: Path) -> None:
    page = window.open("/submit")
    output = page.locator("#submit output")
    submit = page.get_by_role("button", name="Submit", exact=True)
    bad = tmp_path / "fresh.csv"
    bad.write_text(BACKLOG.replace("NEW-2", "NEW-1"))
    page.get_by_label("CSV, YAML or JSON file").set_input_files(bad)
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#submit .findings li").first).to_contain_text("NEW-1")
    expect(submit).to_be_disabled()
    page.get_by_text("Paste its text").click()
    page.get_by_label("Text of the backlog").fill(BACKLOG)
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#dry-run")).to_contain_text("2 stories in 1 wave")
    submit.click()
    expect(output).to_contain_text("fresh is watched, with 2 stories")
    row = page.get_by_role("row", name="fresh")
    expect(row).to_be_visible()
    row.get_by_role("button", name="Withdraw").click()
    page.get_by_role("dialog").get_by_role("button", name="Withdraw").click()
    expect(row).to_have_count(0)
    expect(page.locator("#withdrawn")).to_contain_text("fresh")


def test_an_order_that_got_no_answer_is_not_said_to_be_done(
    start: Callable[[], RealDaemon], window_at: OpenWindow
) -> None:
    daemon = start()
    window = window_at(daemon).log_in()
    window.allowed.append("ERR_")
    page = window.open(SPRINT)
    daemon.end()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#orders output")).to_contain_text("it is not known whether this counted")
