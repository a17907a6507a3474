"""The user's files in every state: looked at, never touched, and refused before anything is spent."""

import hashlib
from pathlib import Path
from threading import Thread

import pytest

from orchestrator.cli.run import format_summary
from orchestrator.core.errors import RepositoryError
from orchestrator.core.event import Event
from tests.support import ALL_PASS, Team, git, make_repo, play, suite_text, write_backlog

PLAIN = "sandbox.mode=plain"
"""Where a command of the story has to reach the user's repository, which a confined one cannot."""
ODD = ("-rf", "what?.md", 'quo"te.py', "a:b.py", "con.py", "w*.sql", "tests/-t.py")
"""Names that no plan could hold; such files stay as they are."""
HOOKS = ("pre-commit", "post-commit", "post-checkout", "post-merge", "reference-transaction", "update", "pre-receive")


def snapshot(repo: Path) -> dict[str, str]:
    """Everything of a checkout that a user would miss: files, index, HEAD, stash, configuration, but no objects."""
    kept = [path for path in repo.rglob("*") if path.is_file() and not path.is_symlink()]
    watched = [path for path in kept if ".git/" not in f"{path.relative_to(repo)}/" or path.name in {"index", "config"}]
    told = {str(path.relative_to(repo)): hashlib.sha256(path.read_bytes()).hexdigest() for path in watched}
    head = (repo / ".git" / "HEAD").read_text()
    return {**told, "HEAD": head, "status": git(repo, "--no-optional-locks", "status", "--porcelain", "--ignored")}


def trapped(path: Path, marker: Path) -> Path:
    """A repository with odd names, uncommitted work, a detached HEAD, hooks and a filter that would leave `marker`."""
    files = {"app.py": "APP = 1\n", "notes.md": "notes\n", ".gitattributes": "*.md filter=trap\n"}
    repo = make_repo(path, {**files, **dict.fromkeys(ODD, "x = 1\n")})
    for name in HOOKS:
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {marker}\nexit 1\n")
        hook.chmod(0o755)
    git(repo, "-c", "core.hooksPath=/dev/null", "branch", "ahead")
    git(repo, "-c", "core.hooksPath=/dev/null", "checkout", "--quiet", "--detach", "HEAD")
    git(repo, "config", "filter.trap.clean", f"sh -c 'echo filter >> {marker}; cat'")
    git(repo, "config", "core.fsmonitor", f"sh -c 'echo fsmonitor >> {marker}'")
    (repo / "app.py").write_text("APP = 2  # not committed\n")
    (repo / "untracked.txt").write_text("mine\n")
    return repo


def test_a_checkout_at_work_and_a_read_only_backlog_are_left_byte_for_byte(tmp_path: Path) -> None:
    """The outcome is what it would have been; what the backlog cannot take is kept beside it, with a warning."""
    marker = tmp_path / "marker"
    repo = trapped(tmp_path / "repo", marker)
    git(repo, "config", "--unset", "core.fsmonitor")
    before = snapshot(repo)
    marker.unlink(missing_ok=True)
    git(repo, "config", "core.fsmonitor", f"sh -c 'echo fsmonitor >> {marker}'")
    base = git(repo, "-c", "core.fsmonitor=false", "rev-parse", "HEAD")
    team = Team()
    team.good("ONE")
    backlog = write_backlog(tmp_path / "b.csv", "ONE")
    cells = backlog.read_bytes()
    backlog.chmod(0o444)
    played = play(tmp_path, team, backlog, ALL_PASS, repo=repo, push_to="ahead")
    assert played.status("ONE") == "done"
    assert backlog.read_bytes() == cells
    (warned,) = [line for line in played.told if "was not changed" in line and "read-only" in line]
    sidecar = next((tmp_path / "state" / "sidecars").glob("*.json"))
    assert str(sidecar) in warned
    assert "completed" in sidecar.read_text()
    assert any("uncommitted files (1 changed, 1 untracked)" in line for line in played.told), played.told
    assert not marker.exists(), marker.read_text()
    git(repo, "config", "--unset", "core.fsmonitor")
    assert snapshot(repo) == before
    assert played.text("result", "app.py") == "APP = 1", "the sprint starts from the commit"
    assert git(repo, "merge-base", "ahead", base) == base
    assert git(repo, "show", "ahead:one.py").startswith("def value")
    kept = git(repo, "ls-tree", "-r", "-z", "--name-only", "ahead").split("\0")
    assert {*ODD, "app.py", "one.py"} <= set(kept)
    team.good("TWO")
    with pytest.raises(RepositoryError, match="ahead"):
        play(tmp_path, team, write_backlog(tmp_path / "c.csv", "TWO"), repo=repo, push_to="ahead")
    assert not [call for call in (tmp_path / "calls.jsonl").read_text().splitlines() if "TWO" in call], "diverged"


@pytest.mark.parametrize("kind", ["absent", "empty", "unborn"])
def test_a_repository_without_commits_starts_from_an_empty_tree(tmp_path: Path, kind: str) -> None:
    repo = tmp_path / "deep" / "repo"
    if kind != "absent":
        repo.mkdir(parents=True)
    if kind == "unborn":
        git(repo, "init", "--quiet", "--initial-branch=trunk")
    team = Team()
    if kind == "absent":  # once with a story that is merged; the others begin at the same empty commit
        team.good("ONE")
    played = play(tmp_path, team, write_backlog(tmp_path / "b.csv", "ONE"), ALL_PASS, repo=repo, push_to="result")
    merged = ["one.py", "tests/test_one.py"] if kind == "absent" else []
    assert played.status("ONE") == ("done" if merged else "failed")
    assert git(repo, "ls-tree", "-r", "--name-only", "result").splitlines() == merged
    assert [path.name for path in repo.iterdir()] == [".git"], "nothing is checked out"


def test_a_branch_that_moves_while_the_sprint_runs_costs_neither_report_nor_result(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"app.py": "APP = 1\n"})
    git(repo, "checkout", "--quiet", "-b", "side")
    (repo / "app.py").write_text("APP = 3\n")
    git(repo, "commit", "--quiet", "--all", "--message", "Elsewhere")
    git(repo, "checkout", "--quiet", "main")
    team = Team()
    team.plan("ONE", ["one.py"])
    team.deliver("ONE", 1, {"one.py": "def value():\n    return 1\n"})
    team.suite("ONE", suite_text("ONE"))
    moves = Thread(target=git, args=(repo, "branch", "target", "side"))

    def listen(event: Event) -> None:
        if event.name == "story_started":
            moves.start()

    backlog = write_backlog(tmp_path / "b.csv", "ONE")
    played = play(tmp_path, team, backlog, PLAIN, ALL_PASS, repo=repo, push_to="target", listen=listen)
    moves.join()
    assert played.status("ONE") == "done"
    assert played.result.unpushed is not None
    assert "target" in played.result.unpushed
    assert played.result.pushed is None
    assert played.result.report_path.is_file()
    told = list(format_summary(played.result))
    assert told[-2] == f"Not pushed: {played.result.unpushed}"
    assert told[-1] == f"Result: {played.result.fetch_command}"
