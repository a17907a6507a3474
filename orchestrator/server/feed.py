"""The event log as many clients follow it: one looks for all of them, and a slow client holds up no other."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, NamedTuple

from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event, json_line
from orchestrator.storage.event_reader import EventReader

PAGE = 100
"""Events that are read and handed to a client at a time; nothing else is held for it."""
POLL_S = 0.1  # people watch this stream
AWAY_S = 2.0
"""Between two tries to read a database that is away."""
END_S = 1.0
"""Seconds that a look at the log gets when the feed ends."""
HEARTBEAT = b": heartbeat\n\n"
Wants = Callable[[Event], bool]


class Line(NamedTuple):
    """One event, ready to be sent."""

    event: Event
    """Without its data, for filters."""
    chunk: bytes


class Page(NamedTuple):
    """The events after a position in the log."""

    lines: tuple[Line, ...]
    place: int
    """Up to here everything was seen."""
    more: bool


class Feed:
    """Pages of the log for streams of events, and a sign when there is more.

    `in_thread` runs what blocks. While no stream is open, nothing is read.
    """

    def __init__(
        self,
        open_log: Callable[[], EventReader | None],
        in_thread: Callable[..., Coroutine[Any, Any, Any]],
        *,
        text_cap: Callable[[], int],
        poll_s: float = POLL_S,
    ) -> None:
        self._open, self._in_thread, self._text_cap, self._poll_s = open_log, in_thread, text_cap, poll_s
        self._log: EventReader | None = None
        self._head = 0
        self._pages: dict[tuple[str | None, int], asyncio.Task[Page]] = {}
        """(sprint, place) → the page that is being read: clients who ask for the same at once get the same."""
        self._poller: asyncio.Task[None] | None = None
        self._changed, self._ending = asyncio.Event(), asyncio.Event()
        self.streams = 0
        """Streams that are open."""

    @property
    def is_ending(self) -> bool:
        """Returns whether every stream is to end."""
        return self._ending.is_set()

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Counts one more stream."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    async def chunks(
        self,
        after: int,
        sprint: str | None,
        wants: Wants,
        *,
        follow: bool,
        heartbeat_s: Callable[[], float],
        tail: int | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yields everything wanted behind `after`, or the last `tail` of that, then signs of life and what comes, until
        the feed ends.

        Raises ConfigError when the log cannot be read.
        """
        if follow:
            yield HEARTBEAT  # a proxy passes the head on with the first byte behind it
        place = after
        if tail is not None:
            place = max(after, await self._in_thread(self._read_start, tail, sprint, wants))
        while True:
            ended = self._ending.is_set()  # before the look: what came by then is still sent
            page = await self.page(place, sprint)
            place = page.place
            if chunk := b"".join(line.chunk for line in page.lines if wants(line.event)):
                yield chunk
            if ended or not (page.more or follow):
                return
            if not page.more and not await self.more(place, heartbeat_s()):
                yield HEARTBEAT

    async def page(self, after: int, sprint: str | None) -> Page:
        """Returns what lies behind `after`; who asks for the same at once gets the same. Raises ConfigError."""
        key = (sprint, after)
        task = self._pages.get(key)
        if task is None:
            task = self._pages[key] = asyncio.create_task(self._in_thread(self._read, after, sprint), name="event-page")
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: tuple[str | None, int], done: "asyncio.Task[Page]") -> None:
        del self._pages[key]
        if not done.cancelled():
            done.exception()  # seen here where every client has left

    async def more(self, place: int, within_s: float) -> bool:
        """Returns whether there may be something behind `place` by then, or the feed ends. For open streams alone."""
        if self._poller is None or self._poller.done():
            self._head = place
            self._poller = asyncio.create_task(self._poll(), name="event-feed")
        changed = self._changed
        if self._head > place or self._ending.is_set():
            return True
        with suppress(TimeoutError):  # nothing new in time
            await asyncio.wait_for(changed.wait(), within_s)
        return changed.is_set()

    async def _poll(self) -> None:
        while self.streams and not self._ending.is_set():
            wait = self._poll_s
            try:
                head = await self._in_thread(self._read_head)
            except ConfigError:
                head, wait = self._head, AWAY_S
            if head != self._head:  # a smaller one: what was known is another log's
                self._head = head
                self._wake()
            with suppress(TimeoutError):  # the time is up
                await asyncio.wait_for(self._ending.wait(), wait)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _opened(self) -> EventReader | None:
        self._log = self._log or self._open()
        return self._log

    def _read_head(self) -> int:
        log = self._opened()
        return log.head() if log is not None else 0

    def _read_start(self, tail: int, sprint: str | None, wants: Wants) -> int:
        log = self._opened()
        return log.start_of_last(tail, sprint, wants) if log is not None else 0

    def _read(self, after: int, sprint: str | None) -> Page:
        log = self._opened()
        if log is None:
            return Page((), after, False)
        head = log.head()  # first: what is recorded meanwhile lies behind it
        if head < after:  # the number comes from another log
            return Page((), head, False)
        found = list(islice(log.read(sprint, after), PAGE))
        cap = self._text_cap()
        lines = tuple(Line(event.model_copy(update={"data": {}}), _chunk(seq, event, cap)) for seq, event in found)
        more = len(found) == PAGE
        return Page(lines, found[-1][0] if more else max((after, head, *(seq for seq, _ in found))), more)

    def end(self) -> None:
        """Ends every stream; no new one begins."""
        self._ending.set()
        self._wake()

    async def close(self) -> None:
        """Ends everything; a database that does not answer is waited for no longer."""
        self.end()
        tasks = [task for task in (self._poller, *self._pages.values()) if task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=END_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._log is not None:
            await asyncio.to_thread(self._log.close)


def _chunk(seq: int, event: Event, cap: int) -> bytes:
    """Returns the event as server-sent events have it."""
    line = json_line(event, cap, seq=seq)
    return f"id: {seq}\nevent: log\ndata: {line}\n\n".encode("utf-8", "replace")
