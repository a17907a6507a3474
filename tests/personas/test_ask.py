"""The answer loop: one repair request per answer, re-asks within the budget, feedback with the last answer."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from orchestrator.checks.suite import read_analysis
from orchestrator.core.calls.exchange import Purpose
from orchestrator.core.calls.wire import AnalysisAnswer
from orchestrator.core.errors import SchemaValidationError
from orchestrator.core.finding import Finding
from orchestrator.personas.ask import Asked, Judge, ask
from orchestrator.personas.request import Request
from orchestrator.prompts.render import PROMPT_SLOTS
from orchestrator.settings import Policies
from tests.personas.desks import Bench, bench

GOOD = json.dumps({"failure_analysis": [{"file": "a.py", "issue": "wrong sum", "fix": "add them"}]})
REFUSED = "I am sorry, I cannot say."
INVALID = json.dumps({"failure_analysis": []})
CUT = GOOD[:-3] + ', "issue'


def said(*texts: str, repair: str | None = None) -> Bench:
    entries = [{"persona": "jordan", "purpose": "analysis", "text": text} for text in texts]
    if repair is not None:
        entries.append({"persona": "jordan", "purpose": "repair", "text": repair})
    return bench(*entries)


async def asked(at: Bench, *, replies: int = 3, judge: Judge[Any] | None = None, feedback: str = "") -> Asked[Any]:
    request = Request(
        persona="jordan",
        purpose=Purpose.ANALYSIS,
        prompt="tester/analysis",
        answer=AnalysisAnswer,
        schema_name="analysis",
        replies=replies,
        feedback=feedback,
        slots=dict.fromkeys(PROMPT_SLOTS["tester/analysis"] - {"schema", "feedback"}, "s"),
    )

    def read(value: Any) -> tuple[Any, Sequence[Finding]]:
        instructions, findings = read_analysis(value)
        return instructions or None, findings

    return await ask(at.desk, request, read=read, judge=judge)


async def test_the_repair_request_shows_the_broken_text_in_a_fence_and_its_answer_counts() -> None:
    at = said(REFUSED, repair=GOOD)
    result = await asked(at)
    assert result.accepted
    assert at.asked == ["analysis 1", "repair 1"]
    assert f"```\n{REFUSED}\n```" in at.segment(1, "task")
    assert "```json\n{" in at.segment(1, "contract")
    assert at.sink.named("answer_repaired_by_model")


async def test_a_value_that_fails_a_check_is_asked_again_under_its_own_purpose() -> None:
    at = said(INVALID, GOOD, repair=GOOD)
    assert (await asked(at)).accepted
    assert at.asked == ["analysis 1", "analysis 2"]
    assert "failure_analysis is no filled list" in at.segment(1, "feedback")
    sent_back = at.sink.named("answer_sent_back")
    assert [finding["code"] for event in sent_back for finding in event.data["findings"]] == ["analysis.shape"]


@pytest.mark.parametrize(("piece", "told"), [("// so on\n", "`// so on`"), (" \n", "blanks")])
async def test_an_answer_that_repeats_itself_without_end_is_told_so_and_asked_for_in_another_way(
    piece: str, told: str
) -> None:
    looped = {"persona": "jordan", "purpose": "analysis", "text": CUT + piece * 9000, "stop_reason": "interrupted"}
    at = bench(looped, {"persona": "jordan", "purpose": "analysis", "text": GOOD})
    assert (await asked(at)).accepted
    assert at.asked == ["analysis 1", "analysis 2"]
    said_of_it = at.segment(1, "feedback")
    assert f"the answer repeated {told}" in said_of_it
    assert piece * 9 not in said_of_it
    assert [prompt.temperature for prompt in at.step.prompts] == [None, 1.0]


async def test_a_whole_answer_with_blanks_without_end_behind_it_is_whole() -> None:
    blanks = {"persona": "jordan", "purpose": "analysis", "text": GOOD + "\n" * 20_000, "stop_reason": "interrupted"}
    assert (await asked(bench(blanks))).accepted


def settled(at: Bench, **sections: Any) -> Bench:
    at.desk.__dict__["policies"] = Policies.model_validate(sections)
    return at


async def test_the_same_answer_twice_changes_the_request_and_thrice_ends_the_loop() -> None:
    broken = GOOD.replace("[", "").replace("sum", 'x" : "')
    at = settled(said(*[broken] * 6), stronger=["jordan"], answer={"repair_requests": 0, "max_attempts": 5})
    refused = await failed(at, replies=6)
    assert at.asked == ["analysis 1", "analysis 2", "analysis 3"], "a fourth would be asked in vain"
    first, second, third = at.step.prompts
    assert [(one.stronger, one.temperature) for one in (first, second)] == [(False, None)] * 2
    assert (third.stronger, third.temperature) == (True, 1.0)
    assert "letter for letter" not in second.text
    assert "letter for letter" in third.text
    assert "It fails at line 1 of your answer" in third.text
    assert 'wrong x" :' in at.segment(2, "feedback").split("It fails at line 1")[1], "the faulty line itself"
    assert [one.code for one in refused.findings][-1] == "answer.repeated"
    assert "came 3 times" in refused.findings[-1].message


async def failed(at: Bench, *, replies: int) -> SchemaValidationError:
    with pytest.raises(SchemaValidationError) as raised:
        await asked(at, replies=replies)
    return raised.value
