"""A very large backlog: read, checked, planned, selected, and one cell written back."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks import samples
from benchmarks.measure import Figure, Result, peak_rss_mb
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.story import CellUpdate
from orchestrator.settings import Settings
from orchestrator.sprint.dry_run import dry_run
from orchestrator.sprint.selection import select
from orchestrator.wiring.backlogs import open_backlog

T = TypeVar("T")
WAVE = 100
"""Every row depends on the one so many rows before it, so waves have this size."""


def _timed(figures: list[Figure], name: str, work: Callable[[], T]) -> T:
    before = time.perf_counter()
    value = work()
    figures.append(Figure(name=name, value=(time.perf_counter() - before) * 1000, unit="ms"))
    return value


def run(stories: int = 10_000) -> Result:
    """Measure each thing a run or a dry run does with a backlog of `stories` rows."""
    figures: list[Figure] = []
    settings = Settings()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        path = Path(name) / "backlog.csv"
        samples.write_backlog(path, stories, chain=WAVE)
        size = path.stat().st_size / 1_000_000
        state = StateFolder(Path(name) / "state")
        state.make()
        backlog = open_backlog(path, settings, state)
        content = _timed(figures, "read and validate", backlog.read)
        planned = _timed(figures, "dry run", lambda: dry_run(content, stories=None, settings=settings))
        _timed(figures, "select", lambda: select(content, sprint=None, stories=(), taken_sprints=(), strict=False))
        update = CellUpdate(story_id=samples.story_id(stories), cells={"Execution_Status": "Executing"})
        _timed(figures, "write one cell", lambda: backlog.write([update]))
    figures.append(Figure(name="waves", value=len(planned.waves)))
    figures.append(Figure(name="file", value=size, unit="MB"))
    figures.append(Figure(name="memory peak", value=peak_rss_mb(), unit="MB"))
    return Result(name="backlog", about=f"{stories:,} rows in waves of {WAVE}", figures=tuple(figures))
