"""The base commit is tried before anything is paid for: told, kept, and refused where nothing of it can be run."""

from pathlib import Path

import pytest

from orchestrator.core.errors import BaseUnusable
from tests.support import Played, Team, git, make_repo, plain_environment, play, run_cli, write_backlog

BROKEN = {"tests/test_old.py": "import nosuch_package\n\n\ndef test_old():\n    assert nosuch_package\n"}


def sprint(folder: Path, repo: Path, *settings: str, story: str = "US-1", answered: bool = True) -> Played:
    """Without answers the story fails at once: for tests that ask only what was told before it."""
    folder.mkdir(exist_ok=True)
    team = Team()
    if answered:
        team.good(story)
    return play(folder, team, write_backlog(folder / f"{story}.csv", story), *settings, repo=repo)


def named(played: Played, name: str) -> list[str]:
    return [event.message for event in played.events if event.name == name]


def test_a_base_of_which_nothing_can_be_loaded_ends_a_run_before_a_call_and_a_better_one_begins_it(
    tmp_path: Path,
) -> None:
    repo, script = make_repo(tmp_path / "repo", BROKEN), Team().write(tmp_path / "team.jsonl")
    backlog = write_backlog(tmp_path / "backlog.csv", "US-1")
    before, calls = backlog.read_text(), tmp_path / "calls.jsonl"
    command = ("run", "backlog.csv", "--repo", "repo", "--script", str(script), "--call-log", str(calls))
    for _ in range(2):
        done = run_cli(command, tmp_path, plain_environment())
        assert (done.returncode, calls.read_text()) == (2, ""), done.stdout
        assert "No module named 'nosuch_package'" in done.stderr
        assert "To do: name what provides `nosuch_package`" in done.stderr
        assert "trying the base: installing and running its tests" in done.stdout
        assert backlog.read_text() == before
    (repo / "nosuch_package.py").write_text("X = 1\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "The package")
    done = run_cli(command, tmp_path, plain_environment())
    assert "base: 1 passed, 0 failed, 0 skipped" in done.stdout
    assert done.returncode == 1, "it has begun, and nobody answers"


def test_a_setup_that_fails_ends_a_run_before_a_call_and_one_that_works_makes_what_the_tests_need(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo", BROKEN)
    with pytest.raises(
        BaseUnusable, match=r"no luck\n.*`echo no luck; exit 3` failed \(exit code 3\)\n.*environment\."
    ):
        sprint(tmp_path / "fails", repo, "environment.setup=['echo no luck; exit 3']")
    assert (tmp_path / "fails" / "calls.jsonl").read_text() == ""
    works = "environment.setup=['echo X = 1 > nosuch_package.py']"  # that stories have it too: see test_setup
    played = sprint(tmp_path / "works", repo, works, answered=False)
    assert named(played, "base_tried")[0].startswith("base: 1 passed, 0 failed")


def test_a_registry_that_is_away_is_told_and_nothing_more_is_paid(tmp_path: Path) -> None:
    away = "sandbox.registries.pip=http://127.0.0.1:9/simple"
    base = make_repo(tmp_path / "base", {"requirements.txt": "tiny\n"})
    with pytest.raises(BaseUnusable, match=r"127\.0\.0\.1:9"):
        sprint(tmp_path / "away", base, away)
    assert (tmp_path / "away" / "calls.jsonl").read_text() == ""

    repo = make_repo(tmp_path / "repo", {"requirements.txt": "# none yet\n"})
    team = Team()
    team.plan("US-1", ["us_1.py"], dependencies={"dependencies": {"tiny": "*"}, "devDependencies": {}})
    played = play(tmp_path / "brings", team, write_backlog(tmp_path / "b.csv", "US-1"), away, repo=repo)
    assert played.status("US-1") == "needs_attention"
    [finding] = played.story("US-1").findings
    assert finding.code == "environment.registry"
    assert "127.0.0.1:9" in finding.message
    assert [call["purpose"] for call in played.calls] == ["breakdown"]
