"""One process per sprint, shown with real processes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.core.errors import SprintLocked
from orchestrator.storage.locks import SprintLock, holder

HOLD = """
import asyncio, os, signal, subprocess, sys
from pathlib import Path
from orchestrator.storage.locks import SprintLock

async def main():
    async with SprintLock(Path(sys.argv[1])) as lock:
        if sys.argv[2:]:
            subprocess.Popen(["sleep", sys.argv[2]], pass_fds=[lock.fd])
        print("held", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


def hold(path: Path, *child_s: str) -> subprocess.Popen[str]:
    """Another process that holds the lock until it reads a line, perhaps with a child that inherited it."""
    command = [sys.executable, "-c", HOLD, str(path), *child_s]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


async def take(path: Path) -> None:
    async with SprintLock(path) as lock:
        assert lock.fd >= 0
        assert await asyncio.to_thread(holder, path) == os.getpid()


async def test_a_living_holder_is_named_and_its_end_frees_the_sprint(tmp_path: Path) -> None:
    path = tmp_path / "sprints" / "SP-001" / "lock"
    with await asyncio.to_thread(hold, path) as other:
        assert await asyncio.to_thread(holder, path) == other.pid
        with pytest.raises(SprintLocked, match=f"pid {other.pid}") as caught:
            await take(path)
        assert caught.value.pid == other.pid
        await asyncio.to_thread(other.communicate, "\n")
    assert await asyncio.to_thread(holder, path) is None
    await take(path)
    assert await asyncio.to_thread(holder, path) is None


async def test_children_of_a_killed_holder_are_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with await asyncio.to_thread(hold, path, "0.7") as other:
        other.send_signal(signal.SIGKILL)
        await asyncio.to_thread(other.wait)
        assert await asyncio.to_thread(holder, path) is None
        started = time.monotonic()
        await take(path)
        assert 0.2 < time.monotonic() - started < 10


async def test_a_lock_left_by_a_killed_process_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with await asyncio.to_thread(hold, path) as other:
        other.kill()
        await asyncio.to_thread(other.wait)
        assert path.read_text() == str(other.pid)
    assert await asyncio.to_thread(holder, path) is None
    await take(path)


async def test_one_process_does_not_take_it_twice(tmp_path: Path) -> None:
    async with SprintLock(tmp_path / "lock"):
        with pytest.raises(SprintLocked, match=str(os.getpid())):
            await take(tmp_path / "lock")


def test_no_lock_has_no_holder(tmp_path: Path) -> None:
    assert holder(tmp_path / "none") is None
    (tmp_path / "odd").write_text("not a pid")
    assert holder(tmp_path / "odd") is None
