"""A run seen from other terminals while it is alive and after it was killed."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import PLAIN_TESTS, Team, plain_environment, write_backlog
from tests.zygote import zygote

Start = Callable[..., "Terminal"]


class Terminal:
    """A command of ours whose output is a terminal."""

    def __init__(self, folder: Path, args: tuple[str, ...]) -> None:
        self._reader, writer = os.openpty()
        env = plain_environment(TERM="xterm-256color", COLUMNS="100", LINES="40")
        with os.fdopen(writer, "wb") as log:
            self.process = zygote().start("orchestrator", args, cwd=folder, env=env, log=log)
        self.shown = ""

    def until(self, words: str | None, timeout_s: float = 60) -> str:
        """Everything shown, once `words` are among it; None waits for the command's end."""
        deadline = time.monotonic() + timeout_s
        while words is None or words not in self.shown:
            ready, _, _ = select.select([self._reader], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{words!r} never came: {self.shown}"
            try:
                more = os.read(self._reader, 65536)
            except OSError:  # the other end is closed: the command has ended
                more = b""
            if not more:
                assert words is None, f"{words!r} never came: {self.shown}"
                break
            self.shown += more.decode(errors="replace")
        return self.shown

    def end(self) -> None:
        """Nothing of it lives on."""
        self.process.kill()
        self.process.wait()
        os.close(self._reader)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    begun: list[Terminal] = []

    def begin(*args: str) -> Terminal:
        begun.append(Terminal(tmp_path, args))
        return begun[-1]

    yield begin
    for terminal in begun:
        terminal.end()


def test_other_terminals_follow_a_run_to_its_sudden_end(tmp_path: Path, start: Start) -> None:
    team = Team()
    team.good("US-1")
    team.plan("US-2", ["us_2.py"])
    team.deliver("US-2", 1, {"us_2.py": "X = 1\n", "evil/conftest.py": "Y = 1\n"})
    team.deliver("US-2", 1, {"us_2.py": "X = 1\n"}, latency_ms=120_000)
    team.write(tmp_path / "team.jsonl")
    write_backlog(tmp_path / "backlog.csv", "US-1", "US-2 < US-1", "US-3 < US-2")
    logs = start("logs", "-f")
    logs.until("waiting: there is no sprint in")
    run = start("run", "backlog.csv", "--script", "team.jsonl", "--set", PLAIN_TESTS)
    assert "\x1b[32m" in logs.until("US-1 is done").rpartition("US-1 is done")[0].splitlines()[-1]
    warnings = start("logs", "-f", "--story", "US-2", "--level", "warn")
    assert "\x1b[33m" in warnings.until("[sent back]")
    assert "US-1" not in warnings.shown
    status = start("status", "-f")
    shown = status.until("US-3")
    assert f"running as pid {run.process.pid}" in shown
    assert "\x1b[32mdone" in shown
    assert "\x1b[36mexecuting" in shown
    run.process.kill()
    shown = status.until(None)
    assert status.process.wait(60) == 0
    assert "not running (the command that began it goes on)" in shown
    logs.process.send_signal(signal.SIGINT)
    logs.until(None)
    assert logs.process.wait(60) == 130
    assert "Traceback" not in logs.shown + status.shown + warnings.shown
