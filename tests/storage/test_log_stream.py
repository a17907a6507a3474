"""What the daemon prints its log with, on real pipes: read, not read, gone."""

import asyncio
import json
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from orchestrator.core.event import Event, Level
from orchestrator.settings.model import LogSettings
from orchestrator.storage.log_stream import ROOM, LogStream


def event(number: int = 0, level: Level = Level.INFO, **fields: Any) -> Event:
    given = {"id": str(number), "name": "x", "message": f"m{number}", "sprint": "S", "level": level}
    return Event(time=datetime(2026, 1, 2, tzinfo=UTC), **{**given, **fields})


def test_lines_are_printed_with_the_platforms_ids_and_without_the_processs_secrets() -> None:
    reader, writer = os.pipe()
    variables = {"RAILWAY_REPLICA_ID": "r-1", "RAILWAY_GIT_COMMIT_SHA": " ", "OUR_TOKEN": "open-sesame-42"}
    with os.fdopen(writer, "w") as out:
        stream = LogStream(out, LogSettings(level="info", text_cap=100), variables)
        stream.event(event(1, message="say open-sesame-42"))
        stream.event(event(2, Level.DEBUG))
        stream.event(event(3, message="m" * 200))
        stream.close(10)
    with os.fdopen(reader) as lines:
        first, last = (json.loads(line) for line in lines)
    assert first == {
        "timestamp": "2026-01-02T00:00:00Z", "level": "info", "message": "say [redacted]", "event": "x",
        "sprint": "S", "replica_id": "r-1",
    }  # fmt: skip
    assert last["message"] == "m" * 100 + "… (100 more characters)"


def test_nobody_waits_for_a_reader_who_is_stuck_or_has_gone() -> None:
    reader, writer = os.pipe()
    out = os.fdopen(writer, "w")
    stream = LogStream(out, LogSettings(level="debug"), {})

    async def tell() -> None:
        for number in range(ROOM + 3000):  # on a loop, where a blocking call would be an error of the test
            stream.event(event(number, message=f"m{number} " + "y" * 300))

    asyncio.run(tell())
    begun = time.monotonic()
    stream.close(0.1)
    assert time.monotonic() - begun < 5
    os.close(reader)
    stream.close(10)
    with suppress(BrokenPipeError):  # what is buffered is for nobody
        out.close()
