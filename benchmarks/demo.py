"""The packaged example from the command line, against the waits its scripted team asks for."""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import Figure, Result, metered
from orchestrator.backlogs.files import open_backlog
from orchestrator.providers.scripted import load_script
from orchestrator.settings import Settings, packaged
from orchestrator.sprint.selection import select
from orchestrator.storage.state_folder import StateFolder


def critical_path_s(waits: Mapping[str, float], needs: Mapping[str, tuple[str, ...]]) -> float:
    """The longest sum of waits along the dependencies, as if nothing but waiting took time."""
    ends: dict[str, float] = {}

    def end(story: str) -> float:
        if story not in ends:
            ends[story] = waits[story] + max((end(need) for need in needs[story]), default=0.0)
        return ends[story]

    return max((end(story) for story in needs), default=0.0)


def _scripted(folder: Path) -> tuple[float, float]:
    """(critical path, all waits) of the example's team, in seconds."""
    example = packaged("examples") / "library"
    waits: dict[str, float] = defaultdict(float)
    for entry in load_script(example / "team.jsonl").values():
        waits[entry.story] += entry.latency_ms / 1000
    backlog = open_backlog(example / "backlog.csv", Settings(), StateFolder(folder))
    chosen = select(backlog.read(), sprint=None, stories=(), taken_sprints=(), strict=False)
    return critical_path_s(waits, chosen.needs), sum(waits.values())


def run() -> Result:
    """Run `demo` in a fresh folder. Raises RuntimeError when it does not end well."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name).resolve()
        path, waits = _scripted(folder)
        with metered() as meter:
            ended = subprocess.run(
                [sys.executable, "-m", "orchestrator", "demo", "--dir", str(folder), "--json"],
                cwd=folder, capture_output=True, text=True, check=False,
            )  # fmt: skip
        if ended.returncode != 0:
            raise RuntimeError(f"the demo ended with {ended.returncode}: {ended.stderr[-2000:]}")
        report = json.loads(ended.stdout)
    totals = report["totals"]
    figures = (
        Figure(name="stories done", value=totals["done"]),
        Figure(name="calls", value=totals["calls"]),
        Figure(name="wall", value=meter.wall_s, unit="s"),
        Figure(name="scripted critical path", value=path, unit="s"),
        Figure(name="all scripted waits", value=waits, unit="s"),
        Figure(name="processor time", value=meter.cpu_s + meter.children_cpu_s, unit="s"),
    )
    return Result(name="demo", about="the packaged example, `orchestrator demo`", figures=figures)
