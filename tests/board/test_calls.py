"""Calls of a story from what really is kept of them: the reply journal's files and the events of the log."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.board.calls import EXCERPT, StoryCalls, add_up
from orchestrator.core.calls.exchange import FailedCall, Prompt, Purpose, Reply, Segment, TurnKey, Usage
from orchestrator.core.errors import UnknownName
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import major
from orchestrator.core.sprint import SprintRecord, StageTime
from orchestrator.storage.reply_journal import ReplyJournal
from orchestrator.storage.state_folder import StateFolder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RECORD = SprintRecord(
    sprint="S", backlog="/b", repo="/r", base="", story_ids=("US-1",), generations={"US-1": 2}, started_at=NOON
)


class Kept:
    """What is kept of a story while it runs, in its order."""

    def __init__(self, home: Path) -> None:
        self.folder = StateFolder(home)
        self.journal = ReplyJournal(self.folder.replies).workflow("S/US-1@2")
        self.events: list[Event] = []

    def tell(self, name: str, persona: str, task: str | None = None, level: Level = Level.INFO, **data: Any) -> None:
        number = len(self.events)
        self.events.append(
            Event(
                id=f"S/US-1@2:{number}", time=NOON + timedelta(seconds=number), name=name, message=f"{persona}: {name}",
                level=level, sprint="S", story="US-1", task=task, persona=persona, data=data,
            )
        )  # fmt: skip

    def ask(
        self,
        step: int,
        persona: str,
        purpose: Purpose,
        text: str,
        task: str | None = None,
        *,
        asked: str = "",
        failed: int = 0,
        kept: bool = True,
        cost: float | None = 0.25,
    ) -> None:
        """One request that is answered, after `failed` calls that were not."""
        key = TurnKey(persona=persona, story="US-1", task=task, purpose=purpose)
        prompt = Prompt(
            key=key, segments=(Segment(name="task", text=asked or f"prompt {step}"),), name="a/b", version="1"
        )
        self.tell("turn_started", persona, task, purpose=purpose, prompt_hash=prompt.hash, prompt="a/b")
        if kept:
            self.journal.keep_prompt(step, prompt)
        for _ in range(failed):
            turn = self.journal.next_turn(key)
            failure = FailedCall(turn=turn, kind="overloaded", message="529", original_message="Overloaded")
            self.journal.record_failure(step, prompt.model_copy(update={"turn": turn}), failure)
            self.tell("call_retried", persona, task, Level.WARN, purpose=purpose, turn=turn, kind="overloaded")
        turn = self.journal.next_turn(key)
        usage = Usage(input=100, cached=40, output=10)
        reply = Reply(key=key, turn=turn, text=text, usage=usage, cost_usd=cost, model="m-1", duration_ms=1500)
        if kept:
            self.journal.record_reply(step, prompt.model_copy(update={"turn": turn}), reply)
        self.tell(
            "turn_finished", persona, task, purpose=purpose, turn=turn, input_tokens=100, cached_tokens=40,
            output_tokens=10, reasoning_tokens=0, cost_usd=cost, duration_ms=1500, model="m-1", paid=True,
        )  # fmt: skip

    def calls(self) -> StoryCalls:
        return StoryCalls(self.folder, RECORD, "US-1", self.events)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def rows(kept: Kept, *, is_running: bool = True) -> list[tuple[str, str, str, str]]:
    return [
        (one["id"], f"{one['persona']} {one['purpose']}", one["mark"], one["verdict"])
        for one in kept.calls().rows(is_running=is_running)
    ]


def test_each_call_says_what_became_of_it_retries_and_failures_too(kept: Kept) -> None:
    missing = [major("breakdown.x", "no files", fix="name them").model_dump(mode="json")]
    kept.tell("secret_masked", "mike", level=Level.WARN, findings=missing)
    kept.ask(2, "mike", Purpose.BREAKDOWN, "{}", failed=1)
    kept.tell(
        "answer_healed", "mike", repairs={"trailing_comma": 3}, first_repairs=[{"kind": "trailing_comma", "offset": 7}]
    )
    kept.tell("answer_sent_back", "mike", findings=missing)
    kept.ask(5, "mike", Purpose.BREAKDOWN, "{ }")
    kept.tell("answer_accepted", "mike", findings=[])
    kept.tell("plan_judged", "", verdict="revise", findings=missing)
    kept.ask(6, "mike", Purpose.BREAKDOWN, "{  }")
    kept.tell("answer_accepted", "mike", findings=[])
    kept.tell("plan_judged", "", verdict="valid", findings=[])
    kept.ask(7, "alex", Purpose.DELIVERY, "READ a.py", "T-1")
    kept.tell("files_shown", "alex", "T-1", files=["a.py"], only=True)
    kept.ask(8, "alex", Purpose.DELIVERY, "{", "T-1")
    kept.tell("answer_refused", "alex", "T-1", problems=["cut"], repairs={})
    kept.ask(9, "alex", Purpose.REPAIR, "{}", "T-1")
    kept.tell("answer_repaired_by_model", "alex", "T-1", repairs={}, first_repairs=[])
    kept.tell("turn_started", "alex", "T-2", purpose="delivery", prompt_hash="0" * 16, prompt="a/b")
    assert rows(kept) == [
        ("2-1", "mike breakdown", "again", "failed, asked again"),
        ("2-2", "mike breakdown", "again", "sent back"),
        ("5-3", "mike breakdown", "again", "revise"),
        ("6-4", "mike breakdown", "good", "accepted"),
        ("7-1", "alex delivery", "now", "asked for files"),
        ("8-2", "alex delivery", "bad", "unreadable"),
        ("9-1", "alex repair", "good", "repaired on request"),
        ("", "alex delivery", "now", "under way"),
    ]
    assert rows(kept, is_running=False)[-1][-1] == "not ended"
    failed, healed, *_ = kept.calls().rows(is_running=True)
    assert failed["error"] == {"kind": "overloaded", "message": "529", "original_message": "Overloaded"}
    assert healed["repairs"] == [{"kind": "trailing comma", "count": 3, "offsets": [7]}]
    assert [one["name"] for one in healed["told"]] == ["secret masked", "answer healed", "answer sent back"]
    assert {one["fix"] for one in healed["findings"]} == {"name them"}
    took = {name: healed[name] for name in ("input", "cached", "output", "usd", "duration_ms", "model")}
    assert took == {"input": 100, "cached": 40, "output": 10, "usd": 0.25, "duration_ms": 1500, "model": "m-1"}


def test_a_turn_that_failed_for_good_ends_with_its_last_call(kept: Kept) -> None:
    key = TurnKey(persona="alex", story="US-1", task="T-1", purpose=Purpose.DELIVERY)
    prompt = Prompt(key=key, segments=(Segment(name="task", text="x"),))
    kept.tell("turn_started", "alex", "T-1", purpose="delivery", prompt_hash=prompt.hash)
    for turn in (1, 2):
        failure = FailedCall(turn=turn, kind="auth", message="401")
        kept.journal.record_failure(4, prompt.model_copy(update={"turn": turn}), failure)
    kept.tell("turn_failed", "alex", "T-1", Level.ERROR, purpose="delivery")
    assert [one[::3] for one in rows(kept)] == [("4-1", "failed, asked again"), ("4-2", "failed")]


def test_a_call_has_its_prompt_and_answer_whole_and_its_neighbours(kept: Kept) -> None:
    secret = "sk-ant-api03-abcdefghijklmnop1"
    answer = f"{'word ' * (EXCERPT // 5 - 2)}{secret} and more {'x' * 5000}"
    kept.ask(2, "mike", Purpose.BREAKDOWN, "first", asked="the same prompt")
    kept.ask(4, "mike", Purpose.BREAKDOWN, answer, asked="the same prompt")
    kept.ask(6, "alex", Purpose.DELIVERY, "\ud800", "T-1")
    calls = kept.calls()
    call = calls.call("4-2")
    assert (call["before"], call["after"], call["number"]) == ("2-1", "6-1", 2)
    assert (call["prompt_text"], call["answer"]) == ("the same prompt", answer)
    excerpt = calls.rows(is_running=True)[1]["excerpt"]
    assert excerpt.startswith("word word")
    assert "sk-ant" not in excerpt  # a part of a secret would not be seen as one
    assert "more characters" in excerpt
    for name in ("4-1", "../../x", ""):
        with pytest.raises(UnknownName):
            calls.call(name)


def test_what_another_machine_keeps_is_shown_by_its_events(kept: Kept) -> None:
    kept.ask(2, "mike", Purpose.BREAKDOWN, "x", kept=False)
    kept.tell("answer_accepted", "mike", findings=[])
    (row,) = kept.calls().rows(is_running=False)
    assert (row["id"], row["verdict"], row["input"], row["usd"]) == ("", "accepted", 100, 0.25)
    assert row["excerpt"] == "its text was not kept on this machine"


def test_costs_add_up_by_stage_and_persona(kept: Kept) -> None:
    for step in (2, 3):
        kept.ask(step, "mike", Purpose.BREAKDOWN, "x")
    kept.ask(4, "alex", Purpose.DELIVERY, "x", "T-1")
    kept.ask(5, "mike", Purpose.AMENDMENT, "x", cost=None)
    kept.tell(
        "turn_failed", "alex", "T-1", purpose="delivery", cost_usd=0.1, input_tokens=7, cached_tokens=0, output_tokens=0
    )
    stages = [StageTime(stage="planning", duration_s=4.5), StageTime(stage="running tests", duration_s=2.0)]
    told = [(row["stage"], row["duration_s"], row["personas"]) for row in add_up(kept.events, [*stages])]
    assert told == [
        ("planning", 4.5, [
            {"persona": "mike", "calls": 3, "cost_usd": None, "input": 300, "cached": 120, "output": 30},
        ]),
        ("running tests", 2.0, []),
        ("building", 0.0, [
            {"persona": "alex", "calls": 1, "cost_usd": 0.35, "input": 107, "cached": 40, "output": 10},
        ]),
    ]  # fmt: skip
