"""Answers and orders that come too late or twice, or get no reply: nothing typed is lost, the page says what counts."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.board.browser import DESK, PHONE, Window, open_window
from tests.board.test_gates import waiting_at
from tests.cli.waiting import SPRINT, Waiting
from tests.server.stand import TOKEN, Stand, running

pytestmark = pytest.mark.board
COMMENT = "Use the words that the desk uses."


def do(function: Callable[..., Any], *words: Any) -> Any:
    """Runs what blocks in a thread of its own: Playwright's loop runs in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *words).result()


@contextmanager
def serving(waiting: Waiting) -> Iterator[str]:
    """Serves a sprint's state folder from a thread; nobody works on the sprint, so that nothing happens by itself."""
    address, loop = list[str](), asyncio.new_event_loop()
    ready, ended = threading.Event(), asyncio.Event()

    stand = do(partial(Stand, waiting.state.home, ORCHESTRATOR_TOKEN=TOKEN))

    async def serve() -> None:
        async with running(stand) as daemon:
            address.append(daemon.address)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(20)
        yield address[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    made: Waiting = do(waiting_at, tmp_path)
    return made


@pytest.fixture
def windows(waiting: Waiting, browser: Browser) -> Iterator[list[Window]]:
    """Those of two people."""
    with serving(waiting) as url, ExitStack() as opened:
        both = [opened.enter_context(open_window(browser, url, TOKEN)).log_in() for _ in range(2)]
        yield both
        assert [one.fault() for one in both] == ["", ""]


def gate(story: str) -> str:
    return f"/sprints/{SPRINT}/stories/{story}/gate"


def comment(page: Page) -> Locator:
    return page.get_by_label("Comment for whoever")


def told(page: Page) -> Locator:
    """What the form of the answer says."""
    return page.locator("#gate-answer output")


def test_a_late_answer_learns_what_counts_and_keeps_its_words(windows: list[Window], waiting: Waiting) -> None:
    first, late = windows
    late.allowed += ["409", "net::ERR"]
    late.page.route("**/board/events*", lambda route: route.abort())  # it hears of nothing
    page = late.open(gate("US-2"))
    conflict = first.open(gate("US-2"))
    conflict.get_by_label("Your name").fill("anna")
    conflict.get_by_role("button", name="Approve").press("Enter")
    expect(conflict.locator("#answer-said")).to_contain_text("US-2: the conflict is overridden by anna")
    expect(conflict.locator("#answer-said")).to_be_focused()
    comment(page).fill(COMMENT)
    page.get_by_role("button", name="Reject").click()
    expect(told(page)).to_contain_text("question 1 of US-2 was answered already")
    expect(told(page)).to_contain_text("overridden by anna")
    expect(comment(page)).to_have_value(COMMENT)
    assert [one.by for one in do(waiting.answers, "US-2")] == ["anna"]
    # The name is kept for the next answer.
    expect(first.open(gate("US-3")).get_by_label("Your name")).to_have_value("anna")


def test_an_edit_that_is_half_done_stays_when_the_next_question_opens(windows: list[Window], waiting: Waiting) -> None:
    page = windows[0].open(gate("US-1"))
    text = page.get_by_label(re.compile("^Plan that is built"))
    edited = f"{text.input_value()}# half done\n"
    text.fill(edited)
    assert do(waiting.cli, "reject", "US-1", "--comment", COMMENT).exit_code == 0
    expect(page.locator("#gate-state")).to_contain_text(f"the plan is rejected by anna: {COMMENT}")
    expect(page.locator("#gate-news")).to_contain_text("rejected by anna")  # for who does not see the page
    do(waiting.ask, "US-1")
    expect(page.locator("#gate-state")).to_contain_text("question 2")
    expect(page.locator("#gate-answer")).to_contain_text("Answer question 2")
    expect(text).to_have_value(edited)
    expect(page.locator("#gate-edit output")).to_contain_text("Question 1 is no longer open")
    expect(page.locator("#gate-edit").get_by_role("button")).to_have_count(0)


def test_where_no_answer_comes_it_is_not_known_whether_it_counted(windows: list[Window], waiting: Waiting) -> None:
    windows[0].allowed.append("net::ERR_FAILED")
    page = windows[0].open(gate("US-1"))
    page.route("**/answer", lambda route: route.abort())
    comment(page).fill(COMMENT)
    page.get_by_role("button", name="Reject").click()
    expect(told(page)).to_contain_text("it is not known whether this counted. Load this page again")
    page.unroute("**/answer")
    page.get_by_role("button", name="Reject").click()
    expect(page.locator("#answer-said")).to_contain_text("the plan is rejected")
    assert [one.comment for one in do(waiting.answers, "US-1")] == [COMMENT]


def test_a_session_that_ended_leads_to_login_in_another_tab(windows: list[Window]) -> None:
    windows[0].allowed += ["401", "net::ERR"]
    page = windows[0].page
    page.route("**/board/events*", lambda route: route.abort())
    windows[0].open(gate("US-1"))
    page.context.clear_cookies()
    comment(page).fill(COMMENT)
    page.get_by_role("button", name="Reject").click()
    with page.context.expect_page() as opened:
        told(page).get_by_role("link", name="Log in in another tab").click()
    expect(opened.value.get_by_label("Token")).to_be_visible()
    windows[0].log_in()
    page.get_by_role("button", name="Reject").click()
    expect(page.locator("#answer-said")).to_contain_text(COMMENT)


def test_an_order_that_was_given_before_is_refused_in_the_daemons_words(windows: list[Window]) -> None:
    windows[1].allowed += ["409", "net::ERR"]
    windows[1].page.route("**/board/events*", lambda route: route.abort())
    pages = [window.open(f"/sprints/{SPRINT}") for window in windows]
    pages[0].get_by_role("button", name="Pause").click()
    expect(pages[0].get_by_text(re.compile("Done at .*sprint S1 .*is paused"))).to_be_visible()
    pages[1].get_by_role("button", name="Pause").click()
    expect(pages[1].get_by_text(re.compile("Refused at .*it is paused by"))).to_be_visible()


@pytest.mark.parametrize("story", ["US-1", "US-3", "US-4"])
def test_a_mended_plan_a_merge_and_an_answered_question_shut_nobody_out(windows: list[Window], story: str) -> None:
    window = windows[0]
    window.open(gate(story))
    window.look(PHONE, "dark")
    assert [*window.violations(), *window.overflow()] == []
    window.look(DESK, "light")
    assert [*window.violations(), *window.overflow()] == []
