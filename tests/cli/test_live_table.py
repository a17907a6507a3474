"""The live table: values in, the text of windows of several sizes out."""

import fcntl
import io
import os
import pty
import re
import signal
import struct
import termios
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestrator.cli.live_table import LiveSprint, SprintTable, StoryRow
from orchestrator.cli.status import _parse, _table
from orchestrator.core.calls.exchange import Purpose, TurnKey
from orchestrator.core.calls.progress import CallProgress
from orchestrator.core.calls.spending import Amount, sprint_budgets
from orchestrator.core.command import CONTROL_SETTLED, GATE_OPENED
from orchestrator.core.event import Event
from orchestrator.core.history import Logged, StoryHistory
from tests.cli.waiting import about_plan
from tests.support import Team, plain_environment, write_backlog
from tests.zygote import zygote

THEN = datetime(2026, 1, 2, tzinfo=UTC)
SPENT = "spent 24 of 100 calls, 121000 tokens, 1.20 of 5.00 USD"
ASKS = "orchestrator show {}, then approve | reject | edit | replan | cancel"


def screen(table: SprintTable, width: int = 120, height: int = 40) -> list[str]:
    """The lines of a window."""
    shown = io.StringIO()
    Console(file=shown, width=width, height=height, color_system=None).print(table)
    return [line.rstrip() for line in shown.getvalue().splitlines()]


def forty(**more: Any) -> SprintTable:
    statuses = ["done"] * 9 + ["failed"] * 2 + ["pending"] * 20 + ["executing"] * 7 + ["waiting"] * 2
    rows = [
        StoryRow(story=f"US-{number:03}", status=status, doing=f"{status} " * 20, lasts=timedelta(minutes=number))
        for number, status in enumerate(statuses)
    ]
    given = {"title": "SP-001", "clock": timedelta(seconds=3725), "counts": Counter(statuses), "notes": (SPENT, "")}
    return SprintTable(**{**given, "rows": rows, **more})


@pytest.mark.parametrize(
    ("width", "height", "part", "rows", "more"),
    [
        (80, 24, 1, 20, "… 20 more: 11 pending, 9 done"),
        (80, 24, 2, 8, "… 32 more: 1 executing, 2 failed, 20 pending, 9 done"),
        (120, 50, 1, 40, ""),
        (40, 10, 1, 6, "… 34 more: 3 executing, 2 failed, 20 pe…"),
    ],
)
def test_forty_stories_fit_the_window(width: int, height: int, part: int, rows: int, more: str) -> None:
    lines = screen(forty(part=part), width, height)
    assert len(lines) <= height // part
    assert max(map(len, lines)) <= width
    stories = [line for line in lines if line.startswith("US-")]
    assert len(stories) == rows
    first = [line.split()[1] for line in stories]
    assert first[:6] == ["waiting", "waiting", *["executing"] * 4], "who waits for a person, then what runs"
    assert first == sorted(first, key=["waiting", "executing", "failed", "pending", "done"].index)
    assert all(line.endswith("…") for line in stories), "one line each"
    end = ["2 waiting, 7 executing, 2 failed, 20 pending, 9 done"[: width - 1], SPENT[: width - 1]]
    assert [line.removesuffix("…") for line in lines[-2:]] == end
    assert (lines[-3] == more) if more else lines[-3].startswith("US-008")
    assert ("1:02:05" in lines[0], "11 of 40" in lines[0]) == (True, True)


def test_what_models_write_keeps_its_one_line() -> None:
    row = StoryRow(story="A", status="failed", doing="one\ttwo \x1b[2J sk-ant-api03-" + "x" * 90 + "\nthree")
    lines = screen(forty(rows=[row], counts={"failed": 1}, notes=()), 80, 24)
    assert [line.split()[:4] for line in lines[1:]] == [["A", "failed", "one", "two"], ["1", "failed"]]
    assert not any(secret in line for line in lines for secret in ("xxxx", "\x1b", "three"))


@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_the_totals_are_there_in_the_smallest_window(height: int) -> None:
    lines = screen(forty(), 20, height)
    assert len(lines) <= max(3, height)
    assert lines[-1].startswith("spent 24 of 100")


def test_the_bar_is_one_without_colours() -> None:
    assert screen(forty(rows=()), 60)[0] == f"SP-001  1:02:05  {'━' * 9}{'─' * 24}  11 of 40"
    assert screen(forty(rows=(), counts={}), 60)[0].endswith("─  0 of 0")


def event(number: int, name: str, message: str, **data: Any) -> Event:
    return Event(
        id=f"S/A-{number}:{name}", time=THEN, sprint="S", story=f"A-{number}", name=name, message=message, data=data
    )


def told(sprint: LiveSprint, after_s: int = 42, moment: float = 100.0) -> list[str]:
    """The lines below the first one, as words."""
    table = sprint.table(THEN + timedelta(seconds=after_s), moment)
    return [" ".join(line.split()) for line in screen(table, 120, 40)[1:]]


def live(*stories: StoryHistory, **more: Any) -> LiveSprint:
    return LiveSprint("S", {f"A-{number}": story for number, story in enumerate(stories, 1)}, began=THEN, **more)


def history(events: Iterable[Event] = ()) -> StoryHistory:
    made = StoryHistory()
    for one in events:
        made.add(Logged.of(one))
    return made


