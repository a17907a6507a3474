"""What the commands of people cost where many stories have ended: processor time of whole processes."""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import samples
from benchmarks.measure import Figure, Result, metered

TIMES = 5


def _ms(folder: Path, words: tuple[str, ...]) -> float:
    """Raises CalledProcessError for a command that fails."""
    used = []
    for _ in range(TIMES):
        with metered() as meter:
            subprocess.run(
                [sys.executable, "-m", "orchestrator", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL
            )
        used.append(meter.children_cpu_s * 1000)
    return statistics.median(used)


def run(stories: int = 60) -> Result:
    """Runs a sprint of so many stories, then asks about them. Raises CalledProcessError where a story is not done."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        samples.write_backlog(folder / "backlog.csv", stories)
        samples.write_script(folder / "team.jsonl", stories, 1, 0)
        settings = ("sandbox.mode=plain", "review.enabled=false", "log.level=error")
        argv = ["run", "backlog.csv", "--repo", "repo", "--provider", "scripted", "--script", "team.jsonl"]
        words = [*argv, *(word for setting in settings for word in ("--set", setting))]
        subprocess.run(
            [sys.executable, "-m", "orchestrator", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
        commands = (
            ("--version",), ("--help",), ("run", "--help"), ("status",), ("show", samples.story_id(stories // 2)),
            ("logs", "--tail", "20"),
        )  # fmt: skip
        figures = tuple(
            Figure(name=f"orchestrator {' '.join(words)}", value=_ms(folder, words), unit="ms") for words in commands
        )
    return Result(name="cli", about=f"processor time of a command, {stories} finished stories, SQLite", figures=figures)
