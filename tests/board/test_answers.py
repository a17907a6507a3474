"""What people order and answer in the page: the daemon's words, nothing typed is lost, no late answer counts."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.board.browser import OpenWindow, Window
from tests.daemon_server import RealDaemon

pytestmark = pytest.mark.board
GATE = "/sprints/SP-001/stories/{}/gate"
COMMENT = "Use the words that the desk uses."
BACKLOG = "Story_ID,Title,Dependencies\nN-1,Notices,\nN-2,Letters,N-1\n"
WRONG = "Story_ID,Title,Dependencies\nN-1,Notices,\nN-2,Letters,N-9\n"


@pytest.fixture
def daemon(start: Callable[[str], RealDaemon]) -> RealDaemon:
    """One that a test may change."""
    return start("library")


@pytest.fixture
def window(daemon: RealDaemon, window_at: OpenWindow) -> Window:
    return window_at(daemon).log_in()


def said(page: Page) -> Locator:
    """The words of an answer that was accepted."""
    return page.locator("#answer-said")


def edit_form(page: Page) -> Locator:
    return page.locator("#gate-edit form")


def test_a_rejection_needs_a_comment_and_counts_with_it(window: Window) -> None:
    window.allowed.append("422")
    page = window.open(GATE.format("US-003"))
    page.get_by_label("Your name").fill("bea")
    page.get_by_role("button", name="Reject").click()
    output = page.locator("#gate-answer output")
    expect(output).to_contain_text("the comment is empty: say what is to change")
    expect(output).to_be_focused()
    page.get_by_label("Comment", exact=False).first.fill(COMMENT)
    page.get_by_role("button", name="Reject").click()
    expect(said(page)).to_contain_text(f"US-003: the plan is rejected by bea: {COMMENT}")
    expect(said(page)).to_be_focused()
    expect(page.locator("#gate-state")).to_contain_text(f"the plan is rejected by bea: {COMMENT}")
    # The name is kept for the next answer.
    page = window.open(GATE.format("US-006"))
    expect(page.get_by_label("Your name")).to_have_value("bea")


def test_a_conflict_is_overridden_from_the_keyboard(window: Window) -> None:
    page = window.open("/gates")
    page.get_by_role("link", name="US-006", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="The conflict that the architect sees")).to_be_visible()
    page.get_by_role("button", name="Approve").focus()
    page.keyboard.press("Enter")
    expect(said(page)).to_contain_text("US-006: the conflict is overridden by somebody over HTTP")


def test_an_edited_plan_is_refused_with_its_findings_beside_the_text_and_then_accepted(window: Window) -> None:
    window.allowed.append("422")
    page = window.open(GATE.format("US-003"))
    form, text = edit_form(page), page.get_by_label(re.compile("^Plan that is built"))
    wrong = text.input_value().replace("shelf/words.py", "../words.py")
    text.fill(wrong)
    page.get_by_role("button", name="Check and build this plan").click()
    expect(form.locator("output")).to_contain_text("Refused")
    expect(form.locator(".findings li").first).to_be_visible()
    expect(form.locator("output")).to_contain_text("../words.py")
    expect(text).to_have_value(wrong)
    plan = (
        "tasks:\n- task_id: T-US-003-01\n  description: Find a book\n"
        "  files_to_create: [shelf/search.py]\ndependencies: {dependencies: {}, devDependencies: {}}\n"
    )
    text.fill(plan)
    page.get_by_role("button", name="Check and build this plan").click()
    expect(said(page)).to_contain_text("US-003: the plan is edited and approved by")
    expect(page.locator("#gate-state")).to_contain_text("with a plan of their own")


def test_two_people_at_one_question_see_each_other_and_keep_what_they_typed(
    daemon: RealDaemon, window: Window, window_at: OpenWindow
) -> None:
    first, second = window.open(GATE.format("US-003")), window_at(daemon).log_in().open(GATE.format("US-003"))
    second.get_by_label("Comment", exact=False).first.fill("Mine is half")
    text = second.get_by_label(re.compile("^Plan that is built"))
    edited = f"{text.input_value()}# more\n"
    text.fill(edited)
    first.get_by_label("Your name").fill("anna")
    first.get_by_role("button", name="Cancel").click()
    dialog = first.get_by_role("dialog", name="Cancel US-003?")
    expect(dialog).to_contain_text("what depends on it is blocked")
    dialog.get_by_role("button", name="Cancel").click()
    expect(said(first)).to_contain_text("the plan is given up by anna")
    expect(second.locator("#gate-state")).to_contain_text("the plan is given up by anna")
    expect(second.locator("#gate-answer output")).to_contain_text("Question 1 is no longer open")
    expect(second.get_by_label("Comment", exact=False).first).to_have_value("Mine is half")
    expect(text).to_have_value(edited)
    expect(second.locator("#gate-edit button")).to_be_hidden()


def test_a_late_answer_learns_what_counts(daemon: RealDaemon, window: Window, window_at: OpenWindow) -> None:
    late = window_at(daemon).log_in()
    late.allowed += ["409", "net::ERR"]
    page = late.page
    page.route("**/board/events*", lambda route: route.abort())  # it hears of nothing
    late.open(GATE.format("US-006"))
    window.open(GATE.format("US-006")).get_by_role("button", name="Approve").click()
    expect(said(window.page)).to_contain_text("overridden")
    page.get_by_label("Comment", exact=False).first.fill(COMMENT)
    page.get_by_role("button", name="Reject").click()
    expect(page.locator("#gate-answer output")).to_contain_text("question 1 of US-006 was answered already")
    expect(page.get_by_label("Comment", exact=False).first).to_have_value(COMMENT)


def test_where_no_answer_comes_it_is_not_known_whether_it_counted(window: Window) -> None:
    window.allowed.append("net::ERR_FAILED")
    page = window.page
    page.route("**/answer", lambda route: route.abort())
    window.open(GATE.format("US-003"))
    page.get_by_label("Comment", exact=False).first.fill(COMMENT)
    page.get_by_role("button", name="Reject").click()
    output = page.locator("#gate-answer output")
    expect(output).to_contain_text("it is not known whether this counted. Load this page again")
    expect(page.get_by_role("button", name="Reject")).to_be_enabled()
    page.unroute("**/answer")
    page.get_by_role("button", name="Reject").click()
    expect(said(page)).to_contain_text("the plan is rejected")


def test_orders_to_a_story_ask_before_something_is_lost(window: Window) -> None:
    page = window.open("/sprints/SP-001/stories/US-007")
    orders = page.get_by_role("form", name="Orders to US-007")
    orders.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog", name="Cancel US-007?")
    expect(dialog).to_contain_text("US-007 ends as cancelled at once")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(orders.get_by_role("button", name="Cancel")).to_be_focused()
    orders.get_by_role("button", name="Pause").click()
    expect(page.get_by_text(re.compile("Done at .*: US-007 is paused"))).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_text(re.compile("Done at .*: US-007 is cancelled"))).to_be_visible()
    page.get_by_text("Plan US-007 again").click()
    page.get_by_label("What the architect is to do about the story").fill(COMMENT)
    page.get_by_role("button", name="Replan").click()
    page.get_by_role("dialog", name="Plan US-007 again?").get_by_role("button", name="Replan").click()
    expect(page.get_by_text(re.compile("Done at"))).to_be_visible()


def test_a_backlog_is_tried_and_then_handed_in_and_withdrawn(window: Window, tmp_path: Path) -> None:
    page = window.open("/submit")
    output, hand_in = page.locator("#submit output"), page.get_by_role("button", name="Submit")
    (tmp_path / "more work.csv").write_text(WRONG)
    page.get_by_label("CSV, YAML or JSON file").set_input_files(tmp_path / "more work.csv")
    expect(page.get_by_label("Name of the backlog")).to_have_value("more-work")
    page.get_by_role("button", name="Dry run").click()
    expect(output).to_contain_text("this would be refused")
    expect(page.locator("#dry-run .findings")).to_contain_text("N-9")
    expect(page.locator("#dry-run .findings")).to_contain_text("To do:")
    expect(hand_in).to_be_disabled()
    page.get_by_label("CSV, YAML or JSON file").set_input_files([])
    page.get_by_text("Paste its text").click()
    page.get_by_label("Text of the backlog").fill(BACKLOG)
    page.get_by_role("button", name="Dry run").click()
    expect(output).to_contain_text("this can be submitted")
    expect(page.locator("#dry-run")).to_contain_text("2 stories in 2 waves")
    expect(page.locator("#dry-run .figures")).to_contain_text("at most")
    hand_in.click()
    expect(output).to_contain_text("more-work is watched, with 2 stories")
    row = page.get_by_role("row", name=re.compile("more-work"))
    expect(row).to_be_visible()
    row.get_by_role("button", name="Withdraw").click()
    page.get_by_role("dialog", name="Withdraw more-work?").get_by_role("button", name="Withdraw").click()
    expect(page.locator("#withdrawn")).to_contain_text("more-work is watched no more")
    expect(row).to_have_count(0)


def test_a_file_is_dropped_onto_the_page_and_one_that_is_too_large_is_not_sent(window: Window) -> None:
    page = window.open("/submit")
    drop = """(text) => {
        const carried = new DataTransfer();
        carried.items.add(new File([text], "dropped.yaml"));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(drop, "- id: D-1\n  title: Dropped\n")
    expect(page.get_by_label("Format")).to_have_value("yaml")
    expect(page.locator("#dry-run")).to_contain_text("1 story in 1 wave")
    page.evaluate(drop, "x" * (9 * 1024 * 1024))
    expect(page.locator("#submit output")).to_contain_text("at most 8192 kB are taken")
