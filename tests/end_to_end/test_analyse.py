"""Whole analyses with a scripted analyst: from a repository to a plan to a backlog to merged stories."""

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analysis.files import is_whole
from orchestrator.backlogs.files import read_backlog
from orchestrator.core.errors import ConfigError, UserError
from orchestrator.settings import load
from orchestrator.sprint.dry_run import dry_run
from tests.end_to_end.analysing import APP, analyse, analysis, answer, application, team_of
from tests.support import ALL_PASS, Team, plain_environment, play, run_cli, suite_text
from tests.zygote import Forked, zygote

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).with_name("full_review.jsonl")
PROSE = "I looked at everything.\n\n# It is fine\n- [x] [HIGH] Nothing\n"


def test_full_review_of_this_project(tmp_path: Path) -> None:
    done = analyse(tmp_path, None, repo=ROOT, script=RECORDED, profile="full_review", to_backlog=tmp_path / "b.csv")
    plan = done.written.plan
    assert done.whole
    assert len(plan.stages) == 20
    assert len(done.calls) == len(set(done.asked)) == 21, "one stage answered in prose first"
    ranks = [task.priority.rank for task in plan.tasks]
    assert ranks == sorted(ranks)
    assert ranks[0] == 0
    assert len({task.title.lower() for task in plan.tasks}) == len(plan.tasks)
    shared = next(task for task in plan.tasks if task.also)
    assert shared.stage == "architecture"
    assert any(task.priority_stated == "urgent" for task in plan.tasks)
    assert plan.codebase.tokens <= 60_000
    assert plan.codebase.left_out
    assert "## Instructions for Claude Code" in done.written.plan_path.read_text()
    (history,) = done.prompts("plan_summary")
    assert "Task, critical" in history.partition("## Previous analysis")[2]
    settings, environment = load(None, (), plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state")), tmp_path)
    content = read_backlog(tmp_path / "b.csv", settings, environment)
    planned = dry_run(content, stories=None, settings=settings)
    assert (planned.stories, planned.problems) == (len(plan.tasks), ())


def test_from_analysis_to_backlog_to_a_merged_sprint(tmp_path: Path) -> None:
    first = {"title": "Fold the case of words", "acceptance_criteria": ["`find_words` folds case"],
             "description": "", "priority": "high",
             "file": "shelf/words.py"}  # fmt: skip
    second = {
        "title": "Say how many words",
        "description": "It counts.",
        "priority": "low",
        "depends_on": [first["title"]],
    }
    done = analyse(
        tmp_path, team_of({"code_quality": answer(first, second)}), stages=("code_quality",),
        to_backlog=tmp_path / "backlog.yaml",
    )  # fmt: skip
    backlog = done.written.backlog_path
    assert backlog is not None
    dry = run_cli(["run", str(backlog), "--dry-run", "--json"], tmp_path)
    assert (dry.returncode, json.loads(dry.stdout)["waves"]) == (0, [["IMP-001"], ["IMP-002"]])
    team = Team()
    for name in ("IMP-001", "IMP-002"):
        team.good(name)
    played = play(tmp_path / "sprint", team, backlog, ALL_PASS, repo=application(tmp_path))
    assert [played.status(name) for name in ("IMP-001", "IMP-002")] == ["done", "done"]
    assert "imp_001.py" in played.tree("result")
    assert suite_text("IMP-001").strip() in played.text("result", "tests/test_imp_001.py")


def test_prose_is_asked_again_and_becomes_the_summary_and_no_task(tmp_path: Path) -> None:
    done = analyse(
        tmp_path, team_of({"security": [PROSE, PROSE, PROSE], "testing": [PROSE, answer("Test it")]}),
        stages=("security", "testing"),
    )  # fmt: skip
    assert done.statuses == {"security": "prose", "testing": "answered"}
    assert [call for call in done.asked if call.startswith("security")] == [f"security stage {n}" for n in (1, 2, 3)]
    report = done.written.plan.stages[0]
    assert report.summary == PROSE.strip()
    assert [finding.code for finding in report.findings] == ["stage.prose"]
    assert done.titles == ["Test it"]
    assert not done.whole
    text = done.written.plan_path.read_text()
    assert "> # It is fine" in text
    assert "\n- [x]" not in text
    assert "Corrections Required" in done.prompts("security")[-1]


def test_the_same_command_asks_only_for_what_failed(tmp_path: Path) -> None:
    stages = ("code_quality", "security", "testing")
    team = team_of({"code_quality": answer("A"), "testing": answer("C")})
    first = analyse(tmp_path, team, stages=stages)
    assert list(first.statuses.values()) == ["answered", "failed", "answered"]
    team.say("analyst", "security", "stage", answer("B|critical"))
    second = analyse(tmp_path, team, stages=stages)
    assert list(second.statuses.values()) == ["answered"] * 3
    assert second.titles == ["B", "A", "C"]
    assert second.asked == ["code_quality stage 1", "testing stage 1", "security stage 1"]
    assert second.written.plan.analysis == first.written.plan.analysis == "AN-001"
    with pytest.raises(ConfigError, match="add --replace"):
        analyse(tmp_path, team, stages=stages)
    third = analyse(tmp_path, team, stages=stages, replace=True)
    assert third.written.plan.analysis == "AN-002", "a finished one is not gone on with"


def test_a_budget_of_the_day_ends_stages_in_place_of_a_wait_and_counts_over_analyses(tmp_path: Path) -> None:
    stages = ("code_quality", "security", "testing")
    team = team_of({stage: answer(stage) for stage in stages})
    first = analyse(tmp_path, team, "budget.calls_per_day=2", stages=stages)
    assert sorted(first.statuses.values()) == ["answered", "answered", "failed"]
    (failed,) = [stage for stage, status in first.statuses.items() if status == "failed"]
    (told,) = [event for event in first.told_of("turn_failed") if event.story == failed]
    used_up = "budget.calls_per_day (2) is used up: 2; it goes on at 00:00 UTC, or once it is raised"
    assert told.data["findings"][0]["message"] == used_up
    second = analyse(tmp_path, team, "budget.tokens_per_day=2200", stages=stages)
    assert sorted(second.statuses.values()) == ["answered", "answered", "failed"], "a new process reads the log"
    assert len(second.calls) == 2
    assert analyse(tmp_path, team, "budget.tokens_per_day=9000", stages=stages).whole


def test_a_file_that_is_there_is_written_over_only_by_its_own_analysis_or_with_replace(tmp_path: Path) -> None:
    stages, backlog = ("security", "testing"), tmp_path / "b.csv"
    team = team_of({"security": answer("A")})
    backlog.write_text("mine")
    with pytest.raises(ConfigError, match=r"b.csv is there already; add --replace"):
        analyse(tmp_path, team, stages=stages, to_backlog=backlog)
    analyse(tmp_path, team, stages=stages, to_backlog=backlog, replace=True)
    team.say("analyst", "testing", "stage", answer("B"))
    done = analyse(tmp_path, team, stages=stages, to_backlog=backlog)
    assert done.written.plan.analysis == "AN-001"
    assert "IMP-002,B" in backlog.read_text()
    plan = done.written.plan_path.read_text()
    analyse(tmp_path, team_of(dict.fromkeys(stages, "")), stages=stages, analysis="down", replace=True)
    assert done.written.plan_path.read_text() == plan, "nothing came that could stand in its place"


def test_a_dry_run_tells_calls_and_tokens_and_writes_nothing(tmp_path: Path) -> None:
    work, _, _ = analysis(tmp_path, None, "answer.max_attempts=1", "provider.max_attempts=2", profile="quick_review")
    planned = work.dry_run().model_dump(mode="json")
    assert planned["stages"] == ["defects", "code_quality", "security", "testing", "plan_summary"]
    assert planned["calls"] == {"expected": 5, "maximal": 5 * (1 + 1 + 1) * 2}
    assert planned["tokens"]["input"] > 5 * planned["tokens"]["shared"] > 0
    assert (planned["files"], planned["shown"], planned["left_out"]) == (3, 3, [])
    assert not (tmp_path / "state").exists()
    assert not (tmp_path / "out").exists()


def test_a_mock_needs_no_model_and_says_everywhere_that_it_is_one(tmp_path: Path) -> None:
    app, backlog = application(tmp_path), tmp_path / "b.yaml"
    words = ["analyse", str(app), "--mock", "--profile", "onboarding", "--out", "out"]
    done = run_cli([*words, "--json", "--to-backlog", str(backlog)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Mock: no model was asked" in done.stderr
    plan = json.loads(done.stdout)
    assert (plan["mock"], plan["calls"], plan["cost_usd"]) == (True, 0, 0.0)
    assert [stage["id"] for stage in plan["stages"]] == ["onboarding", "glossary", "design_decisions", "documentation"]
    assert all(stage["summary"].startswith("Mock answer: no model was asked") for stage in plan["stages"])
    assert all(task["title"].startswith("Mock: ") and task["file"] in APP for task in plan["tasks"])
    assert "**Mock:** no model was asked" in (tmp_path / "out" / "mvp_improvement_plan.md").read_text()
    assert backlog.read_text().count("A mock:") == 4
    logs = run_cli(["logs", "--sprint", "AN-001", "--json"], tmp_path).stdout.splitlines()
    turns = [event for event in map(json.loads, logs) if event["event"] == "turn_finished"]
    assert {(turn["model"], turn["paid"]) for turn in turns} == {("mock", False)}
    again = run_cli(words, tmp_path)
    assert (again.returncode, "add --replace" in again.stderr) == (2, True)
    both = run_cli([*words, "--script", "team.jsonl"], tmp_path)
    assert (both.returncode, "--mock asks no model" in both.stderr) == (2, True)


def test_the_command_line(tmp_path: Path) -> None:
    application(tmp_path)
    team_of({"security": answer("A|high"), "testing": PROSE}).write(tmp_path / "team.jsonl")
    (tmp_path / "PRD.md").write_text("# Shelf\n")
    words = ["analyse", "app", "--prd", "PRD.md", "--stages", "testing,security", "--script", "team.jsonl"]
    done = run_cli([*words, "--to-backlog", "my b.yaml", "--json"], tmp_path)
    assert done.returncode == 1, done.stderr
    assert "1 task (1 high)" in done.stderr
    assert "`orchestrator run 'my b.yaml' --repo " in done.stderr
    assert [stage["status"] for stage in json.loads(done.stdout)["stages"]] == ["prose", "answered"]
    assert (tmp_path / "mvp_improvement_plan.md").exists()
    assert (tmp_path / "my b.yaml").exists()
    logs = run_cli(["logs", "--sprint", "AN-001", "--story", "security", "--json"], tmp_path)
    assert "stage_finished" in logs.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"profile": "full_revue"}, "did you mean full_review"),
        ({"stages": ("securty",)}, "did you mean security"),
        ({"profile": "tests", "stages": ("security",)}, "give one of them"),
        ({"prd": Path("/nowhere/PRD.md")}, "cannot read the PRD"),
        ({"repo": Path("/nowhere")}, "there is no folder"),
        ({"prompts": Path("/nowhere")}, "does not exist"),
        ({"to_backlog": Path("backlog.txt")}, "its name ends with"),
        ({"to_backlog": Path("/nowhere/b.csv")}, "there is no folder"),
        ({"analysis": "a b"}, "ids are"),
        ({"out": Path(__file__)}, "is no folder"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_spent(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        analyse(tmp_path, team_of({}), **options)
    assert not (tmp_path / "calls.jsonl").exists() or not (tmp_path / "calls.jsonl").read_text()


def test_two_processes_do_not_work_on_one_analysis(tmp_path: Path) -> None:
    slow = Team()
    slow.say("analyst", "security", "stage", answer("A"), latency_ms=400)
    work, _, _ = analysis(tmp_path, slow, stages=("security",))
    other, _, _ = analysis(tmp_path, slow, stages=("security",))

    async def both() -> list[Any]:
        first = asyncio.create_task(work.go())
        lock = tmp_path / "state" / "analyses" / "AN-001" / "lock"
        while not lock.exists():
            await asyncio.sleep(0.01)
        found = await asyncio.gather(other.go(), return_exceptions=True)
        return [*found, await first]

    refused, written = asyncio.run(both())
    assert isinstance(refused, UserError)
    assert is_whole(written.plan)


def test_a_kill_between_any_two_calls_repeats_none(tmp_path: Path) -> None:
    """The process is killed as soon as it has paid for two of four stages; the same command goes on."""
    stages = ("code_quality", "security", "testing", "plan_summary")
    team = Team()
    for stage in stages:
        team.say("analyst", stage, "stage", answer(f"Do {stage}"), latency_ms=150)
    application(tmp_path)
    team.write(tmp_path / "team.jsonl")
    log = tmp_path / "calls.jsonl"
    words = ["analyse", "app", "--stages", ",".join(stages), "--script", "team.jsonl", "--call-log", "calls.jsonl"]
    words += ["--set", "concurrency.turns=1"]
    process = zygote().start("orchestrator", words, cwd=tmp_path, env=plain_environment())
    while process.poll() is None and not _between_calls(process, log, tmp_path / ".orchestrator" / "replies", least=2):
        time.sleep(0.005)
    process.kill()
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    assert not (tmp_path / "plan.json").exists()
    done = run_cli([*words, "--json"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "analysis AN-001" in done.stderr
    assert "goes on" in done.stderr
    plan = json.loads(done.stdout)
    assert [task["title"] for task in plan["tasks"]] == [f"Do {stage}" for stage in stages]
    assert plan["calls"] == 4
    calls = [json.loads(line)["story"] for line in log.read_text().splitlines()]
    assert sorted(calls) == sorted(stages)


def _between_calls(process: Forked, log: Path, replies: Path, *, least: int) -> bool:
    """Whether so many calls are paid for; the process then stands still where each of them is in the journal, too."""
    paid = log.read_text().count("\n") if log.exists() else 0
    if paid < least:
        return False
    process.send_signal(signal.SIGSTOP)
    if len(list(replies.rglob("*-*.json"))) == log.read_text().count("\n"):
        return True
    process.send_signal(signal.SIGCONT)
    return False
