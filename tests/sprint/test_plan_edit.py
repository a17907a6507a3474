"""A plan survives its way to an editor and back, whatever stands in it and above it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.checks.breakdown import read_breakdown
from orchestrator.core.finding import blocking
from orchestrator.sprint.plan_edit import body_of, commented, plan_text, read_edit
from tests.support import breakdown, task

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
PATHS = st.lists(st.sampled_from(["src/a.py", "b b.txt", "ü/ö.js", "no", "1.10", "*.md", "a: b", "#c"]), unique=True)
FREE = st.recursive(
    st.booleans() | st.integers(-999, 999) | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=4
)


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """An architect's answer with anything in its texts."""
    count = draw(st.integers(1, 3))
    tasks = [task("US-1", n, draw(PATHS), draw(TEXT), description=draw(TEXT)) for n in range(1, count + 1)]
    return breakdown("US-1", *tasks) | {
        "acceptance_tests": [{"criterion": draw(TEXT), "test": draw(TEXT)}],
        "dependencies": {"dependencies": {"flask": draw(st.sampled_from(["1.10", ">=2", "*", "yes"]))}},
        "technical_notes": {draw(TEXT): draw(FREE)},
        "todos": {"add": [draw(TEXT)], "remove": []},
    }


@given(answers(), st.lists(TEXT))
def test_a_plan_that_nobody_changed_comes_back(answer: dict[str, Any], head: list[str]) -> None:
    plan, said = read_breakdown(answer, "US-1")
    if plan is None:
        assert blocking(said)  # a text of blanks only
        return
    text = plan_text(plan, head)
    assert read_edit(text, "US-1", frozenset(), frozenset()).plan == plan
    again = commented([*head, "found", *head], text)
    assert body_of(again) == body_of(text)
    assert read_edit(again, "US-1", frozenset(), frozenset()).plan == plan


@given(st.text() | st.recursive(TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)).map(str))
def test_no_text_raises_and_none_is_taken_by_chance(text: str) -> None:
    assert not read_edit(text, "US-1", frozenset(), frozenset()).accepted(force=True)
