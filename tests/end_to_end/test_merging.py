"""Stories that are green alone and red together, that change the same lines, that meet an old failing test."""

from pathlib import Path

import pytest

from tests.support import PLAIN_TESTS, Played, Team, breakdown, git, make_repo, play, suite_text, write_backlog

OLD_TEST = "def test_old():\n    assert 1 == 2\n\n\ndef test_fine():\n    assert True is not None\n"
NAMES = """from pathlib import Path


def names():
    return sorted(path.stem for path in Path(__file__).parent.glob("part_*.py"))
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One story after the other starts from the base commit, because all are at work at once."""
    folder = tmp_path_factory.mktemp("merging")
    repo = make_repo(folder / "repo", {"tests/test_old.py": OLD_TEST, "names.py": NAMES, "shared.py": "ONE = 1\n"})
    team = Team()
    for story in ("RED-1", "RED-2"):
        alone(team, story)
    for story, value in (("CON-1", 2), ("CON-2", 3)):
        same_line(team, story, value)
    team.plan("AFTER", ["after.py"])
    return play(
        folder, team, write_backlog(folder / "backlog.csv", "RED-1", "RED-2", "CON-1", "CON-2", "AFTER < CON-1, CON-2"),
        PLAIN_TESTS, repo=repo, push_to="sprint-result",
    )  # fmt: skip


def alone(team: Team, story: str) -> None:
    """Adds a part and a test that wants it to be the only one. Slow enough that both begin at the base commit."""
    part = f"part_{story[-1]}"
    team.say("mike", story, "breakdown", breakdown(story, [f"{part}.py"]), latency_ms=300)
    team.deliver(story, 1, {f"{part}.py": "PART = 1\n"})
    team.suite(story, f"from names import names\n\n\ndef test_{part}():\n    assert names() == ['{part}']\n")


def same_line(team: Team, story: str, value: int) -> None:
    """Changes the line that the other one changes too."""
    team.say("mike", story, "breakdown", breakdown(story, ["shared.py"]), latency_ms=300)
    team.deliver(story, 1, {"shared.py": f"ONE = {value}\n"})
    team.suite(story, f"import shared\n\n\ndef test_{story[-1]}():\n    assert shared.ONE == {value}\n")


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


def test_the_same_line_changed_twice(played: Played) -> None:
    merged, waiting = one_of(played, ("CON-1", "CON-2"))
    assert played.status(waiting) == "needs_attention"
    assert "shared.py" in played.finding(waiting, "merge.conflict").message
    assert played.text("result", "shared.py") == f"ONE = {2 if merged == 'CON-1' else 3}"
    assert played.status("AFTER") == "blocked"
    assert f"{waiting} (needs_attention)" in played.finding("AFTER", "story.blocked").message


def test_the_result_is_pushed_though_stories_are_open(played: Played) -> None:
    assert played.result.pushed == "sprint-result"
    pushed = git(played.repo, "rev-parse", "sprint-result")
    assert pushed == git(played.mirror, "rev-parse", played.ref("result"))
    assert sum(subject.startswith("Merge ") for subject in played.subjects("result")) == 2
    assert git(played.repo, "status", "--porcelain") == ""


CASES = """import pytest
from words import WORDS


@pytest.mark.parametrize("word", WORDS)
def test_word(word):
    assert word


def test_other():
    assert WORDS is not None
"""


def test_an_older_test_that_a_story_makes_vanish_keeps_it_from_being_merged(tmp_path: Path) -> None:
    """Its parameters come from what the story changes: none are left, and pytest calls that a skip."""
    team, base = Team(), {"words.py": "WORDS = ['a', 'b']\n", "tests/test_first.py": CASES}
    for story, words in (("MORE", "['c']"), ("NONE", "[]")):
        module = story.lower()
        team.plan(story, ["words.py", f"{module}.py"])
        team.deliver(story, 1, {"words.py": f"WORDS = {words}\n", f"{module}.py": "def value():\n    return 1\n"})
        team.suite(story, suite_text(story))
    backlog = write_backlog(tmp_path / "backlog.csv", "MORE", "NONE < MORE")
    played = play(tmp_path, team, backlog, repo=make_repo(tmp_path / "repo", base))
    assert [played.status(story) for story in ("MORE", "NONE")] == ["done", "needs_attention"]
    finding = played.finding("NONE", "merge.vanished_tests")
    assert "test_first::test_word" in finding.message
    assert "test_other" not in finding.message
    assert played.text("result", "words.py") == "WORDS = ['c']"
