"""What the daemon prints its log with, on real pipes: read, read late, not read, gone."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from orchestrator.core.event import Event, Level
from orchestrator.settings.model import LogSettings
from orchestrator.storage.log_stream import HELD_BACK, RESERVED, ROOM, LogStream

FAST = LogSettings(lines_per_s=100_000, level="debug")


def event(number: int = 0, level: Level = Level.INFO, **fields: Any) -> Event:
    given = {"id": str(number), "name": "x", "message": f"m{number}", "sprint": "S", "level": level}
    return Event(time=datetime(2026, 1, 2, tzinfo=UTC), **{**given, **fields})


class Pipe(NamedTuple):
    reader: int
    writer: int

    def lines(self) -> list[dict[str, Any]]:
        """Everything that is written until the writer is closed."""
        with os.fdopen(os.dup(self.reader), "rb") as stream:
            return [json.loads(line) for line in stream]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe(*os.pipe())
    yield made
    for fd in made:
        with suppress(OSError):  # a test has closed it
            os.close(fd)


def test_lines_are_printed_with_the_platforms_ids_and_without_the_processs_secrets(pipe: Pipe) -> None:
    variables = {"RAILWAY_REPLICA_ID": "r-1", "RAILWAY_GIT_COMMIT_SHA": " ", "OUR_TOKEN": "open-sesame-42"}
    stream = LogStream(pipe.writer, LogSettings(level="info"), variables)
    stream.event(event(1, message="say open-sesame-42"))
    stream.event(event(2, Level.DEBUG))
    stream.configure(LogSettings(level="debug", text_cap=100))
    stream.event(event(3, Level.DEBUG, message="m" * 200, sprint=""))
    stream.close(10)
    stream.event(event(4))
    os.close(pipe.writer)
    first, last = pipe.lines()
    assert first == {
        "timestamp": "2026-01-02T00:00:00Z", "level": "info", "message": "say [redacted]", "event": "x",
        "sprint": "S", "replica_id": "r-1",
    }  # fmt: skip
    assert (last["level"], last["message"]) == ("debug", "m" * 100 + "… (100 more characters)")


def test_nobody_waits_for_a_reader_who_is_stuck_and_each_line_is_printed_or_counted(pipe: Pipe) -> None:
    stream = LogStream(pipe.writer, FAST, {})
    levels, total = list(Level), ROOM + 3000

    async def tell() -> None:
        for number in range(total):  # on a loop, where a blocking call would be an error of the test
            stream.event(event(number, levels[number % 4], message=f"m{number} " + "y" * 300))

    asyncio.run(tell())
    read: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: read.extend(pipe.lines()))
    reader.start()
    stream.close(60)
    os.close(pipe.writer)
    reader.join()
    gaps = [line for line in read if line["event"] == HELD_BACK]
    printed = [line for line in read if line["event"] == "x"]
    assert len(printed) >= ROOM - RESERVED
    assert len(printed) + sum(gap["held_back"] for gap in gaps) == total
    assert all(gap["level"] == "warn" for gap in gaps)
    lost = {level: sum(gap["by_level"].get(level, 0) for gap in gaps) for level in ("debug", "error")}
    assert lost["error"] < lost["debug"]
    numbers = [int(line["message"].split()[0][1:]) for line in printed]
    assert numbers == sorted(numbers)


def test_no_second_holds_more_lines_than_are_allowed_and_the_end_counts_the_rest(pipe: Pipe) -> None:
    stream = LogStream(pipe.writer, LogSettings(lines_per_s=3, level="debug"), {})
    for number in range(7):
        stream.event(event(number))
    stream.close(1.5)
    os.close(pipe.writer)
    *printed, last = pipe.lines()
    assert [line["message"] for line in printed] == [f"m{number}" for number in range(6)]
    assert (last["event"], last["held_back"], last["by_level"]) == (HELD_BACK, 1, {"info": 1})


def test_an_end_with_a_stuck_reader_comes_in_time(pipe: Pipe) -> None:
    stream = LogStream(pipe.writer, FAST, {})
    for number in range(1000):
        stream.event(event(number, message="m" * 500))
    stream.close(0.0)
    assert not stream._thread.is_alive()
    stream.close(0.0)


def test_a_reader_that_leaves_ends_the_printing_and_nothing_else(pipe: Pipe) -> None:
    stream = LogStream(pipe.writer, FAST, {})
    os.close(pipe.reader)
    stream.event(event())
    stream._thread.join(10)
    assert stream.closed
    stream.event(event())
    stream.close(10)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_ends_nothing() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    stream = LogStream(fd, FAST, {})
    stream.event(event())
    stream.close(0.3)
    os.close(fd)
    assert not stream.closed
    assert not stream._thread.is_alive()
