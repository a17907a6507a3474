"""A story whose environment lacks something: no delivery is asked for in vain, and the cause is told."""

from pathlib import Path

from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import RunProblem, TestReport
from tests.simulated import report
from tests.story.test_story import RED, A, Stand, codes, good, provider
from tests.support import suite_text

BASE = {"old.py": "X = 1\n", "tests/test_old.py": "from old import X\n\n\ndef test_old():\n    assert X\n"}
WORD = {"failure_analysis": [], "environment": {"reason": "libtide is missing"}}


UNREACHED = TestReport(problem=RunProblem.INSTALL_FAILED, output="error: Failed to fetch: `https://host/x`")


def planned(stand: Stand) -> None:
    stand.team.plan(A, ["us_1.py"])
    for value in range(1, 4):
        stand.team.deliver(A, 1, good(value=value))
        stand.team.analyse(A, ("us_1.py", "do without it"))
    stand.team.suite(A, suite_text(A))


async def test_what_no_file_can_bring_ends_the_story_at_once(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[UNREACHED] * 9)
    planned(stand)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert (outcome.status, outcome.attempts) == (StoryStatus.NEEDS_ATTENTION, 1)
    assert codes(outcome) == {"environment.registry"}
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1"]
    assert not outcome.stop_sprint


async def test_where_it_is_the_foundation_the_sprint_stops(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[UNREACHED] * 9)
    stand.foundation = True
    planned(stand)
    assert (await stand.run(await provider(stand.team, tmp_path))).stop_sprint


async def test_the_testers_word_counts_where_the_base_fails_as_well(tmp_path: Path) -> None:
    broken = TestReport(problem=RunProblem.NO_REPORT, output="segmentation fault")
    for base, status, asked in ((broken, StoryStatus.NEEDS_ATTENTION, 1), (RED, StoryStatus.DONE, 2)):
        stand = Stand(
            tmp_path, base=BASE, stories=[RED], wholes=[base if base is broken else report(passed=["test_old"])]
        )
        stand.team.plan(A, ["us_1.py"])
        stand.team.deliver(A, 1, good())
        stand.team.deliver(A, 1, good(value=2))
        stand.team.suite(A, suite_text(A))
        stand.team.say("jordan", A, "analysis", WORD)
        outcome = await stand.run(await provider(stand.team, tmp_path))
        assert outcome.status is status, outcome.findings
        assert sum(one.startswith("delivery") for one in stand.asked) == asked
        assert ("environment.base" in codes(outcome), outcome.stop_sprint) == (base is broken, base is broken)


async def test_the_testers_word_alone_ends_the_story_when_it_is_given_twice(tmp_path: Path) -> None:
    """A test that only its own runner can start: three deliveries were asked for that had nothing to change."""
    stand = Stand(tmp_path, stories=[RED] * 9)
    stand.team.plan(A, ["us_1.py"])
    stand.team.suite(A, suite_text(A))
    for value in range(1, 4):
        stand.team.deliver(A, 1, good(value=value))
        stand.team.say("jordan", A, "analysis", WORD)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert (outcome.status, outcome.attempts) == (StoryStatus.NEEDS_ATTENTION, 2)
    assert "environment.only" in codes(outcome)
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1", "analysis 1", "delivery 2", "analysis 2"]
