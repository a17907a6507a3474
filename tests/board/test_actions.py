"""What people do on the board: answer, order, submit. Each thing shows as sent, then in the daemon's own words."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.board.browser import OpenWindow, Window
from tests.daemon_server import RealDaemon
from tests.support import breakdown, task

pytestmark = pytest.mark.board
SPRINT = "/sprints/SP-001"


@pytest.fixture(scope="module")
def daemon(start: Callable[[str], RealDaemon]) -> RealDaemon:
    """One for all tests here, each of which answers or orders another story."""
    return start("library")


@pytest.fixture
def window(daemon: RealDaemon, window_at: OpenWindow) -> Window:
    return window_at(daemon).log_in()


def answer_form(page: Page) -> Locator:
    return page.locator("#gate-answer form")


def test_two_people_at_one_question_see_each_others_answer(
    window: Window, window_at: OpenWindow, daemon: RealDaemon
) -> None:
    gate = f"{SPRINT}/stories/US-003/gate"
    anna, ben = window.open(gate), window_at(daemon).log_in().open(gate)
    ben.get_by_label("Comment for whoever").fill("I was about to say something.")
    anna.get_by_label("Your name").fill("anna")
    window.allowed.append("422")
    anna.get_by_role("button", name="Reject").click()
    said = anna.locator("#answer-said")
    expect(said.or_(answer_form(anna).locator("output")).filter(has_text="Refused at")).to_contain_text("comment")
    anna.get_by_label("Comment for whoever").fill("Find by ISBN first.")
    anna.get_by_role("button", name="Reject").click()
    for page in (anna, ben):
        state = page.get_by_role("region", name="What is asked")
        expect(state).to_contain_text("rejected by anna: Find by ISBN first.")
    expect(ben.get_by_label("Comment for whoever")).to_have_value("I was about to say something.")
    expect(answer_form(ben).locator("output")).to_contain_text("is no longer open")
    expect(answer_form(ben).get_by_role("button")).to_have_count(0)


def test_a_plan_edited_in_the_page_is_checked_as_every_plan(
    start: Callable[[str], RealDaemon], window_at: OpenWindow
) -> None:
    window = window_at(start("library")).log_in()
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


def test_a_conflict_shows_its_four_texts_and_a_question_before_anything_is_lost(window: Window) -> None:
    page = window.open(f"{SPRINT}/stories/US-006/gate")
    about = page.locator("#gate-about")
    for text in ("Loans live in one file", "Every desk sees the same line", "gives one book to two", "Decide first"):
        expect(about).to_contain_text(text)
    page.get_by_role("button", name="Cancel the story").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("US-006")
    expect(dialog.get_by_role("button", name="Leave it as it is")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("region", name="What is asked")).to_contain_text("question 1")
    page.get_by_role("button", name="Cancel the story").click()
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("region", name="What is asked")).to_contain_text("cancelled")


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


def test_a_story_is_cancelled_on_its_page(window: Window) -> None:
    page = window.open(f"{SPRINT}/stories/US-005")
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("A call under way is cut")
    dialog.get_by_role("button", name="Cancel").click()
    now = page.get_by_role("region", name="The story now")
    expect(now.locator(".badge").first).to_have_text("cancelled")
    expect(now.get_by_role("button", name="Retry")).to_be_visible()


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


def test_a_file_that_is_dragged_onto_the_page_is_tried_at_once(window: Window) -> None:
    page = window.open("/submit")
    transfer = page.evaluate_handle(
        """text => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], "dragged.csv", { type: "text/csv" }));
            return transfer;
        }""",
        BACKLOG,
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": transfer})
    expect(page.locator("#dry-run")).to_contain_text("2 stories in 1 wave")
    expect(page.get_by_label("Name of the backlog")).to_have_value("dragged")


def test_an_order_that_got_no_answer_is_not_said_to_be_done(
    start: Callable[[str], RealDaemon], window_at: OpenWindow
) -> None:
    daemon = start("library")
    window = window_at(daemon).log_in()
    window.allowed.append("ERR_")
    page = window.open(SPRINT)
    daemon.end()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#orders output")).to_contain_text("it is not known whether this counted")
