"""The page of the log follows: each new line once, over pauses and restarts, and never more lines than a page holds."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Locator, Page, expect

from orchestrator.core.event import Event, Level
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventStore
from tests.board.browser import OpenWindow, Window
from tests.board.past import FIRST_DAY
from tests.daemon_server import RealDaemon

pytestmark = pytest.mark.board
LINES = "#lines tr"


@pytest.fixture
def window(daemon: RealDaemon, window_at: OpenWindow) -> Window:
    return window_at(daemon).log_in()


def record(daemon: RealDaemon, first: int, count: int = 1, *, text: str = "line", level: Level = Level.INFO) -> None:
    """New lines in the log, as another process writes them."""
    events = [
        Event(
            id=f"SP-001/test:{number}", time=FIRST_DAY, level=level, name="noted", sprint="SP-001",
            message=f"{text} {number}.", story="US-003",
        )
        for number in range(first, first + count)
    ]  # fmt: skip

    async def write() -> None:
        async with EventStore(sqlite_url(daemon.state / "events.sqlite")) as store:
            await asyncio.gather(*map(store.emit, events))

    # The browser's driver has a loop in this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(write())).result()


def messages(page: Page) -> list[str]:
    texts: list[str] = page.locator(f"{LINES} .message").all_inner_texts()
    return [text for text in texts if text.startswith("line ")]


def look(line: Locator) -> tuple[str, str, str]:
    """What a line is, where its time leads to, and what its cells hold."""
    cells: str = line.evaluate("one => one.innerHTML.replace(/\\s+/g, ' ')")
    return line.get_attribute("id") or "", line.get_attribute("class") or "", cells


def expect_last(page: Page, text: str) -> None:
    expect(page.locator(LINES).last.locator(".message")).to_have_text(text)


def test_new_lines_that_fit_come_once_over_pauses_and_restarts(daemon: RealDaemon, window: Window) -> None:
    window.allowed += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE"]
    page = window.open("/logs?story=US-003")
    expect(page.get_by_text("Following:")).to_be_visible()
    record(daemon, 1)
    record(daemon, 2, text="too quiet", level=Level.DEBUG)
    expect_last(page, "line 1.")
    page.get_by_role("button", name="Pause").click()
    record(daemon, 3, 2)
    expect(page.get_by_text("Paused:")).to_be_visible()
    assert messages(page) == ["line 1."]
    page.get_by_role("button", name="Resume").click()
    expect_last(page, "line 4.")
    daemon.end()
    expect(page.get_by_text("The daemon does not answer")).to_be_visible()
    record(daemon, 5)
    daemon.start()
    expect_last(page, "line 5.")
    record(daemon, 6)
    expect_last(page, "line 6.")
    assert messages(page) == [f"line {number}." for number in (1, 3, 4, 5, 6)]


def test_a_line_that_came_has_an_address_and_looks_as_one_that_was_there(daemon: RealDaemon, window: Window) -> None:
    page = window.open("/logs?level=warn")
    hostile = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
    record(daemon, 1, text=f"{hostile}\u202e\x1b[31m", level=Level.ERROR)
    expect_last(page, f"{hostile}[U+202E][U+001B][31m 1.")
    came = look(page.locator(LINES).last)
    assert page.evaluate("window.hit") is None
    page.locator(LINES).last.get_by_role("link").click()
    marked = page.locator("tr[aria-current=true]")
    expect(marked).to_be_in_viewport()
    assert came == look(marked)


def test_a_storm_of_lines_leaves_the_latest_two_thousand(daemon: RealDaemon, window: Window) -> None:
    page = window.open("/logs")
    expect(page.get_by_text("Following:")).to_be_visible()
    record(daemon, 1, 2500)
    expect_last(page, "line 2500.")
    assert messages(page) == [f"line {number}." for number in range(501, 2501)]
    at_end = page.locator("#log").evaluate("one => one.scrollHeight - one.scrollTop - one.clientHeight")
    assert at_end < 40
