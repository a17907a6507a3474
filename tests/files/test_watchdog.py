"""A loop that stands still ends its process; one that is only slow, or was stopped with its process, does not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.files.process import STUCK

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, re, sys, time
from orchestrator.files.process import Watchdog

async def main():
    async with Watchdog(float(sys.argv[1])):
        await asyncio.sleep(0)
        print("at work", flush=True)
        {does}

asyncio.run(main())
print("done", flush=True)
"""


def begun(does: str, limit_s: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(does=does), str(limit_s)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("does", "code", "told"),
    [
        ("time.sleep(600)", STUCK, "the event loop has stood still"),
        # It never lets go of the interpreter: no other thread has a turn, the watchdog's own neither.
        ("re.match('(a+)+$', 'a' * 80 + 'b')", -signal.SIGVTALRM, ""),
    ],
    ids=["asleep", "alone"],
)
def test_a_loop_that_stands_still_ends_its_process_and_shows_where(does: str, code: int, told: str) -> None:
    process = begun(does, 0.3)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, told in out) == (code, True)
    assert "most recent call first" in err


def test_a_process_that_was_stopped_has_not_stood_still() -> None:
    process = begun("await asyncio.to_thread(sys.stdin.readline)", 0.9)
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.2)
    os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate("\n", timeout=60)
    assert (process.returncode, out, err) == (0, "done\n", "")
