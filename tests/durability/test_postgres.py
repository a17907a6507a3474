"""The small sprint on a real Postgres: kills, and a server that ends in its middle, show nowhere in the end."""

import time
from pathlib import Path

import pytest

from tests.durability.driver import Aftermath, Bench
from tests.durability.team import COMMAND_RUNS
from tests.postgres import FAST, IMMEDIATE, PostgresServer

pytestmark = pytest.mark.timeout(300)


def test_killed_while_the_server_restarts_and_restarted_while_it_runs(
    tmp_path: Path, postgres_server: PostgresServer, undisturbed: Aftermath
) -> None:
    bench = Bench(tmp_path, database=postgres_server.fresh())
    # the engine has begun, nothing is asked for
    bench.kill_when(lambda: bool(bench.told("story_started")))
    # a reply is in the journal, its step is not checkpointed: the server dies at the same moment
    bench.kill_when(lambda: bench.journalled("NFR-001") == 1)
    postgres_server.restart(IMMEDIATE)
    process = bench.start()
    # a call of a story is in flight, others are recorded
    bench.wait_for(lambda: bench.journalled("NFR-001") >= 2, process)
    postgres_server.restart(FAST)
    # two stories side by side, one with a command that is alive
    bench.wait_for(bench.appears(f"US-001/{COMMAND_RUNS}"), process)
    postgres_server.stop(IMMEDIATE)
    time.sleep(2)
    postgres_server.start()
    # a story is merged, its step is not checkpointed
    bench.wait_for(bench.ref_moves("result"), process)
    postgres_server.restart(IMMEDIATE)
    ended = bench.ended(process)
    assert bench.aftermath(ended.code) == undisturbed
