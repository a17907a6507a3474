"""Suites that stay red or lie: only what the runner's report shows counts; other ends of a run: tests/test_runners."""

import pytest

from tests.support import PLAIN_TESTS, Played, Team, make_repo, play, suite_text, write_backlog

CONFTEST = """
def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if "hidden" not in item.name]


def pytest_sessionfinish(session, exitstatus):
    session.exitstatus = 0
"""
"""A conftest in the base repository that hides tests and calls every session good."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One sprint of a story that stays red and one that is good; each has two attempts."""
    folder = tmp_path_factory.mktemp("suites")
    team = Team()
    stays_red(team)
    team.good("GOOD")
    backlog = write_backlog(folder / "backlog.csv", "RED", "GOOD")
    return play(folder, team, backlog, PLAIN_TESTS, "test.max_attempts=2")


@pytest.fixture(scope="module")
def tricked(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One sprint, a single attempt each, on a base whose conftest hides tests."""
    folder, team = tmp_path_factory.mktemp("tricked"), Team()
    half_hidden(team)
    backlog = write_backlog(folder / "backlog.csv", "HALF")
    repo = make_repo(folder / "repo", {"conftest.py": CONFTEST, "README": "x\n"})
    return play(folder, team, backlog, "test.max_attempts=1", repo=repo)


def stays_red(team: Team) -> None:
    """One of two tests fails twice; the analysis also speaks of a file that belongs to no task."""
    team.plan("RED", ["red.py"])
    for _ in range(2):
        team.deliver("RED", 1, {"red.py": "def value():\n    return 2\n"})
        team.analyse("RED", ("red.py", "return 1"), ("other.py", "write it"))
    team.say("mike", "RED", "amendment", {"files": [], "dependencies": {}, "reason": "not needed"})
    team.suite("RED", f"{suite_text('RED')}\n\ndef test_kind():\n    assert isinstance(value(), int)\n")


def half_hidden(team: Team) -> None:
    """Good code and two tests, of which the conftest hides one."""
    team.plan("HALF", ["half.py"])
    team.deliver("HALF", 1, {"half.py": "def value():\n    return 1\n"})
    tests = "".join(f"\n\ndef test_{name}():\n    assert value() == 1\n" for name in ("half", "hidden_half"))
    team.suite("HALF", f"from half import value\n{tests}")


def test_what_stays_red_needs_a_person_and_is_counted(played: Played) -> None:
    red = played.story("RED")
    assert (red.status.value, red.attempts) == ("needs_attention", 2)
    assert (red.tests.run, red.tests.passed, red.tests.failed) == (2, 1, 1)
    assert {case.name: case.result for case in red.tests.cases} == {"test_red": "failed", "test_kind": "passed"}
    assert {case.criterion for case in red.tests.cases} == {"it works"}
    assert played.asked("RED") == [
        *("breakdown 1", "delivery 1", "review 1", "suite 1"),
        *("analysis 1", "amendment 1", "delivery 2"),
    ], "what was approved and did not change is not read again"
    assert "analysis.outside_tasks" in played.codes("RED")
    assert "after 2 attempts: 1 passed, 1 failed" in played.finding("RED", "test.failed").message


def test_the_sprint_goes_on(played: Played) -> None:
    assert played.status("GOOD") == "done"
    assert set(played.tree("result")) == {"good.py", "tests/test_good.py"}


def test_conftest_tricks_of_the_base_repository_show_nothing(tricked: Played) -> None:
    assert tricked.status("HALF") == "needs_attention"
    assert "test.missing_names" in tricked.codes("HALF")
    shown = {case.name: case.result for case in tricked.story("HALF").tests.cases}
    assert shown == {"test_half": "passed", "test_hidden_half": "missing"}
