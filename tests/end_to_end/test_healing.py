"""Plans and answers that heal, and how calls are numbered and told."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support import ALL_PASS, Played, Team, breakdown, play, run_cli, suite_text, task, write_backlog

MODULE = "def value():\n    return 1\n"
STORY_KEYS = {
    *("id", "status", "attempts", "tasks", "tests", "findings", "tokens", "cost_usd", "calls", "duration_s"),
    *("branch", "commit"),
}
STATUSES = {"pending", "executing", "done", "needs_attention", "failed", "blocked", "conflicted", "cancelled"}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One sprint in which everything goes wrong once and everything ends well, but for one hopeless plan."""
    folder = tmp_path_factory.mktemp("healing")
    team = Team()
    renumbered(team)
    revised(team)
    short(team)
    struck(team)
    workless(team)
    broken_text(team)
    flaky(team)
    tired(team)
    backlog = write_backlog(
        folder / "backlog.csv", "IDS", "REVISED", "SHORT", "STRUCK", "WORKLESS", "BROKEN", "FLAKY", "TIRED"
    )
    return play(folder, team, backlog, "provider.max_attempts=3", ALL_PASS)


def finish(team: Team, story: str, number: int = 1) -> None:
    """The delivery and the suite of a story whose module is made by one task."""
    team.deliver(story, number, {f"{story.lower()}.py": MODULE})
    team.suite(story, suite_text(story))


def renumbered(team: Team) -> None:
    """Three plans with ids of another form, a dependency on nothing and a cycle: mended in the end."""
    tasks = [
        task("IDS", 1, ["ids.py"], task_id="first", dependencies=["second", "nowhere"]),
        task("IDS", 2, ["more.py"], task_id="second", dependencies=["first"]),
    ]
    for _ in range(3):
        team.plan("IDS", *tasks, story_id="US-999")
    team.deliver("IDS", 1, {"ids.py": MODULE})
    team.deliver("IDS", 2, {"more.py": "MORE = 1\n"})
    team.suite("IDS", suite_text("IDS"))


def revised(team: Team) -> None:
    """Only an id is wrong: the second plan is never asked for."""
    team.plan("REVISED", task("REVISED", 1, ["revised.py"], task_id="one"))
    team.plan("REVISED", ["revised.py"])
    finish(team, "REVISED")


def short(team: Team) -> None:
    """Tasks are announced in every plan and never come: the story goes on without them."""
    for _ in range(3):
        team.plan("SHORT", ["short.py"], task_count=2)
    team.say("mike", "SHORT", "breakdown_missing", {"tasks": []})
    finish(team, "SHORT")


def struck(team: Team) -> None:
    """Unsafe paths in every plan, beside a good one."""
    for _ in range(3):
        team.plan("STRUCK", ["../etc/passwd", "/etc/passwd", ".git/config", "struck.py"])
    finish(team, "STRUCK")


def workless(team: Team) -> None:
    """Nothing is left of the task when its unsafe path is struck."""
    for _ in range(3):
        team.plan("WORKLESS", ["../../outside.py"])


def broken_text(team: Team) -> None:
    """Raw line breaks, invalid escapes and trailing commas heal without a call; a missing quote is repaired by one."""
    plan = json.dumps(breakdown("BROKEN", ["broken.py"], technical_notes="say \"it\" and 'that'"), indent=1)
    team.say("mike", "BROKEN", "breakdown", f"<think>hm {{}}</think>Here:\n```json\n{plan[:-2]},\n}}\n```")
    delivered = '{"story_id": "BROKEN", "task_id": "T-BROKEN-01", "files": [{"path": "broken.py", "content": "'
    team.say("alex", "BROKEN", "delivery", f'{delivered}def value():\n    return 1\n"}},]}}', task=1)
    team.say("jordan", "BROKEN", "suite", "I would test that value() is 1.")
    team.say("jordan", "BROKEN", "repair", {
        "story_id": "BROKEN", "test_file": "tests/test_broken.py", "test_content": suite_text("BROKEN"),
        "test_cases": [{"name": "test_broken", "criterion": "it works"}],
    })  # fmt: skip


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


def test_wrong_ids_are_mended_at_once_and_other_names_after_the_retries(played: Played) -> None:
    assert played.status("IDS") == "done"
    assert played.asked("IDS", "mike") == ["breakdown 1", "breakdown 2", "breakdown 3"], "it depends on no task"
    assert [done.id for done in played.story("IDS").tasks] == ["T-IDS-01", "T-IDS-02"]
    assert "first → T-IDS-01, second → T-IDS-02" in played.finding("IDS", "breakdown.renumbered").message
    assert {"breakdown.story_id", "breakdown.dependency_dropped"} <= played.codes("IDS")
    assert all(finding.severity.value == "minor" for finding in played.story("IDS").findings)
    assert played.status("REVISED") == "done"
    assert played.asked("REVISED", "mike") == ["breakdown 1"]


def test_missing_tasks_never_stop_a_story(played: Played) -> None:
    assert played.status("SHORT") == "done"
    assert "breakdown.missing_tasks" in played.codes("SHORT")
    assert played.asked("SHORT", "mike").count("breakdown_missing 1") == 1


def test_unsafe_paths_are_struck_and_a_task_without_work_is_a_persons(played: Played) -> None:
    assert played.status("STRUCK") == "done"
    assert sum(finding.code == "breakdown.struck" for finding in played.story("STRUCK").findings) == 3
    assert played.status("WORKLESS") == "needs_attention"
    assert "breakdown.no_work" in played.codes("WORKLESS")
    assert played.asked("WORKLESS") == ["breakdown 1", "breakdown 2", "breakdown 3"]


def test_broken_text_heals(played: Played) -> None:
    assert played.status("BROKEN") == "done", played.story("BROKEN").findings
    assert played.asked("BROKEN") == ["breakdown 1", "delivery 1", "review 1", "suite 1", "repair 1"]
    assert len(played.told_of("BROKEN", "answer_healed")) == 2
    assert len(played.told_of("BROKEN", "answer_repaired_by_model")) == 1


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
    assert report["totals"]["done"] == 6
    assert sum(report["totals"][status] for status in STATUSES) == 8


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
