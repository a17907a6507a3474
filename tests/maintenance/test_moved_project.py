"""Projects that are moved with sprints in work, and copies of their backlogs."""

import shutil
import signal
import subprocess
from pathlib import Path

from tests.daemon_server import RealDaemon
from tests.support import ALL_PASS, Team, git, make_repo, plain_environment, run_cli, suite_text, write_backlog

MODEL = ["--repo", "repo", "--provider", "scripted", "--script", "team.jsonl", "--call-log", "calls.jsonl"]
MODEL += ["--set", ALL_PASS]
RUN = ["run", "backlog.csv", *MODEL, "--push-to", "out", "--set", "provider.wait_initial_s=0.1"]


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


def test_a_daemon_that_was_killed_resumes_where_its_project_is_now(tmp_path: Path) -> None:
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
