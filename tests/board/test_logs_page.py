"""The page of the log: its addresses, without gap or double, and nothing that a line says is markup."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.board import logs
from orchestrator.board.templates import render
from orchestrator.core.event import Event, Level
from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import load
from tests.board.past import FIRST_DAY, keep, make_record
from tests.support import plain_environment

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e</td></table>"
LEVELS = (Level.DEBUG, Level.INFO, Level.WARN, Level.ERROR)
COUNT = 700


def make_event(number: int) -> Event:
    """The log's line `number`: stories and levels in turn."""
    return Event(
        id=f"SP-001/US-{number % 3 + 1}:{number}", time=FIRST_DAY + timedelta(minutes=number),
        level=LEVELS[number % 4], name="noted", message=f"line {number}", sprint="SP-001",
        story=f"US-{number % 3 + 1}", task=f"T-US-{number % 3 + 1}-01", persona="alex" if number % 5 else "mike",
    )  # fmt: skip


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = tmp_path_factory.mktemp("logs")
    _, environment = load(None, (), plain_environment(ORCHESTRATOR_HOME=str(folder / "state")), folder)
    events = [make_event(number) for number in range(1, COUNT + 1)]
    events[-1] = events[-1].model_copy(update={"message": HOSTILE, "task": HOSTILE, "level": Level.ERROR})
    asyncio.run(keep(environment, make_record(1, 3), events, report=False))
    return Reader(environment)


def show(reader: Reader, most_read: int = logs.MOST_READ, **given: str) -> dict[str, Any]:
    return logs.values(reader, given, level=Level.INFO, text_cap=500, most_read=most_read)


def numbers(shown: dict[str, Any]) -> list[int]:
    return [line["seq"] for line in shown["lines"]]


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({}, lambda n: n % 4 != 0),
        ({"level": "debug"}, lambda n: True),
        ({"story": "US-2", "level": "warn"}, lambda n: n % 3 == 1 and n % 4 >= 2),
        ({"persona": "mike", "sprint": "SP-001"}, lambda n: n % 5 == 0 and n % 4 != 0),
        ({"since": "2026-03-01T19:00", "level": "debug"}, lambda n: n >= 600),
        ({"task": "T-US-3-01"}, lambda n: n % 3 == 2 and n % 4 != 0),
        ({"story": "US-9"}, lambda n: False),
    ],
)  # fmt: skip
def test_the_links_to_older_lines_lead_through_the_whole_log_once(
    reader: Reader, given: dict[str, str], fits: Any
) -> None:
    found: list[int] = []
    shown = show(reader, **given)
    assert (shown["follows"], shown["place"]) == (True, COUNT)
    while True:
        assert len(shown["lines"]) == logs.MOST_LINES or shown["older"] is None
        found = [*numbers(shown), *found]
        if shown["older"] is None:
            break
        shown = show(reader, before=str(shown["older"]), **given)
        assert not shown["follows"]
    wanted = [number for number in range(1, COUNT) if fits(number)]
    assert [number for number in found if number != COUNT] == wanted


def test_a_look_ends_after_so_many_events_and_goes_on_from_there(reader: Reader) -> None:
    shown = show(reader, most_read=100, persona="mike", level="error")
    assert (shown["is_partial"], shown["older"], numbers(shown)) == (True, 601, [*range(615, 700, 20), 700])
    further = show(reader, most_read=100, persona="mike", level="error", before=str(shown["older"]))
    assert (further["is_partial"], further["older"], numbers(further)) == (True, 501, [*range(515, 600, 20)])


def test_a_moment_stands_among_the_lines_around_it(reader: Reader) -> None:
    shown = show(reader, at="301", level="debug")
    assert numbers(shown) == [*range(201, 401)]
    assert (shown["follows"], shown["older"], shown["newer"]) == (False, 201, 400)
    html = render("logs.html", shown)
    assert re.findall(r'<tr id="L(\d+)"[^>]*aria-current', html) == ["301"]
    assert 'href="/logs?level=debug&amp;at=301#L301"' in html
    assert 'href="/logs?level=debug">The newest' in html
    assert 'href="/logs">The newest' in render("logs.html", show(reader, at="301"))
    assert "is not among those that fit" in render("logs.html", show(reader, at="304"))  # a line of level debug


def test_a_filter_that_means_nothing_is_told_at_its_field(reader: Reader) -> None:
    shown = show(reader, sprint="SP-01", level="loud", since="noon", at="x", before="-1")
    assert shown["problems"] == {
        "sprint": "unknown sprint SP-01; did you mean SP-001?",
        "level": "a level is one of debug, info, warn, error",
        "since": "a time is written as 2026-03-01T12:30",
        "at": "at is the number of a line",
        "before": "before is the number of a line",
    }
    assert (shown["lines"], shown["follows"]) == ([], False)
    html = render("logs.html", shown)
    for name in ("sprint", "level", "since"):
        assert f'aria-describedby="problem-{name}"' in html


def test_times_and_numbers_that_no_log_has_are_no_fault(reader: Reader) -> None:
    for since in ("0001-01-01T00:00", "0001-01-01T00:00+23:00"):
        assert len(show(reader, since=since)["lines"]) == logs.MOST_LINES
    assert "since" in show(reader, since="9999-12-31T23:59-23:00")["problems"]
    assert "at" in show(reader, at="9" * 5000)["problems"]


def test_what_a_line_says_is_never_markup(reader: Reader) -> None:
    html = render("logs.html", show(reader, sprint="SP-001", story='"><script>', task="T", persona="p"))
    assert "<script>" not in html.replace('<script type="module"', "")
    html = render("logs.html", show(reader, level="error"))
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert '<td class="message said">' in html


def test_the_stream_goes_on_where_the_page_ends(reader: Reader) -> None:
    shown = show(reader, sprint="SP-001", persona="mike", since="2026-03-01T10:00:00+01:00")
    assert shown["stream"] == (
        "/api/v1/events?sprint=SP-001&persona=mike&level=info&since=2026-03-01T10%3A00%3A00%2B01%3A00&after=700"
    )
    assert shown["fields"]["since"] == "2026-03-01T09:00:00"
