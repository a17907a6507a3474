"""Which text of a prompt an answer came from stands in every record, also for a prompt that was replaced."""

import json
from pathlib import Path

import pytest

from tests.prompts.packaged import packaged_files, packaged_library
from tests.support import Played, Team, play, write_backlog


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("versions")


@pytest.fixture(scope="module")
def played(folder: Path) -> Played:
    """One good story, with the tester's prompt replaced."""
    mine = folder / "prompts" / "tester"
    mine.mkdir(parents=True)
    (mine / "suite_plan.md").write_text(packaged_files()["tester/suite_plan"] + "\nBe kind.\n")
    team = Team()
    team.good("ONE")
    backlog = write_backlog(folder / "backlog.csv", "ONE")
    return play(folder / "run", team, backlog, f"prompts.dir={folder / 'prompts'}")


def test_every_record_names_the_prompt_and_its_version(played: Played, folder: Path) -> None:
    library = packaged_library()
    sent = {event.data["prompt"]: event.data["prompt_version"] for event in played.told_of("ONE", "turn_finished")}
    assert set(sent) == {"architect/breakdown", "developer/delivery_plan", "reviewer/review", "tester/suite_plan"}
    for name, version in sent.items():
        assert (version == library.version(name)) is (name != "tester/suite_plan")
    started = played.told_of("ONE", "turn_started")
    assert {event.data["prompt"]: event.data["prompt_version"] for event in started} == sent
    entries = [json.loads(path.read_text()) for path in (folder / "run" / "state" / "replies").rglob("*-*.json")]
    assert {entry["prompt"]: entry["prompt_version"] for entry in entries} == sent
    assert {one.name: one.version for one in played.story("ONE").prompts} == sent
