"""One sprint that takes every branch of the reviews and of the tests: a story for each, by its name."""

from pathlib import Path

from tests.answers.reviews import TEMPLATE
from tests.answers.reviews import ended as verdict_only
from tests.durability.team import UnhurriedTeam
from tests.support import APPROVED, module_of, reviewed, suite_text

SETTINGS = (
    "review.max_iterations=2", "test.max_attempts=3", "concurrency.stories=4", "sprint.stop_after_failures=0",
    "sandbox.mode=plain",  # the flaky test counts its runs outside its tree
)  # fmt: skip
ENDS = {
    "YES": "completed", "NO": "completed", "FIXES": "completed", "SILENT": "completed", "CUT": "completed",
    "ECHO": "completed", "LAST": "completed_with_failures", "OTHER": "completed_with_failures", "ONCE": "completed",
    "ALWAYS": "completed_with_failures", "SAME": "completed_with_failures", "FLAKY": "completed",
    "FAKED": "completed", "SHADOW": "completed", "EXIT": "completed_with_failures",
}  # fmt: skip
"""Story → what its cell says in the end."""
CODES = {
    "LAST": "review.unapproved", "OTHER": "review.unapproved", "ALWAYS": "test.failed", "SAME": "test.same_failure",
    "FLAKY": "test.flaky", "FAKED": "test.passes_before", "EXIT": "test.no_report",
}  # fmt: skip
"""Story → a finding that its report has."""
CONFTEST = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    out = yield
    if "faked" in item.nodeid:
        out.get_result().outcome = "passed"
"""
"""Stands in the base repository: every test of the story FAKED is called good, also without its change."""
STANDS_IN = "import sys\n\nsys.exit(0)\n"


def script(ran: Path) -> UnhurriedTeam:
    """The team; the flaky test finds in the file `ran` whether it ran before."""
    team = UnhurriedTeam(15)
    _reviews(team)
    _used_up(team)
    _tests(team, ran)
    return team


def _module(story: str, value: int) -> dict[str, str]:
    return {f"{module_of(story)}.py": f"def value():\n    return {value}\n"}


def _reviews(team: UnhurriedTeam) -> None:
    """Sent back at most once, then approved."""
    for story in ("YES", "NO", "FIXES", "SILENT", "CUT", "ECHO"):
        issue = f"[{module_of(story)}.py:2] The wrong value"
        cut = reviewed("Yes", issue)
        first = {
            "YES": [], "NO": [reviewed("No", issue)], "FIXES": [reviewed("With fixes 1", issue)],
            "SILENT": ["LGTM, approved!", ""], "CUT": [cut[: cut.index("## Good")]] * 2,
            "ECHO": [verdict_only(TEMPLATE)] * 2,
        }[story]  # fmt: skip
        team.plan(story, [f"{module_of(story)}.py"])
        for value in (2, 1) if first else (1,):
            team.deliver(story, 1, _module(story, value))
        for text in first:
            team.review(story, 1, text, stop_reason="max_tokens" if story == "CUT" else "end_turn")
        team.review(story, 1, APPROVED)
        team.suite(story, suite_text(story))


def _used_up(team: UnhurriedTeam) -> None:
    """Of two tasks the last one, or the other one, is never approved."""
    for story, stuck in (("LAST", 2), ("OTHER", 1)):
        team.plan(story, [f"{module_of(story)}.py"], [f"{module_of(story)}_more.py"])
        for number in (1, 2):
            name = f"{module_of(story)}.py" if number == 1 else f"{module_of(story)}_more.py"
            texts = ["def value():\n    return 2\n", "def value():\n    return 1\n"]
            for text in texts if number == stuck else texts[1:]:
                team.deliver(story, number, {name: text})
                team.review(story, number, reviewed("No", f"[{name}:1] No") if number == stuck else APPROVED)
        team.suite(story, suite_text(story))


def _tests(team: UnhurriedTeam, ran: Path) -> None:
    """Red once, red for another reason each time, red for the same one, flaky; and runs that report what is not so."""
    values: dict[str, tuple[int, ...]] = {"ONCE": (2, 1), "ALWAYS": (2, 3, 4), "SAME": (2, 2, 2)}
    for story, tried in values.items():
        team.plan(story, [f"{module_of(story)}.py"])
        for value in tried:
            team.deliver(story, 1, _module(story, value))
            team.analyse(story, (f"{module_of(story)}.py", f"return 1 and not {value}"))
        team.suite(story, suite_text(story))
    flaky = f"""

def test_at_times():
    with open({str(ran)!r}, "a+") as file:
        file.write("x")
        file.seek(0)
        assert value() and len(file.read()) > 1
"""
    team.plan("FLAKY", ["flaky.py"])
    team.deliver("FLAKY", 1, _module("FLAKY", 1))
    team.suite("FLAKY", suite_text("FLAKY") + flaky)
    team.plan("FAKED", ["faked.py"])
    team.deliver("FAKED", 1, _module("FAKED", 2))
    for _ in range(2):  # a stronger one is asked for once
        team.suite("FAKED", suite_text("FAKED"))
    team.plan("EXIT", ["exit.py"])
    for _ in range(3):
        team.deliver("EXIT", 1, {"exit.py": EXITS})
        team.analyse("EXIT", ("exit.py", "return 1"))
    team.suite("EXIT", suite_text("EXIT"))
    team.plan("SHADOW", ["shadow.py", "pytest.py"])
    team.deliver("SHADOW", 1, {**_module("SHADOW", 1), "pytest.py": STANDS_IN})
    team.suite("SHADOW", suite_text("SHADOW"))


EXITS = "import os\n\n\ndef value():\n    os._exit(0)\n"
