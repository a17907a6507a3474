"""What stays at the bottom of a terminal: values in, the text of a window out."""

import fcntl
import io
import os
import pty
import re
import signal
import struct
import termios
from pathlib import Path
from typing import Any

from rich.console import Console

from orchestrator.cli.sprint_lines import make_live, read_shown
from orchestrator.core.calls.spending import Amount, sprint_budgets
from tests.support import Team, plain_environment, write_backlog
from tests.zygote import zygote


def screen(shown: dict[str, Any], width: int, height: int) -> list[str]:
    """The lines of a window."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, height=height, color_system=None)
    console.print(make_live(console, lambda: read_shown(shown, "")).get_renderable())
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_the_totals_and_the_stories_at_work_are_shown_each_in_a_line_of_the_window() -> None:
    statuses = ["done"] * 9 + ["failed"] * 2 + ["pending"] * 20 + ["executing"] * 7
    long = "alex\x1b[2J writes sk-ant-api03-" + "x" * 90 + "\nthree"
    shown = {
        "sprint": "S", "running_pid": 7,
        "stories": [{"id": f"US-{number:03}", "status": status} for number, status in enumerate(statuses)],
        "waiting": [{"story": "US-031", "reason": "a plan", "choices": ["approve", "cancel"]}],
        "last": {f"US-{number:03}": long for number in range(38)},
        "budgets": [one.model_dump() for one in sprint_budgets(Amount(3), {"calls": 5})],
    }  # fmt: skip
    lines = screen(shown, 80, 24)
    assert lines[0] == "Sprint S, running as pid 7"
    assert lines[1] == "20 pending, 7 executing, 9 done, 2 failed; spent 3 of 5 calls; waiting for a pe…"
    assert [line.split()[:2] for line in lines[2:]] == [
        ["US-031", "waiting"], *(["US-0" + str(number), "executing"] for number in range(32, 38))
    ]  # fmt: skip
    assert max(map(len, lines)) <= 80
    assert not any(part in line for line in lines for part in ("\x1b", "sk-ant", "three"))


def test_a_run_at_a_terminal_draws_its_table_within_the_window_and_removes_it(tmp_path: Path) -> None:
    team = Team()
    team.plan("US-1", ["us_1.py"])
    write_backlog(tmp_path / "b.csv", "US-1", "US-2 < US-1")
    script = str(team.write(tmp_path / "team.jsonl"))
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = ["run", "b.csv", "--repo", "repo", "--script", script, "--set", "gate.mode=always"]
    env = plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state"), TERM="xterm", NO_COLOR="1")
    with os.fdopen(slave, "wb") as terminal:
        started = zygote().start("tests.cli.terminal", words, cwd=tmp_path, env=env, log=terminal)
    shown = ""
    while not re.search(r"Sprint SP-001, running as pid .*\s+1 pending, 1 executing.*\s+US-1 +\S*waiting", shown):
        shown += os.read(master, 65536).decode(errors="replace")
    started.send_signal(signal.SIGINT)
    rest = b""
    while b"goes on where this one stopped" not in rest:
        rest += os.read(master, 65536)
    os.close(master)
    assert started.wait(60) == 130
    lines = [re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", line).strip("\r") for line in shown.splitlines()]
    first = max(number for number, line in enumerate(lines) if line.startswith("Sprint SP-001, running as pid "))
    assert lines[first + 1].startswith("1 pending, 1 executing")
    assert re.match(r"  US-1         waiting             1 calls  .*", lines[first + 2])
    assert max(len(line) for line in lines[first:]) <= 80
