"""The long campaign: the same sprint killed at random, over and over, on both databases (make soak)."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.durability.driver import Aftermath, Bench

KILLS = int(os.environ.get("KILLS", "60"))
SEED = int(os.environ.get("KILL_SEED", "0")) or time.time_ns() % 1_000_000

Database = Callable[[], str | None]
"""Makes a database of a sprint's own; None: the embedded one."""


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    """Databases of both kinds."""
    made: Database = request.getfixturevalue("fresh_postgres") if request.param == "postgres" else lambda: None
    return made


@pytest.mark.soak
def test_killed_by_the_clock(tmp_path: Path, database: Database, undisturbed: Aftermath) -> None:
    """Each sprint is killed a few times, after any number of milliseconds."""
    chance = random.Random(SEED)
    kills = 0
    while kills < KILLS:
        bench = Bench(tmp_path / f"clock-{SEED}-{kills}", database=database())
        for _ in range(chance.randint(2, 6)):
            process = bench.start()
            time.sleep(chance.uniform(0.3, 6))
            if chance.random() < 0.4:
                bench.kill_everything(process)
            else:
                process.kill()
            out, error = process.communicate(timeout=30)
            bench.output.append(f"{out}\n{error}")
            kills += 1
        _went_on(bench, undisturbed)


@pytest.mark.soak
def test_killed_by_its_own_deeds(tmp_path: Path, database: Database, undisturbed: Aftermath) -> None:
    """Each sprint dies right before a random deed (see dying.py), then right before another one."""
    chance = random.Random(SEED)
    kills = 0
    while kills < KILLS:
        bench = Bench(tmp_path / f"deeds-{SEED}-{kills}", database=database())
        for _ in range(chance.randint(2, 6)):
            bench.die_at(chance.randint(1, chance.choice([70, 200, 600])))
            kills += 1
        _went_on(bench, undisturbed)


def _went_on(bench: Bench, undisturbed: Aftermath) -> None:
    ended = bench.finish()
    try:
        assert bench.aftermath(ended.code) == undisturbed
    except AssertionError:
        print(bench.folder, *bench.output, sep="\n")
        raise
