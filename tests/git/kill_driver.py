"""Delivers three stories through a workspace; test_kill.py kills it at any moment and starts it again."""

import asyncio
import fcntl
import os
import sys
from pathlib import Path

from orchestrator.git.workspace import GitWorkspace
from orchestrator.storage.commit_store import PostgresCommitStore
from tests.git.git_samples import change, note


async def agree(folder: Path) -> str:
    return ""


async def story(workspace: GitWorkspace, name: str) -> None:
    await workspace.open(name)
    for step in range(3):
        changes = [change(f"{name}/{step}-{number}.txt", f"{step}\n" * number) for number in range(5)]
        await workspace.write(name, changes)
        await workspace.commit(name, changes, note(f"{name}:{step}", name))
        await workspace.reset(name)
    # Whatever the others have merged by now: a repeated step finds what it took in.
    taken = [change(f"{name}/taken.txt", "in\n")]
    await workspace.take_in(name, await workspace.result_head(), taken, note(f"{name}:take", name))
    merged = await workspace.merge(name, note(f"{name}:merge", name), agree)
    assert merged.merged, merged


async def main(state: Path, repo: Path, base: str, url: str | None = None, sprint: str = "s1") -> None:
    lock = os.open(state / "sprint.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("ready", flush=True)
    workspace = GitWorkspace(
        mirror=state / "mirror.git",
        folder=state / "trees",
        sprint=sprint,
        base=base,
        lock_fds=(lock,),
        store=PostgresCommitStore(url) if url else None,
    )
    await workspace.prepare(repo)
    await workspace.base_tree(agree)
    await asyncio.gather(*(story(workspace, f"US-{number}") for number in range(3)))
    await workspace.push(repo, f"result-{sprint}")
    workspace.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
