"""Waiting for people on the real engine and a real database: durable, once, without a slot, with a stored deadline."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown
from orchestrator.core.command import GATE_ANSWERED, GATE_OPENED, NOBODY, Choice, Gate, GateAnswer, GateKind, answer_id
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event
from orchestrator.core.ports import Step
from orchestrator.core.sprint import StoryOutcome
from orchestrator.engine.durable import DurableEngine
from orchestrator.engine.gates import GateKeeper
from orchestrator.files.process import SystemClock
from orchestrator.sprint.slots import Slots
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventStore
from tests.engine.test_durable import PROMPT, Body, Counting, House, done, read_events

PLAN = Breakdown(story_id="A", architectural_conflict=ArchitecturalConflict(detected=False), task_count=0, tasks=())
GATE = Gate(kind=GateKind.PLAN, reason="why", choices=(Choice.APPROVE,), valid=True, plan=PLAN, iteration=1)


def asking(timeout_s: float | None = None, questions: int = 1) -> Body:
    """A story that pays for one turn, asks a person, and tells what was answered."""

    async def story(step: Step, payload: dict[str, Any]) -> StoryOutcome:
        await step.turn(PROMPT)
        told = []
        for _ in range(questions):
            gate = await step.open_gate(GATE, timeout_s)
            await step.emit(GATE_OPENED, "asks", gate=gate.model_dump(mode="json"))
            answer = await step.answer(gate)
            told.append(f"{gate.number} {answer.choice} {answer.by}")
        return done("; ".join(told), payload["story"])

    return story


def event_of(workflow: str, answer: GateAnswer) -> Event:
    sprint, _, story = workflow.partition("/")
    return Event(
        id=answer_id(workflow, answer.number), time=datetime.now(UTC), name=GATE_ANSWERED, message="answered",
        sprint=sprint, story=story, data={"answer": answer.model_dump(mode="json")},
    )  # fmt: skip


async def answered(folder: Path, workflow: str, by: str, number: int = 1, choice: Choice = Choice.APPROVE) -> bool:
    """Answer from elsewhere: a store of its own, as another process has; False when somebody was first."""
    async with EventStore(sqlite_url(folder / "events.sqlite")) as sink:
        return await sink.emit(event_of(workflow, GateAnswer(number=number, choice=choice, by=by)))


async def told(folder: Path, name: str, count: int = 1) -> list[Event]:
    """Wait until that many events of a name are recorded."""
    while True:
        found = [event for _, event in await asyncio.to_thread(read_events, folder) if event.name == name]
        if len(found) >= count:
            return found
        await asyncio.sleep(0.02)


async def alive_until(house: House, body: Body, moment: Callable[[], Awaitable[Any]]) -> None:
    """One process's life that ends at `moment`, in the middle of its work."""

    async def use(engine: DurableEngine) -> None:
        task = asyncio.create_task(engine.run_story("SP-001/A", {"sprint": "SP-001", "story": "A"}))
        await asyncio.wait_for(moment(), 20)
        task.cancel()

    await house.live(body, use)


async def test_an_answer_given_while_nothing_was_alive_counts_and_nothing_is_paid_again(tmp_path: Path) -> None:
    provider = Counting()
    await alive_until(House(tmp_path, provider), asking(questions=2), lambda: told(tmp_path, GATE_OPENED))
    assert await answered(tmp_path, "SP-001/A", "anna")
    assert not await answered(tmp_path, "SP-001/A", "bert", choice=Choice.CANCEL)
    second = House(tmp_path, provider)
    await alive_until(second, asking(questions=2), lambda: told(tmp_path, GATE_OPENED, 2))
    assert await answered(tmp_path, "SP-001/A", "bert", number=2)
    (outcome,) = await House(tmp_path, provider).run(asking(questions=2))
    assert outcome.findings[0].message == "1 approve anna; 2 approve bert"
    assert provider.calls == 1
    opened = await told(tmp_path, GATE_OPENED)
    assert [Gate.model_validate(event.data["gate"]).number for event in opened] == [1, 2]


async def test_one_of_many_people_who_answer_from_elsewhere_wins_and_ends_the_wait(tmp_path: Path) -> None:
    async def people() -> list[bool]:
        await told(tmp_path, GATE_OPENED)
        return await asyncio.gather(*(answered(tmp_path, "SP-001/A", f"person {n}") for n in range(8)))

    outcomes, won = await asyncio.gather(House(tmp_path, Counting()).run(asking()), people())
    assert sum(won) == 1
    assert outcomes[0].findings[0].message == f"1 approve person {won.index(True)}"


async def test_the_deadline_is_the_one_of_the_first_life(tmp_path: Path) -> None:
    timeout_s = 1.5
    await alive_until(House(tmp_path, Counting()), asking(timeout_s), lambda: told(tmp_path, GATE_OPENED))
    (outcome,) = await House(tmp_path, Counting()).run(asking(timeout_s))
    assert outcome.findings[0].message == f"1 time_out {NOBODY}"
    (opened,) = await told(tmp_path, GATE_OPENED)
    gate = Gate.model_validate(opened.data["gate"])
    assert gate.opened_at is not None
    assert gate.deadline == gate.opened_at + timedelta(seconds=timeout_s)
    (late,) = await told(tmp_path, GATE_ANSWERED)
    assert late.time >= gate.deadline
    assert not await answered(tmp_path, "SP-001/A", "anna"), "who comes later is told"


async def test_who_waits_holds_no_slot_and_gets_one_back_before_the_others(tmp_path: Path) -> None:
    house = House(tmp_path, Counting())
    slots, seen = house.slots, []

    async def answer() -> None:
        await told(tmp_path, GATE_OPENED)
        while not slots.waiting:
            await asyncio.sleep(0.01)
        seen.append((slots.free, set(slots.waiting)))
        slots.take("SP-001/B")
        assert await answered(tmp_path, "SP-001/A", "anna")
        while slots.waiting:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        seen.append((slots.free, set(slots.waiting)))
        slots.release("SP-001/B")

    slots.take("SP-001/A")
    await asyncio.gather(house.run(asking()), answer())
    assert seen == [(True, {"SP-001/A"}), (False, set())]
    assert not slots.free, "A holds the slot again"


async def test_while_the_database_is_away_no_deadline_passes(tmp_path: Path) -> None:
    class Away(EventStore):
        looks = 0

        async def find(self, ids: Any) -> Any:
            self.looks += 1
            if self.looks == 1:
                raise ConfigError("the event log cannot be used")
            return await super().find(ids)

    async with (
        Away(sqlite_url(tmp_path / "events.sqlite")) as sink,
        GateKeeper(sink, SystemClock(), Slots(1).given_back) as gates,
    ):
        assert await answered(tmp_path, "SP-001/A", "anna")
        waiting = gates.answer("SP-001/A", "SP-001", "A", gates.opened(GATE, 1, 0.001))
        assert (await asyncio.wait_for(waiting, 10)).by == "anna"
    assert sink.looks == 2
