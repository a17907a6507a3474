"""Both sides of a merge as prompt text."""

from orchestrator.core.delivery import Conflict
from orchestrator.prompts.merging import WHOLE_TOKENS, render_conflicts, render_tree


def both(theirs: str, base: str, mine: str) -> str:
    return f"<<<<<<< merged meanwhile\n{theirs}||||||| where both began\n{base}=======\n{mine}>>>>>>> your story\n"


SHORT = Conflict(path="a.py", base="x = 0\ny = 0\n", result="x = 1\ny = 0\n", story="x = 2\ny = 0\n")
SHORT_MERGED = {"a.py": both("x = 1\n", "x = 0\n", "x = 2\n") + "y = 0\n", "b.py": "z = 3\n"}
LINES = [f"line_{number} = {number}\n" for number in range(1600)]


def long_file(*changes: tuple[int, str]) -> str:
    """Sixteen hundred lines, some of them changed: a line's number → its text."""
    lines = dict(enumerate(LINES)) | dict(changes)
    return "".join(lines[number] for number in sorted(lines))


LONG = Conflict(
    path="long.py",
    base=long_file((800, "old()\n"), (1200, "")),
    # Git has merged line 3 of one side and line 1500 of the other by itself.
    result=long_file((3, "new = 3\n"), (800, "theirs()\n"), (1200, "added = 'theirs'\n")),
    story=long_file((800, "mine()\n"), (1200, "added = 'mine'\n"), (1500, "")),
)
LONG_MERGED = long_file(
    (3, "new = 3\n"),
    (800, both("theirs()\n", "old()\n", "mine()\n")),
    (1200, both("added = 'theirs'\n", "", "added = 'mine'\n")),
    (1500, ""),
)


def test_a_short_file_is_shown_whole_once() -> None:
    tree = render_tree(SHORT_MERGED, [SHORT], "", 2000, parts=True)
    told = render_conflicts([SHORT], SHORT_MERGED, 2000, parts=True)
    assert tree.index("### a.py") < tree.index("### b.py")
    assert "<<<<<<< merged meanwhile\nx = 1\n" in tree
    assert told == "#### a.py\n\nIt is shown whole above."


def test_of_a_long_file_only_the_conflicts_and_the_lines_around_them_are_shown_once() -> None:
    merged = {"long.py": LONG_MERGED}
    assert render_tree(merged, [LONG], "", 24_000, parts=True) == ""
    told = render_conflicts([LONG], merged, 24_000, parts=True)
    assert len(told) < 2_500, "four times the file were 100,000 characters"
    assert told.count(both("theirs()\n", "old()\n", "mine()\n")) == 1
    assert "Lines 789-819:" in told
    assert "line_795 = 795" in told
    assert "line_700 = 700" not in told


def test_a_file_that_both_added_has_nothing_that_stood_there() -> None:
    added = Conflict(path="new.py", base=None, result="a = 1\n", story="a = 2\n")
    told = render_conflicts([added], {"new.py": both("a = 1\n", "", "a = 2\n")}, 2000, parts=True)
    assert told == "#### new.py\n\nIt was added by both.\n\nIt is shown whole above."


def test_of_a_long_file_that_is_not_in_conflict_the_places_of_the_failure_are_shown() -> None:
    red = 'long.py:900: in total\n    File "long.py:901"\nother/long.py:5: in f'
    told = render_tree({"long.py": long_file()}, [], red, 24_000, parts=True)
    assert "shown around what the failing tests name" in told
    assert "line_899 = 899" in told
    assert "line_4 = 4\n" not in told
    assert "not shown: what each side changed" in render_tree({"long.py": long_file()}, [], "", 24_000, parts=True)


def test_what_git_merges_as_a_whole_is_shown_from_both_sides() -> None:
    one = Conflict(path="a.txt", base="x\n", result="theirs\n" * 9000, story="mine\n")
    told = render_conflicts([one], {"a.txt": "mine\n"}, 24_000, parts=True)
    assert "characters left out" in told
    assert "your story:\n\n```\nmine\n```" in told
    assert len(told) < WHOLE_TOKENS * 9
