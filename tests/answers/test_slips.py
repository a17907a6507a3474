import pytest

from orchestrator.answers import Status, extract
from tests.answers.slips import GAPS, LITERALS, LONG_STRINGS, PACKAGING, PUNCTUATION, UNDECIDABLE, UNTOUCHED

SLIPS = {**LONG_STRINGS, **LITERALS, **PUNCTUATION, **PACKAGING}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_read_as_a_careful_reader_would(name: str) -> None:
    text, contract, value, kind = SLIPS[name]
    found = extract(text, contract)
    assert (found.value, found.status, found.complete) == (value, Status.REPAIRED, True), found.problems
    assert kind in {repair.kind for repair in found.repairs}
    assert all(0 <= repair.offset <= len(text) for repair in found.repairs)


@pytest.mark.parametrize("name", GAPS)
def test_what_was_left_out_is_told(name: str) -> None:
    text, contract, value = GAPS[name]
    found = extract(text, contract)
    assert (found.value, found.status, found.complete) == (value, Status.TRUNCATED, False), found.problems
    assert found.problems[0].code == "answer.truncated"


@pytest.mark.parametrize("name", UNTOUCHED)
def test_what_only_looks_like_a_gap_or_an_answer_is_left_alone(name: str) -> None:
    text, contract, value = UNTOUCHED[name]
    found = extract(text, contract)
    assert (found.value, found.complete) == (value, True), found.problems


@pytest.mark.parametrize("name", UNDECIDABLE)
def test_what_nobody_can_decide_is_refused(name: str) -> None:
    text, contract = UNDECIDABLE[name]
    found = extract(text, contract)
    assert (found.value, found.status) == (None, Status.REFUSED)
