"""Pruning: finished sprints lose what is not worth keeping, everything else stays, and a kill costs nothing."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.analysis import AnalysisRecord, Packed
from orchestrator.core.sprint import Pruned
from orchestrator.maintenance.retention import prune
from orchestrator.settings import load
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.state_folder import StateFolder
from tests.support import ALL_PASS, Team, cells, copy_state, git, plain_environment, play, run_cli, write_backlog
from tests.zygote import zygote

pytestmark = pytest.mark.timeout(300)


class Later:
    """A clock that is `days` ahead."""

    def __init__(self, days: float) -> None:
        self._by = timedelta(days=days)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._by


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sprints: S1 with a story that is done and one that is not, S2 that waits for a person."""
    folder = tmp_path_factory.mktemp("retention")
    team = Team()
    team.good("US-1")
    team.plan("US-2", ["us_2.py"])
    backlog = write_backlog(folder / "backlog.csv", "US-1", "US-2")
    played = play(folder, team, backlog, ALL_PASS, sprint="S1")
    assert (played.status("US-1"), played.status("US-2")) == ("done", "failed")
    (folder / "state" / "replies" / "S1" / "US-1" / "big.prompt.md").write_text("x" * 300_000)
    return folder


@pytest.fixture
def place(finished: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "place"
    copy_state(finished, copied)
    for record in (copied / "state" / "sprints").glob("*/sprint.json"):
        record.write_text(record.read_text().replace(str(finished), str(copied)))
    (mirror,) = (copied / "state" / "mirrors").glob("*.git")
    named = StateFolder(copied / "state").mirror(copied / "repo")
    mirror.rename(named)
    return copied


def look(place: Path, *settings: str, days: float = 100, busy: Sequence[str] = (), dry_run: bool = False) -> Pruned:
    configured, environment = load(None, settings, plain_environment(ORCHESTRATOR_HOME=str(place / "state")), place)
    return asyncio.run(prune(environment, configured, busy, dry_run=dry_run, clock=Later(days)))


def rows(database: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def left(place: Path) -> dict[str, Any]:
    """What of S1 is there."""
    state = place / "state"
    (mirror,) = (state / "mirrors").glob("*.git")
    sprint = state / "sprints" / "S1"
    return {
        "files": sorted(path.name for path in sprint.iterdir()) if sprint.exists() else [],
        "replies": (state / "replies" / "S1").exists(),
        "events": rows(state / "events.sqlite", "SELECT count(*) FROM orchestrator_events")[0][0],
        "workflows": rows(state / "engine.sqlite", "SELECT count(*) FROM workflow_status")[0][0],
        "steps": rows(state / "engine.sqlite", "SELECT count(*) FROM operation_outputs")[0][0],
        "branches": git(mirror, "for-each-ref", "--format=%(refname)").splitlines(),
        "reports": sorted(path.name for path in (state / "reports" / "S1").iterdir()),
    }


BRANCHES = ["refs/heads/orchestrator/S1/result", "refs/orchestrator/base/S1/result"]
PRUNED = {
    "files": ["pruned.json"], "replies": False, "events": 0, "workflows": 0, "steps": 0, "branches": BRANCHES,
    "reports": ["report.json", "report.md"],
}  # fmt: skip


def test_an_old_sprint_leaves_report_and_result(place: Path) -> None:
    state = place / "state"
    before = left(place)
    backlog, report = (place / "backlog.csv").read_bytes(), (state / "reports" / "S1" / "report.json").read_bytes()
    sizes = {name: (state / name).stat().st_size for name in ("events.sqlite", "engine.sqlite")}

    assert {"worktrees", "environments"} & {*before["files"]}
    assert look(place, days=89).gone == ()
    assert not {"worktrees", "environments"} & {*left(place)["files"]}, "nobody needs them, at any age"
    before = left(place)
    told = look(place, dry_run=True)
    assert left(place) == before, "a dry run touches nothing"
    assert [(one.name, one.kind) for one in told.gone] == [("S1", "sprint")]
    assert told.freed_bytes > 300_000

    assert look(place).gone == told.gone
    assert left(place) == PRUNED
    assert all((state / name).stat().st_size < size for name, size in sizes.items()), "the room is given back"
    assert (place / "backlog.csv").read_bytes() == backlog
    assert (state / "reports" / "S1" / "report.json").read_bytes() == report
    assert look(place).gone == ()


def test_a_pruned_sprint_is_never_run_again_and_its_id_never_given_again(place: Path) -> None:
    state = place / "state"
    look(place)
    env = plain_environment(ORCHESTRATOR_HOME=str(state))
    for words in (["show", "US-1"], ["reset", "US-2"], ["status"]):
        refused = run_cli(words, place, env)
        assert (refused.returncode, "there is no sprint" in refused.stderr) == (2, True), refused
    again = ["run", "backlog.csv", "--repo", "repo", "--script", "team.jsonl"]
    refused = run_cli([*again, "--sprint", "S1"], place, env)
    assert (refused.returncode, "was pruned" in refused.stderr) == (2, True), refused.stderr
    refused = run_cli(again, place, env)
    assert refused.returncode == 2, "its rows carry its Sprint_ID"

    before = cells(place / "backlog.csv")["US-1"]
    backlog = place / "backlog.csv"
    _, second = (line for line in backlog.read_text().splitlines() if line.startswith("US-"))
    backlog.write_text(backlog.read_text().replace(second, second.replace("S1", "")))
    record = state / "sprints" / "S1" / "pruned.json"
    record.write_text(record.read_text().replace('"S1"', '"SP-007"'))
    again = run_cli(again, place, env)
    assert "sprint SP-008: 1 story" in again.stdout, "the row whose cell was emptied, behind the ids of all sprints"
    assert cells(place / "backlog.csv")["US-1"] == before


def test_what_commands_left_goes_however_deep_it_is(place: Path) -> None:
    tree = place / "state" / "sprints" / "S1" / "worktrees" / "US-1"
    tree.mkdir(parents=True)
    at = os.open(tree, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    (tree / "out").symlink_to(place / "backlog.csv")
    (tree / "shut").mkdir(mode=0o000)
    assert look(place, dry_run=True).freed_bytes > 1000 * 4096
    assert [one.name for one in look(place).gone] == ["S1"]
    assert not tree.exists()
    assert (place / "backlog.csv").exists()


def test_only_what_is_finished_old_and_free_goes(place: Path) -> None:
    before = left(place)
    assert look(place, busy=["S1"]).skipped == ("S1",)
    assert look(place, "retention.days=null", busy=["S1"]).gone == ()
    assert left(place) == before

    configured, environment = load(None, (), plain_environment(ORCHESTRATOR_HOME=str(place / "state")), place)

    async def held() -> None:
        async with SprintLock(place / "state" / "sprints" / "S1" / "lock"):
            assert (await prune(environment, configured, clock=Later(100))).skipped == ("S1",)

    asyncio.run(held())
    assert left(place) == before


def test_an_ended_analysis_goes_too_and_one_that_may_go_on_stays(place: Path) -> None:
    folder = StateFolder(place / "state")
    for name in ("AN-001", "AN-002"):
        record = AnalysisRecord(
            analysis=name, repo="/x", profile="all", prompts=(), finished=name == "AN-001", started_at=datetime.now(UTC)
        )
        folder.save_analysis(record)
        folder.save_packed(name, Packed(text="x"))
        (folder.replies / name / "stage").mkdir(parents=True)
    assert [(one.name, one.kind) for one in look(place).gone] == [("S1", "sprint"), ("AN-001", "analysis")]
    assert [one.analysis for one in folder.analyses()] == ["AN-002"]
    assert not folder.analysis("AN-001").exists()
    assert not (folder.replies / "AN-001").exists()
    assert (folder.packed("AN-002"), (folder.replies / "AN-002").exists()) == (Packed(text="x"), True)


def die(place: Path, deed: int) -> int:
    env = plain_environment(ORCHESTRATOR_HOME=str(place / "state"))
    words = [str(deed), "prune", "--set", "retention.days=0.0000001"]
    process = zygote().start("tests.durability.dying", words, cwd=place, env=env)
    out, error = process.communicate(60)
    assert "Traceback" not in error, error
    assert process.returncode in {0, -9}, out + error
    return process.returncode or 0


def test_killed_anywhere_the_next_look_goes_on(place: Path) -> None:
    deeds = [die(place, deed) for deed in (4, 9, 13, 17, 22, 28, 35, 45, 60)]
    assert deeds.count(-9) > 4
    assert die(place, 0) == 0
    assert left(place) == PRUNED


@pytest.mark.soak
def test_killed_before_every_deed(finished: Path, place: Path, tmp_path: Path) -> None:
    for deed in range(1, 400):
        copied = tmp_path / "copied"
        copy_state(place, copied)
        for record in (copied / "state" / "sprints").glob("*/sprint.json"):
            record.write_text(record.read_text().replace(str(place), str(copied)))
        (mirror,) = (copied / "state" / "mirrors").glob("*.git")
        mirror.rename(StateFolder(copied / "state").mirror(copied / "repo"))
        killed = die(copied, deed)
        assert die(copied, 0) == 0
        assert left(copied) == PRUNED, deed
        shutil.rmtree(copied)
        if not killed:
            return
