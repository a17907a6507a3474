"""Benchmarks stay runnable and count what they claim to; their times are nobody's business here."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import demo, engine, merge, pages
from benchmarks.measure import Figure, Result

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent.parent


def figures(result: Result) -> dict[str, float]:
    return {figure.name: figure.value for figure in result.figures}


def test_the_engine_runs_every_story_and_call() -> None:
    load = engine.Load(stories=3, tasks=2, latency_ms=5, turns=2)
    said = figures(engine.run(load))
    assert (said["stories done"], said["calls"]) == (3, 12)
    assert said["ideal critical path"] == 12 * 0.005 / 2
    assert said["wall"] >= said["ideal critical path"]
    assert 0 < said["processor time per call"] < 10_000


def test_one_story_cannot_be_faster_than_its_own_calls() -> None:
    assert engine.Load(stories=1, tasks=8, latency_ms=2000, turns=50).ideal_s == 20
    assert engine.Load(stories=100, tasks=8, latency_ms=2000, turns=50).ideal_s == 40


def test_the_critical_path_follows_the_longest_chain() -> None:
    needs = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
    assert demo.critical_path_s({"a": 1.0, "b": 5.0, "c": 2.0, "d": 1.0}, needs) == 7.0


def test_stories_are_merged() -> None:
    said = figures(merge.run(merge.Crowd(stories=2, suite_s=0.1)))
    assert said["stories merged"] == 2


def test_the_command_prints_a_table_and_writes_the_numbers(tmp_path: Path) -> None:
    target = tmp_path / "numbers.json"
    argv = [sys.executable, "-m", "benchmarks", "git", "backlog", "--stories", "2", "--json", str(target)]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert ended.returncode == 0, ended.stderr
    numbers = json.loads(target.read_text())
    assert [result["name"] for result in numbers["results"]] == ["git", "backlog"]
    git = {figure["name"]: figure["value"] for figure in numbers["results"][0]["figures"]}
    assert git["git processes per story"] > 1
    assert git["tests per story"] > 0
    assert "commit a task" in ended.stdout
    assert numbers["machine"]["sqlite"]


def test_a_section_of_figures_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    for name, value in (("engine", 1.0), ("cli", 2.0), ("engine", 3.0)):
        figure = Figure(name="processor time", value=value, unit="ms")
        pages.write_figures([Result(name=name, about="what was run", figures=(figure,))], {"cores": "2"}, page)
    text = page.read_text()
    assert re.findall(r"^## (.*)|processor time \| (.*) \|", text, re.MULTILINE) == [
        ("cli", ""), ("", "2 ms"), ("engine", ""), ("", "3 ms"),
    ]  # fmt: skip
