"""The real engine under many calls: all of a sprint but git and tests; bare dbos before and after it."""

import asyncio
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from benchmarks import databases, samples
from benchmarks.bare import run as bare_calls
from benchmarks.measure import Figure, Lag, Meter, Result, folder_mb, metered, peak_rss_mb
from orchestrator.app.runners import sandbox_for
from orchestrator.app.runtime import Works
from orchestrator.app.sprint_runtime import Equipment, Site, SprintDriver
from orchestrator.app.team import prompt_library
from orchestrator.backlogs.files import open_backlog
from orchestrator.core.event import Event
from orchestrator.core.history import fold
from orchestrator.core.ports import SuiteRunner
from orchestrator.core.sprint import SprintRecord, StoryStatus
from orchestrator.core.story import BacklogContent
from orchestrator.files.process import end_at_once
from orchestrator.providers.routing import RoutedProvider
from orchestrator.providers.scripted import ScriptedProvider
from orchestrator.providers.seats import Seats, default_seat
from orchestrator.records.histories import event_url, read_histories
from orchestrator.settings import Environment, Settings, load
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.leases import Lease
from orchestrator.storage.state_folder import StateFolder
from tests.memory_workspace import MemoryWorkspace
from tests.simulated import SimulatedRunner

SPRINT = "BENCH"
ALONE = 50
"""Turns of the one story that is measured alone."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """How much is asked for."""

    stories: int = 100
    tasks: int = 8
    latency_ms: int = 2000
    turns: int = 50
    database: str | None = None
    """A Postgres, on which databases are made and dropped; SQLite without."""

    @property
    def calls(self) -> int:
        """Breakdown, deliveries and suite of every story."""
        return self.stories * (self.tasks + 2)

    @property
    def ideal_s(self) -> float:
        """No story can be faster than its own calls, nor all together than the turns that fit at once."""
        one_story = (self.tasks + 2) * self.latency_ms / 1000
        return max(one_story, self.calls * self.latency_ms / 1000 / self.turns)


class _GreenSite(Site):
    """A sprint whose suites are green at once, so that the engine is what is measured."""

    def _runner(self, lock_fd: int) -> SuiteRunner:
        return SimulatedRunner()


@dataclass(frozen=True, kw_only=True)
class Sprint:
    """One sprint over made-up stories in a fresh folder."""

    folder: Path
    settings: Settings
    environment: Environment
    state: StateFolder
    content: BacklogContent
    record: SprintRecord
    load: Load

    @classmethod
    def make(cls, folder: Path, load_: Load) -> "Sprint":
        """Write the backlog and read it as a run would."""
        backlog = folder / "backlog.csv"
        samples.write_backlog(backlog, load_.stories)
        # A review is one more call like the others, and no command is run: without, figures stay comparable.
        sizes = [f"concurrency.stories={load_.stories}", f"concurrency.turns={load_.turns}"]
        overrides = [*sizes, "review.enabled=false", "sandbox.mode=plain", "environment.base=skip"]
        variables = {"DATABASE_URL": load_.database} if load_.database else {}
        settings, environment = load(None, overrides=overrides, variables=variables, cwd=folder)
        state = StateFolder.of(environment)
        state.make()
        content = open_backlog(backlog, settings, state).read()
        ids = tuple(story.id for story in content.stories)
        record = SprintRecord(
            sprint=SPRINT, backlog=str(backlog), repo=str(folder), base="", story_ids=ids, needs=dict.fromkeys(ids, ()),
            started_at=datetime.now(UTC),
        )  # fmt: skip
        return cls(
            folder=folder, settings=settings, environment=environment, state=state, content=content, record=record,
            load=load_,
        )  # fmt: skip

    async def run(self) -> Meter:
        """What `run` does behind its locks and its git, from the engine's start to its end."""
        script = ScriptedProvider(samples.script(self.load.stories, self.load.tasks, self.load.latency_ms))
        seat = default_seat(self.settings, script.name)
        provider = RoutedProvider(Seats(seat, {}), {seat: script}, ())
        library = await asyncio.to_thread(prompt_library, self.settings, self.environment)
        sandbox = await sandbox_for(self.settings, self.environment)
        with metered() as meter:
            url, home = event_url(self.environment, self.state), str(self.environment.home)
            lease = Lease(url, "bench", folder=home, lost=end_at_once)
            works = Works(self.settings, self.environment, provider, lease=lease, listen=lambda _event: None)
            equipment = Equipment(
                works=works, environment=self.environment, library=library, sandbox=sandbox, secrets=(),
                provider=None, provider_told="scripted",
            )  # fmt: skip
            histories = await asyncio.to_thread(read_histories, self.environment, self.state, self.record)
            workspace = MemoryWorkspace(sprint=self.record.sprint)
            site = await asyncio.to_thread(
                _GreenSite, equipment, self.record, workspace, self.settings, secrets=(), lock_fd=-1
            )
            driver = SprintDriver(site, self.content, histories, continued=False)
            async with lease, lease.holding(self.record.sprint), works, site:
                await driver.begin()
                await driver.drive(print)
        return meter

    def events(self) -> list[Event]:
        """What the event log holds."""
        reader = EventReader(event_url(self.environment, self.state))
        try:
            return [event for _, event in reader.read(self.record.sprint)]
        finally:
            reader.close()

    def outcomes(self) -> tuple[int, int, int]:
        """(stories done, calls, events), as the event log tells them."""
        events = self.events()
        histories = fold(self.record, events).values()
        return (
            sum(history.status is StoryStatus.DONE for history in histories),
            sum(history.calls for history in histories),
            len(events),
        )


