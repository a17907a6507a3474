"""An interrupted demo says what resumes it: the same command would begin another one."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

PATIENCE_S = 60


def until(mark: str, folder: Path, *args: str) -> tuple[str, str]:
    """Start a command, interrupt it when a line holds `mark`; that line, and what it wrote to stderr."""
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *args],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as started:  # fmt: skip
        assert started.stdout is not None
        found = next((line for line in started.stdout if mark in line), "")
        started.send_signal(signal.SIGINT)
        errors = started.communicate(timeout=PATIENCE_S)[1]
    assert started.returncode == 130
    return found, errors


@pytest.mark.timeout(400)
def test_an_interrupted_demo_goes_on_with_the_command_it_prints_until_all_is_done(tmp_path: Path) -> None:
    _, told = until("plan 1", tmp_path, "demo")
    command = re.search(r"`cd (\S+) && orchestrator ([^`]+)`", told)
    assert command, told
    line, told = until("sprint SP-001 goes on", Path(command[1]), *shlex.split(command[2]))
    assert "8 stories" in line
    assert "the same command goes on" in told
    again = [sys.executable, "-m", "orchestrator", *shlex.split(command[2])]
    done = subprocess.run(again, cwd=command[1], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, "8 done" in done.stdout) == (0, True), done.stdout
