"""Both sides of a merge as prompt text."""

from orchestrator.core.delivery import Conflict, MergedStory
from orchestrator.prompts.context import render_conflicts, render_merged


def test_stories_are_told_by_the_subjects_of_their_commits() -> None:
    many = tuple(f"Commit {number}" for number in range(20))
    told = render_merged([MergedStory(story="US-1", subjects=("A\nb", "Merge")), MergedStory(story="", subjects=many)])
    assert told.splitlines()[0] == "- US-1: A b; Merge"
    assert told.splitlines()[1].startswith("- others: 8 earlier; Commit 8; ")


def test_short_texts_are_whole_and_long_ones_end_where_all_are_the_same() -> None:
    short = Conflict(path="a.py", base=None, result="x = 1\n", story="x = 2\n")
    told = render_conflicts([short], 2000)
    assert "`a.py` was added by both." in told
    assert "```\nx = 1\n```" in told
    assert "where both began" not in told
    lines = [f"line {number}\n" for number in range(4000)]
    base, result, story = ("".join([*lines[:2000], text, *lines[2001:]]) for text in ("base\n", "theirs\n", "mine\n"))
    told = render_conflicts([Conflict(path="long.txt", base=base, result=result, story=story)], 2000)
    for text in ("base", "theirs", "mine", "line 1996", "line 2004", "1996 lines, the same everywhere"):
        assert text in told
    assert "line 1990\n" not in told
    assert len(told) < 3000


def test_texts_that_differ_from_end_to_end_are_cut_and_say_so() -> None:
    texts = ["".join(f"{name} {number}\n" for number in range(9000)) for name in ("base", "result", "story")]
    told = render_conflicts([Conflict(path="a.txt", base=texts[0], result=texts[1], story=texts[2])], 3000)
    assert len(told) <= 3000 * 4
    assert "characters left out" in told
    same = Conflict(path="b", base="x\n" * 9000, result="x\n" * 9000, story="x\n" * 8000)
    assert render_conflicts([same], 2000)
