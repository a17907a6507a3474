"""A sprint goes on where its machine is gone: mirror and worktrees are made again from the commits that were kept."""

import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from orchestrator.git.workspace import GitWorkspace
from orchestrator.storage.commit_store import PostgresCommitStore
from tests.effort import is_quick
from tests.git.git_samples import change, git, note, save, snapshot, user_repo
from tests.git.test_kill import facts, finish, start

FILES = {"README.md": "hello\n", "src/app.py": "x = 1\n", "tool.sh": "#!/bin/sh\n"}


@dataclass
class Site:
    """A repository, and machines that work on sprints of it with one database."""

    folder: Path
    url: str
    repo: Path
    base: str = field(init=False)

    def __post_init__(self) -> None:
        self.base = git(self.repo, "rev-parse", "HEAD")

    def workspace(self, machine: str, sprint: str = "s1", *, base: str = "", **more: object) -> GitWorkspace:
        store = more.pop("store", None) or PostgresCommitStore(self.url)
        place = self.folder / machine
        return GitWorkspace(
            mirror=place / "app.git", folder=place / sprint, sprint=sprint, base=base or self.base,
            store=store, **more,  # type: ignore[arg-type]
        )  # fmt: skip

    def refs(self, machine: str) -> set[str]:
        return {
            *git(self.folder / machine / "app.git", "for-each-ref", "--format=%(refname) %(objectname)").split("\n")
        }

    def packs(self) -> list[tuple[str | None, int]]:
        """Sprint and size of each pack, None for a shared one."""
        with psycopg.connect(self.url) as connection:
            rows = connection.execute(b"SELECT sprint, size FROM orchestrator_packs ORDER BY number").fetchall()
        return [(sprint, size) for sprint, size in rows]


@pytest.fixture
def site(tmp_path: Path, postgres: str) -> Site:
    return Site(tmp_path, postgres, user_repo(tmp_path / "user", FILES))


async def agree(_folder: Path) -> str:
    return ""


async def deliver(workspace: GitWorkspace, story: str, text: str) -> None:
    await workspace.open(story)
    changes = [change("src/app.py", text), change(f"{story}.txt", "new\n")]
    await workspace.write(story, changes)
    await workspace.commit(story, changes, note(f"{story}:1", story))


async def test_another_machine_goes_on_with_what_the_first_one_had(site: Site) -> None:
    first = site.workspace("one")
    await first.prepare(site.repo)
    await deliver(first, "US-1", "x = 2\n")
    await deliver(first, "US-2", "x = 3\n")
    await first.merge("US-1", note("US-1:merge"), agree)
    await first.open("US-3")
    await first.remove("US-3")
    await first.reset("US-2")
    second = site.workspace("two")
    await second.prepare()
    assert site.refs("two") == site.refs("one")
    assert (await second.open("US-2")) == (await first.open("US-2"))
    assert snapshot(second.root("US-2")) == snapshot(first.root("US-2"))
    assert second.root("US-2").joinpath("src/app.py").read_text() == "x = 3\n"
    git(site.folder / "two/app.git", "fsck", "--strict", "--no-dangling")
    # And the first machine, which comes back, with what the second one did.
    onto = await second.result_head()
    sides = await second.sides("US-2", onto)
    assert sides.conflicts
    await site.workspace("one").prepare()
    assert site.refs("one") == site.refs("two")
    third = site.workspace("three")
    await third.prepare()
    assert "<<<<<<<" in (await third.read_at(sides.tree, ["src/app.py"]))["src/app.py"]


async def test_only_what_is_new_is_kept_and_sprints_share_their_base(site: Site) -> None:
    (site.repo / "big.bin").write_bytes(os.urandom(9 * 1024 * 1024))
    base = save(site.repo, "A large file")
    one, two = site.workspace("one", base=base), site.workspace("one", "s2", base=base)
    await one.prepare(site.repo)
    await two.prepare(site.repo)
    await deliver(one, "US-1", "x = 2\n")
    await deliver(two, "US-1", "x = 3\n")
    site.repo.joinpath("README.md").write_text("newer\n")
    later = site.workspace("one", "s3", base=save(site.repo, "Newer"))
    await later.prepare(site.repo)
    packs = site.packs()
    assert [sprint for sprint, _ in packs] == [None, "s1", "s2", None]
    large, *small = [size for _, size in packs]
    assert large > 9 * 1024 * 1024
    assert max(small) < 1000
    with psycopg.connect(site.url) as connection:
        pieces = connection.execute(b"SELECT max(length(content)), count(*) FROM orchestrator_pack_pieces").fetchone()
    assert pieces == (8 * 1024 * 1024, 2 + 3)

    other = site.workspace("two", "s3", base=later.base)
    await other.prepare()
    assert (await other.read_at(later.base, ["README.md"])) == {"README.md": "newer\n"}
    # A mirror with the base of one sprint gets the other one's without the large file.
    shutil.rmtree(site.folder / "user")
    third = site.workspace("two", "s2")
    await third.prepare()
    assert await third.head("US-1") == await two.head("US-1")

    store = PostgresCommitStore(site.url)
    for sprint in ("s1", "s2", "s2"):
        store.delete(sprint)
    assert site.packs() == [packs[0], packs[3]]
    store.delete("s3")
    assert site.packs() == []
    with psycopg.connect(site.url) as connection:
        for table in (b"orchestrator_pack_pieces", b"orchestrator_refs"):
            assert connection.execute(b"SELECT count(*) FROM " + table).fetchone() == (0,)


def test_machines_that_are_lost_at_any_moment_leave_the_same_result(tmp_path: Path, postgres: str) -> None:
    repo = user_repo(tmp_path / "user", FILES)
    base = git(repo, "rev-parse", "HEAD")

    def machine(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    lasts = finish(machine("calm"), repo, base, postgres, "s1")
    rounds = 3 if is_quick() else 6
    for number in range(rounds):
        child = start(machine(f"lost-{number}"), repo, base, postgres, "s2")
        time.sleep(lasts * (number + 1) / rounds / 2)
        child.kill()
        child.communicate()
        shutil.rmtree(tmp_path / f"lost-{number}")
    finish(machine("last"), repo, base, postgres, "s2")
    assert facts(tmp_path / "last", "s2") == facts(tmp_path / "calm", "s1")
    git(tmp_path / "last/mirror.git", "fsck", "--strict", "--no-dangling")
