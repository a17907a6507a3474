"""Texts that repeat themselves without end, and real ones, which do not."""

import sysconfig
from pathlib import Path

import pytest

from orchestrator.core.value import ENDLESS, repeated_end
from orchestrator.providers.base import LOOK_AFTER

FITS_INTO_AN_ANSWER = 128_000
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


def test_no_real_file_that_fits_into_an_answer_repeats_itself_without_end_anywhere() -> None:
    found, looked_at = [], 0
    for path in Path(sysconfig.get_path("purelib")).rglob("*"):
        if path.is_file() and ENDLESS <= path.stat().st_size <= FITS_INTO_AN_ANSWER:
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:  # no text
                continue
            looked_at += 1
            ends = range(ENDLESS, len(text) + LOOK_AFTER, LOOK_AFTER)
            found += [path for end in ends if repeated_end(text[max(0, end - 2 * ENDLESS) : end]) is not None]
    assert looked_at > 500
    assert found == []
