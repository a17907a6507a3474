"""One browser per worker, and a window of its own for each test, which fails when its page did what none may do."""

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.board.browser import OpenWindow, Window

if find_spec("playwright") is None:  # `make test` does without: the extra `board` is not installed there
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    from tests.board.browser import chromium

    with chromium() as one:
        yield one


@pytest.fixture
def window_at(browser: "Browser") -> "Iterator[OpenWindow]":
    """Opens windows of a daemon's address."""
    from tests.board.browser import open_window

    with ExitStack() as opened:
        windows: list[Window] = []

        def open_one(url: str, **options: Any) -> "Window":
            windows.append(opened.enter_context(open_window(browser, url, **options)))
            return windows[-1]

        yield open_one
        faults = [window.fault() for window in windows]
        assert not any(faults), "\n".join(faults)