def test_events_move_the_stories_of_a_run() -> None:
    gate = about_plan("A-2").model_copy(update={"number": 1, "opened_at": THEN}).model_dump(mode="json")
    asked = [event(2, "story_started", "A-2 starts", criteria=[]), event(2, GATE_OPENED, "asks", gate=gate)]
    held = ["budget.usd_per_sprint (5) is used up"]
    budgets = sprint_budgets(Amount(24, 121_000, 1.2), {"calls": 100, "usd": 5.0})
    sprint = live(history(), history(asked), held=lambda: held[0], spent=lambda: budgets)
    waits = f"A-2 waiting 42 s {ASKS.format('A-2')}"
    assert told(sprint) == [waits, "1 waiting, 1 pending", SPENT, f"paused: {held[0]}"]
    held[0] = ""
    sprint.add(event(1, "story_started", "A-1 starts"))
    sprint.add(event(2, CONTROL_SETTLED, "A-2 is paused by anna"))
    assert told(sprint) == [waits, "A-1 executing 42 s A-1 starts", "1 waiting, 1 executing", SPENT]
    sprint.add(event(2, "gate_settled", "the plan is approved by anna"))
    sprint.add(event(1, "story_finished", "A-1 is failed", status="failed"))
    sprint.add(Event(id="S:1", time=THEN, sprint="S", name="activity_begun", message="installing flask"))
    going = "A-2 executing 42 s the plan is approved by anna"
    assert told(sprint) == ["S executing 42 s installing flask", going, "1 executing, 1 failed", SPENT]
    sprint.add(Event(id="S:2", time=THEN, sprint="S", name="base_tried", message="its tests pass"))
    sprint.add(event(1, "story_reset", "A-1 is reset"))
    assert told(sprint) == [going, "1 executing, 1 pending", SPENT]


def test_a_line_per_call_says_how_far_it_is_or_what_it_waits_for() -> None:
    writes = CallProgress(TurnKey(persona="alex", story="A-1", task="T-1", purpose=Purpose.DELIVERY), 35.0)
    waits = CallProgress(TurnKey(persona="mike", story="A-1", purpose=Purpose.BREAKDOWN), 90.0)
    sprint = live(history(), calls=(calls := [writes, waits]))
    sprint.add(event(1, "story_started", "A-1 starts"))
    writes.sent, waits.waits_for = 36.0, "the service's limits"
    writes.wrote(1200, 40.0)
    assert told(sprint)[:2] == [
        "A-1 executing 1 m alex answers: delivery T-1, ~1200 tokens, 20/s",
        "A-1 executing 10 s mike waits for the service's limits: breakdown",
    ]
    calls.clear()
    assert told(sprint)[:2] == ["A-1 executing 42 s A-1 starts", "1 executing"]


def test_an_analysis_has_a_line_per_stage_at_work() -> None:
    sprint, data = live(), {"stages": ["A-1", "A-2"]}
    sprint.add(Event(id="S:1", time=THEN, sprint="S", name="analysis_started", message="begins", data=data))
    sprint.add(event(1, "stage_started", "security begins"))
    assert told(sprint) == ["A-1 executing 42 s security begins", "1 executing, 1 pending"]
    sprint.add(event(1, "stage_finished", "security ended"))
    assert told(sprint) == ["1 pending, 1 done"]


def test_status_says_what_each_story_does_or_waits_for() -> None:
    at = THEN.isoformat()
    shown = {
        "sprint": "S", "running_pid": 7, "running_since": at,
        "stories": [
            {"id": name, "status": status}
            for name, status in zip("ABCDEF", ["done", *["executing"] * 3, *["pending"] * 2], strict=True)
        ],
        "waiting": [{"story": "D", "reason": "a plan", "choices": ["approve", "cancel"]}],
        "last": {"A": "A is done", "B": "installing flask", "C": "alex is asked: delivery T-1"},
        "last_at": dict.fromkeys("ABCD", at), "needs": {"E": ["B", "C"]},
        "budgets": [one.model_dump() for one in sprint_budgets(Amount(3), {"calls": 5})],
    }  # fmt: skip
    lines = screen(_table(_parse(shown, ""), THEN + timedelta(seconds=42)), 80, 24)
    assert lines[0] == f"S, running as pid 7  0:00:42  {'━' * 7}{'─' * 35}  1 of 6"
    assert [" ".join(line.split()) for line in lines[1:]] == [
        "D waiting 42 s orchestrator show D, then approve | cancel",
        "B executing 42 s installing flask",
        "C executing 42 s alex is asked: delivery T-1",
        "E pending waits for B, C",
        "F pending waits for a slot",
        "A done A is done",
        "1 waiting, 2 executing, 2 pending, 1 done",
        "spent 3 of 5 calls",
    ]


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
    while "1 waiting, 1 pending" not in shown:
        shown += os.read(master, 65536).decode(errors="replace")
    started.send_signal(signal.SIGINT)
    rest = b""
    while b"goes on where this one stopped" not in rest:
        rest += os.read(master, 65536)
    os.close(master)
    assert started.wait(60) == 130
    lines = [re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", line).strip("\r") for line in shown.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("US-1  waiting"))
    assert re.fullmatch(r"SP-001  0:00:\d\d  ─+  0 of 2", lines[first - 1])
    assert re.fullmatch(r"US-1  waiting  \d+ s  orchestrator show US-1, then approve .*", lines[first])
    assert max(len(line) for line in lines[first - 1 :]) <= 80
