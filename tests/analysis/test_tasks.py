"""Tasks of several stages as one list."""

import pytest

from orchestrator.analysis.tasks import World, aggregate
from orchestrator.core.analysis import ImprovementTask, Mark
from orchestrator.core.value import same_title
from tests.analysis.samples import WORLD, stage, task


def titles(tasks: tuple[ImprovementTask, ...]) -> list[str]:
    return [f"{one.number} {one.priority} {one.title}" for one in tasks]


def test_a_title_stands_once_the_first_wins_and_what_it_lacks_comes_from_the_later() -> None:
    first = task("Bind the search words", "low", description="", file="")
    later = task("bind the  SEARCH-words.", "high", description="why", file="shelf/words.py", priority_stated="P1")
    last = task("Bind the search words!", "medium", description="other", file="shelf/cli.py")
    (one,) = aggregate([stage("a", first), stage("b", later), stage("c", last)], WORLD)
    assert (one.title, one.stage, one.also) == ("Bind the search words", "a", ("b", "c"))
    assert (one.priority, one.description, one.file) == ("high", "why", "shelf/words.py")


def test_a_title_twice_in_one_stage_is_no_other_stage() -> None:
    (one,) = aggregate([stage("a", task("Same"), task("same", "critical"))], WORLD)
    assert (one.also, one.priority) == ((), "critical")


def test_grouped_by_priority_and_in_the_order_of_stages_within() -> None:
    found = aggregate(
        [stage("a", task("A1", "low"), task("A2", "high"), task("A3", "low")),
         stage("b", task("B1", "critical"), task("B2", "high"), task("B3"))],
        WORLD,
    )  # fmt: skip
    assert titles(found) == ["1 critical B1", "2 high A2", "3 high B2", "4 medium B3", "5 low A1", "6 low A3"]


def test_what_is_nearly_the_same_is_marked_and_kept() -> None:
    found = aggregate(
        [stage("a", task("Add input validation to the search form"), task("Write a README")),
         stage("b", task("Add input validation to search form", "low"))],
        WORLD,
    )  # fmt: skip
    assert [one.near for one in found] == [(3,), (), (1,)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Fix login", "fix   LOGIN.", True),
        ("Use `find_words`", "Use find_words", True),
        ("Straße", "STRASSE", True),
        ("ＡＢＣ", "abc", True),
        ("Fix login", "Fix logout", False),
        ("日本語", "日本", False),
        ("C++", "C#", False),
        ("!!!", "???", False),
    ],
)
def test_when_titles_are_the_same(one: str, other: str, same: bool) -> None:
    assert (same_title(one) == same_title(other)) is same


def marks(*, about: str = "Do a thing", world: World = WORLD, said: str = "", **fields: str) -> tuple[Mark, ...]:
    (one,) = aggregate([stage("a", task(about, **fields), summary=said)], world)
    return one.marks


def test_a_file_that_does_not_exist_is_marked() -> None:
    assert marks(file="shelf/words.py") == ()
    assert marks(file="shelf") == ()
    assert marks(file="src/nowhere.py") == (Mark.NO_SUCH_FILE, Mark.NO_EVIDENCE)
    assert marks(file="tests/test_new.py", description="try `find_words`") == (Mark.NO_SUCH_FILE,)


@pytest.mark.parametrize(
    "words",
    [
        "see shelf/words.py", "in words.py", "`find_words` is slow", "call find_words() less", "find_words fails",
        'the requirement "The shelf is fast."', "the folder shelf/",
    ],
)  # fmt: skip
def test_what_names_something_there_has_evidence(words: str) -> None:
    assert (marks(description=words) == ()) is (words != "the folder shelf/")


def test_evidence_may_stand_in_what_a_stage_says_of_it() -> None:
    about = "Make the word search faster"
    assert marks(about=about) == (Mark.NO_EVIDENCE,)
    assert marks(about=about, said="Nothing else. The word search in shelf/words.py should be made faster.") == ()
    assert marks(about=about, said="Elsewhere shelf/cli.py has no help.") == (Mark.NO_EVIDENCE,)


@pytest.mark.parametrize("part", ["a", "a_", "aB", "a.b"])
def test_a_word_without_end_is_no_evidence_and_no_trouble(part: str) -> None:
    assert not WORLD.shown_in(part * 100_000)
    assert WORLD.shown_in(f"{part * 100_000} see shelf/words.py")


def test_many_tasks_are_no_trouble() -> None:
    assert len(aggregate([stage("a", *(task(f"Task number {n} of many") for n in range(700)))], WORLD)) == 700
