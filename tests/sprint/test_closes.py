"""Rows that are closed with other stories: in selections, dry runs and a running sprint's cells."""

import pytest

from orchestrator.core.errors import BacklogError
from orchestrator.core.story import BacklogContent
from orchestrator.settings import Settings
from orchestrator.sprint.dry_run import dry_run
from orchestrator.sprint.selection import select
from tests.checks.test_closing import story
from tests.sprint.test_supervisor import FAILED, Play


def test_closed_rows_are_no_part_of_the_selection_and_count_to_their_closer() -> None:
    rows = [
        story("US-1", "WF-1", closes=("WF-1", "WF-2")),
        story("WF-1", "STYLE"),
        story("US-2", "WF-1"),
        story("STYLE"),
        story("WF-2", execution_status="completed"),
    ]
    content = BacklogContent(source="b.csv", stories=tuple(rows))
    chosen = select(content, sprint=None, stories=(), taken_sprints=(), strict=True)
    assert chosen.story_ids == ("US-1", "US-2", "STYLE")
    assert chosen.closes == {"US-1": ("WF-1",)}
    assert chosen.needs == {"US-1": ("STYLE",), "US-2": ("US-1",), "STYLE": ()}
    alone = select(content, sprint=None, stories=["US-2"], taken_sprints=(), strict=False)
    assert alone.closes == {}
    assert ["US-1" in finding.message for finding in alone.warnings] == [True]
    with pytest.raises(BacklogError, match=r"WF-1 .*is done with US-1, which closes it"):
        select(content, sprint=None, stories=["WF-1"], taken_sprints=(), strict=False)
    planned = dry_run(content, stories=None, settings=Settings())
    assert (planned.stories, planned.waves) == (3, (("STYLE",), ("US-1",), ("US-2",)))
    assert planned.as_json()["closed"] == {"WF-1": "US-1", "WF-2": "US-1"}


def test_rows_of_a_closer_that_a_person_completed_count_as_done_and_are_nobodys_work() -> None:
    rows = [
        story("US-1", closes=("WF-1", "WF-2"), execution_status="Completed"),
        story("WF-1", "STYLE"),
        story("WF-2"),
        story("US-2", "WF-1", "WF-2"),
        story("STYLE"),
    ]
    content = BacklogContent(source="b.csv", stories=tuple(rows))
    chosen = select(content, sprint=None, stories=(), taken_sprints=(), strict=True)
    assert (chosen.story_ids, chosen.done_ids) == (("US-2", "STYLE"), ("US-1", "WF-1", "WF-2"))
    assert (chosen.needs, chosen.closes, chosen.warnings) == ({"US-2": (), "STYLE": ()}, {}, ())
    finished = BacklogContent(source="b.csv", stories=tuple(rows[:3]))
    with pytest.raises(BacklogError, match="no row that has no Sprint_ID is open"):
        select(finished, sprint=None, stories=(), taken_sprints=(), strict=False)


async def test_closed_rows_are_marked_with_their_closer_when_it_is_done() -> None:
    play = Play({"A": [], "B": []}, {"B": FAILED})
    play.record = play.record.model_copy(update={"closes": {"A": ("W", "V"), "B": ("X",)}})
    await play.run()
    row = play.cells.rows["A"]
    for closed in ("W", "V"):
        assert play.cells.rows[closed] == {**row, "Last_Event": "closed_by A"}
    assert "X" not in play.cells.rows
    before = dict(play.cells.rows)
    play.cells.rows.clear()
    await play.run()
    assert play.cells.rows == before
