"""The order in which one process merges the stories of a sprint: each is tested on top of those before it."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
KEPT_S = 30.0
"""Seconds for which a tested story keeps its place: its own next steps take less, a person may take days."""


@dataclass(eq=False, slots=True)
class Place:
    """A story in the line, with its merge on top of those before it."""

    story: str
    head: str
    """The commit of its branch."""
    onto: str | None = None
    """The commit that its merge was built on; None while it has to be built, for the first time or again."""
    commit: str = ""
    """The merge; "" for a conflict, which those behind it leave out."""
    kept: asyncio.TimerHandle | None = None
    """Ends the place, unless its story comes back before; None while the story is at work on its merge."""


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
    def joined(self, story: str, head: str) -> Iterator[Place]:
        """Yields the place that the story kept for this commit, else one at the end of the line.

        It is left at the end of the block, unless it is kept then.
        """
        place = self._kept(story)
        if place is not None and place.head == head and place.kept is not None:
            place.kept.cancel()
            place.kept = None
        else:
            self.leave(story)
            place = Place(story, head)
            self._line.append(place)
        try:
            yield place
        finally:
            if place.kept is None:
                self._remove(place)

    def keep(self, place: Place) -> None:
        """Keeps a place for the story's next steps, as long as its merge stands."""
        if place.onto is not None:
            place.kept = asyncio.get_running_loop().call_later(KEPT_S, self._remove, place)

    def leave(self, story: str) -> None:
        """Ends the place that the story keeps, if there is one."""
        place = self._kept(story)
        if place is not None and place.kept is not None:
            place.kept.cancel()
            self._remove(place)

    def _kept(self, story: str) -> Place | None:
        return next((place for place in self._line if place.story == story and place.kept is not None), None)

    def _remove(self, place: Place) -> None:
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
        for place in [*self._line]:
            if place.onto != onto:
                place.onto = None
            if place.onto is None and place.kept is not None:  # nobody would build it
                place.kept.cancel()
                self._line.remove(place)
            else:
                onto = None if place.onto is None else place.commit or onto
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits for something that a change of the line brings about."""
        while not holds():
            await self._changed.wait()

    async def run(self, place: Place, work: Coroutine[Any, Any, T]) -> T | None:
        """Returns the result of `work`; None when the merge does not stand any more before it ends."""
        running = asyncio.ensure_future(work)
        fallen = asyncio.ensure_future(self.until(lambda: place.onto is None))
        try:
            await asyncio.wait({running, fallen}, return_when=asyncio.FIRST_COMPLETED)
            return running.result() if running.done() else None
        finally:
            running.cancel()
            fallen.cancel()
            await asyncio.gather(running, fallen, return_exceptions=True)
