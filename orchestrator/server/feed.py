"""The event log as many clients follow it: one looks for all of them, nobody's slowness is anybody else's."""

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, NamedTuple, Protocol

from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event, json_line

PAGE = 100
"""Events that are read and handed to a client at a time; nothing else is held for it."""
RING = 2000
"""So many of the last events are kept for all clients together, up to twice as many."""
PAGES = 64
"""Full pages of the past that are kept for clients that come back all at once."""
PAGES_S = 10.0
"""Seconds for which they are kept; what is pruned meanwhile is told for so long."""
POLL_S = 0.25
AWAY_S = 2.0
"""Between two tries to read a database that is away."""
END_S = 1.0
"""Seconds that a look at the log gets when the feed ends."""
HEARTBEAT = b": heartbeat\n\n"
Wants = Callable[[Event], bool]


class Log(Protocol):
    """The event log (`wiring.read.Reader.log`)."""

    def head(self) -> int:
        """Number of the last event."""

    def read(self, sprint: str | None = None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Events behind a number, in order."""

    def close(self) -> None:
        """Let go of it."""


class Line(NamedTuple):
    """One event, ready to be sent."""

    seq: int
    event: Event
    """Without its data, for filters."""
    chunk: bytes


class Page(NamedTuple):
    """What lies behind a place in the log."""

    lines: tuple[Line, ...]
    place: int
    """Up to here everything was seen."""
    more: bool


class Feed:
    """Pages of the log for streams of events, and a sign when there is more.

    `in_thread` runs what blocks. While nobody follows, nothing is read.
    """

    def __init__(
        self,
        open_log: Callable[[], Log | None],
        in_thread: Callable[..., Coroutine[Any, Any, Page]],
        *,
        text_cap: Callable[[], int],
        poll_s: float = POLL_S,
    ) -> None:
        self._open, self._in_thread, self._text_cap, self._poll_s = open_log, in_thread, text_cap, poll_s
        self._log: Log | None = None
        self._ring: list[Line] = []
        self._from = self._head = 0
        """The ring holds every event behind `_from` up to `_head`; nothing while nobody looks."""
        self._pages: OrderedDict[tuple[str | None, int], asyncio.Task[Page]] = OrderedDict()
        self._pages_until = 0.0
        self._poller: asyncio.Task[None] | None = None
        self._changed, self._ending = asyncio.Event(), asyncio.Event()
        self.streams = 0
        """Streams that are open."""
        self.ended = False

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Count one more stream."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1
            if not self.streams:
                self._drop_pages()

    async def chunks(
        self, after: int, sprint: str | None, wants: Wants, *, follow: bool, heartbeat_s: Callable[[], float]
    ) -> AsyncGenerator[bytes]:
        """Everything wanted behind `after`, then signs of life and what comes, until the feed ends.

        Raises ConfigError when the log cannot be read.
        """
        if follow:
            yield HEARTBEAT  # a proxy hands the head on with the first byte behind it
        page = Page((), after, True)
        while not self.ended:
            page = await self.page(page.place, sprint)
            if chunk := _wanted(page, wants):
                yield chunk
            if page.more:
                continue
            if not follow:
                return
            if not await self._more(page.place, heartbeat_s()):
                yield HEARTBEAT
        page = await self._past(page.place, sprint)  # what came since the last look
        if chunk := _wanted(page, wants):
            yield chunk

    async def page(self, after: int, sprint: str | None) -> Page:
        """What lies behind `after`: from memory where all clients are, else from the log."""
        if self._polls() and self._from <= after:
            start = bisect_right(self._ring, after, key=lambda line: line.seq)
            found = self._ring[start : start + PAGE]
            lines = tuple(line for line in found if sprint in {None, line.event.sprint})
            return Page(lines, found[-1].seq if found else max(after, self._head), len(found) == PAGE)
        return await self._past(after, sprint)

    async def _past(self, after: int, sprint: str | None) -> Page:
        """From the log; those who ask for the same at once get the same."""
        now = asyncio.get_running_loop().time()
        if now >= self._pages_until:
            self._drop_pages()
            self._pages_until = now + PAGES_S
        key = (sprint, after)
        task = self._pages.get(key)
        if task is None:
            task = self._pages[key] = asyncio.create_task(self._in_thread(self._read, after, sprint), name="event-page")
            task.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(task)

    def _drop_pages(self) -> None:
        self._pages = OrderedDict((key, task) for key, task in self._pages.items() if not task.done())

    def _keep(self, key: tuple[str | None, int], done: asyncio.Task[Page]) -> None:
        """A full page never changes; others are asked for anew."""
        if done.cancelled() or done.exception() is not None or not done.result().more:
            self._pages.pop(key, None)
        while len(self._pages) > PAGES:
            self._pages.popitem(last=False)

    async def _more(self, place: int, within_s: float) -> bool:
        """Whether there is something behind `place` by then; True also when the feed ends."""
        if self.ended:
            return True
        if not self._polls():
            self._begin(place)
            self._poller = asyncio.create_task(self._poll(), name="event-feed")
        changed = self._changed
        if self._head > place:
            return True
        try:
            await asyncio.wait_for(changed.wait(), within_s)
        except TimeoutError:
            return False
        return True

    async def _poll(self) -> None:
        while self.streams and not self.ended:
            try:
                page = await self._in_thread(self._read, self._head, None)
            except ConfigError:
                await self._sleep(AWAY_S)
                continue
            self._take(page)
            if not page.more:
                await self._sleep(self._poll_s)
        self._poller = None
        self._begin(0)

    def _polls(self) -> bool:
        return self._poller is not None and not self._poller.done()

    def _begin(self, place: int) -> None:
        self._from = self._head = place
        self._ring = []

    def _take(self, page: Page) -> None:
        if page.place < self._head:  # a backup was restored: what was known is another log's
            self._begin(page.place)
        self._ring += page.lines
        self._head = page.place
        if len(self._ring) > 2 * RING:
            self._from = self._ring[-RING - 1].seq
            del self._ring[:-RING]
        if page.lines:
            self._tell()

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _read(self, after: int, sprint: str | None) -> Page:
        """A page of the log. Blocks."""
        log = self._log or self._open()
        if log is None:
            return Page((), after, False)
        self._log = log
        head = log.head()  # first: what is recorded meanwhile lies behind it
        if head < after:  # the number comes from a log that was there before a backup was restored
            return Page((), head, False)
        found = list(islice(log.read(sprint, after), PAGE))
        cap = self._text_cap()
        lines = tuple(Line(seq, event.model_copy(update={"data": {}}), _chunk(seq, event, cap)) for seq, event in found)
        more = len(lines) == PAGE
        return Page(lines, lines[-1].seq if more else max((after, head, *(line.seq for line in lines))), more)

    def end(self) -> None:
        """Every stream ends, and no new one begins."""
        self.ended = True
        self._ending.set()
        self._tell()

    async def close(self) -> None:
        """Nothing of it is at work any more; a database that does not answer is waited for no longer."""
        self.end()
        tasks = [task for task in (self._poller, *self._pages.values()) if task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=END_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._log is not None:
            await asyncio.to_thread(self._log.close)


def _wanted(page: Page, wants: Wants) -> bytes:
    return b"".join(line.chunk for line in page.lines if wants(line.event))


def _chunk(seq: int, event: Event, cap: int) -> bytes:
    """The event as server-sent events have it."""
    line = json_line(event, cap, seq=seq)
    return f"id: {seq}\nevent: log\ndata: {line}\n\n".encode("utf-8", "replace")
