"""The daemon itself: how soon it is ready, what it does after a kill, what a turn and a story cost it.

Git is real; the suites are green at once, so that the daemon's own process is what is measured.
"""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import databases, samples
from benchmarks.measure import Figure, Lag, Result, metered
from orchestrator.app import sprint_runtime
from orchestrator.core.event import Event
from orchestrator.daemon.serve import Daemon
from orchestrator.settings import load
from orchestrator.settings.options import ServeOptions
from orchestrator.testing.simulated import SimulatedRunner

SAMPLE_EVERY = 50
"""Stories between two looks at the process."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """How many stories there are, and how many of them at once."""

    stories: int = 100
    at_once: int = 50
    latency_ms: int = 200
    gates: bool = False
    """Whether each story waits for a person after its plan."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The process at one moment."""

    stories: int
    """That have ended, or that wait for a person."""
    rss_mb: float
    descriptors: int
    tasks: int
    threads: int
    at_s: float

    @classmethod
    def now(cls, stories: int, began: float) -> "Sample":
        """Garbage is collected first: what is measured is what is held."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            stories=stories,
            rss_mb=pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            descriptors=len(os.listdir("/proc/self/fd")),
            tasks=len(asyncio.all_tasks()),
            threads=threading.active_count(),
            at_s=time.monotonic() - began,
        )


@dataclass(frozen=True, kw_only=True)
class Life:
    """What a daemon's life over a crowd showed."""

    samples: tuple[Sample, ...]
    idle: Sample
    """When it was ready and had nothing to do."""
    rested: Sample
    """When everything had ended."""
    done: int
    calls: int
    wall_s: float
    cpu_s: float
    lag_ms: tuple[float, float]
    """How late its event loop answered, p50 and p99: `/healthz` waits as long."""

    @property
    def peak_mb(self) -> float:
        """Most memory of all looks at it."""
        return max(sample.rss_mb for sample in (*self.samples, self.rested))


async def live(folder: Path, crowd: Crowd, database: str | None = None) -> Life:
    """One daemon over one backlog, to its end, or until all wait for a person. Raises TimeoutError after an hour."""
    sprint_runtime.project_runner = lambda *_args, **_kwargs: SimulatedRunner()
    backlog = folder / "backlog.csv"
    sizes = [f"concurrency.stories={crowd.at_once}", f"concurrency.turns={crowd.at_once}", "serve.poll_s=0.5"]
    words = [*sizes, "sandbox.mode=plain", "sandbox.require=none", "review.enabled=false", "log.level=error"]
    words += [f"serve.repo={folder / 'repo'}", "retention.days=null"]
    words += ["gate.mode=always"] if crowd.gates else []
    variables = {"PATH": os.environ["PATH"]} | ({"DATABASE_URL": database} if database else {})
    settings, environment = load(None, words, variables, folder)
    await asyncio.to_thread(_script, folder, crowd)
    counts, changed = {"ended": 0, "waiting": 0, "calls": 0, "done": 0, "sprints": 0}, asyncio.Event()

    def listen(event: Event) -> None:
        counts["ended"] += event.name == "story_finished"
        counts["done"] += event.name == "story_finished" and event.data["status"] == "done"
        counts["waiting"] += event.name == "gate_opened"
        counts["sprints"] += event.name == "sprint_ended"
        counts["calls"] += event.name == "turn_finished"
        changed.set()

    options = ServeOptions(backlogs=(backlog,), provider="scripted", script=folder / "team.jsonl")
    daemon = Daemon(options, settings, environment, listen=listen, load=lambda: settings)
    which = "waiting" if crowd.gates else "ended"
    async with daemon:
        running = asyncio.create_task(daemon.run())
        await asyncio.sleep(1)
        began = time.monotonic()
        idle = Sample.now(0, began)
        await asyncio.to_thread(samples.write_backlog, backlog, crowd.stories)
        taken: list[Sample] = []
        lag = Lag()
        probe = asyncio.create_task(lag.probe())
        with metered() as meter:
            async with asyncio.timeout(3600):
                while counts[which] < crowd.stories:
                    await changed.wait()
                    changed.clear()
                    if running.done():
                        await running
                    if counts[which] >= SAMPLE_EVERY * (len(taken) + 1):
                        taken.append(Sample.now(counts[which], began))
                while not crowd.gates and not counts["sprints"]:
                    await changed.wait()
                    changed.clear()
        probe.cancel()
        await asyncio.sleep(3)
        rested = Sample.now(counts[which], began)
        daemon.stop()
        await running
    return Life(
        samples=tuple(taken), idle=idle, rested=rested, done=counts["done"], calls=counts["calls"],
        wall_s=meter.wall_s, cpu_s=meter.cpu_s, lag_ms=(lag.percentile(50), lag.percentile(99)),
    )  # fmt: skip


def _script(folder: Path, crowd: Crowd) -> None:
    samples.write_script(folder / "team.jsonl", crowd.stories, 1, crowd.latency_ms)


