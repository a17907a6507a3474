"""Stories that are green alone and red together, beside an old failing test."""

import pytest

from tests.support import PLAIN_TESTS, Played, Team, breakdown, git, make_repo, play, write_backlog

OLD_TEST = "def test_old():\n    assert 1 == 2\n\n\ndef test_fine():\n    assert True is not None\n"
NAMES = """from pathlib import Path


def names():
    return sorted(path.stem for path in Path(__file__).parent.glob("part_*.py"))
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One story after the other starts from the base commit, because all are at work at once."""
    folder = tmp_path_factory.mktemp("merging")
    repo = make_repo(folder / "repo", {"tests/test_old.py": OLD_TEST, "names.py": NAMES})
    team = Team()
    for story in ("RED-1", "RED-2"):
        alone(team, story)
    backlog = write_backlog(folder / "backlog.csv", "RED-1", "RED-2")
    return play(folder, team, backlog, PLAIN_TESTS, repo=repo, push_to="sprint-result")


def alone(team: Team, story: str) -> None:
    """Adds a part and a test that wants it to be the only one. Slow enough that both begin at the base commit."""
    part = f"part_{story[-1]}"
    team.say("mike", story, "breakdown", breakdown(story, [f"{part}.py"]), latency_ms=300)
    team.deliver(story, 1, {f"{part}.py": "PART = 1\n"})
    team.suite(story, f"from names import names\n\n\ndef test_{part}():\n    assert names() == ['{part}']\n")


def one_of(played: Played, stories: tuple[str, str]) -> tuple[str, str]:
    """(the story that was merged, the one that was not)."""
    done = [story for story in stories if played.status(story) == "done"]
    assert len(done) == 1, [(story, played.story(story).findings) for story in stories]
    return done[0], next(story for story in stories if story != done[0])


def test_green_alone_and_red_together(played: Played) -> None:
    merged, waiting = one_of(played, ("RED-1", "RED-2"))
    assert played.status(waiting) == "needs_attention"
    message = played.finding(waiting, "merge.red").message
    assert f"part_{merged[-1]}" in message, "the failing test is named with what it saw"
    assert "test_old" not in message.splitlines()[0], "what was red before is not this story's fault"
    assert f"part_{waiting[-1]}.py" in played.tree(waiting)
    assert f"part_{waiting[-1]}.py" not in played.tree("result")
    assert played.story(waiting).tests.passed == 1
    assert played.story(waiting).commit == git(played.mirror, "rev-parse", played.ref(waiting))


def test_the_result_is_pushed_though_stories_are_open(played: Played) -> None:
    assert played.result.pushed == "sprint-result"
    pushed = git(played.repo, "rev-parse", "sprint-result")
    assert pushed == git(played.mirror, "rev-parse", played.ref("result"))
    assert sum(subject.startswith("Merge ") for subject in played.subjects("result")) == 1
    assert git(played.repo, "status", "--porcelain") == ""
