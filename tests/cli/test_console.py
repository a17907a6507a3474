"""What a terminal or a pipe shows: one line per running story, and a reader that leaves ends nothing."""

import io
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TextIO

import pytest
from rich.console import Console

from orchestrator.cli.common import say
from orchestrator.cli.console import EventPrinter
from orchestrator.cli.status import _lines, _parse
from orchestrator.core.command import GATE_OPENED
from orchestrator.core.event import Event
from orchestrator.core.exchange import Purpose, TurnKey
from orchestrator.core.progress import CALL_PROGRESS, CallProgress
from orchestrator.settings import load
from tests.cli.waiting import about_plan

THEN = datetime(2026, 1, 2, tzinfo=UTC)


def event(number: int = 1, **fields: str) -> Event:
    given = {"id": f"S/A:{number}", "name": "turn_started", "message": "alex is asked: delivery T-A-01 " * 3}
    return Event(time=THEN, sprint="S", story=f"A-{number}", **{**given, **fields})


@pytest.fixture
def unread() -> Iterator[TextIO]:
    """A stream whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        yield stream


@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_closed_pipe_ends_the_printing_and_nothing_else(unread: TextIO, form: str) -> None:
    printer = EventPrinter(load(None, ())[0], form=form, stream=unread)
    with printer:
        for number in range(3):
            printer.event(event(number))
    assert printer.closed
    if form == "plain":
        printer.say("a last sentence")
    unread.flush()  # as at exit: nothing is raised there either


def test_a_closed_stderr_changes_no_exit_code(unread: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", unread)
    say("one")
    say("two")


def test_a_waiting_story_says_in_the_table_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    printer = EventPrinter(load(None, ())[0], form="plain", stream=io.StringIO())

    def table() -> list[str]:
        shown = io.StringIO()
        Console(file=shown, width=200, color_system=None).print(printer._table(THEN))
        return [" ".join(re.sub(r"\x1b\[[0-9;]*m", "", line).split()) for line in shown.getvalue().splitlines()]

    with printer:
        gate = about_plan("A-1").model_copy(update={"number": 1})
        asks = event(1, name=GATE_OPENED).model_copy(update={"data": {"gate": gate.model_dump(mode="json")}})
        printer.event(asks)
        printer.waits("A-2", gate)
        words = "orchestrator show A-{0}, then approve | reject | edit | replan | cancel"
        both = [f"A-{number} waiting {words.format(number)}" for number in (1, 2)]
        assert table() == both
        printer.event(event(1, name="gate_settled", message="the plan is approved by anna"))
        assert table() == ["A-1 executing the plan is approved by anna", both[1]]
        finished = event(2, name="story_finished", id="S/A:9").model_copy(update={"data": {"status": "cancelled"}})
        printer.event(finished)
        assert len(table()) == 1


def test_what_lasts_is_told_with_its_time_in_the_table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    printer = EventPrinter(load(None, ())[0], form="plain", stream=stream)

    def table(after_s: int) -> list[str]:
        shown = io.StringIO()
        now = THEN + timedelta(seconds=after_s)
        Console(file=shown, width=200, color_system=None).print(printer._table(now))
        return [" ".join(line.split()) for line in shown.getvalue().splitlines()]

    with printer:
        tries = Event(id="S:1", time=THEN, sprint="S", name="activity_begun", message="installing flask")
        printer.event(tries)
        assert table(3) == ["S executing installing flask"]
        assert table(65) == ["S executing installing flask (1 m)"]
        printer.event(tries.model_copy(update={"id": "S:2", "name": "base_tried", "message": "its tests pass"}))
        printer.event(event(1, name="activity_begun", message="running the whole suite"))
        assert table(42) == ["A-1 executing running the whole suite (42 s)"]
        call = CallProgress(TurnKey(persona="alex", story="A-1", purpose=Purpose.DELIVERY), monotonic() - 65)
        printer.watch([call])
        assert table(42) == ["A-1 executing alex waits to be asked: delivery (1 m)"]
        call.wrote(1200, monotonic() - 60)
        call.sent = call.first
        assert table(42) == ["A-1 executing alex answers: delivery, about 1200 tokens, 20 a second (1 m)"]
        printed = stream.getvalue()
        printer.event(event(1, name=CALL_PROGRESS, message="alex answers"))
        assert stream.getvalue() == printed, "a line each 20 seconds is for who sees no table"
    plain = EventPrinter(load(None, ())[0], form="lines", stream=(lines := io.StringIO()))
    plain.event(event(1, name="activity_begun", message="running the whole suite"))
    plain.event(event(1, name=CALL_PROGRESS, message="alex answers"))
    shown = [line.split(maxsplit=1)[1] for line in lines.getvalue().splitlines()]
    assert shown == ["A-1         running the whole suite", "A-1         alex answers"]


def test_status_on_a_terminal_tells_how_long_a_story_has_been_at_it() -> None:
    told = {
        "sprint": "S", "running_pid": 7, "last": {"A": "installing flask", "B": "B is done"},
        "last_at": {"A": THEN.isoformat(), "B": THEN.isoformat()},
        "stories": [{"id": "A", "status": "executing"}, {"id": "B", "status": "done"}],
    }  # fmt: skip
    sprint, now = _parse(told, ""), THEN + timedelta(seconds=42)
    assert [str(line).rpartition("calls  ")[2] for line in list(_lines(sprint, "", now).values())[1:3]] == [
        "installing flask (for 42 s)",
        "B is done",
    ]
    calling = _parse({**told, "calls_under_way": {"A": {"tokens": 7}}}, "")
    assert str(_lines(calling, "", now)["A"]).endswith("installing flask"), "what is told of a call has its time in it"
    assert str(_lines(sprint, "")["A"]).endswith("installing flask"), (
        "lines that are followed change with the work alone"
    )


def test_the_live_table_has_one_line_per_story_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    printer = EventPrinter(load(None, ())[0], form="plain", stream=io.StringIO())
    with printer:
        printer.event(event(1))
        printer.event(event(2))
        shown = io.StringIO()
        Console(file=shown, width=30).print(printer._table())
    lines = shown.getvalue().splitlines()
    assert len(lines) == 2
    assert [line.split()[0] for line in lines] == ["A-1", "A-2"]
    assert all("…" in line for line in lines)
