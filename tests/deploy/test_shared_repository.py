"""`serve.repo` and `serve.push_to`: one repository for all sprints of a daemon, here or elsewhere."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.core.errors import RepositoryError
from orchestrator.core.sprint import SprintRecord
from orchestrator.git.repositories import SharedRepository
from orchestrator.git.repository import open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import load
from orchestrator.storage.state_folder import StateFolder
from tests.git.git_samples import git, user_repo


def shared(folder: Path, repo: str | None, push_to: str | None = None) -> SharedRepository:
    values = [f"serve.repo={repo or ''}"]
    settings, environment = load(None, [*values, *([f"serve.push_to='{push_to}'"] if push_to else [])], {}, folder)
    return SharedRepository(settings, environment, folder / "default")


async def begun(ours: SharedRepository, folder: Path, sprint: str) -> tuple[GitWorkspace, SprintRecord]:
    """A sprint on the repository as it is now."""
    found = await open_repository(await ours.now())
    state, started = StateFolder(folder / ".orchestrator"), datetime.now(UTC)
    record = SprintRecord(
        sprint=sprint, backlog="b", repo=str(found.path), base=found.base, story_ids=("A",), started_at=started
    )
    workspace = GitWorkspace(
        mirror=state.mirror(found.path), folder=state.worktrees(sprint), sprint=sprint, base=found.base
    )
    await workspace.prepare(found.path)
    return workspace, record


async def test_results_go_to_a_branch_of_the_remote_for_each_sprint(tmp_path: Path) -> None:
    origin = user_repo(tmp_path / "origin", {"a": "b"})
    ours = await asyncio.to_thread(shared, tmp_path, f"file://{origin}", "sprints/{sprint}")
    workspace, record = await begun(ours, tmp_path, "s1")
    await ours.check_push(workspace, record)
    assert await ours.push(workspace, record) is None
    assert await ours.push(workspace, record) is None
    assert git(origin, "rev-parse", "sprints/s1") == await workspace.result_head()
    assert (str(ours), ours.folder) == (f"file://{origin}", None)
    other = await asyncio.to_thread(shared, tmp_path, f"file://{tmp_path}/elsewhere", "x")
    assert "began from another repository" in (await other.push(workspace, record) or "")
    with pytest.raises(RepositoryError, match="began from another repository"):
        await other.check_push(workspace, record)
    checked_out = await asyncio.to_thread(shared, tmp_path, f"file://{origin}", "main")
    assert await checked_out.push(workspace, record) is None  # nothing to change
    workspace.close()


async def test_a_folder_of_this_machine_is_pushed_to_as_run_does(tmp_path: Path) -> None:
    repo = user_repo(tmp_path / "project", {"a": "b"})
    ours = await asyncio.to_thread(shared, tmp_path, "project", "result")
    assert (await ours.now(), ours.folder) == (repo, repo)
    workspace, record = await begun(ours, tmp_path, "s1")
    await ours.check_push(workspace, record)
    assert await ours.push(workspace, record) is None
    assert git(repo, "rev-parse", "result") == record.base
    at_main = await asyncio.to_thread(shared, tmp_path, "project", "main")
    assert "is checked out" in (await at_main.push(workspace, record) or "")
    nothing = await asyncio.to_thread(shared, tmp_path, None)
    await nothing.check_push(workspace, record)
    assert await nothing.push(workspace, record) is None
    assert await nothing.now() == tmp_path / "default"
    workspace.close()


@pytest.mark.parametrize(("repo", "push_to"), [("https://a:bcd@example.org/p", "x"), (".", "-f"), (".", " ")])
def test_what_can_never_be_used_is_told_at_once(tmp_path: Path, repo: str, push_to: str) -> None:
    with pytest.raises(RepositoryError):
        shared(tmp_path, repo, push_to)
