"""Suites that hang, crash, run nothing or lie: only what the runner's report shows counts."""

import pytest

from tests.support import PLAIN_TESTS, Played, Team, make_repo, play, suite_text, write_backlog

ENDINGS = {"HANGS": "    import time\n    time.sleep(600)\n", "EXITS": "    import os\n    os._exit(0)\n"}
"""Story → what its delivered function does before it returns."""
PROBLEMS = {"HANGS": "timeout", "EXITS": "no_report"}
"""Other ends of a run: tests/test_runners/test_pytest_runner.py."""
CONFTEST = """
def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if "hidden" not in item.name]


def pytest_sessionfinish(session, exitstatus):
    session.exitstatus = 0
"""
"""A conftest in the base repository that hides tests and calls every session good."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One sprint of treacherous suites; every story has two attempts."""
    folder = tmp_path_factory.mktemp("suites")
    team = Team()
    for story, ending in ENDINGS.items():
        treacherous(team, story, ending)
    stays_red(team)
    turns_green(team)
    empty(team)
    team.good("GOOD")
    backlog = write_backlog(folder / "backlog.csv", *ENDINGS, "RED", "GREEN", "EMPTY", "GOOD")
    return play(folder, team, backlog, PLAIN_TESTS, "test.timeout_s=3", "test.max_attempts=2")


@pytest.fixture(scope="module")
def tricked(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One sprint, a single attempt each, on a base whose conftest hides tests."""
    folder, team = tmp_path_factory.mktemp("tricked"), Team()
    half_hidden(team)
    hollow(team)
    judged = {"Story_ID": "HOLLOW", "Title": "A value", "Acceptance_Criteria": "it works"}
    backlog = write_backlog(folder / "backlog.csv", "HALF", judged)
    repo = make_repo(folder / "repo", {"conftest.py": CONFTEST, "README": "x\n"})
    return play(folder, team, backlog, "test.max_attempts=1", repo=repo)


def treacherous(team: Team, story: str, ending: str) -> None:
    """Code that ends the test run; asked for again, it stays as it is."""
    module = f"{story.lower()}.py"
    team.plan(story, [module])
    for _ in range(2):
        team.deliver(story, 1, {module: f"def value():\n{ending}    return 1\n"})
        team.analyse(story, (module, "return 1 and nothing else"))
    team.suite(story, suite_text(story))


def stays_red(team: Team) -> None:
    """One of two tests fails twice; the analysis also speaks of a file that belongs to no task."""
    team.plan("RED", ["red.py"])
    for _ in range(2):
        team.deliver("RED", 1, {"red.py": "def value():\n    return 2\n"})
        team.analyse("RED", ("red.py", "return 1"), ("other.py", "write it"))
    team.say("mike", "RED", "amendment", {"files": [], "dependencies": {}, "reason": "not needed"})
    team.suite("RED", f"{suite_text('RED')}\n\ndef test_kind():\n    assert isinstance(value(), int)\n")


def turns_green(team: Team) -> None:
    """Two tasks; only the one that an instruction names is asked for again, and its second delivery is right."""
    team.plan("GREEN", ["green.py"], ["helper.py"])
    for value in (2, 1):
        team.deliver("GREEN", 1, {"green.py": f"def value():\n    return {value}\n"})
        team.analyse("GREEN", ("green.py", "return 1"))
    team.deliver("GREEN", 2, {"helper.py": "HELP = 1\n"})
    team.suite("GREEN", suite_text("GREEN"))


def empty(team: Team) -> None:
    """Suites without a test, then with a test that is skipped: three replies, none with a test that shows something."""
    team.plan("EMPTY", ["empty.py"])
    team.deliver("EMPTY", 1, {"empty.py": "def value():\n    return 1\n"})
    team.suite("EMPTY", "from empty import value\n\nCHECKED = value() == 1\n")
    team.suite("EMPTY", "import pytest\nfrom empty import value\n\n\n@pytest.mark.skip\n" + skipped())
    for _ in range(2):
        team.deliver("EMPTY", 1, {"empty.py": "def value():\n    return 1\n"})
        team.analyse("EMPTY", ("empty.py", "nothing"))


def half_hidden(team: Team) -> None:
    """Good code and two tests, of which the conftest hides one."""
    team.plan("HALF", ["half.py"])
    team.deliver("HALF", 1, {"half.py": "def value():\n    return 1\n"})
    tests = "".join(f"\n\ndef test_{name}():\n    assert value() == 1\n" for name in ("half", "hidden_half"))
    team.suite("HALF", f"from half import value\n{tests}")


def hollow(team: Team) -> None:
    """A suite that is true of every function, then one that is not."""
    team.plan("HOLLOW", ["hollow.py"])
    team.deliver("HOLLOW", 1, {"hollow.py": "def value():\n    return 1\n"})
    team.suite("HOLLOW", suite_text("HOLLOW").replace("== 1", "== value()"))
    team.suite("HOLLOW", suite_text("HOLLOW"))


def skipped() -> str:
    """A test that never runs."""
    return "def test_empty():\n    assert value() == 1\n"


def test_a_run_that_does_not_end_by_itself_shows_nothing(played: Played) -> None:
    for story, problem in PROBLEMS.items():
        assert played.status(story) == "needs_attention", (story, played.story(story).findings)
        assert f"test.{problem}" in played.codes(story), (story, played.codes(story))
        assert played.story(story).attempts == 2
        assert played.story(story).tests.passed == 0
        cases = [(case.name, case.result) for case in played.story(story).tests.cases]
        assert cases == [(f"test_{story.lower()}", "missing")]


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


def test_the_last_attempt_may_be_the_good_one(played: Played) -> None:
    green = played.story("GREEN")
    assert (green.status.value, green.attempts) == ("done", 2)
    assert played.asked("GREEN", "alex") == ["delivery 1", "delivery 1", "delivery 2"]
    assert [call["task"] for call in played.calls if call["story"] == "GREEN" and call["turn"] > 1] == [
        *("T-GREEN-01", "T-GREEN-01")
    ]
    assert played.text("result", "green.py").endswith("return 1")


def test_a_suite_that_tests_nothing_is_no_suite(played: Played) -> None:
    assert "suite.no_tests" in played.sent_back("EMPTY")
    assert played.status("EMPTY") in {"failed", "needs_attention"}
    assert played.story("EMPTY").tests.passed == 0


def test_the_sprint_goes_on(played: Played) -> None:
    assert played.status("GOOD") == "done"
    assert set(played.tree("result")) == {
        *("green.py", "helper.py", "tests/test_green.py", "good.py", "tests/test_good.py")
    }


def test_conftest_tricks_of_the_base_repository_show_nothing(tricked: Played) -> None:
    assert tricked.status("HALF") == "needs_attention"
    assert "test.missing_names" in tricked.codes("HALF")
    shown = {case.name: case.result for case in tricked.story("HALF").tests.cases}
    assert shown == {"test_half": "passed", "test_hidden_half": "missing"}


def test_a_suite_that_passes_with_empty_functions_is_asked_for_again(tricked: Played) -> None:
    """The module is new, so nothing is seen of this without the story's change."""
    assert tricked.status("HOLLOW") == "done"
    assert tricked.asked("HOLLOW", "jordan") == ["suite 1", "suite 2"]
    runs = [event.data["results"] for event in tricked.told_of("HOLLOW", "tests_run_hollow")]
    assert runs == [{"test_hollow": "passed"}, {"test_hollow": "failed"}]
    assert "== 1" in tricked.text("result", "tests/test_hollow.py")
