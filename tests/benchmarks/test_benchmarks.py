"""Benchmarks stay runnable and count what they claim to; their times are nobody's business here."""

import json
import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import demo, engine, fleet, merge, providers, speed
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


def test_a_fleet_runs_every_story_once_within_its_limits(postgres: str) -> None:
    ran = fleet.simulate(fleet.Fleet(replicas=4, stories=12, calls=2, processes=2), postgres)  # raises otherwise
    numbers = {name: cost.number for name, cost in ran.costs.items()}
    assert {name: numbers[name] for name in ("end_calls", "end", "delete", "wait")} == {
        "end_calls": 24, "end": 12, "delete": 12, "wait": 2,
    }  # fmt: skip
    assert fleet.Forecast(ran=ran, alone=ran).most(lambda replicas: replicas / 10) == 10


def test_a_fleet_needs_a_database() -> None:
    argv = [sys.executable, "-m", "benchmarks", "fleet"]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert (ended.returncode, "--database URL" in ended.stderr) == (2, True)


def test_a_fault_of_a_fleet_is_found() -> None:
    size = fleet.Fleet(replicas=1, stories=2, at_once=1)
    tally = fleet.Tally(multiprocessing.get_context("spawn"), size)
    for story in (0, 1, 1):
        tally.count(tally.claimed, story)
        tally.count(tally.ended, story)
        tally.change_places(1)
    with pytest.raises(RuntimeError, match=r"story 1 was taken 2 times.*3 stories were at work, and 1 is the limit"):
        tally.check()


def test_one_story_cannot_be_faster_than_its_own_calls() -> None:
    assert engine.Load(stories=1, tasks=8, latency_ms=2000, turns=50).ideal_s == 20
    assert engine.Load(stories=100, tasks=8, latency_ms=2000, turns=50).ideal_s == 40


def test_the_critical_path_follows_the_longest_chain() -> None:
    needs = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
    assert demo.critical_path_s({"a": 1.0, "b": 5.0, "c": 2.0, "d": 1.0}, needs) == 7.0


def test_what_providers_cost_is_counted() -> None:
    said = figures(providers.run(calls=1))
    assert all(said[f"{name}: ours"] > 0 for name in ("anthropic", "openai"))
    assert all(share > 30 for name, share in said.items() if name.endswith("read from the cache"))
    assert all(number <= 2 for name, number in said.items() if "refused of 1,000" in name)
    assert all(share <= 5 for name, share in said.items() if name.endswith("time lost"))
    cache = providers.Cache()
    mark = {"cache_control": {"type": "ephemeral"}}
    blocks = [{"type": "text", "text": letter * 4000} for letter in "abcd"]
    body = {"model": "m", "system": [blocks[0]], "messages": [{"content": [{**blocks[1], **mark}, blocks[2]]}]}
    assert list(cache.count(body).values())[:3] == [1000, 0, 2000]
    more = [blocks[1], {**blocks[2], **mark}, blocks[3]]
    assert list(cache.count({**body, "messages": [{"content": more}]}).values())[:3] == [1000, 2000, 1000]
    assert list(cache.count({**body, "model": "n"}).values())[:3] == [1000, 0, 2000], "each model has its own"


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


def test_costs_are_drawn_beside_those_of_bare_dbos() -> None:
    bars = [("engine: bare dbos", Figure(name="", value=5, unit="ms")), ("engine", Figure(name="", value=10))]
    widths = re.findall(r'<rect x="218.00" \S+ width="([\d.]+)" \S+ class="(\w+)"', speed.drawn(bars))
    assert [(float(width) * 2, kind) for width, kind in widths] == [(562, "refused"), (1124, "exact")]
