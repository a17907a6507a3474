"""Deliveries that reach beyond their contract: refused with feedback, nothing written outside, nothing merged."""

import json
from pathlib import Path

import pytest

from tests.support import Played, Team, delivery, git, make_repo, play, suite_text, task, task_id, write_backlog

MODULE = "def value():\n    return 1\n"
PACKAGE = json.dumps({"name": "shop", "dependencies": {"left-pad": "1.0.0"}})
PROJECT = '[project]\nname = "shop"\nversion = "1"\ndependencies = ["left-pad"]\n'


def files_of(outside: Path) -> dict[str, tuple[list[str], dict[str, str], str]]:
    """Story → files of its task, what is delivered three times, code of the refusal."""
    return {
        "CLIMB": (["ok.py"], {"../x.py": MODULE, "ok.py": MODULE}, "delivery.unsafe_path"),
        "ABSOLUTE": (["ok.py"], {f"{outside}/absolute.py": MODULE, "ok.py": MODULE}, "delivery.unsafe_path"),
        "GITDIR": (["ok.py"], {".git/hooks/post-commit": "touch x\n", "ok.py": MODULE}, "delivery.unsafe_path"),
        "LINKED": (["ok.py"], {"door/linked.py": MODULE, "ok.py": MODULE}, "contract.file"),
        "OTHER": (["ok.py"], {"extra.py": MODULE, "ok.py": MODULE}, "contract.file"),
        "TESTS": (["ok.py"], {"tests/test_ok.py": "def test_ok():\n    assert True\n"}, "contract.test_file"),
        "CONFTEST": (["ok.py"], {"conftest.py": "raise SystemExit(0)\n", "ok.py": MODULE}, "contract.test_file"),
        "REQUIRE": (["requirements.txt"], {"requirements.txt": "left-pad==1.0\n"}, "contract.dependency"),
        "NODE": (["package.json"], {"package.json": PACKAGE}, "contract.dependency"),
        "PROJECT": (["pyproject.toml"], {"pyproject.toml": PROJECT}, "contract.dependency"),
        "IMPORT": (["ok.py"], {"ok.py": "import left_pad\n\n\ndef value():\n    return left_pad\n"}, "contract.import"),
        "SCRIPT": (["build.sh"], {"build.sh": "#!/bin/sh\npip install left-pad\n"}, "contract.dependency"),
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
    for story, (files, delivered, _code) in files_of(outside).items():
        team.plan(story, files)
        for _ in range(3):
            team.deliver(story, 1, delivered)
    through_links(team)
    learns(team)
    team.good("GOOD")
    stories = [*files_of(outside), "THROUGH", "SINGLE", "LEARNS", "GOOD"]
    return play(folder, team, write_backlog(folder / "backlog.csv", *stories), repo=repo)


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


def learns(team: Team) -> None:
    """Two refusals, each with another cause, and the third delivery is right."""
    team.plan("LEARNS", ["learns.py"])
    team.deliver("LEARNS", 1, {"../learns.py": MODULE})
    team.deliver("LEARNS", 1, {"learns.py": "import requests\n\n\ndef value():\n    return requests\n"})
    team.deliver("LEARNS", 1, {"learns.py": MODULE})
    team.suite("LEARNS", suite_text("LEARNS"))


def test_every_trespass_is_refused_with_its_reason_and_fails_the_story(played: Played, outside: Path) -> None:
    for story, (_files, _delivered, code) in files_of(outside).items():
        assert played.status(story) == "failed", story
        assert code in played.codes(story), (story, played.codes(story))
        assert played.asked(story) == ["breakdown 1", "delivery 1", "delivery 2", "delivery 3"], story
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


def test_a_link_is_never_replaced_or_written_through(played: Played, outside: Path) -> None:
    assert played.status("SINGLE") == "failed"
    assert any("single.py is a link" in finding.message for finding in played.story("SINGLE").findings)
    assert git(played.mirror, "ls-tree", played.ref("SINGLE"), "single.py").startswith("120000")
    assert not (outside / "single.py").exists()


def test_refusals_are_lessons(played: Played) -> None:
    assert played.status("LEARNS") == "done"
    assert played.sent_back("LEARNS") == ["delivery.unsafe_path", "contract.import"]


def test_only_the_good_is_merged(played: Played) -> None:
    merged = set(played.tree("result")) - {"door", "keep.py", "single.py"}
    assert merged == {
        *("good.py", "tests/test_good.py", "learns.py", "tests/test_learns.py"),
        *("through.py", "tests/test_through.py"),
    }


def test_a_file_of_another_task_is_kept_in_the_end_with_a_minor_finding(tmp_path: Path) -> None:
    """And a delivery that was cut off is completed: by whole files, and by the rest of the text."""
    team = Team()
    team.plan("SHARE", ["share.py"], ["later.py"])
    for _ in range(3):
        team.deliver("SHARE", 1, {"share.py": MODULE, "later.py": "LATER = 1\n"})
    team.deliver("SHARE", 2, {"later.py": "LATER = 2\n"})
    team.suite("SHARE", suite_text("SHARE"))
    continued(team, "WHOLE", whole=True)
    continued(team, "REST", whole=False)
    played = play(tmp_path, team, write_backlog(tmp_path / "backlog.csv", "SHARE", "WHOLE", "REST"))
    assert played.status("SHARE") == "done"
    assert played.finding("SHARE", "contract.other_task").severity.value == "minor"
    assert played.text("SHARE", "later.py") == "LATER = 2"
    for story in ("WHOLE", "REST"):
        assert played.status(story) == "done", played.story(story).findings
        assert played.asked(story, "alex") == ["delivery 1", "continuation 1"]
        assert played.text(story, "second.py") == "SECOND = 'a long line of text'"


def continued(team: Team, story: str, *, whole: bool) -> None:
    """A delivery that breaks off inside its second file; its continuation brings that file whole, or just the rest."""
    module = story.lower()
    second = {"second.py": "SECOND = 'a long line of text'\n"}
    team.say("mike", story, "breakdown", {
        "story_id": story, "architectural_conflict": {"detected": False}, "task_count": 1,
        "tasks": [task(story, 1, [f"{module}.py", "second.py"])], "dependencies": {},
    })  # fmt: skip
    text = json.dumps(delivery(story, 1, {f"{module}.py": MODULE, **second}))
    cut = text.index("long line")
    team.say("alex", story, "delivery", text[:cut], task=1, stop_reason="max_tokens")
    rest = json.dumps(delivery(story, 1, second)) if whole else text[cut:]
    team.say("alex", story, "continuation", rest, task=1)
    team.suite(story, suite_text(story))
    assert task_id(story, 1) in text
