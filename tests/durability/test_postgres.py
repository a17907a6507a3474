"""The small sprint on a real Postgres: kills, and a server that ends in its middle, show nowhere in the end."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.durability.driver import Aftermath, Bench
from tests.durability.team import COMMAND_RUNS
from tests.postgres import FAST, IMMEDIATE, PostgresServer

pytestmark = pytest.mark.timeout(300)
ROUNDS = int(os.environ.get("RESTART_ROUNDS", "5"))
SEED = int(os.environ.get("KILL_SEED", "0")) or time.time_ns() % 1_000_000


@pytest.mark.soak
def test_killed_while_the_server_restarts_and_restarted_while_it_runs(
    tmp_path: Path, postgres_server: PostgresServer, undisturbed: Aftermath
) -> None:
    bench = Bench(tmp_path, database=postgres_server.fresh())
    # the engine has begun, nothing is asked for
    bench.kill_when(lambda: bool(bench.told("story_started")))
    # a reply is in the journal, its step is not checkpointed: the server dies at the same moment
    bench.kill_when(lambda: bench.journalled("NFR-001") == 1)
    postgres_server.restart(IMMEDIATE)
    # the server is away and somebody ends the run, which waits for nothing
    process = bench.start()
    bench.wait_for(lambda: bench.journalled("NFR-001") >= 2, process)
    postgres_server.stop()
    process.send_signal(signal.SIGTERM)
    assert bench.ended(process).code == 130
    refused = bench.finish()
    assert (refused.code, "event log cannot be used" in refused.stderr) == (2, True)
    postgres_server.start()
    process = bench.start()
    # two stories side by side, one with a command that is alive
    bench.wait_for(bench.appears(f"US-001/{COMMAND_RUNS}"), process)
    postgres_server.stop(IMMEDIATE)
    postgres_server.start()
    # a story is merged, its step is not checkpointed
    bench.wait_for(bench.ref_moves("result"), process)
    postgres_server.restart(FAST)
    ended = bench.ended(process)
    assert bench.aftermath(ended.code) == undisturbed


def test_mirror_and_worktrees_may_vanish_with_every_kill(tmp_path: Path, postgres: str, undisturbed: Aftermath) -> None:
    bench = Bench(tmp_path, database=postgres)
    for moment in (bench.appears(f"US-001/{COMMAND_RUNS}"), bench.ref_moves("result")):
        bench.kill_when(moment)
        shutil.rmtree(bench.mirror_folder)
        for trees in bench.state.glob("sprints/*/worktrees"):
            shutil.rmtree(trees)
    ended = bench.finish()
    assert bench.aftermath(ended.code) == undisturbed


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_restarted_and_killed_by_the_clock(
    tmp_path: Path, postgres_server: PostgresServer, undisturbed: Aftermath
) -> None:
    chance = random.Random(SEED)
    print(f"KILL_SEED={SEED}")
    for number in range(ROUNDS):
        bench = Bench(tmp_path / str(number), database=postgres_server.fresh())
        process = bench.start()
        for _ in range(40):
            time.sleep(chance.uniform(0.05, 2))
            if process.poll() is not None:
                if bench.ended(process).code == 0:
                    break
                process = bench.start()  # the server was away when it began
            if chance.random() < 0.25:
                process.kill()
            postgres_server.stop(chance.choice((FAST, IMMEDIATE)))
            time.sleep(chance.choice((0, 0, 0.3, 1.5)))
            postgres_server.start()
        process.kill()
        process.communicate(timeout=30)
        ended = bench.finish()
        assert bench.aftermath(ended.code) == undisturbed
