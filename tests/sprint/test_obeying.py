"""Whom orders concern, and what they hold."""

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.core.command import CONTROL_GIVEN, CONTROL_SETTLED, Order, Settled, Verb
from orchestrator.core.event import Event
from orchestrator.core.sprint import StoryStatus as S
from orchestrator.sprint.command_handler import decide
from orchestrator.sprint.state import Board

STATUS = {"A": S.FAILED, "B": S.BLOCKED, "C": S.BLOCKED, "D": S.DONE, "E": S.EXECUTING, "F": S.PENDING}
BLOCKED_BY = {"A": (), "B": ("A",), "C": ("B",), "D": ()}


def event(name: str, **data: Any) -> Event:
    return Event(id=name, time=datetime.now(UTC), name=name, message="", sprint="S", data=data)


def given(verb: Verb, story: str | None = None, *, name: str = "1", by: str = "ann") -> Event:
    return event(CONTROL_GIVEN, order=Order(id=name, verb=verb, story=story, by=by).model_dump(mode="json"))


@pytest.mark.parametrize(
    ("verb", "story", "stories", "refused"),
    [
        (Verb.PAUSE, None, "EF", ""),
        (Verb.PAUSE, "E", "E", ""),
        (Verb.PAUSE, "D", "", "D has ended: it is done"),
        (Verb.CANCEL, None, "EF", ""),
        (Verb.CANCEL, "A", "", "A has ended: it is failed"),
        (Verb.RETRY, None, "ABC", ""),
        (Verb.RETRY, "A", "ABC", ""),
        (Verb.RETRY, "C", "", "C was blocked by B: retry that instead"),
        (Verb.RETRY, "D", "", "D: it is done; `reset` runs it again"),
        (Verb.RETRY, "E", "", "E: it is executing and has not ended"),
        (Verb.RESET, "D", "D", ""),
        (Verb.RESET, "A", "ABC", ""),
        (Verb.RESET, None, "ABCDEF", ""),
        (Verb.RESUME, "X", "", "sprint S has no story X"),
        (Verb.REPLAN, "A", "ABC", ""),
        (Verb.REPLAN, "B", "", "B was blocked by A: plan that again instead"),
        (Verb.REPLAN, "E", "", "E is executing; only a story that ended without being done is planned again"),
        (Verb.REPLAN, None, "", "name the story that is to be planned again"),
    ],
)
def test_whom_an_order_concerns(verb: Verb, story: str | None, stories: str, refused: str) -> None:
    decision = decide(Order(id="1", verb=verb, story=story, by="ann", comment="so"), STATUS, BLOCKED_BY, "S")
    assert (decision.stories, decision.refused) == (tuple(stories), refused)


def test_whoever_has_a_story_planned_anew_says_something() -> None:
    assert (
        "the comment is empty" in decide(Order(id="1", verb=Verb.REPLAN, story="A", by="ann"), STATUS, {}, "S").refused
    )


def test_nothing_is_left_to_pause_or_retry_in_a_sprint_that_is_done() -> None:
    for verb in (Verb.PAUSE, Verb.CANCEL, Verb.RETRY):
        assert decide(Order(id="1", verb=verb, by="ann"), {"D": S.DONE}, {}, "S").refused


def test_a_blocked_story_can_be_run_anew_once_nothing_is_in_its_way() -> None:
    status = {"A": S.DONE, "B": S.BLOCKED}
    assert decide(Order(id="1", verb=Verb.RETRY, story="B", by="ann"), status, {"B": ("A",)}, "S").stories == ("B",)


def test_a_board_holds_what_is_paused_until_it_is_resumed_whatever_the_order_of_reading() -> None:
    told = [(1, given(Verb.PAUSE, "A")), (2, given(Verb.PAUSE, name="2", by="bob")), (3, given(Verb.RESUME, name="3"))]
    for events in (told, told[::-1], [*told, *told]):
        board = Board("S")
        board.read(events[:])
        assert board.reason == board.why_not("A", paid=True) == ""
        assert board.held("A") == "", "resume of the sprint lets its stories go on too"
    board = Board("S")
    board.read(told[:2])
    assert board.reason == "sprint S is paused by bob"
    assert board.held("A") == "A is paused by ann"
    assert board.why_not("B", paid=False) == "sprint S is paused by bob"


def test_orders_stand_until_they_are_settled_and_what_is_to_end_takes_no_further_step() -> None:
    board = Board("S")
    board.read([(1, given(Verb.CANCEL, "A")), (2, given(Verb.RESET, name="2"))])
    assert board.why_not("A", paid=True) == "cancel was ordered by ann"
    assert board.why_not("B", paid=True) == "reset was ordered by ann"
    first = board.next_order()
    assert first is not None
    board.settled(Settled(order=first.id, done=True, message=""))
    board.read([(3, event(CONTROL_SETTLED, settled=Settled(order="2", done=False, message="no").model_dump()))])
    assert board.next_order() is None
    assert board.why_not("A", paid=True) == ""


def settled(order: str, *, done: bool) -> Event:
    return event(CONTROL_SETTLED, settled=Settled(order=order, done=done, message="").model_dump())


def test_a_pause_that_was_refused_holds_nothing_and_one_of_a_sprint_that_was_reset_holds_no_longer() -> None:
    board = Board("S")
    board.read([(1, given(Verb.PAUSE)), (2, given(Verb.PAUSE, "A", name="2"))])
    assert board.reason
    board.read([(3, settled("1", done=False)), (4, settled("2", done=False))])
    assert board.reason == board.held("A") == ""
    board.read([(5, given(Verb.PAUSE, name="3")), (6, given(Verb.RESET, name="4")), (7, settled("3", done=True))])
    assert board.reason, "the reset may still be refused"
    board.settled(Settled(order="4", done=True, message=""))
    assert board.reason == ""


def test_a_cancellation_that_was_cut_before_it_was_said_is_no_refusal() -> None:
    decision = decide(Order(id="1", verb=Verb.CANCEL, story="A", by="ann"), {"A": S.CANCELLED}, {}, "S")
    assert (decision.stories, decision.refused) == ((), "")


async def test_whoever_waits_for_the_board_misses_no_change_in_between() -> None:
    board = Board("S")
    version = board.version
    board.read([(1, given(Verb.PAUSE))])
    await board.moved(version)
    board.close()
    assert board.why_not("A", paid=False) == "the process is ending"
