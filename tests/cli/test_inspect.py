"""`status`, `show`, `logs`, `contract` and `reset` over what one small real run left."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.state_folder import StateFolder
from tests.support import PLAIN_TESTS, Played, Team, cells, git, plain_environment, play, suite_text, write_backlog

Invoke = Callable[..., Result]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sprint")


@pytest.fixture(scope="module")
def played(place: Path) -> Played:
    """US-1 is done after a refused file, US-2 stays red, US-3 waits for it, US-4 has no plan."""
    team = Team()
    team.plan("US-1", ["us_1.py"])
    team.deliver("US-1", 1, {"us_1.py": "X = 1\n", "evil/conftest.py": "Y = 1\n"})
    team.deliver("US-1", 1, {"us_1.py": "def value():\n    return 1\n"})
    team.suite("US-1", suite_text("US-1"))
    team.plan("US-2", ["us_2.py"])
    team.deliver("US-2", 1, {"us_2.py": "def value():\n    return 2\n"})
    team.suite("US-2", f"{suite_text('US-2').rstrip()}, f'assert {{value()}} == 1'\n")
    backlog = write_backlog(place / "b.csv", "US-1", "US-2", "US-3 < US-2", "US-4")
    return play(place, team, backlog, PLAIN_TESTS, "test.max_attempts=1")


@pytest.fixture
def invoke(played: Played, place: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.chdir(place)
    monkeypatch.delenv("DATABASE_URL", raising=False)

    def run(*args: str, home: Path | None = None) -> Result:
        result = CliRunner().invoke(app, args, env={"ORCHESTRATOR_HOME": str(home or place / "state")})
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_status_tells_every_story_in_words_and_as_the_report(invoke: Invoke, played: Played) -> None:
    text = invoke("status").stdout
    assert "not running" in text
    for story, status in (("US-1", "done"), ("US-2", "needs_attention"), ("US-3", "blocked"), ("US-4", "failed")):
        assert any(story in row and status in row for row in text.splitlines())
    report = read(invoke("status", "--json"))
    assert (report.pop("running_pid"), report.pop("running_on")) == (None, "")
    assert report.pop("waiting") == []
    assert (report.pop("paused"), report.pop("held"), report.pop("begun_by")) == ("", {}, "run")
    assert report.pop("needs") == {}
    assert report.pop("running_since") is None
    assert report.pop("backlog").endswith("b.csv")
    assert report.pop("last")["US-1"] == "US-1 is done"
    assert report.pop("last_at")["US-1"].endswith("+00:00")
    told = json.loads(played.result.report_path.read_text())
    assert [story["title"] for story in told["stories"]] == [f"Story {story['id']}" for story in told["stories"]]
    assert report.pop("budgets") == told["totals"]["budgets"]
    assert f"; spent {told['totals']['calls']} calls" in text
    assert report == told
    assert all(any(story["title"] in row for row in text.splitlines()) for story in told["stories"])


def test_status_follows_for_as_long_as_the_sprint_is_run(invoke: Invoke, played: Played, place: Path) -> None:
    assert invoke("status", "-f").stdout == invoke("status").stdout, "nobody is at work: told once"
    assert invoke("status", "-f", "--json").exit_code == 2

    async def follow() -> tuple[str, str]:
        environment = plain_environment(ORCHESTRATOR_HOME=str(place / "state"), PYTHONUNBUFFERED="1")
        async with SprintLock(StateFolder(place / "state").lock(played.result.report.sprint)):
            following = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "orchestrator", "status", "-f"),
                env=environment, cwd=place, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert following.stdout is not None
            first = await following.stdout.readline()
        rest = await following.stdout.read()
        assert await following.wait() == 0
        return first.decode(), rest.decode()

    first, rest = asyncio.run(follow())
    assert f"running as pid {os.getpid()}" in first
    told = rest.splitlines()
    assert [line.split()[0] for line in told[:4]] == ["US-1", "US-2", "US-3", "US-4"]
    assert [line for line in told[4:] if line.startswith("Sprint")] == [told[-1]]
    assert "not running" in told[-1]


def test_show_prints_plan_contract_findings_changes_and_the_failing_test(invoke: Invoke) -> None:
    text = invoke("show", "US-2").stdout
    for part in (
        "Story US-2",
        "T-US-2-01 [done]",
        "us_2.py",
        "test.failed",
        "test_us_2",
        "Output of the failing tests:",
        "assert 2 == 1",
    ):
        assert part in text
    shown = read(invoke("show", "US-2", "--json"))
    assert shown["title"] == "Story US-2"
    assert shown["plan"]["tasks"][0]["task_id"] == "T-US-2-01"
    assert shown["contract"]["declared_files"] == ["us_2.py"]
    assert "2 files changed" in shown["diff_stat"]
    assert shown["history"][0]["event"] == "story_started"


def test_show_of_stories_that_did_not_come_far(invoke: Invoke) -> None:
    blocked = invoke("show", "US-3").stdout
    assert "blocked by US-2 (needs_attention)" in blocked
    assert "no branch yet" in blocked
    failed = invoke("show", "US-4").stdout
    assert "script.missing" in failed
    assert "none: no plan was accepted" in failed


def test_a_dry_run_tells_what_is_left_and_what_it_may_cost(invoke: Invoke) -> None:
    for model, said in (
        ("claude-sonnet-4-5-20250929", "cost: about 0.79 USD (list prices of 20"),
        ("house-model", "cost: unknown: no price of house-model; name it under `prices` in config.yaml"),
    ):
        text = invoke("run", "b.csv", "--dry-run", "--provider", "anthropic", "--set", f"provider.model={model}").stdout
        assert "3 stories in 2 waves" in text, "US-1 is done"
        assert "wave 1: US-2, US-4" in text
        assert "tokens: about 168000 in, 19200 out (a call as on other projects" in text
        assert "calls: about 24, at most 600 (budget.calls_per_story)" in text
        assert said in text


def test_contract_tells_what_is_allowed_and_what_was_refused(invoke: Invoke) -> None:
    text = invoke("contract", "US-1").stdout
    assert "T-US-1-01 may write: us_1.py" in text
    assert "evil/conftest.py" in text
    held = read(invoke("contract", "US-1", "--json"))
    assert held["task_files"] == {"T-US-1-01": ["us_1.py"]}
    assert "refused" not in held
    none = invoke("contract", "US-3")
    assert none.exit_code == 2
    assert "US-3 has no contract" in none.stderr


def lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_logs_filter_by_every_option(invoke: Invoke, played: Played) -> None:
    everything = lines(invoke("logs", "--json", "--level", "debug"))
    assert len(everything) == len(played.events)
    assert {line["story"] for line in lines(invoke("logs", "--json", "--story", "US-1"))} == {"US-1"}
    assert {line["persona"] for line in lines(invoke("logs", "--json", "--persona", "alex"))} == {"alex"}
    assert {line["task"] for line in lines(invoke("logs", "--json", "--task", "T-US-1-01"))} == {"T-US-1-01"}
    assert {line["level"] for line in lines(invoke("logs", "--json", "--level", "warn"))} <= {"warn", "error"}
    assert len(lines(invoke("logs", "--json", "--level", "debug", "--since", "1h"))) == len(everything)
    middle = everything[len(everything) // 2]["timestamp"]
    later = lines(invoke("logs", "--json", "--level", "debug", "--since", middle))
    assert 0 < len(later) < len(everything)
    assert all(line["timestamp"] >= middle for line in later)
    assert lines(invoke("logs", "--json", "--since", "2999-01-01")) == []
    assert lines(invoke("logs", "--json", "--level", "debug", "--tail", "3")) == everything[-3:]
    mike = [line for line in everything if line.get("persona") == "mike"]
    assert lines(invoke("logs", "--json", "--level", "debug", "--persona", "mike", "--tail", "1")) == mike[-1:]
    assert "US-1 is done" in invoke("logs").stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["show", "US-11"], "did you mean US-1?"),
        (["show", "US-1", "--sprint", "SP-01"], "unknown sprint SP-01; did you mean SP-001?"),
        (["status", "--sprint", "nope"], "unknown sprint nope"),
        (["logs", "--sprint", "nope"], "unknown sprint nope"),
        (["logs", "--story", "US-11"], "unknown story US-11; did you mean US-1?"),
        (["logs", "--level", "loud"], "use one of debug, info, warn, error"),
        (["logs", "--since", "yesterday"], "give an ISO time or a span"),
        (["logs", "--since", "999999999999d"], "--since"),
        (["contract", "US-9"], "did you mean"),
        (["reset", "US-9"], "unknown story US-9; did you mean"),
        (["reset", "US-1", "--sprint", "SP-9"], "unknown sprint SP-9"),
        (["status", "--set", "log.levle=warn"], "did you mean log.level?"),
        (["status", "--config", "none.yaml"], "cannot read configuration"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest(invoke: Invoke, args: list[str], told: str) -> None:
    result = invoke(*args)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output


def test_a_folder_without_sprints_says_how_to_start_one(invoke: Invoke, tmp_path: Path) -> None:
    for args in (["status"], ["show", "US-1"], ["contract", "US-1"]):
        result = invoke(*args, home=tmp_path / "none")
        assert result.exit_code == 2
        assert "orchestrator run" in result.stderr
    assert invoke("logs", home=tmp_path / "none").exit_code == 0
    assert not (tmp_path / "none").exists(), "reading makes nothing"


def test_reset_clears_a_story_with_what_it_blocked(invoke: Invoke, played: Played, place: Path) -> None:
    before = git(played.mirror, "rev-parse", played.ref("result"))
    reset = read(invoke("reset", "US-2", "--json"))
    assert (reset["done"], reset["stories"]) == (True, ["US-2", "US-3"])
    assert reset["message"].startswith("US-2 is reset with US-3, by ")
    rows = cells(place / "b.csv")
    for story in ("US-2", "US-3"):
        assert (rows[story]["Execution_Status"], rows[story]["Sprint_ID"]) == ("", "SP-001")
    assert rows["US-1"]["Execution_Status"] == "completed"
    report = read(invoke("status", "--json"))
    assert [story["status"] for story in report["stories"]] == ["done", "pending", "pending", "failed"]
    assert "US-2" not in git(played.mirror, "branch", "--list")
    assert git(played.mirror, "rev-parse", played.ref("result")) == before
    assert "tests_finished" in invoke("logs", "--story", "US-2", "--json").stdout, "what came before stays in the log"
    assert read(invoke("show", "US-2", "--json"))["plan"] is None


def test_reset_of_the_whole_sprint_leaves_the_log_only(invoke: Invoke, played: Played, place: Path) -> None:
    text = invoke("reset", "SP-001").stdout
    assert "sprint SP-001 (4 stories) is reset, by " in text
    assert git(played.mirror, "branch", "--list", "orchestrator/*") == ""
    assert {row["Sprint_ID"] + row["Execution_Status"] for row in cells(place / "b.csv").values()} == {""}
    assert invoke("status").exit_code == 2
    record = StateFolder(place / "state").record("SP-001")
    assert record is not None
    assert record.cleared


def test_without_an_earlier_sprint_tokens_and_money_are_those_of_other_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_backlog(tmp_path / "b.csv", "A", "B < A")
    (tmp_path / "config.yaml").write_text(
        "provider: {name: openai, model: gpt-5}\npersonas: {alex: {model: own}}\n"
        "prices: {own: {input: 10, output: 100}}\n"
    )
    told = read(CliRunner().invoke(app, ["run", "b.csv", "--dry-run", "--json"], env={"ORCHESTRATOR_HOME": "state"}))
    assert told["calls"]["expected"] == 16, "two stories of one plan, three deliveries, three reviews, one suite"
    spending = told["spending"]
    assert (spending["input_tokens"], spending["output_tokens"]) == (16 * 7000, 16 * 800)
    listed, own = 7000 * 1.25 + 800 * 10, 7000 * 10 + 800 * 100
    assert spending["usd"] == round((10 * listed + 6 * own) / 1_000_000, 4)
    assert "past" not in told
