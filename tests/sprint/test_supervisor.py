"""The sprint: order, bounds, what blocks what, pauses, continuing from the log."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.command import Order
from orchestrator.core.history import StoryHistory, failed_in_a_row, fold, last_rest
from orchestrator.core.sprint import SprintRecord, StoryOutcome, StoryStatus
from orchestrator.core.story import CellUpdate, Priority, Story
from orchestrator.files.process import SystemClock
from orchestrator.sprint.slots import Slots
from orchestrator.sprint.state import Board
from orchestrator.sprint.supervisor import Supervisor
from tests.effort import examples
from tests.reports.test_history import START
from tests.simulated import MemorySink

DONE, FAILED = StoryStatus.DONE, StoryStatus.FAILED
End = StoryStatus | Exception | StoryOutcome


class Runner:
    """Runs stories in name only; ends each as it is told."""

    def __init__(self, ends: Mapping[str, End]) -> None:
        self.ends = ends
        self.people: dict[str, asyncio.Event] = {}
        """Story → what it waits for at a gate, half-way through."""
        self.slots = Slots(0)
        self.started: list[str] = []
        self.ended: list[str] = []
        self.running = self.most = 0

    async def end_story(self, workflow_id: str) -> None:
        self.ended.append(workflow_id)

    async def run_story(self, workflow_id: str, payload: dict[str, Any]) -> StoryOutcome:
        story = str(payload["story"])
        self.started.append(workflow_id)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if story in self.people:
            async with self.slots.given_back(workflow_id):
                await self.people[story].wait()
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
        end = self.ends.get(story, DONE)
        if isinstance(end, Exception):
            raise end
        return end if isinstance(end, StoryOutcome) else StoryOutcome(id=story, status=end)


class Cells:
    """Keeps what would be written into the backlog."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, str]] = {}

    async def put(self, updates: Sequence[CellUpdate]) -> None:
        for update in updates:
            self.rows.setdefault(update.story_id, {}).update(update.cells)


class Renewals:
    """Makes stories again, in name only."""

    def __init__(self, play: "Play") -> None:
        self._play = play

    async def renew(self, stories: Sequence[str], order: Order) -> SprintRecord:
        after = self._play.record.reset(tuple(stories))
        self._play.record = after.model_copy(update={"orders": (*after.orders, order.id)})
        return self._play.record

    async def clear(self, order: Order) -> None:
        await self.renew(self._play.record.story_ids, order)

    async def renewed_by(self, order: Order) -> bool:
        return order.id in self._play.record.orders


class Play:
    """One sprint; `again` is the same sprint in a new process."""

    def __init__(self, needs: Mapping[str, Sequence[str]], ends: Mapping[str, End] | None = None) -> None:
        self.sink, self.cells = MemorySink(), Cells()
        self.priorities: dict[str, Priority] = {}
        self.record = SprintRecord(
            sprint="SP-001",
            backlog="/b.csv",
            repo="/r",
            base="",
            story_ids=tuple(needs),
            needs={story: tuple(waits) for story, waits in needs.items()},
            started_at=START,
        )
        self.runner = Runner(ends or {})
        self.renewer = Renewals(self)
        self.stays = False
        self.spent: Callable[[str], str] = lambda _story: ""
        self.over = ""
        """Which budget is used up."""

    async def run(self, *, at_once: int = 4, stop_after: int = 0, killed_after: int | None = None) -> Supervisor:
        """A process's life; `killed_after` so many events of the log nothing more is written by it."""
        supervisor = self._supervisor(at_once, stop_after)
        if killed_after is None:
            await asyncio.wait_for(supervisor.run(), 10)
            return supervisor
        task = asyncio.create_task(supervisor.run())
        while len(self.sink.events) < killed_after:
            await asyncio.sleep(0)
        self.sink, kept = MemorySink(), self.sink.events[:killed_after]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for event in kept:
            await self.sink.emit(event)
        self.runner = Runner(self.runner.ends)
        return supervisor

    def _supervisor(self, at_once: int, stop_after: int) -> Supervisor:
        async def payload(story: Story) -> dict[str, Any]:
            return {"story": story.id}

        stories = {
            name: Story(id=name, title=name, priority=self.priorities.get(name, Priority.MEDIUM))
            for name in self.record.story_ids
        }
        self.slots = self.runner.slots = Slots(at_once)
        self.board = Board(self.record.sprint, lambda: self.over)
        self.board.read(enumerate(self.sink.events))
        return Supervisor(
            record=self.record,
            stories=stories,
            histories=self.histories(),
            runner=self.runner,
            sink=self.sink,
            clock=SystemClock(),
            cells=self.cells,
            payload=payload,
            slots=self.slots,
            board=self.board,
            renewer=self.renewer,
            stays=self.stays,
            spent=self.spent,
            stop_after_failures=stop_after,
            failed=failed_in_a_row(self.histories(), last_rest(self.sink.events)),
        )

    def histories(self) -> dict[str, StoryHistory]:
        return fold(self.record, self.sink.events)

    def statuses(self) -> dict[str, str]:
        return {story: history.status.value for story, history in self.histories().items()}

    def outcome(self, story: str) -> StoryOutcome:
        outcome = self.histories()[story].outcome
        assert outcome is not None
        return outcome

    @property
    def order(self) -> list[str]:
        return [workflow.partition("/")[2] for workflow in self.runner.started]


