"""The answer benchmark is right about what it measures: its cases, its scores, its picture; no peers and no clock."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.answers import corpus, scoring, svg, table
from benchmarks.answers.measure import Growth, Race, Read
from benchmarks.answers.peers import OURS, PEERS
from benchmarks.answers.scoring import Outcome, Reading, Tally, outcome
from orchestrator.answers import Status, extract

pytestmark = pytest.mark.docs

CASES = corpus.cases(7, 400)


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_whole_answers_meet_their_contract() -> None:
    for case in CASES:
        if case.full is not None and not any(fault == "no number" for fault in case.faults):
            assert scoring._validator(case.kind.contract).is_valid(case.full)


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


def report() -> table.Report:
    tally = Tally.of((case, outcome(case, Reading(parsed(case.text)))) for case in CASES)
    reads = [Read(peer=peer, cases=len(CASES), help="as it is", tally=tally) for peer in PEERS[:3]]
    race = Race(ours=OURS.name, other="x", texts=2, megabytes=1.0, ours_s=1.0, other_s=20.0, median_ratio=5.0)
    return table.Report(
        facts={"cores": "2"},
        seed=7,
        reads=[*reads, Read(peer=PEERS[4], missing="no <such> package")],
        hostile={"json_repair": {"quotes": "time limit", "prose": "0.10"}},
        hostile_size=50_000,
        hostile_limit_s=1.0,
        races={"valid": race, "faulty": None},
        growth=[Growth(name="prose", seconds={1000: 0.01, 2000: 0.021})],
    )


def test_the_picture_is_well_formed_and_shows_every_reader() -> None:
    made = report()
    picture = svg.drawn(made.measured(), ours=OURS.name, cases=len(CASES), missing=1)
    root = ElementTree.fromstring(picture)
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {read.peer.name for read in made.measured()} < set(texts)
    assert "prefers-color-scheme: dark" in picture
    bars = [element for element in root.iter("{http://www.w3.org/2000/svg}rect") if len(element)]
    widths = sum(float(bar.attrib["width"]) for bar in bars)
    assert widths == pytest.approx(3 * (svg.WIDTH - svg.LEFT - svg.RIGHT), abs=1)
