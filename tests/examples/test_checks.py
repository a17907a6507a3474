"""The project's own reading and checks agree: what the script ends with passes, what is to be healed is found."""

from collections.abc import Mapping

import pytest

from orchestrator.answers import Extraction, Status, extract
from orchestrator.checks.breakdown import merge_missing, read_breakdown
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.content import check_content
from orchestrator.checks.delivery import read_delivery
from orchestrator.checks.suite import check_suite, read_analysis, read_suite
from orchestrator.contract.enforce import check_delivery
from orchestrator.contract.freeze import freeze
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Purpose, ScriptEntry
from orchestrator.core.calls.wire import WIRE_SCHEMAS
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.finding import Finding, blocking
from tests.examples.demo_team import answer, criteria, deliveries, needs, of, rows, suite

pytestmark = pytest.mark.docs

STORIES = list(rows())
REFUSED = ("alex", "US-002", "T-US-002-01", Purpose.DELIVERY, 1)


def extracted(entry: ScriptEntry) -> Extraction:
    return extract(entry.text, WIRE_SCHEMAS[entry.purpose.value])


def tree_before(story: str) -> dict[str, str]:
    """The files a story starts from."""
    files: dict[str, str] = {}
    for need in (story_id for story_id in STORIES if story_id in needs(story)):
        for delivered in deliveries(need).values():
            files.update(delivered)
        files[suite(need)["test_file"]] = suite(need)["test_content"]
    return files


def plan(story: str) -> tuple[Breakdown, list[Finding]]:
    """The plan a story ends with, and everything that was said while it was read."""
    (entry,) = of(story, Purpose.BREAKDOWN)
    breakdown, said = read_breakdown(extracted(entry).value, story, names=True)
    assert breakdown is not None
    for entry in of(story, Purpose.BREAKDOWN_MISSING):
        breakdown, more = merge_missing(breakdown, extracted(entry).value)
        said = [*said, *more]
    return breakdown, said


def contract(story: str) -> ArchitectureContract:
    return freeze(breakdown=plan(story)[0], base_commit="", files=sorted(tree_before(story)), manifests={})


def judged(entry: ScriptEntry, before: Mapping[str, str]) -> list[Finding]:
    """Everything that the checks say about a delivery."""
    delivery, said = read_delivery(answer(entry), entry.story, str(entry.task))
    assert delivery is not None
    return [*said, *check_content(delivery, before), *check_delivery(contract(entry.story), delivery, before)]


def test_broken_plan_heals_inside_extract() -> None:
    (entry,) = of("US-004", Purpose.BREAKDOWN)
    found = extracted(entry)
    assert (found.status, found.complete) == (Status.REPAIRED, True)
    tasks = found.value["tasks"] if isinstance(found.value, dict) else []
    assert [task["task_id"] for task in tasks] == ["T-US-004-01", "T-US-004-02", "T-US-004-03"]
    assert "in one class:\n\t- lend(book, card, today)" in tasks[0]["description"]
    assert "a book that's out, and a sixth book" in tasks[0]["description"]
    assert "`${title}, for ${member.name}, back by ${due}`" in tasks[1]["description"]
    assert tasks[2]["description"].endswith('the option "here" leaves those away.')
    assert "\\" not in "".join(task["description"] for task in tasks)
    for repair in found.repairs:
        assert entry.text.startswith(repair.before, repair.offset)


def test_cut_off_plan_keeps_its_whole_tasks() -> None:
    (entry,) = of("US-003", Purpose.BREAKDOWN)
    found = extracted(entry)
    assert (found.status, found.complete) == (Status.TRUNCATED, False)
    breakdown, _ = read_breakdown(found.value, "US-003")
    assert breakdown is not None
    assert [task.task_id for task in breakdown.tasks] == ["T-US-003-01"]
    (finding,) = blocking(check_breakdown(breakdown, frozenset(tree_before("US-003"))))
    assert finding.code == "breakdown.missing_tasks"
    assert [task.task_id for task in plan("US-003")[0].tasks] == ["T-US-003-01", "T-US-003-02", "T-US-003-03"]


@pytest.mark.parametrize("story", STORIES)
def test_what_a_story_ends_with_has_no_findings(story: str) -> None:
    before = tree_before(story)
    breakdown, said = plan(story)
    assert [one.code for one in said] == ["breakdown.renumbered"] * (story == "US-001")
    assert check_breakdown(breakdown, frozenset(before)) == []
    for entry in of(story, Purpose.DELIVERY):
        if entry.lookup != REFUSED and answer(entry)["files"]:
            assert judged(entry, before) == []
    (answered,) = of(story, Purpose.SUITE)
    tests, said = read_suite(answer(answered), story)
    assert said == []
    assert tests is not None
    assert bool(breakdown.acceptance_tests) == (story != "NFR-001")
    assert check_suite(tests, required_criteria=len(criteria(story)) if breakdown.acceptance_tests else None) == []
    for entry in of(story, Purpose.ANALYSIS):
        instructions, said = read_analysis(extracted(entry).value)
        assert said == []
        assert instructions
