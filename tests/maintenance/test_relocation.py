"""Projects that are moved or copied with sprints in work."""

import asyncio
import json
import shutil
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.analysis.store import AnalysisStore
from orchestrator.app.relocation import follow_move
from orchestrator.core.analysis import AnalysisRecord
from orchestrator.core.errors import SprintLocked
from orchestrator.core.sprint import SprintRecord
from orchestrator.settings import Environment, load
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.state_folder import StateFolder
from tests.daemon_server import RealDaemon
from tests.support import ALL_PASS, Team, git, make_repo, plain_environment, run_cli, suite_text, write_backlog
from tests.zygote import zygote

MODEL = ["--repo", "repo", "--provider", "scripted", "--script", "team.jsonl", "--call-log", "calls.jsonl"]
MODEL += ["--set", ALL_PASS]
RUN = ["run", "backlog.csv", *MODEL, "--push-to", "out", "--set", "provider.wait_initial_s=0.1"]
FIRST_STORY_ONLY = ["--set", "budget.calls_per_sprint=4"]


def make_project(folder: Path, *, latency_ms: int = 0) -> Path:
    """A folder with a repository, a backlog of two stories and a script; the second delivery takes so long."""
    folder.mkdir(parents=True)
    make_repo(folder / "repo", {"README.md": "An app.\n"})
    write_backlog(folder / "backlog.csv", "A", "B < A")
    team = Team()
    team.good("A")
    team.plan("B", ["b.py"])
    team.deliver("B", 1, {"b.py": "def value():\n    return 1\n"}, latency_ms=latency_ms)
    team.suite("B", suite_text("B"))
    team.write(folder / "team.jsonl")
    return folder


