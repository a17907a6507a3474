"""The orders that a page offers are those that the supervisor takes, and each names what is lost."""

from pathlib import Path

import pytest

from orchestrator.board.orders import list_sprint_orders, list_story_orders
from orchestrator.core.sprint import StoryStatus
from orchestrator.records.sprint_reader import Reader, SprintView
from orchestrator.settings import load
from tests.cli.waiting import SPRINT, Waiting
from tests.support import plain_environment

NEEDS = {"US-2": ("US-1",), "US-3": ("US-2",), "US-4": ("US-2",), "US-6": ("US-5",)}


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    """US-1 waits for a person, US-2 and US-4 have not begun, US-3 failed, US-5 is done, US-6 is blocked."""
    made = Waiting(tmp_path, [f"US-{number}" for number in range(1, 7)])
    made.state.save(made.record.model_copy(update={"needs": NEEDS}))
    made.ask("US-1")
    made.finish("US-3", StoryStatus.FAILED)
    made.finish("US-5", StoryStatus.DONE)
    made.finish("US-6", StoryStatus.BLOCKED)
    return made


def view_of(waiting: Waiting) -> SprintView:
    _, environment = load(None, (), plain_environment(ORCHESTRATOR_HOME=str(waiting.state.home)), waiting.folder)
    return Reader(environment).sprint(SPRINT)


def test_a_story_offers_what_it_takes_in_its_state(waiting: Waiting) -> None:
    view = view_of(waiting)
    offered = {story: [one["verb"] for one in list_story_orders(view, story)] for story in view.histories}
    assert offered == {
        "US-1": ["pause", "reset"],  # its question takes cancel and replan
        "US-2": ["pause", "cancel", "reset"],
        "US-3": ["retry", "replan", "reset"],
        "US-4": ["pause", "cancel", "reset"],
        "US-5": ["reset"],
        "US-6": ["reset"],  # what blocked it is retried instead
    }
    assert [one["verb"] for one in list_sprint_orders(view)] == ["pause", "retry", "cancel", "reset"]


def test_what_is_paused_offers_its_end_in_place_of_another_pause(waiting: Waiting) -> None:
    assert waiting.cli("pause", "US-2", "--sprint", SPRINT).exit_code == 0
    view = view_of(waiting)
    assert [one["verb"] for one in list_story_orders(view, "US-2")] == ["resume", "cancel", "reset"]
    assert next(one["verb"] for one in list_story_orders(view, "US-4")) == "pause"
    assert [one["verb"] for one in list_sprint_orders(view)][:2] == ["pause", "resume"], (
        "a story's pause is no sprint's"
    )


def test_each_dangerous_order_names_what_is_lost_and_the_others_ask_nothing(waiting: Waiting) -> None:
    view = view_of(waiting)
    warnings = {one["verb"]: one["warning"] for one in list_story_orders(view, "US-2")}
    assert warnings["pause"] == ""
    assert warnings["cancel"] == (
        "US-2 ends as cancelled at once. A call under way is cut and was paid for. Branches are kept."
        " Blocked by that: US-4."
    )
    whole = {one["verb"]: one["warning"] for one in list_sprint_orders(view)}
    assert whole["cancel"].startswith("US-1, US-2, US-4 end as cancelled at once.")
    assert "deleted with the result branch. The same happens to US-1, US-2, US-3, US-4" in whole["reset"]
    assert whole["retry"] == (
        "Work on US-3, US-6 starts over, and their branches are deleted. What was spent stays spent."
    )
    failed = {one["verb"]: one["warning"] for one in list_story_orders(view, "US-3")}
    assert failed["retry"] == "Work on US-3 starts over, and its branch is deleted. What was spent stays spent."
    first = {one["verb"]: one["warning"] for one in list_story_orders(view, "US-1")}
    assert "US-1 is as if it had not been run" in first["reset"]
