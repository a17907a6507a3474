"""Keeps the head and the tail of a stream of bytes that may be far too long."""

from collections import deque


class CappedOutput:
    """Feed it chunks; it holds at most `kept` bytes (plus one chunk) and counts all that came."""

    def __init__(self, kept: int) -> None:
        self._head_room = kept // 2
        self._tail_room = kept - kept // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.total += len(chunk)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """What was kept, as UTF-8 with bad bytes replaced; a line in the middle says how much is missing."""
        tail = b"".join(self._tail)[-self._tail_room :] if self._tail else b""
        missing = self.total - len(self._head) - len(tail)
        if missing <= 0:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        gap = f"\n[... {missing} bytes left out ...]\n"
        # A cut inside a character would show as replacement marks that the command never printed.
        return bytes(self._head).decode("utf-8", "ignore") + gap + tail.decode("utf-8", "ignore")
