"""Texts that repeat themselves without end, and real ones, which do not."""

import pytest

from orchestrator.core.value import ENDLESS, repeated_end

BEGIN = "def add(a, b):\n    return a + b\n\n"


@pytest.mark.parametrize(
    ("piece", "found"),
    [
        ("\n", True),
        ("    return 1\n", True),
        ("".join(f"line {n} of a file that comes whole, again and again\n" for n in range(70)), True),
        ("".join(f"line {n} of a file that comes whole, again and again\n" for n in range(90)), False),
    ],
    ids=["blanks", "line", "3,600 characters", "4,700 characters"],
)
def test_one_piece_over_and_over_is_found_whatever_stands_before_it(piece: str, found: bool) -> None:
    text = BEGIN + piece * (2 * ENDLESS // len(piece))
    for end in range(len(text) - 300, len(text), 7):
        assert (repeated_end(text[:end]) is not None) is found
    assert repeated_end(text + "x") is None
    assert repeated_end(BEGIN + piece * (ENDLESS // len(piece) // 2)) is None


def test_a_loop_that_changes_as_it_goes_is_not_taken_for_one() -> None:
    assert repeated_end("".join(f"    case {n}: return {n};\n" for n in range(4000))) is None
