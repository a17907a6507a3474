"""Guards around every test: no network beyond loopback, nobody's git environment, no blocking call on an event loop."""

import gc
import importlib
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings

from tests.effort import QUICK
from tests.postgres import fresh_postgres, postgres, postgres_server
from tests.zygote import close_zygotes

__all__ = ["fresh_postgres", "postgres", "postgres_server"]

# No deadline: a machine shared with others is slow at times, which is no failure. `make soak` takes the other profile.
settings.register_profile("quick", max_examples=QUICK, deadline=None)
settings.register_profile("thorough", max_examples=100, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# What is started in the background ignores Ctrl-C, and so would every command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for _name in list(os.environ):
    if _name.startswith(("GIT_", "ORCHESTRATOR_")):
        del os.environ[_name]

MAY_BLOCK = (
    ("orchestrator/storage/reply_journal.py", {"_record", "begin_reading", "end_reading"}),  # before any await
    ("orchestrator/providers/scripted.py", {"write"}),  # the call log, for the same reason
    ("orchestrator/code/sql/check.py", {"_run"}),  # prepares a statement in memory: no file, nothing runs
    ("dbos/_dbos.py", {"__new__", "__init__", "_launch"}),  # has to be launched on the loop it works for
    (
        "tests/daemon/test_serve.py",
        {"settings", "report", "calls", "write", "rows", "script_again"},
    ),  # what a test does
    ("tests/git/test_workspace.py", {"look", "red", "agree", "broken"}),  # a test's callback, called by us
)
"""Where our code may block an event loop, by file and function."""
LONG = ("cli", "deploy", "durability", "end_to_end", "environments", "maintenance", "sandbox", "story", "test_runners")
"""Rooms of whole sprints and real tools, whose files take seconds to a minute."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Workers import the tests from different places on, so that each compiles a part and reads the others' bytecode.

    Side by side from the first on, each of them would rewrite the asserts of every test.
    """
    if not session.config.pluginmanager.hasplugin("dsession"):
        gc.disable()  # until all is imported: nearly nothing of it is garbage
    given = getattr(session.config, "workerinput", None)
    if given is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    root = session.config.rootpath
    files = sorted(path.relative_to(root) for path in (root / "tests").rglob("test_*.py"))
    first = len(files) * int(given["workerid"].removeprefix("gw")) // given["workercount"]
    for path in files[first:] + files[:first]:
        with suppress(Exception, pytest.skip.Exception):  # told when it is collected
            importlib.import_module(".".join(path.with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files come first: at the end no worker waits for another."""
    items.sort(key=lambda item: not item.nodeid.removeprefix("tests/").startswith(LONG))


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no collection of garbage looks at it again."""
    gc.enable()
    gc.freeze()


def is_local(address: Any) -> bool:
    """Whether a socket address is on this machine; paths of local sockets are."""
    return not isinstance(address, tuple) or str(address[0]).startswith(("127.", "::1", "localhost"))


def pytest_xdist_auto_num_workers() -> int | None:
    """Workers of `-n auto`: one more than processors, for a fifth of the time is spent waiting for other processes.

    With more than eight the slowest file would be waited for anyway.
    """
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else min(8, processors() + 1)


def processors() -> int:
    """How many processors this process may keep busy: threads of one core count each, a container's quota limits."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or "max" in it: no quota
        quota, period = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        count = max(1, min(count, round(quota / period)))
    return count


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """A run takes secrets out of the process environment: each test finds it as the first did."""
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(autouse=True, scope="session")
def zygote_ends() -> Iterator[None]:
    """The processes that tests fork commands from end with them."""
    yield
    close_zygotes()


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """A connection to another machine fails at once."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        yield


@pytest.fixture
def open_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that fetch from the public registries, by a proxy in this process."""
    monkeypatch.setattr("tests.conftest.is_local", lambda _: True)


@pytest.fixture(autouse=True, scope="session")
def no_blocking(no_network: None) -> Iterator[None]:
    """A blocking call of our code on a running event loop raises BlockingError."""
    with blockbuster_ctx("orchestrator") as guard:
        for function in guard.functions.values():
            for file, names in MAY_BLOCK:
                function.can_block_in(file, names)
        yield


def _guarded(connect: Any) -> Any:
    def guarded(self: socket.socket, address: Any) -> Any:
        if not is_local(address):
            raise AssertionError(f"a test tried to reach {address}")
        return connect(self, address)

    return guarded
