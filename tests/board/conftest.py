"""One browser per worker, and a window of its own for each test, which fails when its page did what none may do."""

import fcntl
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.board.sprints import make_sprint, serve
from tests.daemon_server import RealDaemon
from tests.support import copy_state

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.board.browser import OpenWindow, Window

if find_spec("playwright") is None:  # `make test` does without: the extra `board` is not installed there
    tests = Path(__file__).parent.glob("test_*.py")
    collect_ignore = [one.name for one in tests if "tests.board.browser" in one.read_text(encoding="utf-8")]


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    from tests.board.browser import chromium

    with chromium() as one:
        yield one


@pytest.fixture
def window_at(browser: "Browser") -> "Iterator[OpenWindow]":
    """Opens windows of a daemon."""
    from tests.board.browser import open_window

    with ExitStack() as opened:
        windows: list[Window] = []

        def open_one(daemon: RealDaemon, **options: Any) -> "Window":
            token = (daemon.state / "daemon" / "token").read_text().strip()
            windows.append(opened.enter_context(open_window(browser, daemon.url, token, **options)))
            return windows[-1]

        yield open_one
        faults = [window.fault() for window in windows]
        assert not any(faults), "\n".join(faults)


def origin(factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a sprint that was run once for all workers."""
    shared = factory.getbasetemp()
    shared = shared.parent if shared.name.startswith("popen-gw") else shared  # a worker's own lies in it
    with (shared / "library.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "library.made").exists():
            make_sprint(shared / "library")
            (shared / "library.made").touch()
    return shared / "library"


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], RealDaemon]]:
    """Starts a daemon on a copy of the sprint's state, with an address that it has again after a restart."""
    begun: list[RealDaemon] = []

    def begin() -> RealDaemon:
        folder = copy_state(origin(tmp_path_factory), tmp_path_factory.mktemp("library") / "library")
        begun.append(serve(folder, folder, "--port", str(free_port())))
        return begun[-1].start()

    yield begin
    for daemon in begun:
        daemon.end()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def library(start: Callable[[], RealDaemon]) -> RealDaemon:
    """The example half way through, for tests that change nothing."""
    return start()


@pytest.fixture
def daemon(start: Callable[[], RealDaemon]) -> Iterator[RealDaemon]:
    """The example half way through, for a test that changes it or ends its daemon."""
    one = start()
    yield one
    one.end()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-screenshots", action="store_true", help="Keep the pictures of docs/board as they are made"
    )
