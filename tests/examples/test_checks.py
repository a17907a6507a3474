"""The project's own checks agree: what the script ends with passes, what is to be healed is found."""

from pathlib import Path

import pytest

from orchestrator.adapters.csv_backlog import CsvBacklog
from orchestrator.checks.backlog import all_problems
from orchestrator.checks.breakdown import check_breakdown, read_breakdown
from orchestrator.checks.content import check_content
from orchestrator.checks.delivery import read_delivery
from orchestrator.domain.exchange import Purpose
from orchestrator.domain.findings import blocking
from tests.examples.demo_team import FOLDER, answer, deliveries, entries, needs, of, rows, suite

WHOLE_PLANS = [story for story in rows() if story not in {"US-003", "US-004"}]


def tree_before(story: str) -> frozenset[str]:
    files = {path for need in needs(story) for delivered in deliveries(need).values() for path in delivered}
    return frozenset(files | {suite(need)["test_file"] for need in needs(story)})


@pytest.mark.parametrize("story", WHOLE_PLANS)
def test_last_plan_has_no_findings(story: str) -> None:
    breakdown, said = read_breakdown(answer(of(story, Purpose.BREAKDOWN)[-1]), story)
    assert said == []
    assert breakdown is not None
    assert check_breakdown(breakdown, tree_before(story)) == []


def test_wrong_ids_are_found() -> None:
    breakdown, said = read_breakdown(answer(of("US-001", Purpose.BREAKDOWN, 1)[0]), "US-001")
    assert said == []
    assert breakdown is not None
    found = blocking(check_breakdown(breakdown, tree_before("US-001")))
    assert [finding.code for finding in found] == ["breakdown.task_id"] * 3


def test_backlog_has_no_findings(tmp_path: Path) -> None:
    content = CsvBacklog(FOLDER / "backlog.csv", tmp_path / "sidecar.json", "NFR-001").read()
    assert all_problems(content) == ()
    assert [story.id for story in content.stories if story.foundation] == ["NFR-001"]
    assert all(set(story.dependencies) <= needs(story.id) for story in content.stories)


@pytest.mark.parametrize("story", list(rows()))
def test_every_delivery_is_well_formed(story: str) -> None:
    before = {
        path: text for need in needs(story) for files in deliveries(need).values() for path, text in files.items()
    }
    for entry in (e for e in entries() if e.story == story and e.purpose is Purpose.DELIVERY):
        delivery, said = read_delivery(answer(entry), story, str(entry.task))
        assert said == []
        assert delivery is not None
        assert check_content(delivery, before) == []
        before.update({change.path: change.content for change in delivery.files})
