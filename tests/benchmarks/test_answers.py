"""The answer benchmark is right about what it measures: its cases, its scores, its picture; no peers and no clock."""

import json

import pytest

from benchmarks.answers import corpus, scoring
from benchmarks.answers.scoring import Outcome, Reading, Tally, outcome
from orchestrator.answers import Status, extract

pytestmark = pytest.mark.docs

CASES = corpus.cases(7, 400)


def test_outcomes_tell_exact_prefix_refused_wrong_and_silent_apart() -> None:
    case = next(case for case in CASES if case.faults == ("cut off late",) and case.kept > 0)
    assert case.full is not None
    whole = case.full[case.kind.items]
    part = {case.kind.items: whole[: case.kept]}
    assert outcome(case, Reading(part, cut=True)) is Outcome.EXACT
    assert outcome(case, Reading(part)) is Outcome.PREFIX
    assert outcome(case, Reading(None)) is Outcome.REFUSED
    assert outcome(case, Reading({"else": 1})) is Outcome.WRONG
    prose = next(case for case in CASES if case.faults == ("prose around",) and case.kind.contract == "delivery")
    assert prose.full is not None
    changed = json.loads(json.dumps(prose.full))
    changed["files"][0]["content"] += "x"
    assert outcome(prose, Reading(changed)) is Outcome.SILENT
    assert outcome(prose, Reading({"files": []}, cut=True)) is Outcome.REFUSED


def test_our_reader_is_right_about_most_of_it() -> None:
    """A floor, far below what the benchmark shows: it is there to notice a corpus or a reader that broke."""
    contracts = {case.kind.contract: scoring._validator(case.kind.contract).schema for case in CASES}
    tally = Tally()
    for case in CASES:
        found = extract(case.text, contracts[case.kind.contract])
        tally.add(case, outcome(case, Reading(found.value, cut=found.status is Status.TRUNCATED)))
    assert scoring.percent(tally.total, Outcome.EXACT) > 70
    assert scoring.percent(tally.families["valid"], Outcome.EXACT) == 100
