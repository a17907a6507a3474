from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import BacklogError
from orchestrator.core.story import BacklogContent, Story, find_cycle
from orchestrator.sprint.selection import Selection, select


def story(story_id: str, needs: str = "", *, sprint: str = "", status: str = "", foundation: bool = False) -> Story:
    deps = tuple(needs.split())
    return Story(
        id=story_id,
        title="t",
        dependencies=deps,
        dependency_note=needs,
        sprint_id=sprint,
        execution_status=status,
        foundation=foundation,
    )


def content(*stories: Story) -> BacklogContent:
    numbered = tuple(s.model_copy(update={"line": n}) for n, s in enumerate(stories, 2))
    return BacklogContent(source="b.csv", stories=numbered)


def pick(
    *rows: Story,
    sprint: str | None = None,
    stories: Sequence[str] = (),
    taken: Collection[str] = (),
    strict: bool = False,
) -> Selection:
    return select(content(*rows), sprint=sprint, stories=stories, taken_sprints=taken, strict=strict)


def refused(*rows: Story, sprint: str | None = None, stories: Sequence[str] = (), strict: bool = False) -> str:
    with pytest.raises(BacklogError) as caught:
        pick(*rows, sprint=sprint, stories=stories, strict=strict)
    return caught.value.message


def test_without_a_sprint_the_next_free_one_takes_rows_that_have_none() -> None:
    rows = (story("A"), story("B", "A", sprint="SP-002"), story("C", status="Completed"), story("D", "A C"))
    chosen = pick(*rows, taken={"SP-007", "mine"})
    assert (chosen.sprint, chosen.story_ids, chosen.done_ids) == ("SP-008", ("A", "D"), ("C",))
    assert chosen.needs == {"A": (), "D": ("A",)}
    assert chosen.warnings == ()


def test_stories_narrow_in_backlog_order() -> None:
    rows = (story("A"), story("B", "A"), story("C"))
    chosen = pick(*rows, stories=["C", " B ", "C", ""])
    assert chosen.story_ids == ("B", "C")
    assert [(f.code, f.severity.value, f.where.line) for f in chosen.warnings] == [
        ("backlog.dependency_outside", "minor", 3)
    ]
    assert "B (line 3) depends on A (line 2)" in refused(*rows, stories=["B"], strict=True)


@pytest.mark.parametrize(
    ("wanted", "sprint", "said"),
    [
        (["US-01"], None, "no story 'US-01'; did you mean US-001?"),
        (["US-002"], None, "US-002 (line 3) is completed already"),
        (["US-003"], None, "US-003 (line 4) belongs to sprint SP-001; name it with --sprint SP-001"),
        (["US-001"], "SP-001", "US-001 (line 2) belongs to no sprint, but other rows carry SP-001"),
        (["US-001", "US-003", "US-002"], None, "SP-001; US-002"),
        ([" ", ""], None, "--stories names no story"),
    ],
)
def test_stories_that_cannot_be_taken(wanted: list[str], sprint: str | None, said: str) -> None:
    rows = (story("US-001"), story("US-002", status="completed"), story("US-003", sprint="SP-001"))
    message = refused(*rows, sprint=sprint, stories=wanted)
    if wanted == ["US-001", "US-003", "US-002"]:
        assert message.index("US-003") < message.index("US-002")
    else:
        assert said in message


@pytest.mark.parametrize(
    ("rows", "sprint", "said"),
    [
        ([story("A", status="completed")], None, "no row that has no Sprint_ID is open; `reset` one to run it again"),
        ([story("A", sprint="SP-001")], None, "open rows belong to SP-001: resume one with --sprint, or `reset"),
        ([story("A", sprint="SP-001")], "SP-002", "no row that carries SP-002 is open; open rows belong to"),
        ([story("A", sprint="S", status="completed"), story("B")], "S", "no row that carries S is open"),
    ],
)
def test_an_empty_selection_says_why(rows: list[Story], sprint: str | None, said: str) -> None:
    assert said in refused(*rows, sprint=sprint)


@pytest.mark.parametrize("sprint", ["", "a b", "result", "x..y", "a/b"])
def test_bad_sprint_ids(sprint: str) -> None:
    assert "bad sprint id" in refused(story("A"), sprint=sprint)


def test_any_blocking_problem_of_the_backlog_refuses_the_run() -> None:
    message = refused(story("A", "B"), story("B", "A"), story("C", "C"), story("D"), stories=["D"])
    assert "A → B → A" in message
    assert "C (line 4) depends on itself" in message


def test_everybody_waits_for_the_foundation_but_those_it_waits_for() -> None:
    rows = (story("A"), story("B", "A"), story("C", "F"), story("D"), story("F", "B", foundation=True))
    chosen = pick(*rows)
    assert chosen.needs == {"A": (), "B": ("A",), "C": ("F",), "D": ("F",), "F": ("B",)}
    without = pick(*rows, stories=["A", "D"])
    assert without.needs == {"A": (), "D": ()}
    done = pick(*rows[:-1], story("F", "B", foundation=True, status="completed"))
    assert done.needs["D"] == ()


@given(st.data())
def test_needs_never_run_in_a_circle(data: st.DataObject) -> None:
    ids = [f"S{n}x" for n in range(8)]
    order = data.draw(st.permutations(ids))
    foundation = data.draw(st.sampled_from(ids))
    rows = [
        story(
            i,
            " ".join(data.draw(st.lists(st.sampled_from(ids[:n]), unique=True)) if n else []),
            foundation=i == foundation,
        )
        for n, i in enumerate(ids)
    ]
    placed = sorted(rows, key=lambda row: order.index(row.id))
    wanted = data.draw(st.lists(st.sampled_from(ids), unique=True))
    chosen = pick(*placed, stories=wanted)
    assert set(chosen.needs) == set(chosen.story_ids)
    assert all(set(needs) <= set(chosen.story_ids) for needs in chosen.needs.values())
    assert find_cycle(chosen.needs) == ()
