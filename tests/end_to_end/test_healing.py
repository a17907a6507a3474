"""How calls are numbered, and what a run reports and prints."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support import ALL_PASS, Played, Team, play, run_cli, suite_text, write_backlog

MODULE = "def value():\n    return 1\n"
STORY_KEYS = {
    *("id", "status", "attempts", "tasks", "tests", "findings", "tokens", "cost_usd", "calls", "duration_s"),
    *("branch", "commit"),
}
STATUSES = {"pending", "executing", "done", "needs_attention", "failed", "blocked", "conflicted", "cancelled"}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One sprint of a story whose calls fail now and then, and one whose calls always do."""
    folder = tmp_path_factory.mktemp("healing")
    team = Team()
    flaky(team)
    tired(team)
    backlog = write_backlog(folder / "backlog.csv", "FLAKY", "TIRED")
    return play(folder, team, backlog, "provider.max_attempts=3", ALL_PASS)


def flaky(team: Team) -> None:
    """Transport errors, each of which takes a turn, and a refusal between them."""
    team.say("mike", "FLAKY", "breakdown", "", error="rate_limit", retry_after_s=0.01)
    team.say("mike", "FLAKY", "breakdown", "", error="overloaded")
    team.plan("FLAKY", ["flaky.py"])
    team.deliver("FLAKY", 1, {"flaky.py": "def value(:\n"}, input_tokens=100, output_tokens=10, cached_tokens=60)
    team.say("alex", "FLAKY", "delivery", "", task=1, error="timeout")
    team.deliver("FLAKY", 1, {"flaky.py": MODULE}, input_tokens=11, output_tokens=7)
    team.suite("FLAKY", suite_text("FLAKY"))


def tired(team: Team) -> None:
    """The transport policy is used up."""
    for _ in range(3):
        team.say("mike", "TIRED", "breakdown", "", error="connection")


def test_turns_count_every_call_that_ended(played: Played) -> None:
    assert played.status("FLAKY") == "done"
    asked = ["breakdown 3", "delivery 1", "delivery 3", "review 1", "suite 1"]
    assert played.asked("FLAKY") == asked, "errors are not listed"
    assert [one.data["turn"] for one in played.told_of("FLAKY", "call_retried")] == [1, 2, 2]
    flaky = played.story("FLAKY")
    assert (flaky.tokens.input, flaky.tokens.cached, flaky.tokens.output, flaky.calls) == (111, 60, 17, 5)
    assert played.status("TIRED") == "failed"
    assert "gave up after 3 calls" in played.finding("TIRED", "provider.connection").message
    assert played.asked("TIRED") == []


def report_of(text: str) -> dict[str, Any]:
    """report.json, its shape checked against the fixed interface."""
    report: dict[str, Any] = json.loads(text)
    assert set(report) == {"sprint", "stories", "totals"}
    for story in report["stories"]:
        assert set(story) >= STORY_KEYS
        assert set(story["tests"]) == {"run", "passed", "failed", "cases"}
        assert set(story["tokens"]) == {"input", "cached", "output"}
        assert all(set(case) == {"name", "criterion", "result"} for case in story["tests"]["cases"])
        assert all(set(done) == {"id", "status", "reviews", "comments"} for done in story["tasks"])
        assert all({"code", "severity", "message", "where", "fix", "ask"} == set(one) for one in story["findings"])
    assert STATUSES | {"tokens", "cost_usd"} <= set(report["totals"])
    return report


def test_the_report_has_the_fixed_shape(played: Played) -> None:
    report = report_of(played.result.report_path.read_text())
    assert report == played.result.report.model_dump(mode="json")
    assert report["totals"]["done"] == 1
    assert sum(report["totals"][status] for status in STATUSES) == 2


def test_a_process_prints_its_report_and_its_log_apart(tmp_path: Path) -> None:
    team = Team()
    team.good("ONE")
    team.write(tmp_path / "team.jsonl")
    write_backlog(tmp_path / "backlog.csv", "ONE", "TWO < ONE")
    args = ["run", "backlog.csv", "--repo", "repo", "--script", "team.jsonl", "--json", "--log-format", "json"]
    done = run_cli([*args, "--set", "log.level=debug", "--set", ALL_PASS], tmp_path)
    assert done.returncode == 1, done.stderr
    report = report_of(done.stdout)
    assert [story["status"] for story in report["stories"]] == ["done", "failed"]
    saved = next((tmp_path / ".orchestrator").rglob("report.json"))
    assert json.loads(saved.read_text()) == report
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert len(lines) > 10
    for line in lines:
        assert list(line)[:4] == ["timestamp", "level", "message", "event"]
        assert line["level"] in {"debug", "info", "warn", "error"}
        assert line["event"] == line["event"].lower()
        assert datetime.fromisoformat(line["timestamp"]).utcoffset() is not None
        assert line["timestamp"].endswith(("Z", "+00:00"))
    finished = next(line for line in lines if line["event"] == "turn_finished")
    assert {"sprint", "story", "persona", "turn", "duration_ms", "input_tokens", "cached_tokens", "output_tokens"} <= {
        *finished
    }
    others = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert not [line for line in others if "Traceback" in line]
