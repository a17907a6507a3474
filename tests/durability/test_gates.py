"""Every way through the plan loop and the human gate, also with `kill -9` in its middle: the same in the end."""

import json
from pathlib import Path

import pytest

from orchestrator.core.command import GATE_OPENED, GATE_SETTLED
from tests.durability.driver import Aftermath, Bench
from tests.durability.team import UnhurriedTeam
from tests.end_to_end.test_conflict import CONFLICT
from tests.support import breakdown, module_of, suite_text, task

pytestmark = pytest.mark.timeout(300)

SOUND, REVISED = "SOUND", "REVISED"
APPROVED, REJECTED, EDITED, REPLANNED, OVERRIDDEN, GIVEN_UP = (
    "APPROVED", "REJECTED", "EDITED", "REPLANNED", "OVERRIDDEN", "GIVEN-UP",
)  # fmt: skip
ASKED = (APPROVED, REJECTED, EDITED, REPLANNED, OVERRIDDEN, GIVEN_UP)
LATE = "LATE"
STORIES = dict.fromkeys((SOUND, REVISED, *ASKED), "None")
COMMENTS = {REJECTED: "one file is enough", REPLANNED: "begin with the value", OVERRIDDEN: "keep the file"}
ENDS = dict.fromkeys(STORIES, "completed") | {GIVEN_UP: "cancelled"}


def invalid(story: str) -> dict[str, object]:
    """A plan with a task that has neither file nor command."""
    return breakdown(story, [f"{module_of(story)}.py"], task(story, 2, []))


def team() -> UnhurriedTeam:
    script = UnhurriedTeam(30)
    for story in (SOUND, REVISED, *ASKED):
        bad = {SOUND: 0, REVISED: 1, OVERRIDDEN: 0}.get(story, 3)
        if story == OVERRIDDEN:
            conflicting = breakdown(story) | {"architectural_conflict": CONFLICT, "tasks": []}
            script.say("mike", story, "breakdown", conflicting)
        for _ in range(bad):
            script.say("mike", story, "breakdown", invalid(story))
        if story in {SOUND, REVISED, REJECTED, REPLANNED, OVERRIDDEN}:
            script.plan(story, [f"{module_of(story)}.py"])
        script.deliver(story, 1, {f"{module_of(story)}.py": "def value():\n    return 1\n"})
        script.suite(story, suite_text(story))
    return script


def bench_in(folder: Path) -> Bench:
    """More stories than slots, and most of them wait."""
    settings = ("gate.mode=escalations", "concurrency.stories=2")
    bench = Bench(folder, STORIES, script=team(), settings=settings)
    edited = breakdown(EDITED, [f"{module_of(EDITED)}.py"])
    (folder / "edited.json").write_text(json.dumps(edited))
    return bench


def answer(bench: Bench, story: str) -> None:
    """Answer one story's question from another terminal."""
    said = ("--comment", COMMENTS[story]) if story in COMMENTS else ()
    words = {
        APPROVED: ("approve", story),
        REJECTED: ("reject", story, *said),
        EDITED: ("edit", story, "--file", "edited.json"),
        REPLANNED: ("replan", story, *said),
        OVERRIDDEN: ("approve", story, *said),
        GIVEN_UP: ("cancel", story),
    }[story]
    done = bench.command(*words)
    assert done.code == 0, done
    again = bench.command(*words)
    assert again.code != 0, again


def all_wait(bench: Bench) -> bool:
    return bench.told(GATE_OPENED).keys() >= set(ASKED)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """The same stories in one life, answered from another terminal."""
    bench = bench_in(tmp_path_factory.mktemp("calm"))
    process = bench.start()
    bench.wait_for(lambda: all_wait(bench), process)
    bench.wait_for(lambda: bench.finished() == len(STORIES) - len(ASKED), process)
    for story in ASKED:
        answer(bench, story)
    ended = bench.ended(process)
    left = bench.aftermath(ended.code)
    assert {row["Story_ID"]: row["Execution_Status"] for row in bench.rows()} == ENDS
    return left


@pytest.mark.soak
def test_killed_before_while_and_after_people_answer(tmp_path: Path, calm: Aftermath) -> None:
    bench = bench_in(tmp_path)
    # a plan is judged and its revision is not asked for yet
    bench.kill_when(lambda: REVISED in bench.told("plan_judged"))
    # the first question is put, others plan
    bench.kill_when(lambda: bool(bench.told(GATE_OPENED)))
    bench.kill_when(lambda: all_wait(bench))
    for story in (APPROVED, EDITED, GIVEN_UP):
        answer(bench, story)
    # what was answered while nothing was alive is taken up
    bench.kill_when(lambda: bool(bench.told(GATE_SETTLED)))
    process = bench.start()
    answer(bench, REJECTED)
    # a revision that a person asked for is paid
    bench.wait_for(lambda: bench.told("plan_judged")[REJECTED] == 4, process)
    bench.kill_everything(process)
    process.communicate(timeout=30)
    answer(bench, REPLANNED)
    answer(bench, OVERRIDDEN)
    bench.kill_when(lambda: bench.told(GATE_SETTLED).keys() >= {REPLANNED, OVERRIDDEN})
    ended = bench.finish()
    assert {row["Story_ID"]: row["Execution_Status"] for row in bench.rows()} == ENDS
    assert bench.aftermath(ended.code) == calm


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
