"""`state.remote`: the commits of a sprint in another git repository, by path and by smart HTTP with a token."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError, RepositoryError
from orchestrator.git.remote_commits import RemoteCommits, open_remote_commits
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import load
from orchestrator.storage.commit_store import PostgresCommitStore
from tests.deploy.git_server import GitServer, git_server
from tests.git.git_samples import change, git, note, snapshot, user_repo
from tests.support import plain_environment

TOKEN = "ghs_" + "k3Rq9Zt7" * 4
QUICK = ("remote.wait_initial_s=0", "remote.max_attempts=1")


@pytest.fixture
def forge(tmp_path: Path) -> Path:
    bare = tmp_path / "forge/state.git"
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare")
    git(bare, "config", "http.receivepack", "true")
    return bare


@pytest.fixture
def server(forge: Path) -> Iterator[GitServer]:
    with git_server(forge.parent, secret=TOKEN) as running:
        yield running


async def remote(tmp_path: Path, named: str, token: str = TOKEN) -> RemoteCommits:
    environment = plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "home"), GIT_TOKEN=token)
    overrides = (*QUICK, f"state.remote={named}")
    made = open_remote_commits(*await asyncio.to_thread(load, None, overrides, environment, tmp_path))
    assert made is not None
    return made


def workspace(tmp_path: Path, machine: str, url: str, there: RemoteCommits | None) -> GitWorkspace:
    place = tmp_path / machine
    return GitWorkspace(
        mirror=place / "app.git", folder=place / "s1", sprint="s1", base=git(tmp_path / "user", "rev-parse", "HEAD"),
        store=PostgresCommitStore(url), remote=there,
    )  # fmt: skip


async def work(place: GitWorkspace, *steps: int) -> None:
    for step in steps:
        await place.commit("US-1", [change("a.txt", f"{step}\n")], note(f"US-1:{step}"))


def refs(mirror: Path) -> str:
    return git(mirror, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/orchestrator")


@pytest.mark.parametrize(("named", "steps"), [("forge/state.git", 25), ("http", 2)])
async def test_another_machine_goes_on_from_the_remote_repository(
    named: str, steps: int, tmp_path: Path, forge: Path, server: GitServer, postgres: str
) -> None:
    there = await remote(tmp_path, f"{server.url}/state.git" if named == "http" else named)
    repo = user_repo(tmp_path / "user", {"README.md": "hello\n"})
    first = workspace(tmp_path, "one", postgres, there)
    await first.prepare(repo)
    await first.open("US-1")
    await work(first, *range(steps))
    onto = await first.result_head()
    sides = await first.sides("US-1", onto)
    second = workspace(tmp_path, "two", postgres, there)
    await second.prepare()
    assert refs(tmp_path / "two/app.git") == refs(tmp_path / "one/app.git")
    assert await second.read_at(sides.tree, ["a.txt"]) == {"a.txt": f"{steps - 1}\n"}
    await second.open("US-1")
    assert snapshot(second.root("US-1")) == {"README.md": b"hello\n", "a.txt": f"{steps - 1}\n".encode()}
    git(tmp_path / "two/app.git", "fsck", "--strict", "--no-dangling")
    kept = git(forge, "for-each-ref", "--format=%(refname)").split()
    assert all(name.startswith("refs/orchestrator/state/s1/") for name in kept)
    assert len(kept) < 25, "what a later commit holds needs no ref"
    store = PostgresCommitStore(postgres)
    assert (len(store.read("s1", "").refs), store.packs("s1")) == (5, ())
    # Where the commits are cannot change in between.
    with pytest.raises(ConfigError, match=r"are kept in .*state\.git"):
        await workspace(tmp_path, "three", postgres, None).prepare(repo)
    await second.remove("US-1")
    await second.remove_result()
    assert git(forge, "for-each-ref") == ""
    assert store.read("s1", "").refs == {}
    assert server.told == []


async def test_a_repository_that_refuses_us_is_told_at_the_start_and_waited_for_later(
    tmp_path: Path, forge: Path, server: GitServer, postgres: str
) -> None:
    repo = user_repo(tmp_path / "user", {"README.md": "hello\n"})
    address = f"{server.url}/state.git"
    wrong = await remote(tmp_path, address, token="wrong")
    with pytest.raises(RepositoryError, match="GIT_TOKEN is not let in"):
        await workspace(tmp_path, "one", postgres, wrong).prepare(repo)
    first = workspace(tmp_path, "one", postgres, await remote(tmp_path, address))
    await first.prepare(repo)
    await first.open("US-1")
    before = refs(tmp_path / "one/app.git")
    first = workspace(tmp_path, "one", postgres, await remote(tmp_path, address))
    await first.prepare()
    forge.rename(forge.with_name("away.git"))
    working = asyncio.create_task(work(first, 1))
    assert not (await asyncio.wait({working}, timeout=1))[0]
    assert refs(tmp_path / "one/app.git") != before
    forge.with_name("away.git").rename(forge)
    await working
    shutil.rmtree(tmp_path / "one")
    second = workspace(tmp_path, "two", postgres, await remote(tmp_path, address))
    await second.prepare()
    assert await second.read("US-1", ["a.txt"]) == {"a.txt": "1\n"}
