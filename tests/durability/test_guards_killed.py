"""The guards of a sprint nobody watches, killed and started again and again: they count as if nothing had been."""

from pathlib import Path

import pytest

from tests.durability.driver import Bench
from tests.support import Team

pytestmark = [pytest.mark.timeout(300), pytest.mark.soak]
STORIES = {f"US-00{number}": "None" for number in range(1, 6)}


def test_budget_and_failures_in_a_row_are_counted_over_kills(tmp_path: Path) -> None:
    team = Team()
    for story in STORIES:
        for _ in range(9):
            team.say("mike", story, "breakdown", "", error="rate_limit", latency_ms=100)
    settings = ("provider.max_attempts=9", "budget.calls_per_story=3", "sprint.stop_after_failures=2")
    bench = Bench(tmp_path, STORIES, script=team, settings=(*settings, "concurrency.stories=1"))
    for story, calls in (("US-001", 1), ("US-001", 3), ("US-002", 2)):
        bench.kill_when(lambda story=story, calls=calls: bench.journalled(story, "error") >= calls)  # type: ignore[misc]
    bench.kill_when(lambda: bench.finished() == 2)
    ended = bench.finish()
    assert ended.code == 1
    assert "Paused: 2 stories failed in a row (sprint.stop_after_failures)" in ended.stdout
    assert "sprint.paused: not begun" in ended.stdout
    counted = {story: bench.journalled(story, "error") for story in STORIES}
    assert counted == {"US-001": 3, "US-002": 3, "US-003": 0, "US-004": 0, "US-005": 0}
    rows = {row["Story_ID"]: row["Execution_Status"] for row in bench.rows()}
    assert rows == {"US-001": "failed", "US-002": "failed", "US-003": "", "US-004": "", "US-005": ""}
    again = bench.finish()
    assert "Paused: 2 stories failed in a row" in again.stdout, "counted again"
    assert {story: bench.journalled(story, "error") for story in STORIES} == {**counted, "US-003": 3, "US-004": 3}