def _alone_ms(load_: Load) -> float:
    """What a turn takes from its start to the next one's, when the model takes no time and nothing else runs."""
    alone = replace(load_, stories=1, tasks=ALONE - 2, latency_ms=0, turns=1)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, databases.fresh(load_.database) as database:
        sprint = Sprint.make(Path(folder), replace(alone, database=database))
        asyncio.run(sprint.run())
        turns = [event.time for event in sprint.events() if event.name == "turn_started"]
    return (turns[-1] - turns[0]).total_seconds() * 1000 / (len(turns) - 1)


def _bare(load_: Load) -> Meter:
    """The same calls in a process of their own: dbos runs once in each."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(
            bare_calls, load_.stories, load_.tasks + 2, load_.latency_ms, load_.turns, load_.database
        ).result()


async def _measured(sprint: Sprint) -> tuple[Meter, Lag]:
    lag = Lag()
    probe = asyncio.create_task(lag.probe())
    meter = await sprint.run()
    probe.cancel()
    with suppress(asyncio.CancelledError):
        await probe
    return meter, lag


def run(load_: Load) -> Result:
    """Run one sprint of this size and say what it cost. Raises RuntimeError when a story is not done."""
    alone_ms = _alone_ms(load_)
    ideal_s = max(load_.ideal_s, 0.001)
    bare = [_bare(load_)]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, databases.fresh(load_.database) as database:
        sprint = Sprint.make(Path(folder), replace(load_, database=database))
        before_mb = peak_rss_mb()
        written = resource.getrusage(resource.RUSAGE_SELF).ru_oublock
        meter, lag = asyncio.run(_measured(sprint))
        done, calls, events = sprint.outcomes()
        if (done, calls) != (load_.stories, load_.calls):
            raise RuntimeError(f"{done} of {load_.stories} stories are done after {calls} of {load_.calls} calls")
        bare.append(_bare(load_))
        call_ms = (meter.cpu_s + meter.children_cpu_s) / calls * 1000
        bare_ms = sum(meter.cpu_s for meter in bare) / len(bare) / calls * 1000
        figures = (
            Figure(name="stories done", value=done),
            Figure(name="calls", value=calls),
            Figure(name="wall", value=meter.wall_s, unit="s"),
            Figure(name="ideal critical path", value=ideal_s, unit="s"),
            Figure(name="wall / ideal", value=meter.wall_s / ideal_s),
            Figure(name="processor time", value=meter.cpu_s + meter.children_cpu_s, unit="s"),
            Figure(name="processor time per call", value=call_ms, unit="ms"),
            Figure(name="bare dbos: wall / ideal", value=sum(m.wall_s for m in bare) / len(bare) / ideal_s),
            Figure(name="bare dbos: processor time per call", value=bare_ms, unit="ms"),
            Figure(name="processor time / bare dbos", value=call_ms / bare_ms),
            Figure(name="one turn after another, at no latency", value=alone_ms, unit="ms"),
            Figure(name="loop lag p50", value=lag.percentile(50), unit="ms"),
            Figure(name="loop lag p99", value=lag.percentile(99), unit="ms"),
            Figure(name="events", value=events),
            Figure(
                name="written", value=(resource.getrusage(resource.RUSAGE_SELF).ru_oublock - written) / 2048, unit="MB"
            ),
            Figure(name="memory before", value=before_mb, unit="MB"),
            Figure(name="memory peak", value=peak_rss_mb(), unit="MB"),
            Figure(name="state folder", value=folder_mb(sprint.state.home), unit="MB"),
        )
    return Result(
        name="engine",
        about=f"{load_.stories} stories x {load_.tasks + 2} calls at {load_.latency_ms} ms, {load_.turns} at once, "
        f"no git, no tests, {'Postgres' if load_.database else 'SQLite'}",
        figures=figures,
    )
