"""A fleet of daemons on one Postgres: what its tables take from many replicas, and what a call costs real daemons.

The replicas have real leases and claims, and neither engine nor git nor provider: nobody sleeps, so that database and
tables are what is measured. Each makes its statements from one thread.
"""

import asyncio
import math
import multiprocessing
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import psycopg
import sqlalchemy as sa

from benchmarks import daemons, databases
from benchmarks.measure import Figure, Result, metered
from orchestrator.daemon.shared_stories import POLL_S, choose_story
from orchestrator.storage.event_table import LOG_LOCK
from orchestrator.storage.leases import SERVES, Lease
from orchestrator.storage.story_claims import CALL_LOCK, STORY_LOCK, Look, StoryClaims

P = ParamSpec("P")
T = TypeVar("T")
SPRINT = 1000
"""Stories of a sprint."""
CALL_S = 20.0
"""What a real call takes, for what the figures mean."""
PAYLOAD = "x" * 2000
"""About as long as the input of a story's workflow."""
CONNECTIONS = 2
"""Of each replica: one renews the lease, one does all else."""
SAMPLE_S = 0.02
WAITS_EVERY = 10
"""Each such story waits for a person once."""
WAITS = b"""
    SELECT coalesce(wait_event_type || ' ' || wait_event, 'at work') FROM pg_stat_activity
    WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
"""
LOCKS = b"""
    SELECT (classid::bigint << 32) | objid::bigint, count(*) FILTER (WHERE granted), count(*) FILTER (WHERE NOT granted)
    FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE locktype = 'advisory' AND datname = current_database() GROUP BY 1
"""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """How many there are, and what they have to do."""

    replicas: int = 64
    stories: int = 1000
    calls: int = 10
    """Of each story."""
    at_once: int = 4
    """Stories at work for each replica."""
    processes: int = field(default_factory=lambda: os.cpu_count() or 2)
    shared: int = 80
    """Stories of the sprint that real daemons share."""

    @property
    def places(self) -> int:
        """Returns `concurrency.stories` of all."""
        return self.replicas * self.at_once

    @property
    def turns(self) -> int:
        """Returns `concurrency.turns`: so few that some calls are refused."""
        return max(1, self.places // 2)

    @property
    def sprint(self) -> int:
        """Returns the stories of a sprint: there are some sprints also where there are few stories."""
        return max(1, min(SPRINT, self.stories // 4))


class Tally:
    """What the processes have done, counted apart from the database."""

    def __init__(self, context: SpawnContext, fleet: Fleet) -> None:
        self._lock = context.Lock()
        self._now, self._peak = context.RawArray("i", 2), context.RawArray("i", 2)
        self._sprints, self._done = context.RawValue("i"), context.RawValue("i")
        self.claimed, self.ended = (context.RawArray("i", fleet.stories) for _ in range(2))
        """How often each story was taken, and run to its end."""
        self.failed = context.Event()
        self._fleet = fleet

    def change_places(self, by: int) -> None:
        """Counts stories at work. Count after the database does, and take off before: a peak is never too high."""
        self._change(0, by)

    def change_calls(self, by: int) -> None:
        """Counts calls under way, likewise."""
        self._change(1, by)

    def count(self, counts: Any, story: int) -> None:
        """Counts a story in `claimed` or `ended`."""
        with self._lock:
            counts[story] += 1

    def take_outcome(self) -> None:
        """Counts a story whose outcome the holder of its sprint has taken."""
        with self._lock:
            self._done.value += 1

    def next_sprint(self) -> int | None:
        """Returns the number of a sprint that nobody has begun."""
        with self._lock:
            number = int(self._sprints.value)
            if number * self._fleet.sprint >= self._fleet.stories:
                return None
            self._sprints.value += 1
            return number

    @property
    def is_over(self) -> bool:
        """Returns whether all stories are done, or a process has failed."""
        return self._done.value >= self._fleet.stories or self.failed.is_set()

    def check(self) -> None:
        """Raises RuntimeError unless each story was run once and no limit was exceeded."""
        wrong = [
            f"story {number} was taken {claimed} times and ended {ended} times"
            for number, (claimed, ended) in enumerate(zip(self.claimed, self.ended, strict=True))
            if (claimed, ended) != (1, 1)
        ]
        limits = self._fleet.places, self._fleet.turns
        for what, peak, limit in zip(("stories", "calls"), self._peak, limits, strict=True):
            if peak > limit:
                wrong.append(f"{peak} {what} were at work, and {limit} is the limit")
        if wrong:
            raise RuntimeError(f"{len(wrong)} faults: {'; '.join(wrong[:5])}")

    def _change(self, which: int, by: int) -> None:
        with self._lock:
            self._now[which] += by
            self._peak[which] = max(self._peak[which], self._now[which])


@dataclass
class Cost:
    """What statements of one kind have cost, in seconds."""

    number: int = 0
    wall: float = 0.0
    client: float = 0.0
    """Processor time of the thread that asks."""
    server: float = 0.0
    """Processor time of the server's process; 0 where it is on another machine."""

    def add(self, other: "Cost") -> None:
        """Adds another one to it."""
        self.number += other.number
        self.wall += other.wall
        self.client += other.client
        self.server += other.server

    def ms(self, what: str) -> float:
        """Returns milliseconds of one statement."""
        return float(getattr(self, what)) * 1000 / max(1, self.number)


Costs = dict[str, Cost]


class Meter:
    """Measures the statements that one thread makes over one connection."""

    def __init__(self, lease: Lease) -> None:
        self.costs: Costs = {}
        with lease.reading() as connection:
            pid = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
            local = connection.execute(sa.text("SELECT inet_server_addr() IS NULL")).scalar_one()
        # First number: nanoseconds on a processor.
        self._backend = Path(f"/proc/{pid}/schedstat") if local else None

    def do(self, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Returns what the call returns, and counts it under its name."""
        began = time.perf_counter(), time.thread_time(), self._server()
        result = call(*args, **named)
        ended = time.perf_counter(), time.thread_time(), self._server()
        wall, client, server = (after - before for before, after in zip(began, ended, strict=True))
        name = getattr(call, "__name__", "").rstrip("_")
        self.costs.setdefault(name, Cost()).add(Cost(1, wall, client, server))
        return result

    def _server(self) -> float:
        if self._backend is None:
            return 0.0
        try:
            return int(self._backend.read_bytes().split()[0]) / 1e9
        except OSError:
            self._backend = None
            return 0.0


@dataclass
class Run:
    """A story at work."""

    number: int
    calls: int
    is_calling: bool = False
    is_waiting: bool = False
    has_waited: bool = False


class Replica:
    """A daemon without engine, git and provider."""

    def __init__(self, fleet: Fleet, tally: Tally, lease: Lease) -> None:
        self._fleet, self._tally, self._lease = fleet, tally, lease
        self._claims, self.meter = StoryClaims(lease), Meter(lease)
        self._running: dict[str, Run] = {}
        self._offers: list[int] = []
        """Stories of the sprint that it holds and has not offered yet, the next one last."""
        self._followed: set[str] = set()

    async def work(self) -> None:
        """Works until all is done."""
        self._claims.prepare()
        do, claims = self.meter.do, self._claims
        while not self._tally.is_over:
            number = None if self._offers or self._followed else self._tally.next_sprint()
            async with AsyncExitStack() as stack:
                if number is not None:
                    await stack.enter_async_context(self._lease.holding(f"S{number}"))
                    first = number * self._fleet.sprint
                    self._offers = [*reversed(range(first, min(first + self._fleet.sprint, self._fleet.stories)))]
                while not self._tally.is_over:
                    look = do(claims.look)
                    while self._claim(look):
                        look = do(claims.look)
                    for workflow_id, run in list(self._running.items()):
                        self._go_on(workflow_id, run)
                    if number is not None:
                        self._lead(look)
                    if not self._offers and not self._followed:
                        break

    def _claim(self, look: Look) -> bool:
        row = choose_story(look, self._running, lambda _sprint: True)
        if row is None:
            return False
        if self.meter.do(self._claims.claim, row.workflow_id) is not None:
            number = int(row.workflow_id.partition("/")[2])
            self._tally.count(self._tally.claimed, number)
            self._running[row.workflow_id] = Run(number, self._fleet.calls)
        return True

    def _go_on(self, workflow_id: str, run: Run) -> None:
        do, claims, tally = self.meter.do, self._claims, self._tally
        if run.is_waiting:
            if do(claims.return_, workflow_id, self._fleet.places):
                tally.change_places(1)
                run.is_waiting = False
        elif run.is_calling:
            tally.change_calls(-1)
            do(claims.end_calls, [workflow_id])
            run.is_calling, run.calls = False, run.calls - 1
        elif not run.calls:
            tally.change_places(-1)
            tally.count(tally.ended, run.number)
            do(claims.end, workflow_id)
            del self._running[workflow_id]
        elif run.number % WAITS_EVERY == 0 and not run.has_waited:
            tally.change_places(-1)
            do(claims.wait, workflow_id)
            run.is_waiting = run.has_waited = True
        elif do(claims.begin_call, workflow_id, self._fleet.turns):
            tally.change_calls(1)
            run.is_calling = True

    def _lead(self, look: Look) -> None:
        """Does what the daemon does that holds the sprint."""
        do, claims, places = self.meter.do, self._claims, self._fleet.places
        for row in look.stories.values():
            if row.workflow_id in self._followed and row.state == "ended":
                do(claims.delete, row.workflow_id)
                self._followed.remove(row.workflow_id)
                self._tally.take_outcome()
        for _ in range(places - look.at_work):
            if not self._offers:
                break
            number = self._offers[-1]
            sprint = f"S{number // self._fleet.sprint}"
            if not do(claims.offer, f"{sprint}/{number}", sprint, PAYLOAD, places):
                break
            self._tally.change_places(1)
            self._followed.add(f"{sprint}/{self._offers.pop()}")


def _work(fleet: Fleet, tally: Tally, url: str, numbers: range, results: Any) -> None:
    """A process: its replicas, each in a thread; puts their costs and its processor time, or what went wrong."""
    costs: list[Costs] = []
    errors: list[str] = []

    async def replica(number: int) -> None:
        def lose(why: str) -> None:
            errors.append(why)
            tally.failed.set()

        async with Lease(url, f"{SERVES}{number}", folder=f"replica {number}", lost=lose) as lease:
            worker = Replica(fleet, tally, lease)
            await worker.work()
            costs.append(worker.meter.costs)

    def note(done: Future[None]) -> None:
        if (error := done.exception()) is not None:
            errors.append(repr(error))
            tally.failed.set()

    with metered() as meter, ThreadPoolExecutor(len(numbers)) as pool:
        for number in numbers:
            pool.submit(asyncio.run, replica(number)).add_done_callback(note)
    results.put((costs, meter.cpu_s, errors))


@dataclass
class Samples:
    """What the server was seen to do, several times a second."""

    looks: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    """Connections by what they wait for."""
    held: Counter[int] = field(default_factory=Counter)
    """Advisory lock → how often somebody had it."""
    queued: Counter[int] = field(default_factory=Counter)
    """Advisory lock → how many waited for it, summed."""

    def take(self, url: str, stop: threading.Event) -> None:
        """Looks until told to stop."""
        with psycopg.connect(url, autocommit=True) as connection:
            while not stop.wait(SAMPLE_S):
                self.looks += 1
                self.waits.update(str(row[0]) for row in connection.execute(WAITS))
                for lock, held, queued in connection.execute(LOCKS):
                    self.held[lock] += held
                    self.queued[lock] += queued


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A fleet that has done all its stories."""

    fleet: Fleet
    wall_s: float
    client_s: float
    """Processor time of all replicas."""
    costs: Costs
    samples: Samples

    @property
    def server_s(self) -> float:
        """Returns the processor time of the server for all statements."""
        return sum(cost.server for cost in self.costs.values())


def simulate(fleet: Fleet, server: str) -> Ran:
    """Has all stories done by the replicas. Raises RuntimeError when one was not run once, or a limit did not hold."""
    _expect_room(server, fleet)
    context = multiprocessing.get_context("spawn")
    tally, results = Tally(context, fleet), context.Queue()
    samples, stop = Samples(), threading.Event()
    with databases.fresh(server) as url:
        assert url is not None
        parts = [range(start, fleet.replicas, fleet.processes) for start in range(min(fleet.processes, fleet.replicas))]
        workers = [context.Process(target=_work, args=(fleet, tally, url, part, results)) for part in parts]
        sampler = threading.Thread(target=samples.take, args=(url, stop))
        sampler.start()
        began = time.monotonic()
        for worker in workers:
            worker.start()
        found = [_result(results, workers) for _ in workers]
        wall_s = time.monotonic() - began
        for worker in workers:
            worker.join()
        stop.set()
        sampler.join()
    errors = [error for _, _, told in found for error in told]
    if errors:
        raise RuntimeError(f"{len(errors)} replicas failed: {errors[0]}")
    tally.check()
    costs: Costs = {}
    for each in (costs_ for all_, _, _ in found for costs_ in all_):
        for kind, cost in each.items():
            costs.setdefault(kind, Cost()).add(cost)
    client_s = sum(cpu_s for _, cpu_s, _ in found)
    return Ran(fleet=fleet, wall_s=wall_s, client_s=client_s, costs=costs, samples=samples)


def _result(results: Any, workers: list[Any]) -> tuple[list[Costs], float, list[str]]:
    while True:
        try:
            found: tuple[list[Costs], float, list[str]] = results.get(timeout=1)
            return found
        except queue.Empty:
            if any(worker.exitcode for worker in workers):
                raise RuntimeError("a process of the fleet was killed") from None


def _expect_room(server: str, fleet: Fleet) -> None:
    allowed, needed = _allowed_connections(server), fleet.replicas * CONNECTIONS + 10
    if allowed < needed:
        raise RuntimeError(f"the server allows {allowed} connections: set its max_connections to {needed} or more")


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What the measured statements mean for daemons that look every `POLL_S` and whose calls take `CALL_S`."""

    ran: Ran
    alone: Ran
    """One replica, for which no statement has to wait."""

    @property
    def calls(self) -> float:
        """Returns the calls a second that one replica makes."""
        return self.ran.fleet.at_once / CALL_S

    def rest(self, what: str) -> float:
        """Returns seconds of processor time a second that one replica needs, its looks apart."""
        # How often calls are refused, and stories claimed for nothing, is the hurry of the simulation.
        once = sum(self._ms(name, what) for name in ("offer", "claim", "end", "delete"))
        return (
            self.calls
            * (self._ms("begin_call", what) + self._ms("end_calls", what) + once / self.ran.fleet.calls)
            / 1000
        )

    def looks(self, what: str) -> float:
        """Returns the same for its looks, in a fleet as large as the measured one."""
        return self._ms("look", what) / POLL_S / 1000

    def server(self, replicas: float) -> float:
        """Returns how much of one processor of the server so many replicas need; a look reads the stories of all."""
        return replicas * (self.looks("server") * replicas / self.ran.fleet.replicas + self.rest("server"))

    def turn_lock(self, replicas: float) -> float:
        """Returns the share of time in which somebody has the lock of calls, if all of the statement has it."""
        return replicas * self.calls * self.alone.costs["begin_call"].ms("wall") / 1000

    def most(self, used: Callable[[float], float]) -> int:
        """Returns how many replicas use one up."""
        replicas = 1
        while replicas < 100_000 and used(replicas + 1) <= 1:
            replicas += 1
        return replicas

    def _ms(self, name: str, what: str) -> float:
        return self.ran.costs.get(name, Cost()).ms(what)


def run(fleet: Fleet, server: str) -> Result:
    """Simulates a fleet, and has real daemons share a sprint. Raises RuntimeError when something was done wrong."""
    alone = simulate(replace(fleet, replicas=1, stories=min(60, fleet.stories), processes=1), server)
    ran = simulate(fleet, server)
    one, four = (daemons.share(number, fleet.shared, server) for number in (1, 4))
    forecast, looks = Forecast(ran=ran, alone=alone), max(1, ran.samples.looks)
    allowed = _allowed_connections(server)
    each = four.connections / 4
    limits = {
        f"the server's {allowed} connections": math.floor(allowed / each),
        "the lock of calls": forecast.most(forecast.turn_lock),
    }
    if ran.server_s:
        limits["one processor of the server"] = forecast.most(forecast.server)
    locks = {STORY_LOCK: "the lock of places", CALL_LOCK: "the lock of calls", LOG_LOCK: "the lock of the event log"}
    calls = fleet.stories * fleet.calls
    figures = (
        Figure(name="simulated: stories per second", value=fleet.stories / ran.wall_s),
        Figure(name="simulated: calls per second", value=calls / ran.wall_s),
        Figure(name="simulated: processor time of clients per call", value=ran.client_s * 1000 / calls, unit="ms"),
        Figure(name="simulated: processor time of the server per call", value=ran.server_s * 1000 / calls, unit="ms"),
        *(
            Figure(name=f"{name}: {what}", value=value, unit=unit)
            for name in sorted(ran.costs)
            for what, value, unit in (
                ("per story", ran.costs[name].number / fleet.stories, ""),
                ("alone", alone.costs[name].ms("wall") if name in alone.costs else 0.0, "ms"),
                ("in the fleet", ran.costs[name].ms("wall"), "ms"),
                ("processor time of the client", ran.costs[name].ms("client"), "ms"),
                ("processor time of the server", ran.costs[name].ms("server"), "ms"),
            )
        ),
        *(
            Figure(name=f"{told}: {what}", value=value)
            for number, told in locks.items()
            for what, value in (
                ("share of time held", ran.samples.held[number] / looks),
                ("waiting on average", ran.samples.queued[number] / looks),
            )
        ),
        *(Figure(name=f"real calls: replicas that use up {what}", value=most) for what, most in limits.items()),
        Figure(name="daemons: processor time per call, one", value=one.call_ms, unit="ms"),
        Figure(name="daemons: processor time per call, four", value=four.call_ms, unit="ms"),
        Figure(name="daemons: four / one", value=four.call_ms / one.call_ms),
        Figure(name="daemons: processor time of an idle one, per second", value=one.idle_s * 1000, unit="ms"),
        Figure(name="daemons: connections, one", value=one.connections),
        Figure(name="daemons: connections, four", value=four.connections),
    )
    first = min(limits, key=lambda what: limits[what])
    notes = (
        "most seen: " + ", ".join(f"{what} {n / looks:.1f}" for what, n in ran.samples.waits.most_common(5)),
        f"with calls of {CALL_S:g} s, first is {first}: at {limits[first]} replicas, which make "
        f"{limits[first] * forecast.calls:.0f} calls a second",
        f"stories of the four daemons: {', '.join(map(str, four.stories))}; git's processor time is not counted",
    )
    about = f"{fleet.replicas} replicas, {fleet.stories} stories x {fleet.calls} calls, {fleet.processes} processes; "
    about += f"then {fleet.shared} stories on one and on four daemons"
    return Result(name="fleet", about=about, figures=figures, notes=notes)


def _allowed_connections(server: str) -> int:
    plain = sa.make_url(server).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        (allowed,) = connection.execute("SELECT current_setting('max_connections')::int").fetchone() or (0,)
    return int(allowed)
