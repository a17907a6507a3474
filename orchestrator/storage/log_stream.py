"""The log of a process that runs for months: JSON lines on a stream, written by a thread of its own."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from logging.handlers import QueueListener
from queue import Full, Queue
from threading import Thread
from typing import TextIO

from orchestrator.core.event import Event, Level, json_line
from orchestrator.core.secrets import secrets_of
from orchestrator.settings.model import LogSettings

ROOM = 2000
"""Lines that wait: a few seconds of a burst, and no more memory than that."""
PLATFORM_IDS = ("DEPLOYMENT_ID", "REPLICA_ID", "SERVICE_NAME", "ENVIRONMENT_NAME", "GIT_COMMIT_SHA")
"""Variables RAILWAY_… that each line ends with, in lower case."""


class LogStream:
    """Prints events in order; `event` never waits. While nobody reads, lines beyond ROOM are left out."""

    def __init__(self, stream: TextIO, log: LogSettings, variables: Mapping[str, str]) -> None:
        self._level = Level(log.level)
        self._waiting: Queue[logging.LogRecord | None] = Queue(ROOM)
        self._listener = _Listener(self._waiting, _Lines(stream, log, variables))
        self._listener.start()

    def event(self, event: Event) -> None:
        """Has an event printed if its level is wanted; from any thread."""
        if event.level.rank >= self._level.rank:
            with suppress(Full):
                self._waiting.put_nowait(logging.makeLogRecord({"told": event}))

    def close(self, timeout_s: float) -> None:
        """Prints what waits, for so long at most. Blocks."""
        # Beside us, because a reader who is stuck would keep the listener, and whoever waits for it, for ever.
        ending = Thread(target=self._listener.stop, daemon=True)
        ending.start()
        ending.join(timeout_s)


class _Listener(QueueListener):
    queue: Queue[logging.LogRecord | None]

    def enqueue_sentinel(self) -> None:
        """Part of logging. Waits where no place is free."""
        self.queue.put(None)


class _Lines(logging.StreamHandler[TextIO]):
    """Formats events, which is work for the thread of the listener."""

    def __init__(self, stream: TextIO, log: LogSettings, variables: Mapping[str, str]) -> None:
        super().__init__(stream)
        ids = {name.lower(): variables.get(f"RAILWAY_{name}", "").strip()[:200] for name in PLATFORM_IDS}
        self._ids = {name: value for name, value in ids.items() if value}
        self._cap, self._secrets = log.text_cap, secrets_of(variables)

    def format(self, record: logging.LogRecord) -> str:
        """Part of logging."""
        return json_line(record.__dict__["told"], self._cap, more=self._ids, known=self._secrets)

    def handleError(self, record: logging.LogRecord) -> None:
        """Part of logging. A reader that has gone, or a full disk, ends nothing else."""
