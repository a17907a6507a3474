"""Deliveries beyond their contract: asked about or refused with feedback, nothing written outside, nothing merged."""

import json
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
PACKAGE = json.dumps({"name": "shop", "dependencies": {"left-pad": "1.0.0"}})
PROJECT = '[project]\nname = "shop"\nversion = "1"\ndependencies = ["left-pad"]\n'


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
    all_ways(team)
    stories = [*files_of(outside), "THROUGH", "SINGLE", "WAYS"]
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


WAYS: list[tuple[dict[str, str], str]] = [
    ({"Keep.py": MODULE}, "contract.clash"),
    ({"keep.py/below.py": MODULE}, "contract.clash"),
    ({"ways_01.py\u200b": MODULE}, "delivery.unsafe_path"),
    ({".GIT/config": "x"}, "delivery.unsafe_path"),
    ({"extra.py": MODULE}, "contract.file"),
    ({".gitattributes": "* filter=x\n"}, "contract.file"),
    ({"package.json": '{"overrides": {"left-pad": "1"}}'}, "contract.dependency"),
    ({"package.json": '{"dependencies": {"left-pad": "npm:right-pad@1"}}'}, "contract.dependency"),
    ({"pyproject.toml": '[dependency-groups]\nx = ["left-pad"]\n'}, "contract.dependency"),
    ({"pyproject.toml": '[project]\ndependencies = ["a @ https://host/a.whl"]\n'}, "contract.dependency"),
    ({"setup.cfg": "[options]\nsetup_requires = left-pad\n"}, "contract.dependency"),
    ({"setup.cfg": "[options]\ninstall_requires = a @ https://host/a.whl\n"}, "contract.dependency"),
    ({"ways_09.ts": "import type { A } from 'left-pad';\n"}, "contract.import"),
    ({"ways_09.ts": "export const a = require(`left-pad`);\n"}, "contract.import"),
    ({".npmrc": "registry=https://host/\n"}, "contract.source"),
    ({"tests/__init__.py": "X = 1\n"}, "contract.test_file"),
    ({"web/package.json": PACKAGE}, "contract.dependency"),
    ({"conftest.py": "raise SystemExit(0)\n"}, "contract.test_file"),
    ({"web/pyproject.toml": PROJECT}, "contract.dependency"),
    ({"../x.py": MODULE, ".git/hooks/post-commit": "touch x\n"}, "delivery.unsafe_path"),
]
"""Deliveries that are refused, two for each task of one story; its third is right."""
RIGHT = [
    *({f"ways_{n:02d}.py": f"def value():\n    return {n}\n"} for n in range(1, 4)),
    {"package.json": "{}\n"}, {"pyproject.toml": "[tool.x]\ny = 1\n"}, {"setup.cfg": "[flake8]\nx = 1\n"},
    {"ways_09.ts": "export const a: number = 1;\n"}, {".npmrc": "save-exact=true\n"},
    {"web/package.json": "{}\n"}, {"web/pyproject.toml": "[tool.x]\ny = 1\n"},
]  # fmt: skip


def all_ways(team: Team) -> None:
    """One story whose developer breaks the contract in every way and mends it each time."""
    team.plan("WAYS", *(list(files) for files in RIGHT))
    for _ in range(3):  # amendment.max_per_story
        grants_nothing(team, "WAYS")
    for number, right in enumerate(RIGHT, start=1):
        for refused, _code in WAYS[2 * number - 2 : 2 * number]:
            team.deliver("WAYS", number, {**right, **refused})
        team.deliver("WAYS", number, right)
    team.suite("WAYS", "from ways_01 import value\n\n\ndef test_ways():\n    assert value() == 1\n")


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


def test_each_way_is_refused_for_what_it_is(played: Played) -> None:
    assert played.status("WAYS") == "done", played.story("WAYS").findings
    refused = [event.data["findings"] for event in played.told_of("WAYS", "answer_sent_back")]
    for (delivered, code), findings in zip(WAYS, refused, strict=True):
        assert code in {finding["code"] for finding in findings}, (delivered, findings)
    assert set(played.tree("WAYS")) == {
        *("door", "keep.py", "single.py", "tests/test_ways.py"),
        *(path for right in RIGHT for path in right),
    }
