"""A backup restored at another place: its sprints write to paths only that were given."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.core.sprint import Pruning, SprintRecord
from orchestrator.storage.state_folder import StateFolder
from tests.support import ALL_PASS, Team, git, make_repo, plain_environment, run_cli, write_backlog

PUSHED = "refs/heads/orchestrator/S1"


def call(place: Path, *words: str) -> tuple[int, str]:
    """A command in the project at `place`; its exit code and what it said."""
    done = run_cli(words, place, plain_environment(ORCHESTRATOR_HOME=str(place / "state"), HOME=str(place)))
    return done.returncode, done.stdout + done.stderr


def run(place: Path, backlog: str, sprint: str) -> tuple[int, str]:
    words = ["run", backlog, "--repo", "repo", "--sprint", sprint, "--push-to", PUSHED.removeprefix("refs/heads/")]
    words += ["--provider", "scripted", "--script", "team.jsonl", "--call-log", "calls.jsonl", "--set", ALL_PASS]
    return call(place, *words)


def refs(place: Path) -> str:
    return git(place / "repo", "for-each-ref", "--format=%(refname) %(objectname)")


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a sprint that has ended and a backup of it beside, made before its result was pushed."""
    place = tmp_path_factory.mktemp("backed-up") / "one"
    make_repo(place / "repo", {"a.txt": "a\n"})
    team = Team()
    team.good("US-1")
    team.write(place / "team.jsonl")
    write_backlog(place / "backlog.csv", "US-1")
    code, said = run(place, "backlog.csv", "S1")
    assert code == 0, said
    assert PUSHED in refs(place)
    assert call(place, "backup", str(place.parent / "file"))[0] == 0
    git(place / "repo", "update-ref", "-d", PUSHED)
    return place


def test_restore_asks_for_what_lies_outside(backed_up: Path, tmp_path: Path) -> None:
    other, file = tmp_path / "two", str(backed_up.parent / "file")
    other.mkdir()
    for name in ("backlog.csv", "team.jsonl"):
        shutil.copy(backed_up / name, other)
    before = refs(backed_up), (backed_up / "backlog.csv").stat().st_mtime_ns
    code, said = call(other, "restore", file)
    assert code == 2
    assert f"--repo for {backed_up / 'repo'} of S1; --backlog for {backed_up / 'backlog.csv'} of S1" in said
    make_repo(other / "strange")
    code, said = call(other, "restore", file, "--repo", "strange", "--backlog", "backlog.csv")
    assert (code, f"{other / 'strange'} is no repository with the commit" in said) == (2, True)
    code, said = call(other, "restore", file, "--repo", "/x=strange", "--backlog", "backlog.csv")
    assert (code, "/x=strange is no repository" in said) == (2, True)
    assert not [path for path in (other / "state").iterdir() if path.name != "daemon"], "nothing was restored"

    git(tmp_path, "clone", "--quiet", str(backed_up / "repo"), str(other / "repo"))
    given = f"{backed_up / 'backlog.csv'}=backlog.csv"
    code, said = call(other, "restore", file, "--repo", "repo", "--backlog", given)
    assert code == 0, said
    code, said = run(other, "backlog.csv", "S1")
    assert code == 0, said
    assert PUSHED in refs(other)
    assert (other / "calls.jsonl").read_text() == "", "nothing is asked again"
    assert (refs(backed_up), (backed_up / "backlog.csv").stat().st_mtime_ns) == before, "it was not given"
    assert StateFolder(other / "state").record("S1").repo == str(other / "repo")


def test_in_place_nothing_is_asked(backed_up: Path, tmp_path: Path) -> None:
    shutil.move(backed_up / "state", tmp_path / "away")
    assert call(backed_up, "restore", str(backed_up.parent / "file"))[0] == 0
    assert run(backed_up, "backlog.csv", "S1")[0] == 0
    assert PUSHED in refs(backed_up)


def test_several_repositories_are_given_one_by_one_and_a_backlog_follows_its_repository(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    folder = StateFolder(old / "state")
    folder.make()
    for name in ("a", "b=c"):
        repo = make_repo(old / name)
        base = git(repo, "rev-parse", "HEAD")
        started = {"story_ids": ("US-1",), "base": base, "started_at": datetime.now(UTC)}
        folder.save(SprintRecord(sprint=f"S-{name[0]}", repo=str(repo), backlog=str(repo / "rows.csv"), **started))
        sidecar = folder.sidecar(repo / "rows.csv")
        sidecar.parent.mkdir(exist_ok=True)
        sidecar.write_text(name)
        git(tmp_path, "clone", "--quiet", str(repo), str(new / name))
    call(old, "backup", str(tmp_path / "file"))
    file = str(tmp_path / "file")
    code, said = call(new, "restore", file, "--repo", "a")
    assert (code, f"OLD is a path that the backup names ({old / 'a'}, {old / 'b=c'})" in said) == (2, True)
    code, said = call(new, "restore", file, "--repo", f"{old / 'a'}=a", "--repo", f"{old / 'b=c'}=b=c")
    assert code == 0, said
    restored = StateFolder(new / "state")
    assert {(one.repo, one.backlog) for one in restored.records()} == {
        (str(new / name), str(new / name / "rows.csv")) for name in ("a", "b=c")
    }
    assert restored.sidecar(new / "b=c" / "rows.csv").read_text() == "b=c"


def test_only_a_sprint_that_may_run_again_needs_its_repository(tmp_path: Path) -> None:
    record = {"backlog": str(tmp_path / "b.csv"), "repo": str(tmp_path / "gone"), "base": "1" * 40, "story_ids": ("A",)}
    now = datetime.now(UTC)
    states = {"S1": {"cleared": True}, "S2": {"pruned": Pruning(at=now, done=True)}}
    folder = StateFolder(tmp_path / "state")
    folder.make()
    for sprint, state in states.items():
        folder.save(SprintRecord.model_validate({"sprint": sprint, "started_at": now, **record, **state}))
    told = plain_environment()
    assert run_cli(["backup", "b"], tmp_path, told | {"ORCHESTRATOR_HOME": "state"}).returncode == 0
    done = run_cli(["restore", "b", "--home", "elsewhere"], tmp_path, told)
    assert done.returncode == 0, done.stderr


def test_a_folder_below_a_link_is_restored_in_place_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folder = StateFolder(tmp_path / "link" / "state")
    folder.make()
    (folder.home / "place.json").unlink()  # as of a release before it was written
    backlog = folder.submitted / "b.csv"
    folder.save(
        SprintRecord(
            sprint="S1", backlog=str(backlog), repo=str(tmp_path / "repo"), base="", story_ids=("A",),
            started_at=datetime.now(UTC),
        )
    )  # fmt: skip
    told = plain_environment(ORCHESTRATOR_HOME=str(folder.home))
    assert run_cli(["backup", "b"], tmp_path, told).returncode == 0
    shutil.rmtree(folder.home)
    done = run_cli(["restore", "b"], tmp_path, told)
    assert done.returncode == 0, done.stderr
    assert folder.records()[0].backlog == str(backlog)
