"""The order in which one process merges the stories of a sprint: each is tested on top of those before it."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False, slots=True)
class Place:
    """A story in the line, with its merge on top of those before it."""

    onto: str | None = None
    """The commit that its merge was built on; None while it has to be built, for the first time or again."""
    commit: str = ""
    """The merge; "" for a conflict, which those behind it leave out."""


class MergeQueue:
    """Decides which commit each merge is built on, and which merge may become the result: the first of the line, if it
    was built on the result. So whatever becomes the result is a commit that was tested.

    A merge stands while its place has `onto`. When one before it leaves the line without being merged, or the result
    moves otherwise, all that were built on something else have to be built and tested again.
    """

    def __init__(self) -> None:
        self._line: list[Place] = []
        self._result = ""
        self._changed = asyncio.Event()

    @contextmanager
    def joined(self) -> Iterator[Place]:
        """Yields a place at the end of the line, which is left at the end of the block."""
        place = Place()
        self._line.append(place)
        try:
            yield place
        finally:
            if place in self._line:
                self._line.remove(place)
                self._settle()

    def is_first(self, place: Place) -> bool:
        """Returns whether nothing is before it: its merge, if it stands, was built on the result."""
        return self._line[0] is place

    def onto(self, place: Place) -> str | None:
        """Returns the commit to build its merge on; None while one before it has to be built."""
        onto = self._result
        for other in self._line[: self._line.index(place)]:
            if other.onto is None:
                return None
            onto = other.commit or onto
        return onto

    def build(self, place: Place, onto: str, commit: str) -> None:
        """Takes its merge with `onto`, unless that is not what it has to be built on any more."""
        if self.onto(place) == onto:
            place.onto, place.commit = onto, commit
            self._settle()

    def merge(self, place: Place) -> None:
        """Its merge has become the result."""
        self._line.remove(place)
        self.move(place.commit)

    def move(self, result: str) -> None:
        """The result branch is at this commit."""
        self._result = result
        self._settle()

    def _settle(self) -> None:
        onto: str | None = self._result
        for place in self._line:
            if place.onto != onto:
                place.onto = None
            onto = None if place.onto is None else place.commit or onto
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits for something that a change of the line brings about."""
        while not holds():
            await self._changed.wait()

    async def run(self, place: Place, work: Coroutine[Any, Any, None]) -> None:
        """Runs `work` to its end, or until the merge does not stand any more."""
        running = asyncio.ensure_future(work)
        fallen = asyncio.ensure_future(self.until(lambda: place.onto is None))
        try:
            await asyncio.wait({running, fallen}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            running.cancel()
            fallen.cancel()
            await asyncio.gather(running, fallen, return_exceptions=True)
