"""The base commit is tried before anything is paid for: told, kept, and refused where nothing of it can be run."""

import json
from pathlib import Path

import pytest

from orchestrator.core.errors import BaseUnusable
from orchestrator.test_runners.pytest_runner import PytestRunner
from orchestrator.test_runners.report import Selection
from tests.support import Played, Team, git, make_repo, plain_environment, play, run_cli, write_backlog

BROKEN = {"tests/test_old.py": "import nosuch_package\n\n\ndef test_old():\n    assert nosuch_package\n"}
MIXED = {
    "tests/test_old.py": "def test_old():\n    assert 1 == 2\n\n\ndef test_fine():\n    assert True is not None\n",
    "tests/test_unloaded.py": BROKEN["tests/test_old.py"],
}


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


def test_with_warn_it_is_only_told_and_with_skip_not_tried(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", BROKEN)
    warned = sprint(tmp_path / "warn", repo, "environment.base=warn", answered=False)
    assert named(warned, "base_tried") == [
        "base: nothing can be run: no test file can be loaded (1): `nosuch_package` cannot be found"
    ]
    assert named(warned, "turn_started")
    skipped = sprint(tmp_path / "skip", repo, "environment.base=skip", answered=False)
    assert named(skipped, "base_tried") == []
    assert named(skipped, "turn_started")


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


def test_what_fails_there_is_told_hinders_nobody_and_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, keys = PytestRunner.run, list[str]()

    async def counted(self: PytestRunner, root: Path, asked: Selection) -> object:
        keys.append(asked.key)
        return await run(self, root, asked)

    monkeypatch.setattr(PytestRunner, "run", counted)
    repo, told = make_repo(tmp_path / "repo", MIXED), "base: 1 passed, 2 failed, 0 skipped in "
    played = sprint(tmp_path / "x", repo)
    (line,) = named(played, "base_tried")
    assert line.startswith(told)
    assert played.status("US-1") == "done", played.story("US-1").findings
    whole = json.loads(played.result.report_path.read_text())["totals"]["base"]
    assert (whole["collected"], whole["failing"]) == (2, ["::tests.test_unloaded", "tests.test_old::test_old"])
    assert told in played.result.report_path.with_suffix(".md").read_text()
    keys.clear()
    again = sprint(tmp_path / "x", repo, story="US-2", answered=False)
    assert named(again, "base_tried") == [line]
    assert named(again, "base_begun") == []
    assert keys == [], "the trial of the first run is still known"


def test_an_empty_repository_has_nothing_to_try_and_a_manifest_alone_is_installed(tmp_path: Path) -> None:
    empty = sprint(tmp_path / "empty", make_repo(tmp_path / "nothing", {"README.md": "# Hello\n"}), answered=False)
    assert named(empty, "base_tried") == []
    alone = sprint(
        tmp_path / "alone", make_repo(tmp_path / "manifest", {"requirements.txt": "# none yet\n"}), answered=False
    )
    assert named(alone, "base_tried")[0].startswith("base: no tests, its dependencies are there")
    refused = make_repo(tmp_path / "refused", {"requirements.txt": "thing\n--index-url https://example.invalid\n"})
    with pytest.raises(BaseUnusable, match="is not allowed"):
        sprint(tmp_path / "urls", refused)


def test_after_the_time_limit_it_counts_that_tests_can_be_collected(tmp_path: Path) -> None:
    slow = "import time\n\n\ndef test_slow():\n    time.sleep(60)\n\n\ndef test_too():\n    assert True is not None\n"
    repo = make_repo(tmp_path / "repo", {"tests/test_old.py": slow})
    team = Team()  # nobody answers: what the story comes to is no matter here
    backlog = write_backlog(tmp_path / "b.csv", "US-1")
    played = play(tmp_path / "x", team, backlog, "environment.base_timeout_s=2", repo=repo)
    told = (
        "base: 2 tests collected; "
        "it was ended after its limit (test.timeout_s; on the base environment.base_timeout_s); "
        "run with pytest: the tests are in Python"
    )
    assert named(played, "base_tried") == [told]


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
