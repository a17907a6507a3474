"""Stories that are finished side by side and merged, in a project whose whole suite sleeps."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import samples
from benchmarks.measure import Figure, Result, metered


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """How much is merged."""

    stories: int = 6
    suite_s: float = 10.0
    """What the test sleeps that the repository has before the sprint."""
    commands: int = 6
    """Test runs at once: they sleep, so that processors are no limit."""

    @property
    def ideal_s(self) -> float:
        """Base and merged tree: each once, for all stories at once."""
        return 2 * self.suite_s


def run(crowd: Crowd) -> Result:
    """Runs one sprint from the command line. Raises RuntimeError when a story is not merged."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name).resolve()
        _make_repository(folder / "repo", crowd.suite_s)
        samples.write_backlog(folder / "backlog.csv", crowd.stories)
        samples.write_script(folder / "team.jsonl", crowd.stories, 1, 100)
        words = ["run", "backlog.csv", "--repo", "repo", "--provider", "scripted", "--script", "team.jsonl", "--json"]
        sizes = (f"concurrency.stories={crowd.stories}", f"concurrency.commands={crowd.commands}")
        for setting in (*sizes, "review.enabled=false", "sandbox.mode=plain"):
            words += ["--set", setting]
        with metered() as meter:
            ended = subprocess.run(
                [sys.executable, "-m", "orchestrator", *words], cwd=folder, capture_output=True, text=True, check=False
            )
        if ended.returncode != 0:
            raise RuntimeError(f"the sprint ended with {ended.returncode}: {ended.stdout} {ended.stderr[-2000:]}")
        done = json.loads(ended.stdout)["totals"]["done"]
    figures = (
        Figure(name="stories merged", value=done),
        Figure(name="wall", value=meter.wall_s, unit="s"),
        Figure(name="ideal", value=crowd.ideal_s, unit="s"),
        Figure(name="wall / ideal", value=meter.wall_s / crowd.ideal_s),
        Figure(name="processor time", value=meter.cpu_s + meter.children_cpu_s, unit="s"),
    )
    about = f"{crowd.stories} stories, a whole suite of {crowd.suite_s:g} s, {crowd.commands} test runs at once"
    return Result(name="merge", about=about, figures=figures)


def _make_repository(folder: Path, suite_s: float) -> None:
    (folder / "tests").mkdir(parents=True)
    text = f"import time\n\n\ndef test_slow():\n    time.sleep({suite_s})\n    assert time.time() > 1\n"
    (folder / "tests/test_slow.py").write_text(text)
    who = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
    for args in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "-m", "Start"]):
        subprocess.run(["git", *args], cwd=folder, check=True)