class Process:
    """`orchestrator serve` as a process of its own, in a folder with a backlog and a script."""

    def __init__(self, folder: Path, database: str | None = None) -> None:
        words = [
            *("serve", "--backlog", "backlog.csv", "--repo", "repo", "--port", "0", "--provider", "scripted"),
            *("--script", "team.jsonl", "--set", "sandbox.mode=plain", "--set", "sandbox.require=none"),
            *("--set", "review.enabled=false"),
        ]
        self.began = time.monotonic()
        self._log = (folder / "log.jsonl").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", *words], cwd=folder, stdout=self._log, stderr=subprocess.STDOUT,
            env=os.environ | ({"DATABASE_URL": database} if database else {}),
        )  # fmt: skip
        self._folder = folder

    def until(self, event: str, *, number: int = 1) -> float:
        """Seconds from the start until the log of this folder has so many of the event."""
        for _ in range(60_000):
            if (self._folder / "log.jsonl").read_text(errors="replace").count(f'"event": "{event}"') >= number:
                return time.monotonic() - self.began
            if self._process.poll() is not None:
                break
            time.sleep(0.001)
        raise RuntimeError(f"no {event}: {(self._folder / 'log.jsonl').read_text()[-2000:]}")

    def end(self, number: int) -> None:
        """Signal it and wait."""
        self._process.send_signal(number)
        self._process.wait()
        self._log.close()


def _started(folder: Path, database: str | None) -> tuple[float, float]:
    """(start to ready, start after kill -9 until a killed story's next call is asked for), in seconds."""
    samples.write_backlog(folder / "backlog.csv", 20)
    samples.write_script(folder / "team.jsonl", 20, 1, 400)
    first = Process(folder, database)
    ready = first.until("daemon_listens")
    first.until("turn_finished", number=4)
    first.end(signal.SIGKILL)
    asked = (folder / "log.jsonl").read_text().count('"event": "turn_started"')
    second = Process(folder, database)
    recovered = second.until("turn_started", number=asked + 1)
    second.end(signal.SIGTERM)
    return ready, recovered


@contextmanager
def _place(server: str | None) -> Iterator[tuple[Path, str | None]]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, databases.fresh(server) as database:
        yield Path(folder), database


def run(crowd: Crowd, server: str | None = None) -> Result:
    """Measure a start, a recovery, a crowd at work and one that waits. Raises RuntimeError for a story not done.

    On SQLite, or on databases made for it on the Postgres `server`.
    """
    with _place(server) as (folder, database):
        ready, recovered = _started(folder, database)
    all_wait = replace(crowd, stories=3 * crowd.stories, gates=True, at_once=3 * crowd.stories)
    with _place(server) as (folder, database):
        waiting = asyncio.run(live(folder, all_wait, database)).samples
    with _place(server) as (folder, database):
        fewer = asyncio.run(live(folder, replace(crowd, at_once=crowd.at_once // 2), database))
    with _place(server) as (folder, database):
        life = asyncio.run(live(folder, crowd, database))
    if life.done != crowd.stories:
        raise RuntimeError(f"{life.done} of {crowd.stories} stories are done")
    # By the difference of two crowds: what the first stories make the process load stays, and is not theirs.
    first, last = next(sample for sample in waiting if sample.stories >= crowd.stories), waiting[-1]
    grown = (last.rss_mb - first.rss_mb) / (last.stories - first.stories)
    at_work = (life.peak_mb - fewer.peak_mb) / (crowd.at_once - crowd.at_once // 2)
    figures = (
        Figure(name="start to ready", value=ready, unit="s"),
        Figure(name="start after kill -9 to the next call", value=recovered, unit="s"),
        Figure(name="memory when ready", value=life.idle.rss_mb, unit="MB"),
        Figure(name="memory per waiting story", value=grown * 1024, unit="KB"),
        Figure(name="memory peak, stories at work", value=life.peak_mb, unit="MB"),
        Figure(name="memory per running story, at most", value=at_work * 1024, unit="KB"),
        Figure(name="wall", value=life.wall_s, unit="s"),
        Figure(name="loop lag p50", value=life.lag_ms[0], unit="ms"),
        Figure(name="loop lag p99", value=life.lag_ms[1], unit="ms"),
        Figure(name="processor time per call, git's not counted", value=life.cpu_s / life.calls * 1000, unit="ms"),
    )
    about = f"{crowd.stories} stories, {crowd.at_once} at once, calls of {crowd.latency_ms} ms, real git, no tests"
    about += f", {'Postgres' if server else 'SQLite'}"
    return Result(name="daemon", about=about, figures=figures)


def main() -> None:
    """`python -m benchmarks.daemon FOLDER JSON`: one life; its samples as JSON on stdout."""
    crowd, database = Crowd(**json.loads(sys.argv[2])), os.environ.get("DATABASE_URL")
    life = asyncio.run(live(Path(sys.argv[1]), crowd, database))

    def plain(value: Any) -> Any:
        return value.__dict__ if isinstance(value, Sample) else value

    print(json.dumps({name: plain(value) for name, value in life.__dict__.items()}, default=plain))


if __name__ == "__main__":
    main()
