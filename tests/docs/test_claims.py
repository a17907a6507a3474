"""Promises of the pages name what stands behind them, and that is there."""

from tests.docs.claims import all_claims, problems


def test_every_promise_of_the_readme_has_a_source_that_is_there() -> None:
    assert problems(all_claims()) == []