def run(folder: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_cli([*RUN, *more], folder, plain_environment(**variables))


@pytest.fixture(scope="module")
def rested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project whose sprint rests after its first story, and a copy of it."""
    folder = make_project(tmp_path_factory.mktemp("rested") / "first")
    done = run(folder, *FIRST_STORY_ONLY)
    assert (done.returncode, "1 pending, 1 done" in done.stdout) == (1, True), done.stderr
    return folder, Path(shutil.copytree(folder, folder.parent / "kept", symlinks=True))


@pytest.fixture
def first(rested: tuple[Path, Path]) -> Path:
    """That project as it was, at the place where it began."""
    folder, kept = rested
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(kept, folder, symlinks=True))


def expect_whole(folder: Path) -> None:
    """Both stories are pushed, and no call was made twice."""
    assert {"a.py", "b.py"} <= {*git(folder / "repo", "ls-tree", "--name-only", "out").splitlines()}
    calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    assert len(calls) == 8, calls


def environment(home: Path) -> Environment:
    return load(None, (), plain_environment(ORCHESTRATOR_HOME=str(home)), home.parent)[1]


def test_a_copy_is_refused_while_the_original_is_there_and_then_goes_on_with_the_same_command(
    first: Path, tmp_path: Path
) -> None:
    # As a release before this one left it: its place is written down by the next command.
    (first / ".orchestrator" / "place.json").unlink()
    StateFolder(first / ".orchestrator").make()
    second = Path(shutil.copytree(first, tmp_path / "second", symlinks=True))
    refused = run(second)
    assert refused.returncode == 2
    assert f"is a copy of {first}/.orchestrator, which is still there" in refused.stderr
    assert "orchestrator restore --repo DIR" in refused.stderr
    refused = run_cli(["reset", "A"], second)
    assert (refused.returncode, "is a copy of" in refused.stderr) == (2, True), "it would write to the first backlog"
    shutil.rmtree(first)
    done = run(second)
    assert done.returncode == 0, done.stderr
    assert f"{second}/repo in place of {first}/repo" in done.stdout
    expect_whole(second)
    assert not first.exists(), "nothing is written where the project was"
    assert "was moved" not in run(second).stdout


def test_a_state_folder_that_is_moved_alone_keeps_its_project(first: Path, tmp_path: Path) -> None:
    home = Path(shutil.move(first / ".orchestrator", tmp_path / "kept"))
    done = run(first, ORCHESTRATOR_HOME=str(home))
    assert done.returncode == 0, done.stderr
    expect_whole(first)


def test_a_daemon_that_was_killed_goes_on_where_its_project_is_now(tmp_path: Path) -> None:
    first = make_project(tmp_path / "first", latency_ms=1000)
    words = [*MODEL, "--backlog", "backlog.csv", "--set", "serve.push_to=out", "--set", "serve.poll_s=0.1"]
    daemon = RealDaemon(first, *words).start()
    daemon.until(lambda: '"delivery"' in daemon.log.read_text() and '"B"' in (first / "calls.jsonl").read_text())
    assert daemon.end(signal.SIGKILL) == -signal.SIGKILL
    second = Path(shutil.move(first, tmp_path / "second"))
    daemon = RealDaemon(second, *words).start()
    try:
        daemon.until(lambda: "sprint_ended" in daemon.log.read_text())
    finally:
        daemon.end()
    assert "state_folder_moved" in daemon.log.read_text()
    assert {"a.py", "b.py"} <= {*git(second / "repo", "ls-tree", "--name-only", "out").splitlines()}
    assert not first.exists()


def test_a_copy_of_a_backlog_in_work_is_refused_by_the_command(tmp_path: Path) -> None:
    place = make_project(tmp_path / "place", latency_ms=100_000)
    words = [*MODEL, "--backlog", "backlog.csv", "--set", "serve.poll_s=0.1"]
    daemon = RealDaemon(place, *words).start()
    try:
        daemon.until(lambda: "SP-001" in (place / "backlog.csv").read_text())
        shutil.copy(place / "backlog.csv", place / "copy.csv")
        refused = run_cli(["submit", "copy.csv"], place)
    finally:
        daemon.end(signal.SIGKILL)
    assert refused.returncode == 2, refused.stdout
    assert f"the Sprint_ID SP-001 of a sprint that has begun with the backlog {place}/backlog.csv" in refused.stderr


def make_state(place: Path, repo: Path, base: str) -> StateFolder:
    """A state folder with the record of a sprint and of an analysis of `repo`, and a submitted backlog."""
    folder = StateFolder(place / "state")
    folder.make()
    submitted = folder.submitted / "b.csv"
    submitted.parent.mkdir()
    backlogs = {"S1": place / "backlog.csv", "S2": submitted}
    for day, (sprint, backlog) in enumerate(backlogs.items(), start=1):
        began = datetime(2026, 1, day, tzinfo=UTC)
        backlog.write_text("Story_ID,Title\nA,One\n")
        record = SprintRecord(
            sprint=sprint, backlog=str(backlog), repo=str(repo), base=base, story_ids=("A",), started_at=began
        )
        folder.save(record)
        for path in (folder.sidecar(backlog), folder.last_good(backlog)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
    folder.mirror(repo).mkdir(parents=True)
    git(folder.mirror(repo), "init", "--quiet", "--bare")
    (folder.environments("S1") / "venv").mkdir(parents=True)
    folder.save_analysis(
        AnalysisRecord(analysis="AN-1", repo=str(repo), profile="p", prompts=(), asked=f"of {repo}", started_at=began)
    )
    return folder


def expect_relocated(folder: StateFolder, repo: Path) -> None:
    place = folder.home.parent
    records = {record.sprint: record for record in folder.records()}
    assert {record.repo for record in records.values()} == {str(repo)}
    assert records["S1"].backlog == str(place / "backlog.csv")
    assert records["S2"].backlog == str(folder.submitted / "b.csv")
    for backlog in (Path(record.backlog) for record in records.values()):
        assert (folder.sidecar(backlog).exists(), folder.last_good(backlog).exists()) == (True, True)
    assert [path.name for path in (folder.home / "mirrors").iterdir()] == [folder.mirror(repo).name]
    assert not folder.environments("S1").exists(), "its scripts name the place where it was"
    known = AnalysisStore(environment(folder.home)).resumable(None, repo, lambda place: f"of {place}")
    assert known is not None, "the same command resumes it"


def test_a_relocation_that_was_killed_is_completed_by_the_next_command(tmp_path: Path) -> None:
    place = tmp_path / "first"
    repo = make_repo(place / "repo")
    make_state(place, repo, git(repo, "rev-parse", "HEAD"))
    shutil.move(place, tmp_path / "second")
    codes, trash = set[int](), tmp_path / "second" / "state" / ".trash"
    left: set[bool] = set()
    for deed in (2, 5, 9, 14, 20, 25, 26, 27, 28, 29, 30, 35, 77):
        words = [str(deed), "run", "none.csv", "--provider", "scripted", "--script", "none.jsonl"]
        env = plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "second" / "state"))
        process = zygote().start("tests.durability.dying", words, cwd=tmp_path, env=env)
        process.communicate(30)
        codes.add(process.returncode)
        left.add(trash.is_dir() and any(trash.iterdir()))
    assert left == {True, False}, "once, its trash had something in it"
    assert codes == {-9, 2}, "killed, and at last refused for the backlog that is none"
    expect_relocated(StateFolder(tmp_path / "second" / "state"), tmp_path / "second" / "repo")


async def follow_under_lock(folder: StateFolder, lock: Path) -> None:
    async with SprintLock(lock):
        await follow_move(folder)


def test_what_is_not_the_project_is_never_taken_for_it(tmp_path: Path) -> None:
    place = tmp_path / "first"
    repo = make_repo(place / "repo", {"a": "1"})
    folder = make_state(place, repo, git(repo, "rev-parse", "HEAD"))
    other = tmp_path / "other"
    make_repo(other / "repo", {"b": "2"})
    (other / "backlog.csv").write_text("Story_ID\n")
    (place / "state").rename(other / "state")
    moved = StateFolder(other / "state")
    with pytest.raises(SprintLocked, match=r"S1, and .* was moved"):
        asyncio.run(follow_under_lock(moved, moved.lock("S1")))
    assert moved.records()[0].backlog == str(place / "backlog.csv"), "nothing was done"
    told = asyncio.run(follow_move(moved))
    assert told == f"the state folder {moved.home} was moved here from {folder.home}"
    records = {record.sprint: record for record in moved.records()}
    assert {record.repo for record in records.values()} == {str(repo)}
    assert records["S1"].backlog == str(place / "backlog.csv")
    assert records["S2"].backlog == str(moved.submitted / "b.csv")


def test_a_folder_with_two_names_was_not_moved(tmp_path: Path) -> None:
    folder = make_state(tmp_path, tmp_path / "repo", "")
    (tmp_path / "link").symlink_to(folder.home)
    assert asyncio.run(follow_move(StateFolder(tmp_path / "link"))) is None
    assert [record.sprint for record in folder.records()] == ["S1", "S2"]
