"""The last lines of a run: what is promised about the stories that are open is true."""

from pathlib import Path

import pytest

from orchestrator.cli.run import format_summary
from orchestrator.core.sprint import SprintReport, StoryReport, StoryStatus, TestsOutcome, Tokens
from orchestrator.records.sprint_reader import RunResult
from orchestrator.reports.report import totals


def story(name: str, status: StoryStatus) -> StoryReport:
    return StoryReport(
        id=name, status=status, attempts=0, tasks=(), tests=TestsOutcome(), findings=(), tokens=Tokens(),
        cost_usd=0.0, calls=0, duration_s=0.0, branch=None, commit=None,
    )  # fmt: skip


@pytest.mark.parametrize(("second", "goes_on"), [(StoryStatus.PENDING, True), (StoryStatus.FAILED, False)])
def test_a_paused_sprint_goes_on_only_when_something_is_open(second: StoryStatus, goes_on: bool) -> None:
    stories = (story("US-1", StoryStatus.FAILED), story("US-2", second))
    result = RunResult(
        repo=Path("app"),
        report=SprintReport(sprint="S", stories=stories, totals=totals(stories)),
        report_path=Path("report.json"),
        fetch_command="git fetch",
        paused="3 stories failed in a row",
    )
    [line] = [line for line in format_summary(result) if line.startswith("Paused")]
    assert ("resumes" in line) is goes_on


@pytest.mark.parametrize(
    ("ended", "told"), [(StoryStatus.NEEDS_ATTENTION, True), (StoryStatus.BLOCKED, False), (StoryStatus.DONE, False)]
)
def test_a_story_that_a_person_must_look_at_is_named_with_what_to_do(ended: StoryStatus, told: bool) -> None:
    stories = (story("US-1", StoryStatus.DONE), story("US-2", ended))
    result = RunResult(
        repo=Path("app"),
        report=SprintReport(sprint="S", stories=stories, totals=totals(stories)),
        report_path=Path("report.json"),
        fetch_command="git fetch",
    )
    assert any("show US-2" in line and "reset US-2" in line for line in format_summary(result)) is told
