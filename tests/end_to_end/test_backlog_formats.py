"""One small sprint, once per backlog format: the same stories, the same result, the source untouched."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.backlogs.files import open_backlog
from orchestrator.settings import Settings
from orchestrator.storage.state_folder import StateFolder
from tests.support import PLAIN_TESTS, Team, make_repo, play

STORIES: list[dict[str, Any]] = [
    {"id": "US-2", "title": "Second", "dependencies": ["US-1"], "acceptance_criteria": ["It works"]},
    {"id": "US-1", "title": "First", "acceptance_criteria": ["It works"]},
]


def markdown(story: dict[str, Any]) -> str:
    criteria = "".join(f"- {text}\n" for text in story["acceptance_criteria"])
    needs = ", ".join(story.get("dependencies", []))
    front = f"---\nid: {story['id']}\ntitle: {story['title']}\ndependencies: [{needs}]\n---\n"
    return f"{front}\n## Acceptance Criteria\n\n{criteria}"


def write(folder: Path, kind: str) -> Path:
    if kind == "folder":
        place = folder / "stories"
        place.mkdir()
        for number, story in enumerate(STORIES):
            (place / f"{number}.md").write_text(markdown(story))
        return place
    place = folder / f"backlog.{kind}"
    whole = json.dumps({"stories": STORIES}, indent=2)
    if kind == "csv":
        whole = "Story_ID,Title,Dependencies,Acceptance_Criteria\nUS-2,Second,US-1,It works\nUS-1,First,,It works\n"
    if kind == "yaml":
        whole = "".join(
            f"- id: {story['id']}\n  title: {story['title']}\n"
            f"  dependencies: {json.dumps(story.get('dependencies', []))}\n"
            f"  acceptance_criteria: {json.dumps(story['acceptance_criteria'])}\n"
            for story in STORIES
        )
    place.write_text(whole)
    return place


SLOWLY = [pytest.param(kind, marks=pytest.mark.soak) for kind in ("csv", "yaml", "json")]
"""Read like the folder, as the tests of backlogs show, or what all other sprints here are read from."""


@pytest.mark.parametrize("kind", ["folder", *SLOWLY])
def test_the_same_sprint_from_every_format(tmp_path: Path, kind: str) -> None:
    team = Team()
    team.good("US-1")  # nobody answers for US-2, which comes after it
    backlog = write(tmp_path, kind)
    before = {file: file.read_bytes() for file in (backlog.iterdir() if backlog.is_dir() else [backlog])}
    repo = make_repo(tmp_path / "repo")
    played = play(tmp_path, team, backlog, PLAIN_TESTS, repo=repo)
    assert [(s.id, s.status.value, s.tests.passed) for s in played.result.report.stories] == [
        ("US-2", "failed", 0),
        ("US-1", "done", 1),
    ]
    assert played.tree("result") == ["tests/test_us_1.py", "us_1.py"]
    assert [call["story"] for call in played.calls] == ["US-1"] * 4
    assert [event.story for event in played.events if event.name == "turn_started"] == ["US-1"] * 4 + ["US-2"]
    content = open_backlog(backlog, Settings(), StateFolder(tmp_path / "state")).read()
    assert [(story.execution_status, story.sprint_id) for story in content.stories] == [
        ("failed", "SP-001"),
        ("completed", "SP-001"),
    ]
    assert {file: file.read_bytes() for file in before} == before
