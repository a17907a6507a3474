"""Deliveries beyond their contract: asked about or refused with feedback, nothing written outside, nothing merged."""

from pathlib import Path

import pytest

from tests.support import (
    ALL_PASS,
    Played,
    Team,
    git,
    make_repo,
    play,
    suite_text,
    write_backlog,
)

MODULE = "def value():\n    return 1\n"


ASKED = {"contract.file", "contract.dependency", "contract.import"}
"""What the architect is asked about; it is refused where he allows nothing."""


def files_of(outside: Path) -> dict[str, tuple[list[str], dict[str, str], str]]:
    """Story → files of its task, what is delivered three times, code of the refusal."""
    return {
        "ABSOLUTE": (["ok.py"], {f"{outside}/absolute.py": MODULE, "ok.py": MODULE}, "delivery.unsafe_path"),
        "LINKED": (["ok.py"], {"door/linked.py": MODULE, "ok.py": MODULE}, "contract.clash"),
        "OTHER": (["ok.py"], {"extra.py": MODULE, "ok.py": MODULE}, "contract.file"),
        "TESTS": (["ok.py"], {"tests/test_ok.py": "def test_ok():\n    assert True\n"}, "contract.test_file"),
        "REQUIRE": (["requirements.txt"], {"requirements.txt": "left-pad==1.0\n"}, "contract.dependency"),
        "IMPORT": (["ok.py"], {"ok.py": "import left_pad\n\n\ndef value():\n    return left_pad\n"}, "contract.import"),
    }


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that nobody may write into; the base repository holds a link to it."""
    return tmp_path_factory.mktemp("outside")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, outside: Path) -> Played:
    """One sprint whose developer tries everything, three times each."""
    folder = tmp_path_factory.mktemp("hostile")
    repo = make_repo(folder / "repo", {"keep.py": MODULE}, {"door": str(outside), "single.py": f"{outside}/single.py"})
    team = Team()
    for story, (files, delivered, code) in files_of(outside).items():
        team.plan(story, files)
        if code in ASKED:
            grants_nothing(team, story)
        for _ in range(3):
            team.deliver(story, 1, delivered)
    through_links(team)
    stories = [*files_of(outside), "THROUGH", "SINGLE"]
    return play(folder, team, write_backlog(folder / "backlog.csv", *stories), ALL_PASS, repo=repo)


def grants_nothing(team: Team, story: str) -> None:
    """The architect is asked about a file or a package, and allows none."""
    answer = {"files": [], "dependencies": {}, "reason": "nothing here needs it"}
    team.say("mike", story, "amendment", answer)


def through_links(team: Team) -> None:
    """A plan that names a path below a link, and one that names a link itself."""
    for _ in range(3):
        team.plan("THROUGH", ["door/through.py", "through.py"])
    team.deliver("THROUGH", 1, {"through.py": MODULE})
    team.suite("THROUGH", suite_text("THROUGH"))
    team.plan("SINGLE", ["single.py"])
    for _ in range(3):
        team.deliver("SINGLE", 1, {"single.py": MODULE})
    team.suite("SINGLE", suite_text("SINGLE"))


def test_every_trespass_is_refused_with_its_reason_and_fails_the_story(played: Played, outside: Path) -> None:
    for story, (_files, _delivered, code) in files_of(outside).items():
        assert played.status(story) == "failed", story
        assert code in played.codes(story), (story, played.codes(story))
        asked = ["amendment 1"] if code in ASKED else []
        assert played.asked(story) == ["breakdown 1", "delivery 1", *asked, "delivery 2", "delivery 3"], story
        assert code in played.sent_back(story), story
        assert played.tasks(story) == ["failed"]
        assert played.story(story).branch, "the branch is kept"
        assert played.tree(story) == ["door", "keep.py", "single.py"], (story, "nothing of the delivery was committed")


def test_nothing_was_written_outside(played: Played, outside: Path) -> None:
    assert list(outside.iterdir()) == []
    assert not list(played.mirror.parents[2].rglob("x.py"))
    assert git(played.repo, "status", "--porcelain") == ""


def test_a_plan_cannot_lead_through_a_link(played: Played) -> None:
    assert played.status("THROUGH") == "done"
    assert "breakdown.struck" in played.codes("THROUGH")
    assert "door/through.py" in played.finding("THROUGH", "breakdown.struck").message
