"""Answers that never become valid: each story ends honestly, the sprint goes on."""

import json
from pathlib import Path

import pytest

from orchestrator.app.sprint_reader import Reader
from orchestrator.settings import load
from tests.support import Played, Team, breakdown, plain_environment, play, suite_text, task, write_backlog

BROKEN = '{"story_id": "A-1", "tasks": [ and then I lost the thread'
CONFLICT = {
    "detected": True,
    "current_architecture": "one SQLite file",
    "story_requirement": "a cluster of servers",
    "conflict_reason": "a file is not shared",
    "recommended_action": "decide about storage first",
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One sprint in which nearly everybody answers badly."""
    folder = tmp_path_factory.mktemp("answers")
    team = Team()
    for _ in range(3):
        team.say("mike", "NOPLAN", "breakdown", "I am sorry, I cannot do that.")
    team.say("mike", "NOPLAN", "repair", "Still no JSON here.")
    for _ in range(3):
        team.say("mike", "SHAPELESS", "breakdown", {"story_id": "SHAPELESS", "tasks": "several"})
    team.plan("CONFLICT", architectural_conflict=CONFLICT)
    no_files(team)
    no_suite(team)
    team.plan("MISSING", ["missing.py"])
    team.good("LATE")
    backlog = write_backlog(
        folder / "backlog.csv",
        *("NOPLAN", "NEXT < NOPLAN", "LAST < NEXT, LATE", "SHAPELESS", "CONFLICT", "AFTER < CONFLICT"),
        *("NOFILES", "NOSUITE", "MISSING", "LATE"),
    )
    return play(folder, team, backlog)


def no_files(team: Team) -> None:
    """The second of two tasks never gets a file that parses; the first one is fine."""
    team.plan("NOFILES", ["nofiles.py"], ["broken.py"])
    team.deliver("NOFILES", 1, {"nofiles.py": "def value():\n    return 1\n"})
    for _ in range(3):
        team.deliver("NOFILES", 2, {"broken.py": "def value(:\n"})
    team.suite("NOFILES", suite_text("NOFILES"))


def no_suite(team: Team) -> None:
    """Tests that show nothing, three times."""
    team.plan("NOSUITE", ["nosuite.py"])
    team.deliver("NOSUITE", 1, {"nosuite.py": "def value():\n    return 1\n"})
    for _ in range(3):
        team.suite("NOSUITE", "import nosuite\n\nVALUE = nosuite.value()\n")


def test_a_plan_that_cannot_be_read_fails_its_story(played: Played) -> None:
    assert played.status("NOPLAN") == "failed"
    assert played.asked("NOPLAN") == ["breakdown 1", "repair 1", "breakdown 2", "breakdown 3"]
    assert any(code.startswith("answer.") for code in played.codes("NOPLAN"))
    assert played.status("SHAPELESS") == "failed"
    assert "repair 1" not in played.asked("SHAPELESS"), "what could be read is asked anew, not repaired"
    assert played.asked("SHAPELESS") == ["breakdown 1", "breakdown 2", "breakdown 3"]


def test_dependants_are_blocked_and_say_by_which(played: Played) -> None:
    for name, by in (("NEXT", "NOPLAN (failed)"), ("LAST", "NEXT (blocked)"), ("AFTER", "CONFLICT (conflicted)")):
        assert played.status(name) == "blocked"
        assert played.asked(name) == []
        assert by in played.finding(name, "story.blocked").message
    assert "LATE" not in played.finding("LAST", "story.blocked").message, "what is done blocks nobody"


def test_a_conflict_stops_its_story_and_tells_all_four_fields(played: Played) -> None:
    assert played.status("CONFLICT") == "conflicted"
    said = played.finding("CONFLICT", "breakdown.conflict").message
    assert all(str(text) in said for name, text in CONFLICT.items() if name != "detected")


def test_a_task_without_a_valid_file_is_partial_and_needs_a_person(played: Played) -> None:
    assert played.status("NOFILES") == "needs_attention"
    assert played.tasks("NOFILES") == ["done", "partial"]
    assert played.asked("NOFILES", "alex") == ["delivery 1", "delivery 1", "delivery 2", "delivery 3"]
    assert "T-NOFILES-02" in played.finding("NOFILES", "story.unfinished").message
    assert "T-NOFILES-02" in played.told_of("NOFILES", "story_finished")[0].message
    assert any("broken.py" in str(finding) for finding in played.story("NOFILES").findings)
    assert "broken.py" not in played.tree("NOFILES")
    assert "nofiles.py" in played.tree("NOFILES")
    assert (played.story("NOFILES").tests.passed, played.story("NOFILES").attempts) == (1, 1)


def test_no_valid_suite_fails_the_story_and_keeps_its_branch(played: Played) -> None:
    assert played.status("NOSUITE") == "failed"
    assert played.asked("NOSUITE", "jordan") == ["suite 1", "suite 2", "suite 3"]
    assert played.tree("NOSUITE") == ["nosuite.py"]
    assert played.story("NOSUITE").branch == played.ref("NOSUITE")
    assert "suite.no_tests" in played.codes("NOSUITE")


def test_a_missing_script_entry_is_named_by_its_key(played: Played) -> None:
    assert played.status("MISSING") == "failed"
    message = played.finding("MISSING", "script.missing").message
    assert "persona=alex story=MISSING task=T-MISSING-01 purpose=delivery turn=1" in message


def test_the_sprint_goes_on_and_merges_only_what_is_done(played: Played) -> None:
    assert played.status("LATE") == "done"
    assert played.tree("result") == ["late.py", "tests/test_late.py"]
    totals = played.result.report.totals
    assert [totals[word] for word in ("done", "failed", "blocked", "conflicted", "needs_attention")] == [1, 4, 3, 1, 1]


def test_failing_stories_in_a_row_and_refused_credentials_pause_the_sprint(tmp_path: Path) -> None:
    team = Team()
    team.good("S-4")
    backlog = write_backlog(tmp_path / "backlog.csv", "S-1", "S-2", "S-3", "S-4")
    one = "concurrency.stories=1"
    first = play(tmp_path, team, backlog, one, "sprint.stop_after_failures=2")
    assert [first.status(f"S-{n}") for n in range(1, 5)] == ["failed", "failed", "pending", "pending"]
    assert "2 stories failed in a row" in str(first.result.paused)
    for name in ("S-3", "S-4"):
        assert "not begun: the sprint paused: 2 stories failed in a row" in first.finding(name, "sprint.paused").message
    environment = load(None, (), plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state")), tmp_path)[1]
    assert Reader(environment).sprint(None).report == first.result.report, "`status` says so too"
    refused = Team()
    refused.say("mike", "S-3", "breakdown", "", error="auth")
    second = play(tmp_path, refused, backlog, one, "sprint.stop_after_failures=2")
    assert [second.status(f"S-{n}") for n in range(1, 5)] == ["failed", "failed", "failed", "pending"]
    assert "credentials" in str(second.result.paused)
    assert "provider.auth" in second.codes("S-3")
    third = play(tmp_path, team, backlog, one, "sprint.stop_after_failures=2")
    assert third.status("S-4") == "done"
    assert third.result.paused is None
    assert "sprint.paused" not in third.codes("S-4")


def test_a_reply_that_never_comes_whole_costs_no_more_than_its_budget(tmp_path: Path) -> None:
    """Cut plans: the whole tasks are kept, the rest is asked for, and what does not come is told."""
    team = Team()
    whole = json.dumps(breakdown("CUT", ["cut.py"], ["two.py"], ["three.py"]))
    team.say("mike", "CUT", "breakdown", whole[: whole.index("Work 2")], stop_reason="max_tokens")
    team.say("mike", "CUT", "breakdown_missing", {"tasks": [task("CUT", 2, ["two.py"])]})
    team.say("mike", "CUT", "breakdown_missing", {"tasks": [task("CUT", 2, ["two.py"]), task("CUT", 3, ["three.py"])]})
    team.deliver("CUT", 1, {"cut.py": "def value():\n    return 1\n"})
    team.deliver("CUT", 2, {"two.py": "TWO = 2\n"})
    team.deliver("CUT", 3, {"three.py": "THREE = 3\n"})
    team.suite("CUT", suite_text("CUT"))
    done = play(tmp_path, team, write_backlog(tmp_path / "backlog.csv", "CUT"))
    assert done.asked("CUT", "mike") == ["breakdown 1", "breakdown_missing 1", "breakdown_missing 2"]
    assert done.status("CUT") == "done"
    assert done.tasks("CUT") == ["done", "done", "done"]