async def test_dependants_start_after_what_they_wait_for_and_cells_follow() -> None:
    play = Play({"B": ["A"], "A": [], "C": ["B", "A"]})
    await play.run()
    assert play.order == ["A", "B", "C"]
    assert set(play.statuses().values()) == {"done"}
    row = play.cells.rows["C"]
    assert (row["Execution_Status"], row["Sprint_ID"], row["Last_Event"]) == ("completed", "SP-001", "story_finished")
    assert row["Last_Updated"] == row["Execution_Completed_At"] >= row["Execution_Started_At"]
    assert row["Last_Updated"].endswith("Z")


async def test_ready_stories_start_by_priority_then_by_place() -> None:
    play = Play({"A": [], "B": [], "C": [], "D": []})
    play.priorities = {"C": Priority.CRITICAL, "D": Priority.HIGH, "B": Priority.HIGH}
    await play.run(at_once=1)
    assert play.order == ["C", "B", "D", "A"]


async def test_an_exception_in_a_workflow_fails_one_story_only() -> None:
    play = Play({"A": [], "B": []}, {"A": ZeroDivisionError("a defect")})
    await play.run()
    assert play.statuses() == {"A": "failed", "B": "done"}
    (finding,) = play.outcome("A").findings
    assert (finding.code, "a defect" in finding.message) == ("internal.error", True)


async def test_failures_in_a_row_pause_the_sprint_and_the_same_command_goes_on() -> None:
    play = Play({name: [] for name in "ABCDEF"}, {"A": FAILED, "C": FAILED, "D": FAILED})
    paused = (await play.run(at_once=1, stop_after=2)).paused
    assert paused is not None
    assert "2 stories failed in a row" in paused
    assert play.order == ["A", "B", "C", "D"]
    assert play.statuses()["E"] == "pending"
    assert len(play.sink.named("sprint_paused")) == 1
    assert (await play.run(at_once=1, stop_after=2)).paused is None
    assert play.order[4:] == ["E", "F"]


@pytest.mark.parametrize("killed_after", range(1, 10))
async def test_a_kill_neither_forgets_failures_nor_the_pause_they_led_to(killed_after: int) -> None:
    """A is good, B, C and D fail one after the other; E never begins before a person has seen the pause."""
    play = Play({name: [] for name in "ABCDEF"}, dict.fromkeys("BCDEF", FAILED))
    await play.run(at_once=1, stop_after=3, killed_after=killed_after)
    after = await play.run(at_once=1, stop_after=3)
    assert after.paused == "3 stories failed in a row (sprint.stop_after_failures)"
    assert play.statuses() == {**dict.fromkeys("BCD", "failed"), "A": "done", "E": "pending", "F": "pending"}
    assert len(play.sink.named("sprint_paused")) == len(play.sink.named("sprint_stopped")) == 1
    assert play.sink.named("sprint_stopped")[0].data["not_begun"] == ["E", "F"]
    # Whoever gives the command again has seen it: all of the count begins again.
    assert (await play.run(at_once=1, stop_after=3)).paused is None
    assert {play.statuses()[name] for name in "EF"} == {"failed"}


