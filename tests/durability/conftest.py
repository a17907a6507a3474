"""The same sprint without any disturbance, run once, whichever worker comes first."""

import fcntl
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.durability.driver import Aftermath, Bench


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Any]) -> Any:
    """What `make` returns for a folder of this name; made by one worker, read by the others."""
    base = factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    with (shared / f"{name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = shared / f"{name}.pickle"
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make(factory.mktemp(name))))
        return pickle.loads(kept.read_bytes())


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    def make(folder: Path) -> Aftermath:
        bench = Bench(folder)
        bench.patience_s = 240.0  # all others compare with it: a busy machine must not fail it
        ended = bench.finish()
        assert ended.code == 0, ended
        return bench.aftermath(ended.code)

    left: Aftermath = once(tmp_path_factory, "undisturbed", make)
    return left
