"""What a terminal or a pipe shows: one line per running story, and a reader that leaves ends nothing."""

import io
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TextIO

import pytest
from rich.console import Console

from orchestrator.cli.common import say
from orchestrator.cli.console import EventPrinter
from orchestrator.domain.events import Event
from orchestrator.settings import load


def event(number: int = 1, **fields: str) -> Event:
    given = {"id": f"S/A:{number}", "name": "turn_started", "message": "alex is asked: delivery T-A-01 " * 3}
    return Event(time=datetime(2026, 1, 2, tzinfo=UTC), sprint="S", story=f"A-{number}", **{**given, **fields})


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
