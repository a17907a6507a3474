"""The queue of merges: whatever becomes the result was tested as it is, whatever is red and whoever is ready first."""

import asyncio
from collections.abc import Collection
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.delivery import MergeResult
from orchestrator.git.merge_queue import MergeQueue, Place
from tests.effort import examples
from tests.git.git_samples import change, note, open_workspace

STORIES = "abcdef"
Pair = st.tuples(st.sampled_from(STORIES), st.sampled_from(STORIES))
Pairs = st.frozensets(Pair, max_size=3)


class Line:
    """Stories that are merged with a queue. A commit is the text of the stories in it; `X` comes from elsewhere.

    Some are `red` by themselves; those of a pair are red together, or in conflict.
    """

    def __init__(
        self, red: frozenset[str], together: Collection[Collection[str]], conflicts: Collection[Collection[str]]
    ) -> None:
        self.red, self.together, self.conflicts = red, together, conflicts
        self.queue, self.result, self.tested = MergeQueue(), ".", {"."}
        self.places: dict[str, tuple[ExitStack, Place]] = {}
        self.away: dict[str, Place] = {}
        """Stories that were tested, and are at their next steps."""
        self.kept: set[str] = set()
        self.merged: dict[str, bool] = {}

    @property
    def acts(self) -> list[tuple[str, str]]:
        """What may happen next to whom."""
        told = [("join", story) for story in STORIES if story not in {*self.places, *self.merged, *self.away}][:1]
        told += [(act, story) for story in self.away for act in ("join", "expire")]
        for story, (_, place) in self.places.items():
            if place.onto is None and self.queue.onto(place) is not None:
                told.append(("build", story))
            if place.onto is not None and place.commit not in self.tested:
                told.append(("test", story))
            if place.onto is not None and self.queue.is_first(place) and place.commit in {"", *self.tested}:
                told.append(("end", story))
            if place.onto is not None and place.commit in self.tested and story not in self.kept:
                told.append(("keep", story))
        return told

    def join(self, story: str) -> None:
        stack, before = ExitStack(), self.away.pop(story, None)
        stands = before is not None and before.onto is not None
        place = stack.enter_context(self.queue.joined(story, story))
        assert (place is before) is stands, "a story that comes back has its place, if that stands"
        self.places[story] = stack, place

    def keep(self, story: str) -> None:
        stack, self.away[story] = self.places.pop(story)
        self.kept.add(story)
        self.queue.keep(self.away[story])
        stack.close()

    def expire(self, story: str) -> None:
        del self.away[story]
        self.queue.leave(story)

    def build(self, story: str) -> None:
        place = self.places[story][1]
        if self.queue.is_first(place):
            self.queue.move(self.result)
        if (onto := self.queue.onto(place)) is not None:
            self.queue.build(place, onto, "" if self.conflict(onto, story) else onto + story)
            assert place.onto == onto

    def test(self, story: str) -> None:
        self.tested.add(self.places[story][1].commit)

    def end(self, story: str) -> None:
        stack, place = self.places[story]
        if place.onto != self.result:  # another machine was first
            return self.queue.move(self.result)
        refused = self.conflict(self.result, story) or self.is_red(self.result + story)
        if not refused:
            assert place.commit == self.result + story
            assert place.commit in self.tested
            self.result = place.commit
            self.queue.merge(place)
        self.merged[story] = not refused
        del self.places[story]
        return stack.close()

    def is_red(self, commit: str) -> bool:
        return bool(self.red & {*commit}) or any({*pair} <= {*commit} for pair in self.together)

    def conflict(self, onto: str, story: str) -> bool:
        return any(story in pair and {*pair} <= {*onto, story} for pair in self.conflicts)


@given(red=st.frozensets(st.sampled_from(STORIES)), together=Pairs, conflicts=Pairs, data=st.data())
@settings(max_examples=examples(300))
def test_whatever_becomes_the_result_was_tested_as_it_is(
    red: frozenset[str],
    together: frozenset[tuple[str, str]],
    conflicts: frozenset[tuple[str, str]],
    data: st.DataObject,
) -> None:
    """And a story is turned down for what it meets in the result alone, never for one that was not merged."""
    asyncio.run(play(Line(red, together, conflicts), data))


async def play(line: Line, data: st.DataObject) -> None:
    elsewhere = data.draw(st.sets(st.integers(0, 30), max_size=2))
    for number in count():
        if number in elsewhere:
            line.result += "X"
            line.tested.add(line.result)
        acts = line.acts
        if not acts:
            break
        act, story = data.draw(st.sampled_from(acts))
        getattr(line, act)(story)
    assert line.merged.keys() == {*STORIES}, "everybody comes to an end"
    assert {*line.result} - {*".X"} == {story for story, merged in line.merged.items() if merged}


async def test_a_tested_story_keeps_its_place_until_it_is_merged_or_left(tmp_path: Path) -> None:
    workspace = await open_workspace(tmp_path, {"README.md": "hello\n"})
    for story, file in (("A", "a"), ("B", "b"), ("C", "c"), ("D", "a")):
        await workspace.open(story)
        await workspace.commit(story, [change(f"{file}.txt", story)], note("1", story))
    seen: list[tuple[str, str]] = []

    async def test(folder: Path, commit: str) -> bool:
        seen.append((commit, "".join(sorted(path.stem for path in folder.glob("?.txt")))))
        return True

    async def again(_folder: Path, commit: str) -> None:
        seen.append((commit, "again"))

    async def check(_folder: Path) -> str:
        return ""

    assert [await workspace.test_merge(story, note(f"{story}:tests", story), test) for story in "ABC"] == [True] * 3
    assert [files for _, files in seen] == ["a", "ab", "abc"]
    assert not await workspace.test_merge("D", note("D:tests", "D"), test), "it is in conflict with one before it"
    last = asyncio.create_task(workspace.merge("C", note("C:merge", "C"), check, again))
    first = await workspace.merge("A", note("A:merge", "A"), check, again)
    assert first.commit == seen[0][0], "the commit that was tested becomes the result"
    assert await workspace.merge("A", note("another step", "A"), check, again) == MergeResult(
        merged=True, commit=first.commit
    )
    while (seen[2][0], "again") not in seen:
        await asyncio.sleep(0.01)
    assert not last.done(), "B has a place before it"
    await workspace.leave("B")
    merged = await last
    assert (merged.onto, await workspace.files_at(merged.commit)) == (first.commit, ("README.md", "a.txt", "c.txt"))
    assert (merged.commit, "again") in seen, "without B it is another commit, and tested"
    workspace.close()
