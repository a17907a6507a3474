"""One connection: its client has to ask in time and to read what it is sent; else it is cut off."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True)
class Patience:
    """How long a client is waited for, in seconds."""

    head_s: float = 20.0
    """For the head of a request, from the connection or the first byte of it on."""
    stuck_s: float = 60.0
    """Until it reads something of what waits for it."""
    look_s: float = 1.0
    """Between two looks at both."""


class Connection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with limits for clients that hold connections for nothing."""

    def __init__(self, *args: Any, patience: Patience, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._patience = patience
        self._asked_since: float | None = None
        self._stuck_since: float | None = None
        self._unread = 0
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Part of asyncio.Protocol."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            transport.abort()  # one that asks nothing takes a descriptor too, and the work needs those that are left
            return
        self._asked_since = time.monotonic()
        self._look = self.loop.call_later(self._patience.look_s, self._judge)

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio.Protocol."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        super().data_received(data)
        # A head that has begun and is not whole: nobody is at work on a request, and the parser holds a part of one.
        waits = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        self._asked_since = (self._asked_since or time.monotonic()) if waits else None

    def _judge(self) -> None:
        """Cut off who is late. A client that reads slowly is none: it reads something between two looks."""
        now, unread = time.monotonic(), self.transport.get_write_buffer_size()
        progress = unread == 0 or unread < self._unread
        self._stuck_since = None if progress else self._stuck_since or now
        self._unread = unread
        asked_late = self._asked_since is not None and now - self._asked_since > self._patience.head_s
        stuck = self._stuck_since is not None and now - self._stuck_since > self._patience.stuck_s
        if asked_late or stuck:
            self.transport.abort()
            return
        self._look = self.loop.call_later(self._patience.look_s, self._judge)
