"""What the commands of people cost where many stories have ended: processor time of whole processes."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import daemon, samples
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


def run(stories: int = 200) -> Result:
    """Let a daemon do so many stories, then ask about them."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        place = os.getcwd()
        os.chdir(folder)
        try:
            life = asyncio.run(daemon.live(folder, daemon.Crowd(stories=stories, latency_ms=0)))
        finally:
            os.chdir(place)
        if life.done != stories:
            raise RuntimeError(f"{life.done} of {stories} stories are done")
        commands = (
            ("--version",), ("--help",), ("run", "--help"), ("status",), ("show", samples.story_id(stories // 2)),
            ("logs", "--tail", "20"),
        )  # fmt: skip
        figures = tuple(
            Figure(name=f"orchestrator {' '.join(words)}", value=_ms(folder, words), unit="ms") for words in commands
        )
    return Result(name="cli", about=f"processor time of a command, {stories} finished stories, SQLite", figures=figures)
