"""A cut text and its continuation: what is repeated at the seam counts once."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.answers.json.shape import MAX_OVERLAP, join

TEXT = st.text(alphabet="ab\n\0", max_size=40)


@pytest.mark.parametrize(
    ("cut", "more", "whole"),
    [
        ('{"a": "x', ' y"}', '{"a": "x y"}'),
        ('{"a": "long text', 'long text ends"}', '{"a": "long text ends"}'),
        ("abc", "abc", "abc"),
        ("aaa", "aab", "aaab"),
        ("", "abc", "abc"),
        ("abc", "", "abc"),
        ("ab\0", "\0c", "ab\0c"),
    ],
)
def test_the_seam(cut: str, more: str, whole: str) -> None:
    assert join(cut, more) == whole


@given(TEXT, TEXT)
def test_both_texts_are_in_the_result_and_the_longest_overlap_is_left_out(cut: str, more: str) -> None:
    whole = join(cut, more)
    assert whole.startswith(cut)
    assert whole.endswith(more)
    longest = max(n for n in range(min(len(cut), len(more)) + 1) if cut.endswith(more[:n]))
    assert len(whole) == len(cut) + len(more) - longest


def test_huge_texts_take_no_time() -> None:
    started = time.process_time()
    text = "a" * 2_000_000
    assert len(join(text, text)) == len(text) * 2 - MAX_OVERLAP
    assert time.process_time() - started < 1
