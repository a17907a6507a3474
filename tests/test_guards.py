"""The guards of conftest.py really guard."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from blockbuster import BlockingError

from orchestrator.core.calls.exchange import FailedCall, Prompt, Purpose, Segment, TurnKey
from orchestrator.files.atomic_file import replace_content
from orchestrator.storage.reply_journal import WorkflowJournal
from tests.support import plain_environment
from tests.zygote import ROOT


async def test_a_blocking_call_of_ours_on_the_loop_fails(tmp_path: Path) -> None:
    with pytest.raises(BlockingError):
        replace_content(tmp_path / "file", b"text")


async def test_the_journal_may_block_and_only_where_it_writes(tmp_path: Path) -> None:
    with pytest.raises(BlockingError):
        WorkflowJournal(tmp_path / "journal")
    journal = object.__new__(WorkflowJournal)
    journal.__dict__.update(_folder=tmp_path, _entries={}, _unshared=[])
    key = TurnKey(persona="mike", story="A", purpose=Purpose.BREAKDOWN)
    prompt = Prompt(key=key, turn=1, segments=(Segment(name="role", text="x"),))
    journal.record_failure(1, prompt, FailedCall(turn=1, kind="timeout", message="late"))
    assert (tmp_path / "1-1.json").exists()


def test_nothing_that_tests_began_outlives_them_when_they_are_killed(tmp_path: Path) -> None:
    sleep = "['-n1', '-r1', '__import__(\"time\").sleep(90)']"
    tests = (
        "import os, pathlib, sys, time; from tests.zygote import zygote; here = pathlib.Path.cwd()\n"
        f"zygote().start('timeit', {sleep}, cwd=here, env=dict(os.environ), log=sys.stdout.buffer)\n"
        "print('begun', flush=True); time.sleep(90)"
    )
    command = [sys.executable, "-c", tests]
    env = plain_environment(PYTHONPATH=str(ROOT))
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "begun\n"
        killed.kill()
        killed.communicate(timeout=30)  # to the end of stdout, which the zygote and its command have open too


def test_no_network_and_no_git_environment() -> None:
    with socket.socket() as one, pytest.raises(AssertionError, match="tried to reach"):
        one.connect(("192.0.2.1", 80))
    assert not [name for name in os.environ if name.startswith("GIT_")]
