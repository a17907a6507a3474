"""Alex: build.max_attempts replies in all, continuations included; whole files of a cut delivery are kept."""

import json
from collections.abc import Sequence
from typing import Any

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Delivered, TaskBrief
from orchestrator.core.delivery import Delivery
from orchestrator.core.finding import Finding, major
from orchestrator.core.suite import FailureInstruction
from orchestrator.personas.alex import Alex
from tests.personas.desks import STORY, SURFACE, Bench, bench, brief
from tests.support import breakdown, delivery, task

PLAN = Breakdown.model_validate(breakdown(STORY, task(STORY, 1, ["a.py", "b.py"])))
TREE = {"app.py": "NAME = 1\n"}
"""Other files of the branch."""
FILES = {"a.py": "A = 1\n", "b.py": "B = 2\n"}
WHOLE = json.dumps(delivery(STORY, 1, FILES))
CUT = WHOLE[: WHOLE.index("B = 2") + 3]


def says(value: Any, purpose: str = "delivery") -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"persona": "alex", "purpose": purpose, "task": "T-US-1-01", "text": text}


def a_brief(**fields: Any) -> TaskBrief:
    given = {"allowed_dependencies": (), "modified_files": {}, **fields}
    return TaskBrief(task=PLAN.tasks[0], breakdown=PLAN, surface=SURFACE, **given)


async def delivered(at: Bench, verdicts: Sequence[list[Finding]] = (), **fields: Any) -> Delivered:
    left = list(verdicts)

    async def judge(_delivery: Delivery) -> list[Finding]:
        return left.pop(0) if left else []

    async def look(paths: Sequence[str]) -> dict[str, str]:
        return {path: text for path, text in TREE.items() if path in paths}

    return await Alex(at.desk, brief()).deliver(a_brief(**fields), judge, look)


def texts(result: Delivered) -> dict[str, str]:
    assert result.delivery is not None
    return {change.path: change.content for change in result.delivery.files}


async def test_a_whole_delivery_is_accepted_and_the_prompt_holds_what_is_needed() -> None:
    at = bench(says(WHOLE))
    fix = FailureInstruction(file="a.py", issue="wrong", fix="make A one")
    result = await delivered(
        at, modified_files={"a.py": "A = 0\n"}, instructions=(fix,), allowed_dependencies=("rich",)
    )
    assert result.accepted
    assert texts(result) == FILES
    assert at.asked == ["delivery 1"]
    shown = at.step.prompts[0].text
    assert "A = 0" in shown
    assert "make A one" in shown
    assert "rich" in at.segment(0, "sprint")


async def test_the_budget_is_replies_and_the_last_delivery_is_kept() -> None:
    at = bench(says(WHOLE), says(WHOLE), says(WHOLE), says(WHOLE))
    wrong = [major("contract.file", "c.py is not allowed")]
    result = await delivered(at, [wrong] * 9)
    assert not result.accepted
    assert result.findings == tuple(wrong)
    assert texts(result) == FILES
    assert at.asked == ["delivery 1", "delivery 2", "delivery 3"]
    assert "c.py is not allowed" in at.segment(2, "feedback")


async def test_a_cut_delivery_keeps_its_whole_files_and_asks_for_the_rest() -> None:
    at = bench(says(CUT), says(delivery(STORY, 1, {"b.py": "B = 3\n"}), "continuation"))
    result = await delivered(at)
    assert result.accepted
    assert texts(result) == {"a.py": "A = 1\n", "b.py": "B = 3\n"}
    assert at.asked == ["delivery 1", "continuation 1"]
    asked = at.segment(1, "feedback")
    assert "### a.py" in asked
    assert "A = 1" in asked
    assert "- b.py" in asked
    assert "its whole items are kept" in at.sink.named("answer_truncated")[0].message


LONG = "x = 1\n" * 500
HALF = json.dumps(delivery(STORY, 1, {"a.py": LONG}))[:2000]


async def test_a_file_that_fits_into_no_answer_is_not_asked_for_again_whole() -> None:
    cut = {**says(HALF), "stop_reason": "max_tokens", "output_tokens": 600}
    at = bench(cut, cut, says(WHOLE))
    result = await delivered(at, modified_files={"a.py": LONG})
    assert at.asked == ["delivery 1", "delivery 2"], "no continuation, and no third request for what cannot be"
    asked = at.segment(1, "feedback")
    assert "`a.py` fits into no answer: it was not whole after 600 tokens" in asked
    assert "Change `a.py` by edits" in asked
    assert HALF[:60] not in asked
    assert "### `EDIT`" in at.segment(1, "rules"), "only a plan can edit"
    assert [one.code for one in result.findings] == ["answer.truncated", "delivery.too_long"]
    (told,) = {event.message for event in at.sink.named("answer_truncated")}
    assert told == "alex's delivery was cut off", "nothing of it is kept"


async def test_of_a_new_file_that_fits_into_no_answer_is_said_how_to_split_it() -> None:
    at = bench({**says(HALF), "stop_reason": "max_tokens"}, says(WHOLE))
    assert (await delivered(at)).accepted
    assert "put a part of it into a module of its own" in at.segment(1, "feedback")


async def test_of_a_delivery_that_repeats_itself_without_end_is_kept_what_came_before() -> None:
    loop = json.dumps("    return 1\n" * 2000)[1:-1]
    one_whole, nothing_whole = CUT[:-3] + loop, HALF[: HALF.index("x = 1")] + loop
    missing = says(delivery(STORY, 1, {"b.py": "B = 2\n"}), "continuation")
    at = bench({**says(one_whole), "stop_reason": "interrupted"}, missing)
    assert texts(await delivered(at)) == FILES
    assert at.asked == ["delivery 1", "continuation 1"]
    at = bench({**says(nothing_whole), "stop_reason": "max_tokens", "output_tokens": 8000}, says(WHOLE))
    assert texts(await delivered(at)) == FILES
    assert at.asked == ["delivery 1", "delivery 2"]
    assert "without end" in at.segment(1, "feedback")
    assert "fits into no answer" not in at.segment(1, "feedback")
