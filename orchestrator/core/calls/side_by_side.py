"""Works of one workflow side by side, whose durable steps begin in one order however long each takes.

A workflow that is resumed finds the results of its steps by their numbers, so these may not depend on who was answered
first. Of works side by side one goes on at a time, in turn; what overlaps is the time in which their steps are awaited.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class _Turns:
    """Whose turn it is."""

    def __init__(self, count: int) -> None:
        self._order, self._moved = deque(range(count)), asyncio.Condition()
        self.on_pass: Callable[[], None] = lambda: None

    async def wait(self, number: int) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._order[0] == number)

    async def pass_on(self, *, ends: bool = False) -> None:
        self.on_pass()
        async with self._moved:
            number = self._order.popleft()
            if not ends:
                self._order.append(number)
            self._moved.notify_all()


_place: ContextVar[tuple[_Turns, int] | None] = ContextVar("place", default=None)


async def side_by_side(works: Sequence[Awaitable[T]]) -> list[T]:
    """Returns the results in order. All end before the first error, in order, is raised."""
    turns = _Turns(len(works))

    async def run(number: int, work: Awaitable[T]) -> T:
        _place.set((turns, number))
        await turns.wait(number)
        try:
            return await work
        finally:
            await turns.pass_on(ends=True)

    found = await asyncio.gather(*(run(number, work) for number, work in enumerate(works)), return_exceptions=True)
    results = list[T]()
    for one in found:
        if isinstance(one, BaseException):
            raise one
        results.append(one)
    return results


@asynccontextmanager
async def step_awaited(on_pass: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    """Lets the others go on while a step, whose number is drawn already, is awaited; then waits for the next turn.

    `on_pass` is called whenever one of the works stops working, also at its end.
    """
    place = _place.get()
    if place is None:
        yield
        return
    turns, number = place
    turns.on_pass = on_pass
    await turns.pass_on()
    try:
        yield
    finally:
        await turns.wait(number)
