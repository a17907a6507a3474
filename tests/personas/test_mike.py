"""Mike: a plan that comes cut or short is completed, each request counted as a re-ask."""

import json
from typing import Any

from orchestrator.personas.mike import Mike
from tests.personas.desks import STORY, SURFACE, bench, brief
from tests.support import breakdown, task

TASKS = [task(STORY, number, [f"shop/part{number}.py"]) for number in (1, 2, 3)]
WHOLE = json.dumps(breakdown(STORY, *TASKS))
CUT = WHOLE[: WHOLE.index('"T-US-1-03"') + 30]


def says(purpose: str, value: Any) -> dict[str, Any]:
    return {"persona": "mike", "purpose": purpose, "text": value if isinstance(value, str) else json.dumps(value)}


def ids(planned: Any) -> list[str]:
    return [each.task_id for each in planned.breakdown.tasks]


async def test_a_whole_plan_is_read_and_ids_are_mended() -> None:
    wrong = breakdown(STORY, *TASKS) | {"story_id": "US-9"}
    at = bench(says("breakdown", wrong))
    planned = await Mike(at.desk, brief()).breakdown(SURFACE, "", None)
    assert planned.breakdown is not None
    assert planned.breakdown.story_id == STORY
    assert at.asked == ["breakdown 1"]
    assert "Shops need prices." in at.segment(0, "sprint")
    assert "A price is shown" in at.segment(0, "story")


async def test_a_cut_plan_is_completed_by_a_request_for_the_rest() -> None:
    at = bench(says("breakdown", CUT), says("breakdown_missing", {"tasks": [TASKS[1], TASKS[2]]}))
    planned = await Mike(at.desk, brief()).breakdown(SURFACE, "", None)
    assert ids(planned) == ["T-US-1-01", "T-US-1-02", "T-US-1-03"]
    assert at.asked == ["breakdown 1", "breakdown_missing 1"]
    known = at.segment(1, "feedback")
    assert "T-US-1-01" in known
    assert "shop/part2.py" in known
    assert "Missing: T-US-1-03." in known
    assert at.sink.named("breakdown_completed")


async def test_requests_for_missing_tasks_count_as_re_asks_and_end() -> None:
    at = bench(says("breakdown", CUT))
    planned = await Mike(at.desk, brief()).breakdown(SURFACE, "", None)
    assert at.asked == ["breakdown 1", "breakdown_missing 1", "breakdown_missing 2"]
    assert ids(planned) == ["T-US-1-01", "T-US-1-02"]
    assert "breakdown.cut_off" in {finding.code for finding in planned.findings}


async def test_a_conflict_needs_no_tasks_and_no_completion() -> None:
    conflict = {
        "detected": True,
        "current_architecture": "one process",
        "story_requirement": "many machines",
        "conflict_reason": "no network",
        "recommended_action": "change the story",
    }
    at = bench(says("breakdown", breakdown(STORY) | {"architectural_conflict": conflict, "task_count": 4}))
    planned = await Mike(at.desk, brief()).breakdown(SURFACE, "", None)
    assert planned.breakdown is not None
    assert planned.breakdown.architectural_conflict.detected
    assert at.asked == ["breakdown 1"]
