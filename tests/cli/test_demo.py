"""An interrupted demo says what resumes it: the same command would begin another one."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
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


def test_an_interrupted_demo_goes_on_with_the_command_it_prints(tmp_path: Path) -> None:
    _, told = until("plan 1", tmp_path, "demo")
    command = re.search(r"`cd (\S+) && \S*orchestrator ([^`]+)`", told)
    assert command, told
    line, told = until("sprint SP-001 goes on", Path(command[1]), *shlex.split(command[2]))
    assert "8 stories" in line
    assert "the same command goes on" in told


@pytest.mark.timeout(400)
def test_the_board_of_the_demo_is_there_from_the_start_until_ctrl_c(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "demo", "--board"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        link = demo.stdout.readline().removeprefix("Watch it in a browser: ").strip()
        url, _, token = link.partition("/login#")
        with httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, trust_env=False) as client:

            def done() -> int:
                answer = client.get("/api/v1/sprints/SP-001")
                return int(answer.json()["totals"]["done"]) if answer.status_code == 200 else 0

            assert client.get("/").headers["location"] in {"/sprints", "/sprints/SP-001"}
            assert "There is no sprint yet" in client.get("/sprints").text or done() < 8
            lines = [*iter(demo.stdout.readline, f"The board stays open until Ctrl-C: {link}\n")]
            assert (done(), "40 passed" in "".join(lines)) == (8, True)
        demo.send_signal(signal.SIGINT)
        assert (demo.wait(PATIENCE_S), demo.stdout.read()) == (0, "")
