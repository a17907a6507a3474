import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.value import parse_criteria


@pytest.mark.parametrize(
    ("text", "criteria"),
    [
        ("", []),
        (" \n ", []),
        ("1. User logs in; 2. Search <2s, v1.5; 3. Done.", ["User logs in", "Search <2s, v1.5", "Done."]),
        ("1. a; b; 2. c;", ["a; b", "c"]),
        ("1) a\r\n2) b\n\n3) c\n   goes on", ["a", "b", "c goes on"]),
        ("(1) a; (2) b", ["a", "b"]),
        ("AC1: a\nAC-2: b", ["a", "b"]),
        ("1.Logs in; 2.Logs out", ["Logs in", "Logs out"]),
        ("1. One only", ["One only"]),
        ("1. First one 2. Second one 3. Third", ["First one", "Second one", "Third"]),
        ("1. Takes 2. 5 s; 2. ok", ["Takes 2. 5 s", "ok"]),
        ("Criteria: 1. a; 2. b", ["a", "b"]),
        ("Must work; 1. a; 2. b", ["Must work", "a", "b"]),
        ("- a\n- b\n  and more\n* [ ] c", ["a", "b and more", "c"]),
        ("\u2022 a \u2022 b", ["a", "b"]),
        ("a<br>b<br/>c", ["a", "b", "c"]),
        ("Loads in 2.5 seconds", ["Loads in 2.5 seconds"]),
        ("Opens at 10:30; closes at 18:00", ["Opens at 10:30", "closes at 18:00"]),
        ("one line\nanother", ["one line", "another"]),
        ("Given x\nWhen y\nThen z\nAnd w\nGiven q\nThen r", ["Given x When y Then z And w", "Given q Then r"]),
        ("- a; - b", ["a", "b"]),
        ("Supports UTF-8 - always", ["Supports UTF-8 - always"]),
    ],
)
def test_criteria_as_people_write_them(text: str, criteria: list[str]) -> None:
    assert list(parse_criteria(text)) == criteria


WORDS = st.lists(st.sampled_from(["login", "works", "shows", "error", "2", "x;y", "1.5"]), min_size=1, max_size=5)


@given(st.lists(WORDS.map(" ".join), min_size=2, max_size=12), st.sampled_from(["; ", "\n", ";\r\n"]))
def test_a_numbered_list_comes_back_whole(criteria: list[str], separator: str) -> None:
    text = separator.join(f"{number}. {criterion}" for number, criterion in enumerate(criteria, 1))
    assert list(parse_criteria(text)) == criteria


@given(st.text(max_size=80))
def test_no_letter_is_lost(text: str) -> None:
    kept = "".join(parse_criteria(text))
    if ":" not in text and "<" not in text:
        assert [c for c in kept if c.isalpha() and c not in "xXaAcC"] == [
            c for c in text if c.isalpha() and c not in "xXaAcC"
        ]
