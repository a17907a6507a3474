"""`kill -9` at chosen moments, the same command again, and nothing of it shows in the end."""

import signal
from pathlib import Path

import pytest

from tests.durability.driver import SPRINT, Aftermath, Bench
from tests.durability.team import COMMAND_RUNS, TESTS_RUN
from tests.support import ALL_PASS
from tests.zygote import Forked

pytestmark = pytest.mark.timeout(300)


def test_ended_at_every_stage(tmp_path: Path, undisturbed: Aftermath) -> None:
    bench = Bench(tmp_path)
    # the engine's database is being made, nothing is asked for yet
    bench.kill_when((bench.state / "engine.sqlite").exists)
    _without_a_row(bench)
    # a reply is in the journal, its step is not checkpointed
    bench.kill_when(lambda: bench.journalled("NFR-001") == 1)
    # a commit has been made, its step is not checkpointed
    bench.kill_when(bench.ref_moves("NFR-001"))
    # a call has ended with an error and the next one waits for the backoff
    bench.kill_when(lambda: bench.journalled("US-002", "error") >= 1)
    # a command of a task is alive
    stopped = bench.kill_when(bench.appears(f"US-001/{COMMAND_RUNS}"), number=signal.SIGINT)
    assert "the same command goes on" in stopped.stderr
    assert bench.processes() == []
    # a test run is alive
    bench.kill_when(bench.appears(f"US-002/{TESTS_RUN}"))
    bench.wait_for(lambda: bench.processes() == [], timeout=5)
    bench.kill_when(bench.appears(f"US-002/{TESTS_RUN}"), number=signal.SIGTERM)
    assert bench.processes() == []
    # a story is merged, its step is not checkpointed
    bench.kill_when(bench.ref_moves("result"))
    ended = bench.finish()
    assert bench.aftermath(ended.code) == undisturbed

    said = bench.calls_file.read_bytes(), bench.backlog.read_bytes()
    again = bench.finish()
    assert (again.code, bench.calls_file.read_bytes(), bench.backlog.read_bytes()) == (ended.code, *said)
    assert again.stdout.splitlines()[-6:] == ended.stdout.splitlines()[-6:]
    assert bench.aftermath(again.code) == undisturbed


def test_watched_then_killed_between_the_last_outcome_and_its_cells(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"NFR-001": "None"}, settings=(ALL_PASS,))
    with bench.cells_held_up():
        process = bench.start()
        bench.wait_for(lambda: bench.finished() == 1, process)
        _look(bench, process)
        process.kill()
        process.communicate(timeout=30)
    assert "not running" in bench.command("status").stdout
    calls = bench.calls()
    # Without its name the sprint still counts as unfinished: neither the cells nor the report were written.
    ended = bench.finish(named=False)
    assert f"sprint {SPRINT} is finished" in ended.stdout
    assert bench.calls() == calls
    left = bench.aftermath(ended.code)
    assert left.code == 0
    assert left.cells[0]["Execution_Status"] == "completed"
    assert left.report["totals"]["done"] == 1
    again = bench.finish(named=False)
    assert again.code == 2, "nothing is left to select"
    assert bench.calls() == calls


def _without_a_row(bench: Bench) -> None:
    """A row that is taken away between two runs of a sprint is asked for, before anything is spent."""
    whole = bench.backlog.read_bytes()
    bench.backlog.write_bytes(whole[: whole.index(b'US-002,"Story')])
    ended = bench.finish()
    assert ended.code == 2
    assert "no row US-002" in ended.stderr
    assert bench.calls() == []
    bench.backlog.write_bytes(whole)


def _look(bench: Bench, process: Forked) -> None:
    """What other commands say while the run is alive."""
    second = bench.finish()
    assert second.code == 2
    assert f"pid {process.pid}" in second.stderr
    status = bench.command("status")
    assert status.code == 0
    assert "NFR-001" in status.stdout
    assert str(process.pid) in status.stdout
    shown = bench.command("show", "NFR-001")
    assert shown.code == 0
    assert "nfr_001.py" in shown.stdout
    logs = bench.command("logs", "--story", "NFR-001")
    assert logs.code == 0
    assert "T-NFR-001-01 is done" in logs.stdout
