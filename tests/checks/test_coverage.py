"""Which tests stand for which acceptance criterion."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.checks.coverage import coverage
from orchestrator.core.sprint import CaseOutcome

CRITERIA = ("A book can be lent", "A lent book cannot be lent again", "12 books fit on a shelf")


def places(*named: str) -> list[int | None]:
    cases = [CaseOutcome(name=f"test_{n}", criterion=text, result="passed") for n, text in enumerate(named)]
    rows, others = coverage(CRITERIA, cases)
    assert sum(len(row.cases) for row in rows) + len(others) == len(cases)
    return [next((n for n, row in enumerate(rows) if case in row.cases), None) for case in cases]


def test_by_words_nearly_the_words_or_number() -> None:
    assert places("A book can be lent", "1. a book can be lent.", "A book may be lent") == [0, 0, 0]
    assert places("2", "AC 3", "Criterion #1", "AC2: a lent book cannot be lent again") == [1, 2, 0, 1]
    assert places("12 books fit on a shelf") == [2]


def test_what_names_no_criterion_is_told_apart() -> None:
    assert places("", "it works", "4", "0", "999") == [None] * 5


@given(st.lists(st.text(max_size=30)), st.lists(st.text(max_size=30)))
def test_no_case_is_lost(criteria: list[str], named: list[str]) -> None:
    cases = [CaseOutcome(name=str(n), criterion=text, result="passed") for n, text in enumerate(named)]
    rows, others = coverage(criteria, cases)
    assert [row.criterion for row in rows] == criteria
    assert sorted([case.name for row in rows for case in row.cases] + [case.name for case in others]) == sorted(
        case.name for case in cases
    )
