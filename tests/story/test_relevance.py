"""Which other stories the architect of one story is told of."""

from orchestrator.story.project_scan import MAX_STORIES, Neighbours

ORDER = [f"S{number}" for number in range(200)]


def test_dependencies_dependents_then_neighbours() -> None:
    needs = {"S100": ["S7", "S3", "elsewhere"], "S150": ["S100"], "S98": ["S100"], "S0": []}
    near = Neighbours(ORDER, needs).of("S100")
    assert near[:8] == ("S7", "S3", "S98", "S150", "S99", "S101", "S102", "S97")
    assert len(near) == len(set(near)) == MAX_STORIES
    assert "S100" not in near


def test_a_foundation_that_all_wait_for_is_told_of_the_nearest() -> None:
    needs = {story: ["S50"] for story in ORDER if story != "S50"}
    assert Neighbours(ORDER, needs).of("S50", 3) == ("S49", "S51", "S48")


def test_a_short_sprint_is_told_whole() -> None:
    assert Neighbours(["A", "B", "C"], {}).of("C") == ("B", "A")
    assert Neighbours(["A"], {}).of("A") == ()


def test_ten_thousand_stories_cost_little() -> None:
    order = [f"S{number}" for number in range(10_000)]
    neighbours = Neighbours(order, {story: ["S0"] for story in order[1:]})
    assert all(len(neighbours.of(story)) == MAX_STORIES for story in order)
