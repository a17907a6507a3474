"""The calls of a process that are under way; what lasts is told in the log from time to time."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from orchestrator.core.calls.exchange import TurnKey
from orchestrator.core.calls.progress import CALL_PROGRESS, CallProgress, following
from orchestrator.core.event import Event
from orchestrator.core.ports import EventSink

TELL_S = 20.0
"""Seconds between two words on a call that lasts: enough to see that it lives, and few rows in the log."""


class CallsUnderWay:
    """Iterating gives those of this moment; also in another thread."""

    def __init__(self, *, every_s: float = TELL_S) -> None:
        self._every_s = every_s
        self._calls: dict[CallProgress, None] = {}

    def __iter__(self) -> Iterator[CallProgress]:
        return iter(tuple(self._calls))

    @asynccontextmanager
    async def follow(
        self, key: TurnKey, sink: EventSink, name: str, here: Callable[[], Mapping[str, Any]]
    ) -> AsyncIterator[None]:
        """The block is one request, called `name` in ids of events; `here` is what all events of its story have."""
        progress, telling = CallProgress(key, time.monotonic()), list[asyncio.Task[None]]()

        def begin() -> None:
            telling.append(asyncio.create_task(tell(), name=f"progress of {name}"))

        async def tell() -> None:
            waited = False
            while True:
                waits = progress.sent is None
                if not (waits and waited):  # a wait is told once: a story may be paused for days
                    event = make_event(waits=waits)
                    await sink.emit(event)
                waited = waits
                await asyncio.sleep(self._every_s)

        def make_event(*, waits: bool) -> Event:
            now, common = time.monotonic(), here()
            lasts = now - progress.began
            return Event(
                # Of its own, as of activities: a step that is begun again after a crash tells of it again.
                id=f"{name}:{common['time'].isoformat()}",
                name=CALL_PROGRESS,
                message=f"{progress.told(now)} ({lasts:.0f} s)",
                persona=key.persona,
                task=key.task,
                data={
                    "purpose": key.purpose,
                    "waits": waits,
                    "tokens": progress.tokens,
                    "tokens_per_s": progress.per_s(now),
                    "duration_ms": round(lasts * 1000),
                },
                **common,
            )

        self._calls[progress] = None
        # Most calls are over before: a timer costs them less than a task.
        timer = asyncio.get_running_loop().call_later(self._every_s, begin)
        try:
            with following(progress):
                yield
        finally:
            timer.cancel()
            for task in telling:
                task.cancel()
            await asyncio.gather(*telling, return_exceptions=True)
            del self._calls[progress]
