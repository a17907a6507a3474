"""Stories on the real engine and a real database: what was recorded is not done again after a crash."""

import asyncio
import contextlib
import errno
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dbos import DBOSClient
from dbos._dbos import _get_dbos_instance
from dbos._error import DBOSAwaitedWorkflowCancelledError, DBOSWorkflowConflictIDError

from orchestrator.core.calls.exchange import FailedCall, Prompt, Purpose, Reply, Segment, TurnKey
from orchestrator.core.calls.progress import call_progress
from orchestrator.core.errors import (
    BudgetExceeded,
    PermanentProviderError,
    ProviderError,
    TransientProviderError,
    WorkspaceError,
)
from orchestrator.core.event import Event, activity
from orchestrator.core.finding import Finding, major
from orchestrator.core.ports import Step
from orchestrator.core.sprint import StoryOutcome, StoryStatus
from orchestrator.engine.durable import WORKFLOW_NAME, DurableEngine
from orchestrator.engine.durable_step import Services
from orchestrator.engine.gates import GateKeeper
from orchestrator.engine.progress import CallsUnderWay
from orchestrator.engine.turns import TurnTaker
from orchestrator.files.process import SystemClock
from orchestrator.settings import Settings
from orchestrator.sprint.slots import Slots
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.reply_journal import ReplyJournal
from tests.support import full_disk, plain_environment

Body = Callable[[Step, dict[str, Any]], Awaitable[StoryOutcome]]
PROMPT = Prompt(
    key=TurnKey(persona="mike", story="A", purpose=Purpose.BREAKDOWN), segments=(Segment(name="role", text="Plan."),)
)


