"""Memory that belongs to no process alone has a limit, and is gone when the command ends."""

import os
import sys
from pathlib import Path

import pytest

from orchestrator.core.suite import CommandResult, Tier
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings
from tests.sandboxes import PATH, TIERS, sandbox

pytestmark = pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no shared memory of this kind")
HEAD = """
import ctypes, mmap, os, time
libc = ctypes.CDLL(None)
"""
LARGE = {
    "files without a name": """
held = []
for number in range(11):
    file = open(f"/dev/shm/{os.getpid()}-{number}", "wb")
    held.append(file)
    os.unlink(file.name)
    file.write(bytes(50_000_000))
""",
    "mappings of several processes": """
for _ in range(8):
    if os.fork() == 0:
        held = mmap.mmap(-1, 50_000_000)
        held.write(bytes(50_000_000))
        break
""",
    "files that are mapped nowhere": "os.write(os.memfd_create('file'), bytes(200_000_000))",
    "segments": "libc.shmget(0, ctypes.c_size_t(200_000_000), 0o1600) >= 0 or os._exit(1)",
    "messages": "libc.msgget(0, 0o1600) >= 0 or os._exit(1)",
}
SMALL = """
import multiprocessing
from multiprocessing import shared_memory
with multiprocessing.Lock():
    block = shared_memory.SharedMemory(create=True, size=20_000_000)
block.buf[:] = bytes(20_000_000)
os.mkdir(f"/dev/shm/{block.name}-folder")
print(block.name, flush=True)
os._exit(0)
"""
"""Leaves all it made behind, as what is killed does."""


async def run(tier: Tier, tmp_path: Path, code: str) -> CommandResult:
    settings = CommandSettings(timeout_s=20, memory_mb=128)
    argv = [sys.executable, "-I", "-c", HEAD + code]
    return await LimitedCommandRunner(settings, PATH, sandbox=sandbox(tier)).run(argv, cwd=tmp_path)


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("tier", TIERS)
async def test_no_kind_of_it_is_without_a_limit(tier: Tier, name: str, tmp_path: Path) -> None:
    if tier is Tier.PLAIN and name != "mappings of several processes":
        pytest.skip("only what processes map counts there")
    result = await run(tier, tmp_path, f"{LARGE[name]}\ntime.sleep(5)\nprint('all of it')")
    assert "all of it" not in result.output
    assert (result.limit or "memory") == "memory"


@pytest.mark.parametrize("tier", TIERS)
async def test_programs_that_need_some_have_it_and_nothing_is_left(tier: Tier, tmp_path: Path) -> None:
    if tier is not Tier.NAMESPACES:
        pytest.skip("the machine's own folder stays closed, or belongs to all")
    result = await run(tier, tmp_path, SMALL)
    assert result.ok, result.output
    name = result.output.split()[0]
    assert [found for found in os.listdir("/dev/shm") if name in found] == []
