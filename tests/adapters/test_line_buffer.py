"""Which lines are printed and which are counted: with a made-up clock."""

from collections import Counter
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.event import Event, Level
from orchestrator.storage.log_stream import HeldBack, LineBuffer

DEBUG, INFO, WARN, ERROR = Level


def line(level: Level, number: int = 0) -> Event:
    return Event(id=str(number), time=datetime(2026, 1, 2, tzinfo=UTC), level=level, name="x", message="m", sprint="S")


def drained(buffer: LineBuffer) -> list[Level | Counter[Level]]:
    taken = [buffer.take() for _ in range(len(buffer))]
    return [one.lines if isinstance(one, HeldBack) else one.level for one in taken]


def test_lines_go_in_order_and_no_second_holds_more_than_are_allowed() -> None:
    buffer = LineBuffer(3)
    for number in range(7):
        buffer.put(line(INFO, number))
    now, left, printed = 10.0, [], []
    while (wait := buffer.wait_s(now)) is not None:
        now += wait
        left.append(buffer.take())
        printed.append(now)
        buffer.printed(now)
        now += 0.125
    assert [one.id for one in left if isinstance(one, Event)] == [str(number) for number in range(7)]
    assert printed == [10.0, 10.125, 10.25, 11.0, 11.125, 11.25, 12.0]


def test_a_lower_limit_counts_for_what_was_printed_before_it() -> None:
    buffer = LineBuffer(10)
    for eighth in range(8):
        buffer.printed(10 + eighth / 8)
    buffer.per_s = 2
    buffer.put(line(ERROR))
    assert buffer.wait_s(11.0) == 0.75, "one of the two last has to be a second old"
    assert buffer.wait_s(11.75) == 0.0
    assert buffer.another_within(0.25, 11.75), "the last one is a second old by then"
    assert not buffer.another_within(0.125, 11.75)
    buffer.printed(11.75)
    assert not buffer.another_within(0.75, 11.875)


def test_light_lines_make_room_for_heavy_ones_and_are_counted_in_one_place() -> None:
    buffer = LineBuffer(1, room=3)
    for level in (DEBUG, INFO, DEBUG, ERROR, WARN, WARN, ERROR, ERROR, INFO):
        buffer.put(line(level))
    # Gone are both debugs, the info that waited, a warning for each later error, and the last info.
    assert drained(buffer) == [Counter({DEBUG: 2, INFO: 2, WARN: 2}), ERROR, ERROR, ERROR]
    for level in (INFO, INFO, INFO, INFO, DEBUG):
        buffer.put(line(level))
    assert drained(buffer) == [INFO, INFO, INFO, Counter({INFO: 1, DEBUG: 1})], "the next gap counts anew"


def test_at_the_end_what_waits_becomes_one_count() -> None:
    buffer = LineBuffer(1, room=2)
    for level in (INFO, INFO, INFO, ERROR):
        buffer.put(line(level))
    buffer.hold_back_all()
    assert drained(buffer) == [Counter({INFO: 3, ERROR: 1})]
    buffer.hold_back_all()
    assert len(buffer) == 0


@given(st.lists(st.one_of(st.sampled_from(Level), st.none()), max_size=60), st.integers(1, 5))
def test_no_line_is_lost_without_being_counted(steps: list[Level | None], room: int) -> None:
    buffer, came, told = LineBuffer(5, room=room), Counter[Level](), Counter[Level]()
    for step in steps:
        if step is not None:
            buffer.put(line(step))
            came[step] += 1
        elif len(buffer):
            taken = buffer.take()
            told += taken.lines if isinstance(taken, HeldBack) else Counter([taken.level])
        assert len(buffer) <= room + 1
    for one in drained(buffer):
        told += one if isinstance(one, Counter) else Counter([one])
    assert told == +came
