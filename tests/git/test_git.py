"""The one function that runs git: what it lets in, what it says, and how it ends."""

import asyncio
import fcntl
import os
from pathlib import Path

import psutil
import pytest

from orchestrator.core.errors import WorkspaceError
from orchestrator.git.command import require_git, run_git

NAP = ("alias.nap=!sleep 30",)


async def test_it_says_which_command_failed_and_why(tmp_path: Path) -> None:
    await require_git()
    with pytest.raises(WorkspaceError, match=r"git rev-parse: fatal: not a git repository"):
        await run_git(["rev-parse", "HEAD"], git_dir=tmp_path)
    assert (await run_git(["rev-parse", "HEAD"], git_dir=tmp_path, ok=(128,))).code == 128
    with pytest.raises(WorkspaceError, match="could not be started"):
        await run_git(["version"], cwd=tmp_path / "absent")
    with pytest.raises(WorkspaceError, match="could not be started"):
        await run_git(["version", "a\0b"])


async def test_input_and_output_are_bytes_of_any_size(tmp_path: Path) -> None:
    content = bytes(range(256)) * 8192
    lines = (await run_git(["hash-object", "--stdin"], cwd=tmp_path, stdin=content)).text
    assert len(lines) == 40
    said = await run_git(["stripspace"], cwd=tmp_path, stdin=b"x\xff\n" * 100_000)
    assert len(said.stdout) == 300_000
    assert said.text.startswith("x\\xff\n")


async def test_protocols_are_off_unless_asked_for(tmp_path: Path) -> None:
    await run_git(["init", "--quiet", "--bare", str(tmp_path / "a")])
    with pytest.raises(WorkspaceError, match="not allowed"):
        await run_git(["ls-remote", str(tmp_path / "a")], cwd=tmp_path)
    await run_git(["ls-remote", str(tmp_path / "a")], cwd=tmp_path, protocols="file")
    with pytest.raises(WorkspaceError, match="not allowed"):
        await run_git(["ls-remote", "ext::touch x"], cwd=tmp_path, protocols="file")


async def test_a_cancelled_git_is_gone_with_all_its_children() -> None:
    me = psutil.Process()
    task = asyncio.create_task(run_git(["nap"], settings=NAP))
    async with asyncio.timeout(10):
        while not any("sleep" in child.name() for child in me.children(recursive=True)):
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [child for child in me.children(recursive=True) if child.name() in {"git", "sleep"}]


async def test_a_git_that_is_cancelled_while_it_starts_is_gone_too() -> None:
    me = psutil.Process()
    task = asyncio.create_task(run_git(["nap"], settings=NAP))
    async with asyncio.timeout(10):
        while not me.children():
            await asyncio.sleep(0)  # no longer: its pipes are not connected yet
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not [child for child in me.children(recursive=True) if child.name() in {"git", "sleep"}]


async def test_a_lock_lives_as_long_as_git_does(tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    others = {*psutil.Process().children()}
    task = asyncio.create_task(run_git(["nap"], settings=NAP, pass_fds=(lock,)))
    async with asyncio.timeout(10):
        while not {*psutil.Process().children()} - others:
            await asyncio.sleep(0.01)
    os.close(lock)
    other = os.open(tmp_path / "lock", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
