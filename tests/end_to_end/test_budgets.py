"""Budgets of whole sprints: eight stories ask at once, and each overruns by one call at most."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import load
from tests.end_to_end.test_real_providers import settled
from tests.providers.http_server import Answer, message, model_server
from tests.support import Team, plain_environment, run_cli, write_backlog
from tests.zygote import zygote

STORIES = tuple("ABCDEFGH")
AT_ONCE = ("concurrency.stories=8", "concurrency.turns=8")


def test_calls_side_by_side_overrun_a_budget_by_no_more_than_one_call_each(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5000}
    answer = Answer(body=message("I think of it still.", usage=usage), wait_s=0.3)
    prices = "prices={claude-told: {input: 0, output: 10}, m: {input: 0, output: 10}}"
    with model_server(answer) as server:
        ask = ("provider.name=anthropic", "provider.model=m", f"provider.base_url={server.url}", prices, *AT_ONCE)
        result, events, _ = settled(tmp_path, *ask, "budget.usd_per_sprint=0.045", rows=STORIES)
        begun = len(server.asked)
        assert begun <= len(STORIES), "each of those that began at once"
        assert "budget.usd_per_sprint (0.045) is used up: " in str(result.paused)
        assert result.report.totals["cost_usd"] == pytest.approx(begun * 0.05)
        assert len([event for event in events if event.name == "sprint_paused"]) == 1
        one_by_one = "concurrency.turns=1"
        result, _, _ = settled(tmp_path, *ask, one_by_one, "budget.usd_per_sprint=0.52")
        assert len(server.asked) == 11
        assert result.paused == "budget.usd_per_sprint (0.52) is used up: 0.55 USD; raise it to continue"
        result, _, _ = settled(tmp_path, *ask, one_by_one, "budget.calls_per_day=12")
        assert len(server.asked) == 12, "those of the earlier runs are of the same day"
    assert "budget.calls_per_day (12) is used up: 12; it goes on at 00:00 UTC" in str(result.paused)


def view_report(told: str) -> str:
    """The place of the report for people that a run told."""
    (line,) = [line for line in told.splitlines() if line.startswith("Report: ")]
    return line.removeprefix("Report: ").partition(" (and")[0]


def test_a_kill_forgets_nothing_that_was_paid(tmp_path: Path) -> None:
    team = Team()
    for number, story in enumerate(STORIES):
        team.say("mike", story, "breakdown", "I think of it still.", latency_ms=300 * (1 + number))
    team.write(tmp_path / "team.jsonl")
    write_backlog(tmp_path / "b.csv", *STORIES)
    calls = tmp_path / "calls.jsonl"
    environ = plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state"))
    limits = ("budget.calls_per_sprint=6", *AT_ONCE)
    args = ["run", "b.csv", "--script", "team.jsonl", "--call-log", str(calls)]
    args += [part for limit in limits for part in ("--set", limit)]
    process = zygote().start("orchestrator", args, cwd=tmp_path, env=environ)
    until = time.monotonic() + 60
    while not calls.exists() or len(calls.read_text().splitlines()) < 3:
        assert time.monotonic() < until, process.communicate(1)
        time.sleep(0.02)
    time.sleep(0.1)
    process.kill()
    process.communicate(30)
    ended = run_cli(args, tmp_path, environ)
    paid: list[Any] = [json.loads(line)["story"] for line in calls.read_text().splitlines()]
    assert "budget.calls_per_sprint (6) is used up: " in ended.stdout
    assert 6 <= len(paid) <= 6 + len(STORIES)
    view = Reader(load(None, (), environ, tmp_path)[1]).sprint(None)
    assert view.report.totals["calls"] == len(paid)
    assert f"; spent {len(paid)} of 6 calls" in run_cli(["status"], tmp_path, environ).stdout
    assert f"Of the budgets: {len(paid)} of 6 calls." in Path(view_report(ended.stdout)).read_text()
