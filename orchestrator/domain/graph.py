"""Pure functions over "waits for" relations: waves, topological order, cycles."""

from collections.abc import Iterable, Mapping


def waves(
    order: Iterable[str], needs: Mapping[str, Iterable[str]]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Split `order` into waves: each holds the ids whose needs all stand in earlier waves, in the given order.

    Needs outside `order` are ignored. Returns (waves, ids that cannot be placed because of a cycle). Linear in edges.
    """
    ids = list(order)
    known = set(ids)
    open_needs = {i: {n for n in needs.get(i, ()) if n in known} for i in ids}
    waiting_for_me: dict[str, list[str]] = {i: [] for i in ids}
    for story, wanted in open_needs.items():
        for need in wanted:
            waiting_for_me[need].append(story)
    place = {story: number for number, story in enumerate(ids)}
    result: list[tuple[str, ...]] = []
    ready = [i for i in ids if not open_needs[i]]
    placed: set[str] = set()
    while ready:
        result.append(tuple(ready))
        placed.update(ready)
        following: list[str] = []
        for done in ready:
            for story in waiting_for_me[done]:
                open_needs[story].discard(done)
                if not open_needs[story]:
                    following.append(story)
        ready = sorted(following, key=place.__getitem__)
    return tuple(result), tuple(i for i in ids if i not in placed)


def topological(order: Iterable[str], needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """One order in which every id comes after its needs, else as given; ids in a cycle come last, as given."""
    layers, rest = waves(order, needs)
    return tuple(i for layer in layers for i in layer) + rest


def find_cycle(order: Iterable[str], needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """A cycle as a closed path (`A, B, A`), or () when there is none. Deterministic for the same input."""
    _, stuck = waves(order, needs)
    if not stuck:
        return ()
    inside = set(stuck)
    path: list[str] = []
    seen: dict[str, int] = {}
    current = stuck[0]
    while current not in seen:
        seen[current] = len(path)
        path.append(current)
        current = next(need for need in needs[current] if need in inside)
    return (*path[seen[current] :], current)
