"""Which of a sprint's other stories the architect of one story is told of (decisions.md#prompt-order)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

MAX_STORIES = 40
"""More would make every story's input grow with the sprint."""


class Neighbours:
    """The stories nearest to each story of a sprint. Built once; an answer costs the same however long the sprint is,
    but for the stories that depend on the one asked for."""

    def __init__(self, order: Sequence[str], needs: Mapping[str, Sequence[str]]) -> None:
        """`order` is the backlog's, `needs` names for each story those it waits for."""
        self._order, self._needs = tuple(order), needs
        self._place = {story: number for number, story in enumerate(self._order)}
        self._heirs: defaultdict[str, list[str]] = defaultdict(list)
        for story in self._order:
            for need in needs.get(story, ()):
                self._heirs[need].append(story)

    def of(self, story: str, limit: int = MAX_STORIES) -> tuple[str, ...]:
        """At most `limit` others: what `story` depends on, what depends on it (nearest first), then its neighbours in
        the backlog, nearest first."""
        chosen: dict[str, None] = {}
        for other in self._ranked(story):
            if len(chosen) >= limit:
                break
            if other != story and other in self._place:
                chosen[other] = None
        return tuple(chosen)

    def _ranked(self, story: str) -> Iterator[str]:
        here = self._place[story]
        yield from self._needs.get(story, ())
        yield from sorted(self._heirs[story], key=lambda heir: (abs(self._place[heir] - here), self._place[heir]))
        for distance in range(1, len(self._order)):
            for place in (here - distance, here + distance):
                if 0 <= place < len(self._order):
                    yield self._order[place]
