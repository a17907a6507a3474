"""Real daemons on one Postgres that share a sprint: processor time of a call, stories of each, connections.

Each has a process and a state folder of its own. Git is real; the suites are green at once.
"""

import asyncio
import json
import multiprocessing
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import databases, samples
from benchmarks.measure import metered
from orchestrator.app import sprint_runtime
from orchestrator.core.event import Event
from orchestrator.daemon.serve import Daemon
from orchestrator.git.command import IDENTITY
from orchestrator.settings import load
from orchestrator.settings.options import ServeOptions
from orchestrator.testing.simulated import SimulatedRunner

LATENCY_MS = 200
AT_ONCE = 16
"""Stories, and calls, of all daemons together."""
PATIENCE_S = 300.0
IDLE_S = 5.0
"""How long each is watched before it has something to do."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A sprint that some daemons have run."""

    stories: tuple[int, ...]
    """Calls that each daemon made, as stories."""
    calls: int
    wall_s: float
    cpu_s: float
    """Of the daemons, from the moment the backlog was there; git's not counted."""
    idle_s: float
    """Processor time a second of a daemon that has nothing to do."""
    connections: int
    """The most that were open, of all daemons."""

    @property
    def call_ms(self) -> float:
        """Returns the processor time of a call."""
        return self.cpu_s * 1000 / self.calls


async def _serve(folder: Path, number: int, database: str) -> None:
    sprint_runtime.project_runner = lambda *_args, **_kwargs: SimulatedRunner()
    sizes = [f"concurrency.stories={AT_ONCE}", f"concurrency.turns={AT_ONCE}", "serve.poll_s=0.5"]
    words = [*sizes, "sandbox.mode=plain", "sandbox.require=none", "review.enabled=false", "log.level=error"]
    words += [f"serve.repo={folder / 'repo'}", "retention.days=null"]
    home = folder / f"state-{number}"
    variables = {"PATH": os.environ["PATH"], "DATABASE_URL": database, "ORCHESTRATOR_HOME": str(home)}
    settings, environment = load(None, words, variables, folder)
    calls: set[str] = set()
    stories: set[str] = set()
    faults: list[str] = []

    def listen(event: Event) -> None:
        if event.name == "turn_finished" and event.id not in calls:
            calls.add(event.id)
            stories.add(event.story or "")
        elif event.name == "story_finished" and event.data["status"] != "done":
            faults.append(event.message)
        elif event.name == "sprint_ended":
            (folder / "ended").touch()

    options = ServeOptions(backlogs=(folder / "backlog.csv",), provider="scripted", script=folder / "team.jsonl")
    daemon = Daemon(options, settings, environment, listen=listen, load=lambda: settings)
    async with daemon:
        running = asyncio.create_task(daemon.run())
        await asyncio.sleep(1)
        with metered() as idle:
            await asyncio.sleep(IDLE_S)
        (folder / f"ready-{number}").touch()
        while not (folder / "backlog.csv").exists():
            await asyncio.sleep(0.1)
        with metered() as meter:
            while not (folder / "ended").exists() and not running.done():
                await asyncio.sleep(0.1)
        daemon.stop()
        await running
    found: dict[str, Any] = {"stories": len(stories), "calls": len(calls), "cpu_s": meter.cpu_s, "wall_s": meter.wall_s}
    found["faults"] = faults
    found["idle_s"] = idle.cpu_s / idle.wall_s
    (folder / f"found-{number}").write_text(json.dumps(found))


def _live(folder: Path, number: int, database: str) -> None:
    asyncio.run(_serve(folder, number, database))


def share(daemons: int, stories: int, server: str) -> Shared:
    """Has a sprint run by so many daemons. Raises RuntimeError when a call was made twice, or one is missing."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="bench-") as name, databases.fresh(server) as database:
        assert database is not None
        folder = Path(name).resolve()
        _make_repository(folder / "repo")
        samples.write_script(folder / "team.jsonl", stories, 1, LATENCY_MS)
        workers = [context.Process(target=_live, args=(folder, number, database)) for number in range(daemons)]
        try:
            for worker in workers:
                worker.start()
            _wait(folder, [f"ready-{number}" for number in range(daemons)], workers)
            samples.write_backlog(folder / "new.csv", stories)
            (folder / "new.csv").rename(folder / "backlog.csv")
            stop, most = threading.Event(), [0]
            counting = threading.Thread(target=_count, args=(database, stop, most))
            counting.start()
            try:
                _wait(folder, ["ended"], workers)
            finally:
                stop.set()
                counting.join()
            for worker in workers:
                worker.join(60)
            found = [json.loads((folder / f"found-{number}").read_bytes()) for number in range(daemons)]
        finally:
            for worker in workers:
                worker.kill()
                worker.join()
    if faults := [fault for one in found for fault in one["faults"]]:
        raise RuntimeError(f"{len(faults)} stories are not done: {faults[0]}")
    calls = sum(one["calls"] for one in found)
    if calls != stories * 3:
        raise RuntimeError(f"{daemons} daemons made {calls} calls for {stories} stories, and {stories * 3} are right")
    return Shared(
        stories=tuple(one["stories"] for one in found), calls=calls, wall_s=max(one["wall_s"] for one in found),
        cpu_s=sum(one["cpu_s"] for one in found), connections=most[0],
        idle_s=sum(one["idle_s"] for one in found) / daemons,
    )  # fmt: skip


def _make_repository(folder: Path) -> None:
    folder.mkdir()
    (folder / "README.md").write_text("A ledger.\n")
    name, email = IDENTITY
    who = ["-c", f"user.name={name}", "-c", f"user.email={email}"]
    for args in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "-m", "Start"]):
        subprocess.run(["git", *args], cwd=folder, check=True)


def _wait(folder: Path, names: list[str], workers: list[multiprocessing.process.BaseProcess]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not all((folder / name).exists() for name in names):
        if time.monotonic() > deadline or any(worker.exitcode for worker in workers):
            raise RuntimeError(f"a daemon ended, or is late: there is no {names}")
        time.sleep(0.1)


def _count(url: str, stop: threading.Event, most: list[int]) -> None:
    """Keeps the highest number of other connections of the database."""
    theirs = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url, autocommit=True) as connection:
        while not stop.wait(0.2):
            (now,) = connection.execute(theirs).fetchone() or (0,)
            most[0] = max(most[0], int(now))
