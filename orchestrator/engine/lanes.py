"""How many may be at it side by side, as settings have it that change while people wait in line."""

import asyncio
from collections import deque
from types import TracebackType


class Lanes:
    """`async with lanes:` is at most `at_once` times entered at any moment, in the order of asking."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._inside = 0
        self._line: deque[asyncio.Future[None]] = deque()

    def resize(self, at_once: int) -> None:
        """Another number from now on: whoever is inside stays, also where they are too many now."""
        self._at_once = at_once
        self._let_in()

    async def __aenter__(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was let in, and will not come
                self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._line and self._inside < self._at_once:
            turn = self._line.popleft()
            if not turn.cancelled():
                self._inside += 1
                turn.set_result(None)
