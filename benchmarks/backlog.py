"""A very large backlog in every format: read, checked, planned, selected, and one cell written back."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks import samples
from benchmarks.measure import Figure, Result, peak_rss_mb
from orchestrator.backlogs.files import open_backlog
from orchestrator.core.story import CellUpdate
from orchestrator.settings import Settings
from orchestrator.sprint.dry_run import dry_run
from orchestrator.sprint.selection import select
from orchestrator.storage.state_folder import StateFolder

T = TypeVar("T")
WAVE = 100
"""Every row depends on the one so many rows before it, so waves have this size."""
FORMATS = {"csv": "backlog.csv", "yaml": "backlog.yaml", "json": "backlog.json", "markdown": "stories"}


def _timed(figures: list[Figure], name: str, work: Callable[[], T]) -> T:
    before = time.perf_counter()
    value = work()
    figures.append(Figure(name=name, value=(time.perf_counter() - before) * 1000, unit="ms"))
    return value


def run(stories: int = 10_000) -> Result:
    """Measure each thing a run or a dry run does with a backlog of `stories` rows."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        for kind in FORMATS:
            _format(kind, Path(name), stories, figures)
    figures.append(Figure(name="memory peak", value=peak_rss_mb(), unit="MB"))
    return Result(name="backlog", about=f"{stories:,} rows in waves of {WAVE}", figures=tuple(figures))


def _format(kind: str, folder: Path, stories: int, figures: list[Figure]) -> None:
    path, settings = folder / FORMATS[kind], Settings()
    size = samples.write_as(kind, path, stories, chain=WAVE)
    state = StateFolder(folder / "state")
    state.make()
    backlog = open_backlog(path, settings, state)
    content = _timed(figures, f"{kind}: read and validate", backlog.read)
    planned = _timed(figures, f"{kind}: dry run", lambda: dry_run(content, stories=None, settings=settings))
    _timed(figures, f"{kind}: select", lambda: select(content, sprint=None, stories=(), taken_sprints=(), strict=False))
    for number, text in enumerate(("write one cell", "write another"), start=1):
        update = CellUpdate(story_id=samples.story_id(number), cells={"Execution_Status": "executing"})
        _timed(figures, f"{kind}: {text}", partial(backlog.write, [update]))
    figures.append(Figure(name=f"{kind}: waves", value=len(planned.waves)))
    figures.append(Figure(name=f"{kind}: size", value=size / 1_000_000, unit="MB"))
