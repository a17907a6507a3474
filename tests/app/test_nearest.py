"""Which other stories the architect of one story is told of."""

from orchestrator.app.briefs import MAX_STORIES, nearest

ORDER = [f"S{number}" for number in range(200)]


def test_dependencies_dependents_then_neighbours() -> None:
    needs = {"S100": ["S7", "S3", "elsewhere"], "S150": ["S100"], "S98": ["S100"], "S0": []}
    near = nearest("S100", ORDER, needs)
    assert near[:8] == ("S7", "S3", "S98", "S150", "S99", "S101", "S102", "S97")
    assert len(near) == len(set(near)) == MAX_STORIES
    assert "S100" not in near


def test_a_foundation_that_all_wait_for_is_told_of_the_nearest() -> None:
    needs = {story: ["S50"] for story in ORDER if story != "S50"}
    assert nearest("S50", ORDER, needs, 3) == ("S49", "S51", "S48")


def test_a_short_sprint_is_told_whole() -> None:
    assert nearest("C", ["A", "B", "C"], {}) == ("B", "A")
    assert nearest("A", ["A"], {}) == ()
