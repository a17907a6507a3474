"""The review loop with `kill -9` in its middle: the same reviews, each paid once, and the same in the end."""

from pathlib import Path

import pytest

from tests.durability.driver import Aftermath, Bench
from tests.durability.team import UnhurriedTeam
from tests.support import APPROVED, module_of, reviewed, suite_text

pytestmark = pytest.mark.timeout(300)

MENDED, STUCK, RED = "MENDED", "STUCK", "RED"
STORIES = dict.fromkeys((MENDED, STUCK, RED), "None")
ENDS = {MENDED: "completed", STUCK: "completed_with_failures", RED: "completed"}
JUDGED = "review_judged"


def team() -> UnhurriedTeam:
    """Sent back once and then approved, never approved, approved again after a red test; two reviewers each."""
    script = UnhurriedTeam(40)
    values = {MENDED: (2, 1), STUCK: (1, 1), RED: (2, 1)}
    second = {MENDED: (APPROVED, APPROVED), STUCK: ("no words", "no words", ""), RED: (APPROVED, APPROVED)}
    for story in STORIES:
        script.plan(story, [f"{module_of(story)}.py"])
        for value in values[story]:
            script.deliver(story, 1, {f"{module_of(story)}.py": f"def value():\n    return {value}\n"})
        issue = f"[{module_of(story)}.py:2] The wrong value"
        first = APPROVED if story == RED else reviewed("With fixes 1", issue)
        script.review(story, 1, first)
        script.review(story, 1, reviewed("No", issue) if story == STUCK else APPROVED)
        for text in (*second[story], ""):
            script.review(story, 1, text, by="security")
        script.suite(story, suite_text(story))
    script.analyse(RED, (f"{module_of(RED)}.py", "return 1"))
    return script


def bench_in(folder: Path) -> Bench:
    settings = ("review.reviewers=[reviewer, security]", "review.max_iterations=2")
    return Bench(folder, STORIES, script=team(), settings=settings)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """The same stories in one life."""
    bench = bench_in(tmp_path_factory.mktemp("calm"))
    ended = bench.finish()
    assert {row["Story_ID"]: row["Execution_Status"] for row in bench.rows()} == ENDS
    assert bench.told(JUDGED) == {MENDED: 2, STUCK: 2, RED: 2}
    return bench.aftermath(ended.code)


def paid(bench: Bench, start: str) -> int:
    """Calls whose key begins so."""
    return sum(key.startswith(start) for key in bench.calls())


@pytest.mark.soak
def test_killed_in_the_middle_of_reviews(tmp_path: Path, calm: Aftermath) -> None:
    bench = bench_in(tmp_path)
    # one reviewer has spoken, the other has not
    bench.kill_when(lambda: bool(paid(bench, f"reviewer {MENDED}")))
    # a change was sent back, and nothing new is delivered yet
    bench.kill_when(lambda: MENDED in bench.told(JUDGED))
    # without a verdict the second reviewer is asked once more
    bench.kill_when(lambda: paid(bench, f"security {STUCK}") >= 2)
    # the reviews of a task are used up
    bench.kill_when(lambda: bench.told(JUDGED).get(STUCK, 0) == 2)
    # the change for a red test is being read
    bench.kill_when(lambda: paid(bench, f"reviewer {RED}") == 2)
    ended = bench.finish()
    assert {row["Story_ID"]: row["Execution_Status"] for row in bench.rows()} == ENDS
    assert bench.aftermath(ended.code) == calm
