"""Every branch of the reviews and of the tests in one sprint, undisturbed and killed again and again (make soak).

What `make test` kills is a part of it: test_kills.py; merges are in test_merges.py.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.branches import CODES, CONFTEST, ENDS, SETTINGS, script
from tests.durability.driver import Aftermath, Bench
from tests.support import make_repo

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
BETWEEN_KILLS = int(os.environ.get("CALLS_BETWEEN_KILLS", "5"))


@pytest.fixture(scope="module")
def ran() -> Iterator[Path]:
    """Where the flaky test counts its runs: a place that commands may change in the tier `plain`."""
    folder = Path("/dev/shm") / f"orchestrator-tests-{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o777)
    yield folder / "ran.txt"
    shutil.rmtree(folder)


def bench_in(folder: Path, ran: Path) -> Bench:
    ran.write_text("")
    ran.chmod(0o666)
    make_repo(folder / "repo", {"conftest.py": CONFTEST})
    return Bench(folder, dict.fromkeys(ENDS, "None"), script=script(ran), settings=SETTINGS)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, ran: Path) -> Aftermath:
    """The sprint in one life: each story takes its branch."""
    bench = bench_in(tmp_path_factory.mktemp("branches"), ran)
    ended = bench.finish()
    assert {row["Story_ID"]: row["Execution_Status"] for row in bench.rows()} == ENDS
    left = bench.aftermath(ended.code)
    told = {story["id"]: [finding["code"] for finding in story["findings"]] for story in left.report["stories"]}
    assert {story: code for story, code in CODES.items() if code not in told[story]} == {}, told
    return left


def test_killed_on_every_branch(tmp_path: Path, ran: Path, calm: Aftermath) -> None:
    bench = bench_in(tmp_path, ran)
    for calls in range(BETWEEN_KILLS, len(calm.calls), BETWEEN_KILLS):
        bench.kill_when(lambda calls=calls: len(bench.calls()) >= calls)
    left = bench.aftermath(bench.finish().code)
    for story, told in calm.events.items():
        assert left.events[story] == told
    assert left == calm
