"""A conflict is an outcome: the sprint goes on, a person sees the four texts and may override them with a comment."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.cli.waiting import CONFLICT
from tests.support import ALL_PASS, Played, Team, breakdown, cells, plain_environment, play, write_backlog

COMMENT = "Keep the file; a second machine reads a copy of it."


def conflicting(story: str) -> dict[str, Any]:
    return breakdown(story) | {"architectural_conflict": CONFLICT, "tasks": []}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conflict")


@pytest.fixture(scope="module")
def conflicted(place: Path) -> Played:
    """US-1 and US-4 conflict, US-2 waits for US-1, US-3 is free."""
    team = Team()
    for story in ("US-1", "US-4"):
        team.say("mike", story, "breakdown", conflicting(story))
    team.good("US-3")
    return play(place, team, write_backlog(place / "b.csv", "US-1", "US-2 < US-1", "US-3", "US-4"), ALL_PASS)


@pytest.fixture(scope="module")
def overridden(place: Path, conflicted: Played) -> Played:
    """The same sprint after a person's word; the architect insists once on US-1, to the end on US-4."""
    for story in ("US-1", "US-4"):
        assert cli(place, "replan", story, "--comment", COMMENT).exit_code == 0
    assert cells(place / "b.csv")["US-1"]["Execution_Status"] == ""
    team = Team()
    team.say("mike", "US-1", "breakdown", conflicting("US-1"))
    team.good("US-1")
    team.good("US-2")
    for _ in range(3):
        team.say("mike", "US-4", "breakdown", conflicting("US-4"))
    return play(place, team, place / "b.csv", ALL_PASS)


def cli(place: Path, *args: str) -> Result:
    environment = {name: None for name in os.environ} | plain_environment(ORCHESTRATOR_HOME=str(place / "state"))
    return CliRunner().invoke(app, list(args), env=environment)


def test_the_sprint_goes_on_and_the_four_texts_are_shown(place: Path, conflicted: Played) -> None:
    assert [conflicted.status(story) for story in ("US-1", "US-2", "US-3")] == ["conflicted", "blocked", "done"]
    assert conflicted.asked("US-1") == ["breakdown 1"]
    assert cells(place / "b.csv")["US-1"]["Execution_Status"] == "conflicted"
    shown = conflicted.story("US-1").findings[-1]
    assert shown.code == "breakdown.conflict"
    assert "orchestrator replan US-1" in shown.fix
    assert all(str(text) in shown.message for name, text in CONFLICT.items() if name != "detected")


def test_an_overridden_conflict_is_planned_with_the_comment(place: Path, overridden: Played) -> None:
    assert [overridden.status(story) for story in ("US-1", "US-2", "US-3")] == ["done", "done", "done"]
    judged = [(event.data["verdict"], [f["code"] for f in event.data["findings"]]) for event in
              overridden.told_of("US-1", "plan_judged")]  # fmt: skip
    assert judged == [("revise", ["breakdown.conflict_overridden"]), ("valid", [])]
    first, second = sorted(
        (place / "state" / "replies").glob("*/US-1@2/*.prompt.md"), key=lambda path: int(path.name.partition(".")[0])
    )[:2]
    for prompt in (first.read_text(), second.read_text()):
        assert COMMENT in prompt
        assert "a local file cannot be shared" in prompt
        assert "## Conflict that a person has overridden" in prompt
    assert "Plan Revision Required" not in first.read_text()
    assert "Plan Revision Required" in second.read_text()
    shown = json.loads(cli(place, "show", "US-1", "--json").stdout)
    assert (shown["conflict"], shown["replan"]["comment"]) == (None, COMMENT)
    logged = cli(place, "logs", "--story", "US-1").stdout
    assert f"its conflict overridden: {COMMENT}" in logged
