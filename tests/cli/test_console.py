"""What a terminal or a pipe shows, and a reader that leaves ends nothing."""

import io
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TextIO

import pytest

from orchestrator.cli.common import say
from orchestrator.cli.console import EventPrinter
from orchestrator.cli.sprint_lines import list_lines, read_shown
from orchestrator.core.event import Event
from orchestrator.settings import load

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


def test_a_terminal_breaks_events_between_words_and_sentences_with_commands_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "40", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    printer = EventPrinter(load(None, ())[0], form="lines", stream=(stream := io.StringIO()))
    command = "Result: git -C /a/folder/of/somebody/that/is/long fetch x"
    printer.event(event(1, message="T-A-1-01 committed: shelf/errors.py, shelf/storage.py"))
    printer.say(command)
    first, *more, last = stream.getvalue().splitlines()
    assert (first.rstrip(), last) == ("00:00:00  A-1         T-A-1-01", command)
    assert [line.strip() for line in more] == ["committed: shelf/errors.py,", "shelf/storage.py"]


def test_status_on_a_terminal_tells_how_long_a_story_has_been_at_it() -> None:
    told = {
        "sprint": "S", "running_pid": 7, "last": {"A": "installing flask", "B": "B is done"},
        "last_at": {"A": THEN.isoformat(), "B": THEN.isoformat()},
        "stories": [{"id": "A", "status": "executing"}, {"id": "B", "status": "done"}],
    }  # fmt: skip
    sprint, now = read_shown(told, ""), THEN + timedelta(seconds=42)
    assert [str(line).rpartition("calls  ")[2] for line in list(list_lines(sprint, "", now).values())[1:3]] == [
        "installing flask (for 42 s)",
        "B is done",
    ]
    assert str(list_lines(sprint, "")["A"]).endswith("installing flask"), (
        "lines that are followed change with the work alone"
    )
