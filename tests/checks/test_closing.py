from hypothesis import given
from hypothesis import strategies as st

from orchestrator.checks.backlog import check_backlog
from orchestrator.core.finding import blocking
from orchestrator.core.story import Story, closers, done_rows, effective_needs, told_of_closed, waves


def story(name: str, *needs: str, closes: tuple[str, ...] = (), **more: str) -> Story:
    note = ", ".join(needs)
    return Story.model_validate(
        {"id": name, "title": name, "dependencies": needs, "dependency_note": note, "closes": closes, **more}
    )


def test_a_need_of_a_closed_row_is_a_need_of_its_closer_and_the_other_way_round() -> None:
    rows = [story("A", "W", closes=("W",)), story("W", "STYLE", "A"), story("STYLE"), story("B", "W", "STYLE")]
    assert closers(rows) == {"W": "A"}
    assert effective_needs(rows) == {"A": ("STYLE",), "STYLE": (), "B": ("A", "STYLE")}


def test_a_closed_row_that_is_completed_already_is_met_as_it_is() -> None:
    rows = [story("A", closes=("W",)), story("W", "X", execution_status="Completed"), story("X"), story("B", "W")]
    assert effective_needs(rows) == {"A": (), "X": (), "B": ("W",)}


def test_what_a_completed_story_closes_is_done_too() -> None:
    rows = [story("A", closes=("B",), execution_status="completed"), story("B"), story("D", "B")]
    assert done_rows(rows) == {"A", "B"}
    assert effective_needs(rows) == {"A": (), "D": ("B",)}


def codes(rows: list[Story]) -> list[str]:
    return [finding.code for finding in check_backlog(rows)]


def test_what_is_wrong_with_closed_rows_is_told() -> None:
    for rows, said in (
        ([story("A", closes=("A",))], ["closes rows itself"]),
        ([story("A", closes=("W",)), story("B", closes=("W",)), story("W")], ["W, which is closed by A as well"]),
        ([story("A", closes=("B",)), story("B", closes=("A",))], ["closes rows itself"] * 2),
        ([story("A", closes=("B",)), story("B", closes=("C",)), story("C")], ["B, which closes rows itself"]),
        ([story("US-1", closes=("WF-01",)), story("WF-001")], ["WF-01, which is no row of the backlog"]),
    ):
        found = [finding for finding in check_backlog(rows) if finding.code == "backlog.closes"]
        assert len(found) == len(said)
        assert all(finding.message.endswith(text) for finding, text in zip(found, said, strict=True))
    hidden = check_backlog([story("A", closes=("W",)), story("W", "B"), story("B", "A")])
    assert [f.code for f in hidden] == ["backlog.cycle"]
    assert "A → B → A" in hidden[0].message
    assert codes([story("A", "W", closes=("W",)), story("W", "A")]) == []


def test_personas_are_told_what_the_closed_rows_ask_for() -> None:
    page = story("W", user_story="A page for it", wireframe_ref="wf-1").model_copy(
        update={"acceptance_criteria": ("It is blue",)}
    )
    told = told_of_closed([story("A", notes="Mind the gap"), page], {"A": ("W",)})
    assert told["A"].notes == "Mind the gap\nThis story also completes W (W): A page for it; It is blue"
    assert told["A"].wireframe_ref == "wf-1"
    assert told["W"] == page


@st.composite
def backlogs(draw: st.DrawFn) -> list[Story]:
    names = [f"S{number}" for number in range(draw(st.integers(1, 7)))]
    some = st.lists(st.sampled_from(names), unique=True, max_size=2)
    return [story(name, *draw(some), closes=tuple(draw(some))) for name in names]


@given(rows=backlogs())
def test_an_accepted_backlog_can_be_ordered_without_its_closed_rows(rows: list[Story]) -> None:
    needs = effective_needs(rows)
    closer_of = closers(rows)
    assert set(needs) == {row.id for row in rows} - set(closer_of)
    if not blocking(check_backlog(rows)):
        layers, stuck = waves(needs, needs)
        assert stuck == ()
        assert {name for layer in layers for name in layer} == set(needs)
        assert all(need in needs for wanted in needs.values() for need in wanted)
