"""What every benchmark measures with: processor time, memory, loop lag, and the figures it hands back."""

import asyncio
import os
import platform
import resource
import sqlite3
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LAG_PROBE_S = 0.02
"""How often the event loop is asked to answer."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number."""

    name: str
    value: float
    unit: str = ""

    def __str__(self) -> str:
        digits = 0 if self.value == int(self.value) or abs(self.value) >= 1000 else 1 if abs(self.value) >= 100 else 2
        return f"{self.value:,.{digits}f} {self.unit}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one benchmark found."""

    name: str
    about: str
    """What was measured, in one line."""
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()
    """What no number says, printed below them."""

    def as_json(self) -> dict[str, Any]:
        """The numbers, JSON-able."""
        return {"name": self.name, "about": self.about, "figures": [asdict(figure) for figure in self.figures]}


@dataclass
class Meter:
    """Filled in when the measured block ends; children's processor time counts once they have been waited for."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    children_cpu_s: float = 0.0


@dataclass
class Lag:
    """How late the event loop answered, in milliseconds."""

    samples: list[float] = field(default_factory=list)

    def percentile(self, percent: int) -> float:
        """0 when there are too few samples to say."""
        if len(self.samples) < 2:
            return 0.0
        return statistics.quantiles(self.samples, n=100, method="inclusive")[percent - 1]

    async def probe(self) -> None:
        """Measure until cancelled."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(LAG_PROBE_S)
            self.samples.append((time.perf_counter() - before - LAG_PROBE_S) * 1000)


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


@contextmanager
def metered() -> Iterator[Meter]:
    """Measure wall and processor time of a block, this process and its children apart."""
    meter = Meter()
    wall, own, children = time.perf_counter(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
    try:
        yield meter
    finally:
        meter.wall_s = time.perf_counter() - wall
        meter.cpu_s = _cpu(resource.RUSAGE_SELF) - own
        meter.children_cpu_s = _cpu(resource.RUSAGE_CHILDREN) - children


def peak_rss_mb() -> float:
    """The most memory this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def folder_mb(folder: Path) -> float:
    """Apparent size of all files below `folder`."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) / 1_000_000


def median_ms(seconds: Sequence[float]) -> float:
    """The middle of some durations, in milliseconds."""
    return statistics.median(seconds) * 1000


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": str(cores),
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
    }
