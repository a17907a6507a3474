"""The one repair request of a loop: what is sent, what comes of it, and that no loop costs more than its budget."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.answers import Extraction, Status, extract
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import FailureBrief, Purpose, Reply, StopReason, SuiteBrief, TaskBrief, TurnKey
from orchestrator.core.calls.wire import BreakdownAnswer
from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.suite import TestReport, TestSuite
from orchestrator.personas.alex import Alex
from orchestrator.personas.jordan import Jordan
from orchestrator.personas.mike import Mike
from orchestrator.personas.session import UNREADABLE, repair_slots
from orchestrator.settings import Policies
from tests.effort import examples
from tests.personas.desks import STORY, SURFACE, Bench, babble, bench, brief
from tests.support import breakdown, delivery, suite, suite_text, task

SCHEMA = BreakdownAnswer.model_json_schema()
LIMIT = 24_000
TASKS = [task(STORY, number, [f"shop/part{number}.py"], description="Say so. " * 30) for number in range(1, 500)]
LONG = json.dumps(breakdown(STORY, *TASKS), indent=1)
SMALL = json.dumps(breakdown(STORY, *TASKS[:3]), indent=1)
PLACE = '"T-US-1-02",'


def broken(text: str, at: str = PLACE) -> tuple[Reply, Extraction]:
    """A reply with text that has no form around `at`, refused there as the reader does it."""
    offset = text.index(at)
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    problem = major(UNREADABLE, "a value was expected", where=Where(line=line, column=column))
    key = TurnKey(persona="mike", story=STORY, purpose=Purpose.BREAKDOWN)
    reply = Reply(key=key, turn=1, text=text.replace(at, at.replace('"', "'\"'"), 1))
    refused = Extraction(value=None, status=Status.REFUSED, layer="none", complete=False, problems=(problem,))
    return reply, refused


def test_nothing_is_asked_for_without_a_text_or_for_a_long_one() -> None:
    for text, asked in (("", False), (" \n", False), ("I cannot do that. " * 9000, False), ("I cannot.", True)):
        reply = broken(SMALL)[0].model_copy(update={"text": text})
        assert (repair_slots(reply, extract(text, BreakdownAnswer), SCHEMA, LIMIT) is not None) is asked
    assert repair_slots(*broken(LONG), SCHEMA, LIMIT) is None


UNREADABLE_PLAN = SMALL.replace(f'"task_id": {PLACE}', '"task_id": )( ??? %%,')


def says(text: str, purpose: str = "breakdown", **more: Any) -> dict[str, Any]:
    return {"persona": "mike", "purpose": purpose, "text": text, **more}


async def test_a_repaired_answer_is_told_with_its_layer_and_repairs() -> None:
    at = bench(says(UNREADABLE_PLAN), says(f"```json\n{SMALL[:-2]},\n}}\n```", "repair"))
    planned = await Mike(at.desk, brief()).breakdown(SURFACE, "", None)
    assert planned.breakdown is not None
    assert at.asked == ["breakdown 1", "repair 1"]
    (refused,), (told,) = at.sink.named("answer_refused"), at.sink.named("answer_repaired_by_model")
    assert (refused.data["layer"], refused.data["turn"], refused.data["purpose"]) == ("none", 1, "breakdown")
    assert "line" in refused.data["problems"][0]
    assert told.data["repairs"] == {"trailing_comma": 1}
    assert told.data["first_repairs"][0]["kind"] == "trailing_comma"
    assert told.data["first_repairs"][0]["offset"] > len(SMALL) - 10
    assert told.data["layer"] == "repair"


async def test_a_repair_that_is_none_is_told_and_the_loop_asks_anew() -> None:
    at = bench(says(UNREADABLE_PLAN), says("no", "repair"), says(SMALL))
    planned = await Mike(at.desk, brief()).breakdown(SURFACE, "", None)
    assert planned.breakdown is not None
    assert at.asked == ["breakdown 1", "repair 1", "breakdown 2"]
    assert at.sink.named("answer_repair_failed")


async def test_missing_tasks_that_came_are_not_asked_for_again_when_the_number_is_known() -> None:
    cut = json.dumps({**breakdown(STORY), "task_count": 3, "tasks": TASKS[:3]})
    cut = cut[: cut.index("T-US-1-02")]
    rest = json.dumps({"tasks": TASKS[1:3]})[:-1]
    at = bench(says(cut), says(rest, "breakdown_missing"))
    planned = await Mike(at.desk, brief()).breakdown(SURFACE, "", None)
    assert at.asked[:2] == ["breakdown 1", "breakdown_missing 1"]
    assert planned.breakdown is not None
    assert len(planned.breakdown.tasks) == 3
    assert len(at.asked) == 2
    assert at.sink.named("breakdown_completed")[0].data["layer"] == "truncation"


PLAN = Breakdown.model_validate(breakdown(STORY, task(STORY, 1, ["a.py", "b.py"])))
FILES = json.dumps(delivery(STORY, 1, {"a.py": "A = 1\n", "b.py": "B = 2\n"}))
SUITE = json.dumps(suite(STORY, suite_text(STORY)))
ANALYSIS = json.dumps({"failure_analysis": [{"file": "a.py", "issue": "wrong", "fix": "right"}]})
TEXTS = [SMALL, FILES, SUITE, ANALYSIS]
SAID = st.sampled_from(
    ["I cannot.", "", UNREADABLE_PLAN, "{}", '{"tasks": []}', *TEXTS, *(text[: len(text) * 2 // 3] for text in TEXTS),
     *(text[:30] for text in TEXTS)]
)  # fmt: skip
STOPS = st.sampled_from([StopReason.END_TURN, StopReason.MAX_TOKENS])


async def plan(at: Bench) -> None:
    await Mike(at.desk, brief()).breakdown(SURFACE, "", None)


async def deliver(at: Bench) -> None:
    async def judge(_delivery: object) -> list[Finding]:
        return [major("x.no", "never good")]

    given_brief = TaskBrief(task=PLAN.tasks[0], breakdown=PLAN, surface=SURFACE, allowed_dependencies=(),
                            modified_files={})  # fmt: skip

    async def look(_paths: Sequence[str]) -> dict[str, str]:
        return {}

    await Alex(at.desk, brief()).deliver(given_brief, judge, look)


async def write(at: Bench) -> None:
    async def judge(_suite: object) -> list[Finding]:
        return [major("x.no", "never good")]

    await Jordan(at.desk, brief()).suite(SuiteBrief(breakdown=PLAN, surface=SURFACE, files={}), judge)


async def analyse(at: Bench) -> None:
    test = TestSuite(test_file="tests/test_a.py", test_content="", test_cases=())
    report = TestReport(cases=(), exit_code=1)
    await Jordan(at.desk, brief()).analyse(
        FailureBrief(surface=SURFACE, suite=test, report=report, files={}, task_files={})
    )


@settings(max_examples=examples(150))
@given(
    loop=st.sampled_from([plan, deliver, write, analyse]),
    replies=st.lists(st.tuples(SAID, STOPS), min_size=1, max_size=8),
    repairs=st.integers(0, 1), attempts=st.integers(0, 3), builds=st.integers(1, 4),
)  # fmt: skip
async def test_no_loop_costs_more_than_its_budget(
    loop: Any, replies: list[tuple[str, StopReason]], repairs: int, attempts: int, builds: int
) -> None:
    """Always refused, always cut, in turns or at random: the last reply goes on forever."""
    answer = {"repair_requests": repairs, "max_attempts": attempts}
    policies = Policies.model_validate({"answer": answer, "build": {"max_attempts": builds}})
    at = babble(*replies, policies=policies)
    await loop(at)
    repaired = sum(one.startswith("repair") for one in at.asked)
    assert repaired <= repairs
    assert len(at.asked) - repaired <= (builds if loop is deliver else 1 + attempts)
