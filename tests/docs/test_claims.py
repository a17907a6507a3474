"""Promises of the pages name what stands behind them, and that is there."""

import pytest

from tests.docs.claims import all_claims, claims_of, problem, problems

PAGE = """Answers are never lost.
<!-- claim: tests/docs/test_claims.py::test_a_promise_has_a_source -->

- It reads 99 % of them.
- It may fail.

    nothing here is a sentence
"""


def test_a_promise_has_a_source() -> None:
    first, second = claims_of("README.md", PAGE)
    assert (first.line, first.promises, len(first.sources)) == (1, ("Answers are never lost.",), 1)
    assert problems([first, second]) == ["README.md:4: nothing stands behind: - It reads 99 % of them."]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("benchmark engine", ""),
        ("benchmark engines", "there is no such benchmark"),
        ("measured 2026-11-27", ""),
        ("measured lately", "it is no day, as 2026-11-27"),
        ("tests/docs/test_claims.py::test_gone", "tests/docs/test_claims.py has no such test"),
        ("a colleague", "there is no such test"),
    ],
)
def test_a_source_is_looked_up(source: str, said: str) -> None:
    assert problem(source) == said


def test_every_promise_of_the_readme_has_a_source_that_is_there() -> None:
    assert problems(all_claims()) == []
