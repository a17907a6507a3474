"""An open page is true while things happen: it changes by itself, says when it is cut off, and catches up."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.board.browser import OpenWindow, Window
from tests.daemon_server import RealDaemon
from tests.support import plain_environment, run_cli

pytestmark = pytest.mark.board
SPRINT = "/sprints/SP-001"
KEEPS = """(() => {
    window.heard = [];
    window.EventSource = class extends EventSource {
        addEventListener(name, handle) {
            super.addEventListener(name, (event) => {
                if (name === "changed") heard.push([Number(event.lastEventId), JSON.parse(event.data)]);
                handle(event);
            });
        }
    };
})()"""
"""Keeps what a page hears: (number in the log, what has changed up to there)."""


@pytest.fixture
def window(daemon: RealDaemon, window_at: OpenWindow) -> Window:
    window = window_at(daemon).log_in()
    window.page.add_init_script(KEEPS)
    return window


def command(daemon: RealDaemon, *words: str) -> None:
    """A command of somebody at a terminal."""
    done = run_cli(words, daemon.folder, plain_environment(LOGNAME="anna"))
    assert done.returncode == 0, done.stderr


def card(page: Page, story: str) -> Locator:
    return page.locator(f"#card-{story}")


def shown(page: Page) -> list[str]:
    """What the page says, but for clocks."""
    texts: list[str] = page.evaluate(
        """() => {
            const main = document.getElementById("main").cloneNode(true);
            main.querySelectorAll("time, .head .muted").forEach((one) => one.remove());
            return [...main.querySelectorAll("h2, .card, .head")].map((one) => one.textContent.replace(/\\s+/g, " "));
        }"""
    )
    return texts


def test_what_happens_is_shown_without_loading_the_page_again(daemon: RealDaemon, window: Window) -> None:
    page = window.open(SPRINT)
    page.evaluate("window.kept = true")
    expect(card(page, "US-007").locator(".badge")).to_have_text("pending")
    command(daemon, "cancel", "US-007")
    expect(page.locator(".column", has_text="Not done").locator("#card-US-007 .badge")).to_have_text("cancelled")
    expect(page.locator(".head")).to_contain_text("1 cancelled")
    command(daemon, "pause", "SP-001")
    expect(page.get_by_text("is paused by anna")).to_be_visible()
    assert page.evaluate("window.kept") is True


def test_a_page_says_that_the_daemon_is_away_and_catches_up_without_gap_or_double(
    daemon: RealDaemon, window: Window
) -> None:
    window.allowed += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE"]
    page = window.open(SPRINT)
    page.evaluate("window.kept = true")
    banner = page.get_by_role("status").filter(has_text="The daemon does not answer")
    expect(banner).to_have_count(0)
    for story in ("US-007", "US-005"):
        daemon.end()
        expect(banner).to_be_visible()
        command(daemon, "cancel", story)
        daemon.start()
        expect(banner).to_have_count(0, timeout=15_000)
        expect(card(page, story).locator(".badge")).to_have_text("cancelled")
    heard = page.evaluate("window.heard")
    numbers = [number for number, _ in heard]
    assert numbers == sorted(set(numbers)), "the stream went back"
    ended = [one["story"] for _, changes in heard for one in changes if one["name"] == "story_finished"]
    assert ended == ["US-007", "US-005"], "each is told once"
    assert page.evaluate("window.kept") is True
    before = shown(page)
    page.reload()
    assert shown(page) == before, "what was pieced together is what the daemon would show"
