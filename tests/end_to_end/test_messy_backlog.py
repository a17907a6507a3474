"""Three stories of a backlog as people export it, from its text to merged commits and six cells each."""

import json
import re

import pytest

from tests.end_to_end.garden import CONTENT, RAN, ROWS
from tests.support import PLAIN_TESTS, Played, Team, breakdown, git, make_repo, play, suite, task

SAID = 'in_order(names): "A2" comes before "A10",\nletters count first'
"""What no JSON string may hold as it is."""
INIT = '"""The allotment garden."""\n\nVERSION = "1.0"\n'
PLOTS = "def in_order(names):\n    return sorted(names{key})\n"
BY_PARTS = ", key=lambda name: (name[0], int(name[1:]))"
DUTY = "from garden.plots import in_order\n\n\ndef on_duty(names, week):\n    turns = in_order(names)\n"
TURN = "    return turns[week % len(turns)] if turns else None\n"


def ground_work(team: Team) -> None:
    """Plain: every answer is good."""
    team.plan("NFR-001", ["garden/__init__.py"])
    team.deliver("NFR-001", 1, {"garden/__init__.py": INIT})
    tests = "import garden\n\n\ndef test_version():\n    assert garden.VERSION == '1.0'\n"
    told(team, "NFR-001", tests, {"test_version": "2"})


def plots(team: Team) -> None:
    """Heals: a plan with raw line breaks and unescaped quotes, a delivery beside the contract, a red first attempt."""
    plan = json.dumps(breakdown("US-001", task("US-001", 1, ["garden/plots.py"], description="SORT"), task_count=1))
    team.say("mike", "US-001", "breakdown", f"Gladly:\n```json\n{plan.replace('SORT', SAID)}\n```\nAnything else?")
    wrong = {"garden/plots.py": PLOTS.format(key="")}
    team.deliver("US-001", 1, {**wrong, "garden/conftest.py": "KEY = str\n"})
    team.deliver("US-001", 1, wrong)
    tests = (
        "from garden.plots import in_order\n\n\n"
        "def test_numbers():\n    assert in_order(['A10', 'A2']) == ['A2', 'A10']\n"
        "\n\ndef test_letters():\n    assert in_order(['B1', 'A10']) == ['A10', 'B1']\n"
        "\n\ndef test_nothing():\n    assert in_order([]) == []\n"
    )
    named = {
        "test_numbers": "A2 comes before A10",
        "test_letters": "criterion 2",
        "test_nothing": "an empty list stays empty.",
    }
    told(team, "US-001", tests, named)
    team.analyse("US-001", ("garden/plots.py", "compare the numbers as numbers"))
    team.deliver("US-001", 1, {"garden/plots.py": PLOTS.format(key=BY_PARTS)})


def duty(team: Team) -> None:
    """Depends on the plots, and uses what was merged for them."""
    team.plan("US-002", ["garden/duty.py"])
    team.deliver("US-002", 1, {"garden/duty.py": DUTY + TURN})
    tests = (
        "from garden.duty import on_duty\n\n\ndef test_turns():\n"
        "    assert [on_duty(['A10', 'A2'], week) for week in range(3)] == ['A2', 'A10', 'A2']\n"
        "\n\ndef test_nobody():\n    assert on_duty([], 1) is None\n"
    )
    told(team, "US-002", tests, {"test_turns": "After the last plot the first is next", "test_nobody": "AC 3"})


def told(team: Team, story: str, tests: str, criteria: dict[str, str]) -> None:
    """A suite whose cases name the criteria they stand for."""
    cases = [{"name": name, "criterion": criterion} for name, criterion in criteria.items()]
    team.say("jordan", story, "suite", {**suite(story, tests), "test_cases": cases})


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("garden")
    team = Team()
    for build in (ground_work, plots, duty):
        build(team)
    backlog = folder / "garden.csv"
    backlog.write_bytes(CONTENT)
    return play(
        folder, team, backlog, PLAIN_TESTS, repo=make_repo(folder / "repo", {"README.md": "Garden\n"}), stories=RAN
    )


def test_the_three_are_done_one_after_the_other(played: Played) -> None:
    assert {story.id: story.status.value for story in played.result.report.stories} == dict.fromkeys(RAN, "done")
    merged = [event.story for event in played.events if event.name == "story_merged"]
    assert merged == ["NFR-001", "US-001", "US-002"]
    assert {call["story"] for call in played.calls} == set(RAN)
    told_outside = [line for line in played.told if "backlog.dependency_outside" in line]
    assert ["US-002" in line and "STYLE-001" in line for line in told_outside] == [True]


def test_a_commit_per_task_and_suite_and_a_merge_per_story(played: Played) -> None:
    first_parents = git(played.mirror, "log", "--first-parent", "--format=%s", played.ref("result")).splitlines()
    assert first_parents == [
        *("Merge US-002: Water Duty", "Merge US-001: Plots in Order", "Merge NFR-001: Ground Work", "Base")
    ]
    merge, theirs = f"{played.ref('result')}^1", f"{played.ref('result')}^1^1"
    commits = git(played.mirror, "log", "--no-merges", "--format=%s", f"{theirs}..{merge}").splitlines()
    assert [subject.partition(":")[0] for subject in commits[:2]] == ["Correct garden/plots.py", "Add tests"]
    assert len({*commits}) == len(commits) == 3
    assert played.tree("result") == [
        *("README.md", "garden/__init__.py", "garden/duty.py", "garden/plots.py"),
        *("tests/test_nfr_001.py", "tests/test_us_001.py", "tests/test_us_002.py"),
    ]


def test_every_byte_outside_the_written_cells_stays(played: Played) -> None:
    after = (played.repo.parent / "garden.csv").read_bytes()
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    pattern = re.escape(CONTENT.decode())
    for story in RAN:
        assert ROWS[story].endswith(",,,,,,")
        written = f",SP-001,completed,{time},{time},story_finished,{time}"
        pattern = pattern.replace(re.escape(ROWS[story]), re.escape(ROWS[story].removesuffix("," * 6)) + written)
    assert re.fullmatch(pattern, after.decode())