async def test_stories_that_wait_for_a_person_or_were_reset_are_no_failures_and_blocked_ones_break_no_row() -> None:
    ends = {"A": FAILED, "C": FAILED, "D": StoryStatus.NEEDS_ATTENTION, "E": FAILED}
    play = Play({"A": [], "B": ["A"], "C": [], "D": [], "E": []}, ends)
    await play.run(at_once=1)
    assert play.statuses()["B"] == "blocked"
    assert failed_in_a_row(play.histories(), None) == ("E",)
    until_c = [event for event in play.sink.events if event.story in {"A", "B", "C"}]
    assert failed_in_a_row(fold(play.record, until_c), None) == ("A", "C")
    assert failed_in_a_row(fold(play.record.reset(("C",)), until_c), None) == ("A",)
    assert failed_in_a_row(fold(play.record, until_c), play.histories()["A"].finished) == ("C",)


async def test_a_story_that_waits_for_a_person_holds_no_slot_and_comes_back_first() -> None:
    play = Play({name: [] for name in "ABCDE"})
    play.priorities = {"A": Priority.CRITICAL}
    play.runner.people["A"] = answered = asyncio.Event()

    async def answer() -> None:
        while play.order != ["A", "B", "C"]:
            await asyncio.sleep(0)
        assert play.statuses()["A"] == "executing"
        answered.set()

    await asyncio.gather(play.run(at_once=1), answer())
    assert play.runner.most == 1, "never two at once, also when the one comes back"
    finished = [event.story for event in play.sink.named("story_finished")]
    assert finished == ["B", "C", "A", "D", "E"]


async def test_continuing_joins_what_ran_first_and_tells_nothing_twice() -> None:
    play = Play({"A": [], "B": [], "C": ["A"]})
    play.priorities = {"A": Priority.CRITICAL}
    await play.run(at_once=1)
    events = list(play.sink.events)
    # As if the process had been killed while B ran: its end and everything after it is not in the log.
    play.sink.events[:] = [event for event in events if event.id in {"SP-001/B:story_started"}]
    play.sink._ids = {event.id for event in play.sink.events}
    play.cells.rows.clear()
    play.runner.started.clear()
    started = play.histories()["B"].started
    await play.run(at_once=1)
    assert play.order == ["B", "A", "C"]
    assert [event.id for event in play.sink.events].count("SP-001/B:story_started") == 1
    assert play.histories()["B"].started == started
    before = dict(play.cells.rows)
    play.cells.rows.clear()
    await play.run()
    assert len(play.runner.started) == 3
    completed = {name: row["Execution_Status"] for name, row in play.cells.rows.items()}
    assert completed == {name: row["Execution_Status"] for name, row in before.items()}


@st.composite
def sprints(draw: Callable[[Any], Any]) -> tuple[dict[str, list[str]], dict[str, StoryStatus], int]:
    """Acyclic needs, how each story ends, how many at once."""
    names = [f"S{number}" for number in range(draw(st.integers(1, 8)))]
    needs = {
        name: draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else []
        for place, name in enumerate(names)
    }
    ends = {name: draw(st.sampled_from([DONE, DONE, DONE, FAILED])) for name in names}
    return needs, ends, draw(st.integers(1, 4))


@settings(max_examples=examples(50))
@given(sprint=sprints())
async def test_every_story_ends_as_its_needs_allow(
    sprint: tuple[dict[str, list[str]], dict[str, StoryStatus], int],
) -> None:
    needs, ends, at_once = sprint
    play = Play(needs, ends)
    await play.run(at_once=at_once)
    expected: dict[str, str] = {}
    for name, waits in needs.items():
        good = all(expected[need] == "done" for need in waits)
        expected[name] = ends[name].value if good else "blocked"
    assert play.statuses() == expected
    for name in play.order:
        assert all(play.order.index(need) < play.order.index(name) for need in needs[name])
    assert play.runner.most <= at_once