@pytest.fixture(params=["sqlite", "postgres"])
def on_both(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The same with the database of `DATABASE_URL`."""
    if request.param == "postgres":
        (tmp_path / "database").write_text(request.getfixturevalue("postgres"))


def address(folder: Path, name: str) -> str:
    """The database of a house in `folder`."""
    given = folder / "database"
    return given.read_text() if given.exists() else sqlite_url(folder / f"{name}.sqlite")


class Counting:
    """A provider that counts its calls and fails where it is told to."""

    name = "double"

    def __init__(self, error: Exception | None = None) -> None:
        self.calls = 0
        self.error = error

    async def complete(self, prompt: Prompt) -> Reply:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return Reply(key=prompt.key, turn=prompt.turn, text=f"reply {self.calls} \ud83d")


def done(message: str = "", story: str = "A") -> StoryOutcome:
    findings = (major("x.told", message),) if message else ()
    return StoryOutcome(id=story, status=StoryStatus.DONE, findings=findings)


class House:
    """One process's life on the files in `folder`: an engine with its sink, for one body."""

    def __init__(self, folder: Path, provider: Counting, current: Callable[[str], bool] = lambda _: True) -> None:
        self.folder, self.provider, self.current = folder, provider, current
        self.shown: list[Event] = []
        self.slots = Slots(1)
        self.calls = CallsUnderWay()

    async def _is_current(self, workflow_id: str) -> bool:
        return self.current(workflow_id)

    async def live(self, body: Body, use: Callable[[DurableEngine], Awaitable[Any]]) -> Any:
        settings = Settings.model_validate({"budget": {"calls_per_story": 3}})
        async with (
            EventStore(address(self.folder, "events"), on_event=self.shown.append) as sink,
            GateKeeper(sink, SystemClock(), self.slots.given_back) as gates,
            DurableEngine(
                url=address(self.folder, "engine"),
                executor_id="run-SP-001",
                bodies={WORKFLOW_NAME: body},
                services=Services(
                    turns=TurnTaker(self.provider, settings, asyncio.Semaphore(8)),
                    journals=ReplyJournal(self.folder / "replies"),
                    gates=gates,
                    sink=sink,
                    clock=SystemClock(),
                    calls=self.calls,
                    announce_after_s=0,
                ),
                is_current=self._is_current,
            ) as engine,
        ):
            return await use(engine)

    async def run(self, body: Body, *stories: str) -> list[StoryOutcome]:
        """Outcomes of stories that run at once."""

        async def use(engine: DurableEngine) -> list[StoryOutcome]:
            payloads = [{"sprint": "SP-001", "story": story} for story in stories or ("A",)]
            return list(await asyncio.gather(*(engine.run_story(f"SP-001/{load['story']}", load) for load in payloads)))

        result: list[StoryOutcome] = await self.live(body, use)
        return result

    async def die_in(self, body: Body, reached: asyncio.Event) -> None:
        """Start the story and end the process's life where `reached` is set, in the middle of its work."""

        async def use(engine: DurableEngine) -> None:
            task = asyncio.create_task(engine.run_story("SP-001/A", {"sprint": "SP-001", "story": "A"}))
            await asyncio.wait_for(reached.wait(), 10)
            task.cancel()

        await self.live(body, use)


@pytest.mark.usefixtures("on_both")
async def test_after_a_crash_recorded_steps_and_journalled_replies_are_not_repeated(tmp_path: Path) -> None:
    provider, work, reached = Counting(), [], asyncio.Event()

    def body(crash: bool) -> Body:
        async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
            async def first(step_id: str) -> list[Finding]:
                work.append(step_id)
                return [major("x.kept", f"step {step_id}")]

            async def second(step_id: str) -> str:
                work.append(step_id)
                if crash:
                    reached.set()
                    await asyncio.Event().wait()
                return "second"

            findings = await step.step("first", first, list[Finding])
            reply = await step.turn(PROMPT)
            await step.emit("told", "between")
            second_said = await step.step("second", second, str)
            return done(f"{findings[0].message}; {reply.text}; {second_said}")

        return story

    await House(tmp_path, provider).die_in(body(True), reached)
    house = House(tmp_path, provider)
    (outcome,) = await house.run(body(False))
    assert outcome.findings[0].message == "step SP-001/A/1; reply 1 \ud83d; second"
    assert work == ["SP-001/A/1", "SP-001/A/3", "SP-001/A/3"]
    assert provider.calls == 1
    assert not house.shown, "events of the first life are not shown or stored again"
    stored = [event for _, event in await asyncio.to_thread(read_events, tmp_path)]
    assert [event.name for event in stored] == ["turn_started", "turn_finished", "told"]
    assert [event.id for event in stored] == ["SP-001/A:1", "SP-001/A:2", "SP-001/A:3"]


async def test_what_lasts_in_a_step_is_told_while_it_lasts_and_changes_no_other_event(tmp_path: Path) -> None:
    """Killed in the middle, a step tells of it again; once it is recorded, nobody does."""

    def body(house: House, reached: asyncio.Event, *, crash: bool) -> Body:
        async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
            async def work(_step_id: str) -> str:
                async with activity("running the whole suite"):
                    while not house.shown:
                        await asyncio.sleep(0.01)
                    reached.set()
                    if crash:
                        await asyncio.Event().wait()
                return "green"

            said = await step.step("test", work, str)
            await step.emit("told", said)
            return done(said)

        return story

    first, second = House(tmp_path, Counting()), House(tmp_path, Counting())
    reached = asyncio.Event()
    await first.die_in(body(first, reached, crash=True), reached)
    assert [(event.name, event.message) for event in first.shown] == [("activity_begun", "running the whole suite")]
    await second.run(body(second, reached, crash=False))
    names = ["activity_begun", "activity_ended", "told"]
    assert [event.name for event in second.shown] == names
    assert second.shown[1].message.startswith("running the whole suite: done after ")
    stored = [event for _, event in await asyncio.to_thread(read_events, tmp_path)]
    assert [event.name for event in stored] == ["activity_begun", *names]
    assert stored[-1].id == "SP-001/A:1", "what is told on the way takes no number of a story's events"
    assert all(event.id.startswith("SP-001/A:") for event in stored), "it belongs to the story's history"


class Writing(Counting):
    """Notes how far its call is."""

    house: "House"
    seen = ""

    async def complete(self, prompt: Prompt) -> Reply:
        progress = call_progress(prompt.key, time.monotonic())
        with progress.calling(time.monotonic()):
            progress.wrote(1500, time.monotonic() - 10)
            (call,) = self.house.calls
            self.seen = call.told(call.first + 10)
        return await super().complete(prompt)


async def test_a_turn_that_its_budget_ends_behind_retries_is_told_after_them(tmp_path: Path) -> None:
    async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        with contextlib.suppress(ProviderError):
            await step.turn(PROMPT)
        return done()

    house = House(tmp_path, Counting(TransientProviderError("busy", kind="rate_limit", retry_after_s=0.01)))
    await house.run(story)
    told = [(event.id.rpartition(":")[2], event.name) for event in house.shown]
    assert told == [("1", "turn_started"), *((str(n), "call_retried") for n in (1, 2, 3)), ("2", "turn_failed")]


class Elsewhere(Counting):
    """Answers easy requests itself, and others in place of a model that is away."""

    async def complete(self, prompt: Prompt) -> Reply:
        why = "" if prompt.key.purpose is Purpose.REPAIR else "it is away"
        return (await super().complete(prompt)).model_copy(update={"model": "m", "in_place_of": why})


async def test_an_easy_request_between_others_does_not_say_that_the_own_model_is_back(tmp_path: Path) -> None:
    repair = PROMPT.model_copy(update={"key": PROMPT.key.model_copy(update={"purpose": Purpose.REPAIR})})

    async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        for prompt in (PROMPT, repair, PROMPT):
            await step.turn(prompt)
        return done()

    house = House(tmp_path, Elsewhere())
    await house.run(story)
    told = [event.data["reason"] for event in house.shown if event.name == "model_switched"]
    assert told == ["it is away"]


async def test_a_call_is_under_way_while_it_lasts(tmp_path: Path) -> None:
    async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        return done((await step.turn(PROMPT)).text)

    provider = Writing()
    provider.house = house = House(tmp_path, provider)
    await house.run(story)
    assert (provider.seen, [*house.calls]) == ("mike answers: breakdown, ~1500 tokens, 150/s", [])


def read_events(folder: Path) -> list[tuple[int, Event]]:
    reader = EventReader(address(folder, "events"))
    try:
        return list(reader.read("SP-001"))
    finally:
        reader.close()


@pytest.mark.usefixtures("on_both")
async def test_a_finished_workflow_is_joined_not_run(tmp_path: Path) -> None:
    runs = []

    async def body(step: Step, payload: dict[str, Any]) -> StoryOutcome:
        runs.append(step.workflow_id)
        return done(story=payload["story"])

    first = await House(tmp_path, Counting()).run(body, "A", "B", "C")
    assert await House(tmp_path, Counting()).run(body, "A", "B", "C") == first
    assert sorted(runs) == ["SP-001/A", "SP-001/B", "SP-001/C"]


@pytest.mark.usefixtures("on_both")
async def test_our_errors_keep_their_class_and_are_replayed(tmp_path: Path) -> None:
    tried, reached = [], asyncio.Event()

    def body(crash: bool) -> Body:
        async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
            async def fails(_step_id: str) -> str:
                tried.append(1)
                raise WorkspaceError("git said no", findings=[major("x.git", "no")])

            try:
                await step.step("fails", fails, str)
            except WorkspaceError as error:
                caught = error
            try:
                await step.turn(PROMPT)
            except PermanentProviderError as error:
                kind = error.kind
            if crash:
                reached.set()
                await asyncio.Event().wait()
            return done(f"{caught.message} {caught.findings[0].code} {kind}")

        return story

    provider = Counting(PermanentProviderError("no key", kind="auth"))
    await House(tmp_path, provider).die_in(body(True), reached)
    (outcome,) = await House(tmp_path, provider).run(body(False))
    assert outcome.findings[0].message == "git said no x.git auth"
    assert len(tried) == provider.calls == 1


async def test_a_crash_gives_no_story_a_new_budget(tmp_path: Path) -> None:
    """Calls of the life before count, also those that failed."""
    reached = asyncio.Event()
    ended: list[str] = []
    reading = await asyncio.to_thread(ReplyJournal(tmp_path / "replies").workflow, "SP-001/A")
    reading.record_failure(1, PROMPT, FailedCall(turn=1, kind="timeout", message="late"))

    def body(crash: bool) -> Body:
        async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
            await step.turn(PROMPT)
            if crash:
                reached.set()
                await asyncio.Event().wait()
            await step.turn(PROMPT)
            try:
                await step.turn(PROMPT)
            except BudgetExceeded as error:
                ended.append(error.message)
            return done()

        return story

    first, second = Counting(), Counting()
    await House(tmp_path, first).die_in(body(True), reached)
    await House(tmp_path, second).run(body(False))
    assert (first.calls, second.calls) == (1, 1)
    assert ended == ["budget.calls_per_story (3) is used up: 3"]


async def test_a_defect_in_one_story_reaches_its_caller_and_no_other(tmp_path: Path) -> None:
    async def body(_step: Step, payload: dict[str, Any]) -> StoryOutcome:
        if payload["story"] == "A":
            raise ZeroDivisionError("a defect")
        return done(story=payload["story"])

    async def use(engine: DurableEngine) -> list[Any]:
        calls = [engine.run_story(f"SP-001/{name}", {"sprint": "SP-001", "story": name}) for name in ("A", "B")]
        return await asyncio.gather(*calls, return_exceptions=True)

    bad, good = await House(tmp_path, Counting()).live(body, use)
    assert "a defect" in str(bad)
    assert good == done(story="B")


@pytest.mark.usefixtures("on_both")
async def test_a_workflow_that_was_reset_does_not_go_on_by_itself(tmp_path: Path) -> None:
    reached, lives = asyncio.Event(), []

    async def hangs(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        lives.append(step.workflow_id)
        reached.set()
        await asyncio.Event().wait()
        return done()

    async def body(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        lives.append(step.workflow_id)
        return done()

    async def use(engine: DurableEngine) -> StoryOutcome:
        return await engine.run_story("SP-001/A@2", {"sprint": "SP-001", "story": "A"})

    await House(tmp_path, Counting()).die_in(hangs, reached)
    assert await House(tmp_path, Counting(), {"SP-001/A@2"}.__contains__).live(body, use) == done()
    assert lives == ["SP-001/A", "SP-001/A@2"]


async def test_a_failure_of_the_surroundings_in_a_step_is_told_as_that(tmp_path: Path) -> None:
    async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        async def fails(_step_id: str) -> str:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

        with pytest.raises(WorkspaceError) as caught:
            await step.step("checkout", fails, str)
        return done(caught.value.message)

    outcome = (await House(tmp_path, Counting()).run(story, "A"))[0]
    assert outcome.findings[0].message == "checkout: Permission denied"


FULL_ONCE = """
import asyncio, errno, os, sys
from pathlib import Path
from orchestrator.app import runtime
from tests.support import ALL_PASS, Team, play, write_backlog

runtime.is_full = lambda *_places: sys.argv[2] == "full"
folder, team = Path(sys.argv[1]), Team()
team.good("US-1")
print(play(folder, team, write_backlog(folder / "backlog.csv", "US-1"), ALL_PASS, sprint="S1").status("US-1"))
"""


def test_what_was_done_on_a_full_disk_ends_the_process_and_counts_for_nothing(tmp_path: Path) -> None:
    def run(how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", FULL_ONCE, str(tmp_path), how]
        return subprocess.run(command, env=plain_environment(), capture_output=True, text=True, check=False, timeout=90)

    full = run("full")
    assert (full.returncode, "there is no disk space" in full.stdout) == (75, True), full.stderr
    again = run("free")
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "done"), again.stderr


async def test_the_engine_waits_for_room_for_its_own_database(tmp_path: Path) -> None:
    async def story(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        async def work(_step_id: str) -> str:
            return "x" * 500_000

        return done(str(len(await step.step("big", work, str))))

    async def use(engine: DurableEngine) -> StoryOutcome:
        with full_disk():
            task = asyncio.create_task(engine.run_story("SP-001/A", {"sprint": "SP-001", "story": "A"}))
            await asyncio.wait({task}, timeout=0.3)
            assert not task.done()
        return await task

    assert (await House(tmp_path, Counting()).live(story, use)) == done("500000")


async def test_a_step_waits_for_no_event_and_a_call_for_all_before_it(tmp_path: Path) -> None:
    provider, read = Counting(), asyncio.Event()

    async def work(_step_id: str) -> str:
        read.set()
        return "text"

    async def body(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        await step.emit("told", "before the step")
        return done(await step.step("read", work, str) + (await step.turn(PROMPT)).text[:7])

    async def use(engine: DurableEngine) -> StoryOutcome:
        writer = await asyncio.to_thread(sqlite3.connect, tmp_path / "events.sqlite", check_same_thread=False)
        await asyncio.to_thread(writer.execute, "BEGIN IMMEDIATE")
        task = asyncio.create_task(engine.run_story("SP-001/A", {"sprint": "SP-001", "story": "A"}))
        async with asyncio.timeout(20):
            await read.wait()
        await asyncio.wait({task}, timeout=0.3)
        assert provider.calls == 0
        await asyncio.to_thread(writer.close)
        return await task

    assert (await House(tmp_path, provider).live(body, use)) == done("textreply 1")
    names = [event.name for _, event in await asyncio.to_thread(read_events, tmp_path)]
    assert names == ["told", "turn_started", "turn_finished"]


def cancel(folder: Path, workflow_id: str) -> None:
    """Does what `dbos workflow cancel` does."""
    client = DBOSClient(system_database_url=address(folder, "engine"))
    client.cancel_workflow(workflow_id)
    client.destroy()


@pytest.mark.usefixtures("on_both")
async def test_a_workflow_that_somebody_cancels_begins_no_further_step(tmp_path: Path) -> None:
    provider, begun = Counting(), list[str]()

    async def body(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        async def work(step_id: str) -> str:
            begun.append(step_id)
            return "done"

        await step.step("open", work, str)
        await asyncio.to_thread(cancel, tmp_path, step.workflow_id)
        await step.turn(PROMPT)
        await step.step("merge", work, str)
        return done()

    with pytest.raises(DBOSAwaitedWorkflowCancelledError):
        await asyncio.wait_for(House(tmp_path, provider).run(body), 20)
    assert (begun, provider.calls) == (["SP-001/A/1"], 0)


def take_over(workflow_id: str) -> None:
    """Does what another process does that takes the workflow over and records its second step."""
    database = _get_dbos_instance()._sys_db
    steps, flow = database.tables.operation_outputs, database.tables.workflow_status
    row = {"workflow_uuid": workflow_id, "function_id": 2, "function_name": "commit", "output": '{"value": "theirs"}'}
    row |= {"serialization": "portable_json", "started_at_epoch_ms": 1, "completed_at_epoch_ms": 2}
    with database.engine.begin() as connection:
        connection.execute(sa.update(flow).where(flow.c.workflow_uuid == workflow_id).values(owner_xid="another"))
        connection.execute(sa.insert(steps).values(row))


@pytest.mark.usefixtures("on_both")
async def test_one_that_another_process_has_taken_over_records_no_result_of_its_own(tmp_path: Path) -> None:
    log: list[str] = []

    async def body(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        async def work(_step_id: str) -> str:
            return "mine"

        await step.step("open", work, str)
        await asyncio.to_thread(take_over, step.workflow_id)
        log.append(await step.step("commit", work, str))
        log.append(await step.step("merge", work, str))
        return done()

    with pytest.raises((TimeoutError, DBOSWorkflowConflictIDError)):
        await asyncio.wait_for(House(tmp_path, Counting()).run(body), 3)
    assert "mine" not in log
