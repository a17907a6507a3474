"""What a person writes is read as it stands or refused with its line; what is written for a person is read back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.sprint.plan_edit import read_written, write_data

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
DATA = st.recursive(
    TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
WORDS = st.lists(
    st.sampled_from(["word", " ", "\n", "  ", "- ", ": ", "#", "longer words than that", "\t"]), max_size=60
)


@given(DATA)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert read_written(write_data(value)) == (value, None)


@given(WORDS)
def test_texts_of_many_lines_and_long_ones_are_read_back(words: list[str]) -> None:
    text = "".join(words)
    assert read_written(write_data({"a": [text], text: "1"})) == ({"a": [text], text: "1"}, None)


@given(st.text())
def test_no_text_raises(text: str) -> None:
    value, problem = read_written(text)
    assert problem is None or value is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1.10, 2, 007, yes, ~, '1', 1e3, true]", ["1.10", "2", "007", "yes", "~", "1", "1e3", "true"]),
        ("# said\n\n{a: 1, b: [x, 'y']}", {"a": "1", "b": ["x", "y"]}),
        ('# said\n{"a":\t1.10,\n\t"b": "\\ud83d\\ude00"}', {"a": "1.10", "b": "😀"}),
        ("a: |\r\n  x\r\n  y\r\nb: 1\r\n", {"a": "x\ny\n", "b": "1"}),
        ("\ufeffa: 1", {"a": "1"}),
        ("# nothing\n", None),
    ],
)
def test_values_stay_as_they_are_written(text: str, value: Any) -> None:
    assert read_written(text) == (value, None)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: &a [x]\nb: [*a, *a]", 2, "aliases"),
        ("? [a]\n: b", 1, "unhashable key"),
        ("a: 1\n---\nb: 2", 2, "another document"),
        ("# one\n# two\na:\n\tb: 1", 4, "no YAML"),
        ('# one\n{"a": 1,\n "b" 2}', 3, "no YAML"),
        ("a: 1\nb: \x00", None, "control characters"),
        ('{"a": "\\ud800"}', 1, "Unicode"),
        ("[" * 100_000, 1, "too deeply"),
        ("- " * 5000 + "x", 1, "too deeply"),
        ('{"a":' * 60 + "1" + "}" * 60, 1, "too deeply"),
    ],
)
def test_what_is_not_taken_says_where_and_why(text: str, line: int | None, said: str) -> None:
    value, problem = read_written(text)
    assert (value, problem.line if problem else None) == (None, line)
    assert problem is not None
    assert said in problem.message
