"""What `--repo` may be, and that looking at it changes and runs nothing."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.core.errors import RepositoryError
from orchestrator.git.repository import open_repository, push_target
from tests.git.git_samples import ENV, fill, git, save, snapshot, user_repo


@pytest.mark.parametrize("exists", [True, False])
async def test_an_absent_or_empty_folder_becomes_a_repository(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "a" / "b c"
    if exists:
        folder.mkdir(parents=True)
    found = await open_repository(folder)
    assert (found.created, found.base, found.bare, found.path) == (True, "", False, folder)
    assert git(folder, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert not (folder / ".git/hooks").exists()
    again = await open_repository(folder)
    assert (again.created, again.warnings) == (False, ())


async def test_a_checkout_a_bare_and_a_linked_one(tmp_path: Path) -> None:
    repo = user_repo(tmp_path / "repo", {"a.txt": "1"})
    head = git(repo, "rev-parse", "HEAD")
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    (tmp_path / "alias").symlink_to(repo)
    for name, bare in (("repo", False), ("bare.git", True), ("linked", False), ("alias", False)):
        found = await open_repository(tmp_path / name)
        assert (found.base, found.bare, found.warnings) == (head, bare, ())
        assert found.path == (tmp_path / name).resolve()


async def test_every_other_folder_is_refused_with_the_one_to_give(tmp_path: Path) -> None:
    repo = user_repo(tmp_path / "repo", {"sub/deep/a.txt": "1"})
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    fill(tmp_path, {"plain/a.txt": "1", "file": "x", "broken/.git": "gitdir: /nowhere\n"})
    for folder, told in (
        ("repo/sub", f"repository of {repo}/.git: give its top folder"),
        ("repo/sub/deep", f"repository of {repo}/.git: give its top folder"),
        ("repo/.git", "top folder"),
        ("bare.git/refs", "repository of .*bare.git: give its top folder"),
        ("plain", "no git repository"),
        ("broken", "no git repository"),
        ("file", "cannot be used"),
        ("file/below", "cannot be used"),
    ):
        with pytest.raises(RepositoryError, match=told):
            await open_repository(tmp_path / folder)


async def test_uncommitted_files_are_a_warning(tmp_path: Path) -> None:
    repo = user_repo(tmp_path / "repo", {"a.txt": "1", "b.txt": "1"})
    fill(repo, {".orchestrator/state": "x"})
    assert (await open_repository(repo)).warnings == ()
    fill(repo, {"a.txt": "changed", "new/one": "1", "two": "2"})
    (warning,) = (await open_repository(repo)).warnings
    assert "1 changed, 2 untracked" in warning


async def test_looking_runs_no_program_and_writes_nothing(tmp_path: Path) -> None:
    repo = user_repo(tmp_path / "repo", {"a.txt": "1", ".gitattributes": "* filter=evil filter.x=y\n"})
    trace = tmp_path / "trace"
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "core.sshCommand", "diff.external"):
        git(repo, "config", key, f"touch {trace};false")
    git(repo, "config", "filter.evil.required", "true")
    os.utime(repo / "a.txt", (1, 1))
    before = snapshot(repo / ".git")
    await open_repository(repo)
    await push_target(repo, "other")
    assert not trace.exists()
    assert snapshot(repo / ".git") == before
    git(repo, "config", "filter.a=b.clean", f"touch {trace}")
    assert (await open_repository(repo)).warnings == ()
    assert not trace.exists()
    subprocess.run(["git", "status"], cwd=repo, env=ENV, capture_output=True, check=False)
    assert trace.exists(), "the trap is none"


async def test_push_targets(tmp_path: Path) -> None:
    repo = user_repo(tmp_path / "repo", {"a.txt": "1"})
    git(repo, "branch", "free")
    git(repo, "worktree", "add", "-q", "-b", "taken", str(tmp_path / "linked"))
    tip = save(repo, "Second")
    assert await push_target(repo, "free") == git(repo, "rev-parse", "free") != tip
    assert await push_target(repo, "new/one") == ""
    for name in ("main", "taken", "-d", "a b", "a..b", "HEAD", ""):
        with pytest.raises(RepositoryError):
            await push_target(repo, name)
    with pytest.raises(RepositoryError):
        await push_target(tmp_path / "linked", "main")
    unborn = await open_repository(tmp_path / "unborn")
    with pytest.raises(RepositoryError, match="checked out"):
        await push_target(unborn.path, "main")


async def test_a_repository_of_another_object_format_is_refused_by_name(tmp_path: Path) -> None:
    user_repo(tmp_path / "long", {"a": "1"}, "--object-format=sha256")
    with pytest.raises(RepositoryError, match="format sha256: only SHA-1"):
        await open_repository(tmp_path / "long")
