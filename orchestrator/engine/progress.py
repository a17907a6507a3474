"""What is under way: calls of models, for terminals, and activities, which are announced when they last."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from orchestrator.core.calls.exchange import TurnKey
from orchestrator.core.calls.progress import CallProgress, following

SLOW_S = 2.0
"""Seconds after which an activity is announced: nobody waits longer than 5 s without a word."""

Announce = Callable[[str, float | None], Awaitable[None]]
"""(what goes on, None at its begin, and at its end the seconds that it took) → recorded or shown."""


def told_end(what: str, seconds: float) -> str:
    """Returns the end of an activity for people."""
    return f"{what}: done after {seconds:.0f} s"


class CallsUnderWay:
    """The calls of a process. Iterating gives those of this moment; also in another thread."""

    def __init__(self) -> None:
        self._calls: dict[CallProgress, None] = {}

    def __iter__(self) -> Iterator[CallProgress]:
        return iter(tuple(self._calls))

    @contextmanager
    def follow(self, key: TurnKey) -> Iterator[None]:
        """The block is one request."""
        progress = CallProgress(key, time.monotonic())
        self._calls[progress] = None
        try:
            with following(progress):
                yield
        finally:
            del self._calls[progress]


class Announcer:
    """A `Listener` of core.event."""

    def __init__(self, announce: Announce, *, after_s: float = SLOW_S) -> None:
        self._announce, self._after_s = announce, after_s

    @asynccontextmanager
    async def __call__(self, what: str) -> AsyncIterator[None]:
        """Announces `what` when the block lasts. Tells no end of what was cut short: the process, or it, failed."""
        began, told = time.monotonic(), asyncio.Event()
        announcing = asyncio.create_task(self._late(what, told), name=f"activity: {what[:60]}")
        try:
            yield
        finally:
            if not told.is_set():
                announcing.cancel()
            await asyncio.gather(announcing, return_exceptions=True)
        if told.is_set():
            await self._announce(what, time.monotonic() - began)

    async def _late(self, what: str, told: asyncio.Event) -> None:
        await asyncio.sleep(self._after_s)
        told.set()
        await self._announce(what, None)
