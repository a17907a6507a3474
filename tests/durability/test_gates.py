"""A gate whose time runs out while nothing is alive."""

from pathlib import Path

import pytest

from orchestrator.core.command import GATE_OPENED
from tests.durability.driver import Bench
from tests.durability.team import UnhurriedTeam

pytestmark = pytest.mark.timeout(300)

LATE = "LATE"


@pytest.mark.parametrize(
    ("on_timeout", "cell"),
    [("needs_attention", "completed_with_failures"), pytest.param("approve", "completed", marks=pytest.mark.soak)],
)
def test_killed_while_the_time_to_answer_runs_out(tmp_path: Path, on_timeout: str, cell: str) -> None:
    script = UnhurriedTeam(30)
    script.good(LATE)
    settings = ("gate.mode=always", "gate.timeout_s=3", f"gate.on_timeout={on_timeout}")
    bench = Bench(tmp_path, {LATE: "None"}, script=script, settings=settings)
    bench.kill_when(lambda: LATE in bench.told(GATE_OPENED))
    ended = bench.finish()
    assert ended.code == (0 if on_timeout == "approve" else 1)
    assert bench.rows()[0]["Execution_Status"] == cell
    late = bench.command("approve", LATE)
    assert (late.code, "in time" in late.stderr) == (2, True)
    assert len(bench.calls()) == len(set(bench.calls())) == (4 if on_timeout == "approve" else 1)
