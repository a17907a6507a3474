"""The daemon: killed and ended at every stage and boundary, it ends its sprint as the undisturbed one would."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.durability.boundaries import POINTS, REPEATS
from tests.durability.daemon import DaemonBench
from tests.durability.driver import Aftermath
from tests.durability.team import TESTS_RUN

pytestmark = pytest.mark.timeout(300)
KILLS = int(os.environ.get("KILLS", "100"))
SEED = int(os.environ.get("KILL_SEED", "0")) or time.time_ns() % 1_000_000
FEW = {"behind-journal": 2, "before-step": 9, "behind-ref": 3, "before-event": 12, "behind-cells": 2}
"""Boundaries of the short form, and the how-manieth of each it dies at."""


def database_of(engine: str, request: pytest.FixtureRequest) -> str | None:
    """A fresh one on a real Postgres; None for the files of the state folder."""
    return request.getfixturevalue("fresh_postgres")() if engine == "postgres" else None


def test_dies_at_boundaries_and_is_told_to_end_and_nothing_of_it_shows(tmp_path: Path, undisturbed: Aftermath) -> None:
    bench = DaemonBench(tmp_path)
    for point, number in FEW.items():
        assert bench.die_at_boundary(point, number).code == -signal.SIGKILL, point
    # a call is under way: it may end; a test run is alive: it may end too
    before = len(bench.calls())
    for moment in (lambda: len(bench.calls()) > before, bench.appears(f"US-002/{TESTS_RUN}")):
        process = bench.start()
        bench.wait_for(moment, process)
        process.send_signal(signal.SIGTERM)
        stopped = bench.ended(process)
        assert (stopped.code, stopped.stderr.count("\n")) == (0, 1)
        assert stopped.stderr.startswith("settings: ")
        assert '"daemon_stopped"' in stopped.stdout.splitlines()[-1]
        assert '"cut": 0' in stopped.stdout.splitlines()[-1]
        assert bench.processes() == [], "no orphan is left"
    assert bench.finish().code == 0
    assert bench.aftermath(0) == undisturbed


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("point", POINTS)
def test_dies_at_a_boundary_over_and_over(
    tmp_path: Path, undisturbed: Aftermath, point: str, engine: str, request: pytest.FixtureRequest
) -> None:
    bench = DaemonBench(tmp_path)
    bench.database = database_of(engine, request)
    deaths = 0
    for number in (1, 2, 3, 5, 8, 13):
        deaths += bench.die_at_boundary(point, number).code == -signal.SIGKILL
        if bench.told("sprint_ended"):
            break
    assert deaths
    if not bench.told("sprint_ended"):
        assert bench.finish().code == 0
    if point == REPEATS:
        again = {key: count for key, count in Counter(bench.calls()).items() if count > 1}
        assert sum(again.values()) - len(again) <= deaths, "a death there costs its own call and no other"
        bench.forget_repeated()
    assert bench.aftermath(0) == undisturbed


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_killed_by_the_clock(
    tmp_path: Path, undisturbed: Aftermath, engine: str, request: pytest.FixtureRequest
) -> None:
    """Over all kills at most one call is paid twice: one whose reply was cut between arrival and journal."""
    chance, kills, repeated = random.Random(SEED), 0, 0
    print(f"KILL_SEED={SEED}")
    while kills < KILLS:
        bench = DaemonBench(tmp_path / f"clock-{kills}")
        bench.database = database_of(engine, request)
        for _ in range(chance.randint(2, 6)):
            process = bench.start()
            time.sleep(chance.uniform(0.3, 6))
            (bench.kill_everything(process) if chance.random() < 0.4 else process.kill())
            process.communicate(timeout=30)
            kills += 1
            if bench.told("sprint_ended"):
                break
        assert bench.finish().code == 0
        repeated += len(bench.calls()) - len(set(bench.calls()))
        bench.forget_repeated()
        assert bench.aftermath(0) == undisturbed
    print(f"{kills} kills, {repeated} calls paid for twice")
    assert repeated <= 1
