"""A sprint that the release before began and `kill -9` ended: the present one resumes it, and nothing shows in the end.

The release's sources come out of this repository's history; a clone without that commit has nothing to upgrade from.
"""

import io
import json
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.core.command import GATE_OPENED
from tests.durability.boundaries import POINTS, REPEATS
from tests.durability.branches import ENDS
from tests.durability.daemon import DaemonBench
from tests.durability.driver import ROOT, Aftermath, Bench
from tests.durability.team import TESTS_RUN, UnhurriedTeam
from tests.durability.test_branches import bench_in, ran
from tests.end_to_end.analysing import answer, application
from tests.end_to_end.test_conflict import CONFLICT
from tests.support import Team, breakdown, delivery, make_repo, module_of, plain_environment, run_cli, suite_text
from tests.zygote import zygote

__all__ = ["ran"]
pytestmark = pytest.mark.timeout(300)

RELEASE = "58716acbd4b67e525e77326e9e46612afdf45cf3"
"""The last commit before the packages moved: every state folder that is out there was written by it or before it."""
NEEDED = ("orchestrator", "system_prompts", "contracts", "examples", "config.yaml", "tests")
LATENCY_MS, HELD_MS = 20, 120_000

STAGES = {"PLANNED": "breakdown", "DELIVERED": "delivery", "REVIEWED": "review", "MERGING": "merge"}
"""Story → the purpose of the call that it waits for when the process dies."""
FIRST, TESTED, GATED, ANSWERED, AFTER, MISSING = "FIRST", "TESTED", "GATED", "ANSWERED", "AFTER", "MISSING"
OUTCOMES = dict.fromkeys((*STAGES, FIRST, TESTED, GATED), "completed") | {
    ANSWERED: "cancelled", MISSING: "failed", AFTER: "blocked",
}  # fmt: skip
"""Story → what its cell says in the end. FIRST and MISSING have ended when the process dies, AFTER has not started."""
WITHIN = (
    "concurrency.stories=12", "concurrency.turns=12", "gate.mode=escalations", "sprint.stop_after_failures=0",
    "sandbox.mode=plain",  # the held test looks for a file outside of its tree
)  # fmt: skip
BASE = "def base():\n    return 0\n"
HELD = """import pathlib
import time


def value():
    pathlib.Path("{mark}").write_text("now")
    while pathlib.Path("{hold}").exists():
        time.sleep(0.05)
    return 1
"""


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release's sources in a folder of their own."""
    packed = subprocess.run(["git", "archive", RELEASE, *NEEDED], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode != 0:
        pytest.skip(f"the history here has no commit {RELEASE[:8]}: {packed.stderr.decode().strip()}")
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def team(hold: Path) -> UnhurriedTeam:
    team = UnhurriedTeam(LATENCY_MS)
    for story in (GATED, ANSWERED):
        team.say("mike", story, "breakdown", breakdown(story) | {"architectural_conflict": CONFLICT, "tasks": []})
    for story in ("PLANNED", "DELIVERED", "REVIEWED", GATED):
        team.good(story)
    team.plan(TESTED, ["tested.py"])
    team.deliver(TESTED, 1, {"tested.py": HELD.format(mark=TESTS_RUN, hold=hold)})
    team.suite(TESTED, suite_text(TESTED))
    sides = {story: f"\n\ndef {story.lower()}():\n    return 1\n" for story in (FIRST, "MERGING")}
    for story, side in sides.items():
        name = story.lower()
        team.plan(story, ["shared.py"])
        # The one that merges second has to have begun before the first has merged.
        team.deliver(story, 1, {"shared.py": BASE + side}, latency_ms=LATENCY_MS if story == FIRST else 3000)
        team.suite(story, f"from shared import {name}\n\n\ndef test_{name}():\n    assert {name}() == 1\n")
    team.say("alex", "MERGING", "merge", delivery("MERGING", 1, {"shared.py": BASE + "".join(sides.values())}), task=1)
    return team


def write_held(script: Path, *, held: bool) -> list[str]:
    """Makes the calls of STAGES take forever, or no time; returns the keys of all, as the call log has them."""
    lines = [json.loads(line) for line in script.read_text().splitlines()]
    for line in lines:
        if line["purpose"] == STAGES.get(line["story"]):
            line["latency_ms"] = HELD_MS if held else LATENCY_MS
    script.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return [f"{k['persona']} {k['story']} {k['task']} {k['purpose']} {k['turn']}" for k in lines]


def in_every_stage(bench: Bench) -> Callable[[], bool]:
    """A moment: each held story waits where it is to be held, and the others are where they stay."""
    testing = bench.appears(f"{TESTED}/{TESTS_RUN}")

    def reached() -> bool:
        asked = {(e["story"], e["data"]["purpose"]) for e in bench.log() if e["name"] == "turn_started"}
        return (
            asked >= {*STAGES.items()}
            and bench.told(GATE_OPENED).keys() == {GATED, ANSWERED}
            and bench.told("story_finished").keys() == {FIRST, MISSING}
            and testing()
        )

    return reached


@pytest.mark.parametrize("kind", [Bench, pytest.param(DaemonBench, marks=pytest.mark.soak)])
def test_resumes_stories_in_every_stage(tmp_path: Path, release: Path, kind: type[Bench]) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    bench = kind(tmp_path, dict.fromkeys(OUTCOMES, "None") | {AFTER: ANSWERED}, script=team(hold), settings=WITHIN)
    make_repo(tmp_path / "repo", {"shared.py": BASE})
    bench.source, bench.patience_s = release, 180  # many runs of tests, beside other workers
    calls = write_held(tmp_path / "team.jsonl", held=True)
    bench.kill_when(in_every_stage(bench), timeout=120)
    # The release's own command, recorded while nothing is alive, is one that the present release takes up.
    assert bench.command("cancel", ANSWERED).code == 0

    bench.source = ROOT
    write_held(tmp_path / "team.jsonl", held=False)
    hold.unlink()
    assert "not running" in bench.command("status").stdout
    assert bench.command("approve", GATED, "--comment", "keep the file").code == 0
    ended = bench.finish()
    left = bench.aftermath(ended.code)
    assert {row["Story_ID"]: row["Execution_Status"] for row in bench.rows()} == OUTCOMES
    assert Counter(bench.calls()) == Counter(calls), "each call is asked once, before or after"
    told = {story["id"]: story["tests"]["passed"] for story in left.report["stories"]}
    assert told == {story: int(cell == "completed") for story, cell in OUTCOMES.items()}
    tree = bench.git("ls-tree", "-r", "--name-only", "orchestrator/S1/result").splitlines()
    assert {*tree} >= {f"tests/test_{module_of(story)}.py" for story, cell in OUTCOMES.items() if cell == "completed"}
    assert "def first" in bench.git("show", "orchestrator/S1/result:shared.py")


def ends_alike(bench: Bench, calm: Aftermath) -> None:
    """Messages may have been reworded since the release; what happened, and how often, is the same."""
    left = bench.aftermath(bench.finish().code)
    facts = ("code", "tree", "commits", "calls", "cells")
    assert {name: getattr(left, name) for name in facts} == {name: getattr(calm, name) for name in facts}
    assert names_of(left) == names_of(calm)


def names_of(left: Aftermath) -> dict[str, list[str]]:
    """Story → ids and names of its events."""
    return {story: [" ".join(line.split(" ")[:2]) for line in lines] for story, lines in left.events.items()}


@pytest.mark.soak
@pytest.mark.parametrize("number", [2, 9])
@pytest.mark.parametrize("point", [point for point in POINTS if point != REPEATS])
def test_resumes_behind_every_boundary(
    tmp_path: Path, release: Path, undisturbed: Aftermath, point: str, number: int
) -> None:
    bench = Bench(tmp_path)
    bench.source = release
    bench.die_at_boundary(point, number)
    bench.source = ROOT
    ends_alike(bench, undisturbed)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("calls", [25, 50, 70])
def test_resumes_on_every_branch(tmp_path: Path, release: Path, ran: Path, calls: int) -> None:
    bench = bench_in(tmp_path, ran)
    bench.source, bench.patience_s = release, 180
    bench.kill_when(lambda: len(bench.calls()) >= calls, timeout=120)
    bench.source = ROOT
    ended = bench.finish()
    left = bench.aftermath(ended.code)
    assert {row["Story_ID"]: row["Execution_Status"] for row in bench.rows()} == ENDS
    assert len(left.calls) == len(bench.calls()), "no call is paid for twice"


@pytest.mark.soak
def test_resumes_an_analysis(tmp_path: Path, release: Path) -> None:
    stages = ("code_quality", "security", "plan_summary")
    said = Team()
    for stage in stages:
        held = stage == "security"
        said.say("analyst", stage, "stage", answer(f"Do {stage}"), latency_ms=HELD_MS if held else LATENCY_MS)
    application(tmp_path)
    script = said.write(tmp_path / "team.jsonl")
    words = ["analyse", "app", "--stages", ",".join(stages), "--script", "team.jsonl", "--call-log", "calls.jsonl"]
    words += ["--set", "concurrency.turns=1"]
    process = zygote(release).start("orchestrator", words, cwd=tmp_path, env=plain_environment())
    deadline = time.monotonic() + 60
    while not list((tmp_path / ".orchestrator/replies").rglob("*-*.json")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=30)
    script.write_text(script.read_text().replace(f'"latency_ms": {HELD_MS}', f'"latency_ms": {LATENCY_MS}'))
    done = run_cli([*words, "--json"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert [task["title"] for task in json.loads(done.stdout)["tasks"]] == [f"Do {stage}" for stage in stages]
    calls = [json.loads(line)["story"] for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert sorted(calls) == sorted(stages)
