"""The page of all sprints: figures from reports are those of the log, and each sprint is read once."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.board.templates import render
from orchestrator.board.throughput import SprintFigures, Throughput, fold_view, page
from orchestrator.core.event import Event
from orchestrator.core.sprint import SprintRecord, StoryStatus
from orchestrator.records.sprint_reader import Reader, SprintView
from orchestrator.settings import Environment, load
from tests.board.past import FLAKY, LOST, keep, make_record, story_events
from tests.support import plain_environment

HOSTILE = "</script><script>alert(1)</script>\u202e"


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return load(None, (), plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state")), tmp_path)[1]


def ended(record: SprintRecord) -> list[Event]:
    """Two stories done on two days, one of them after trouble, and one lost."""
    first, second, third = record.story_ids
    return [
        *story_events(record, first, 1, "answer_healed", "answer_sent_back", "answer_sent_back", "delivery_completed"),
        *story_events(record, second, 2, "plan_mended", usd=0.5, findings=[FLAKY], ends=timedelta(days=2)),
        *story_events(record, third, 3, status=StoryStatus.FAILED, findings=[FLAKY, LOST], usd=None),
    ]


def begun(record: SprintRecord) -> list[Event]:
    """One story done and one at work, with an answer that was healed."""
    first, second = record.story_ids
    return [
        *story_events(record, first, 1),
        *story_events(record, second, 2, "answer_repaired_by_model", status=None),
    ]


def test_the_figures_are_those_of_the_log(environment: Environment) -> None:
    record, reader = make_record(1, 3), Reader(environment)
    asyncio.run(keep(environment, record, ended(record)))
    (told,) = Throughput(reader, reader.sprint).figures()
    assert told == fold_view(reader.sprint("SP-001"))
    assert (told.is_over, told.done, told.calls, told.tokens, told.usd, told.unpriced) == (True, 2, 6, 6000, 1.5, 1)
    assert told.lasted_s == timedelta(days=2, minutes=2).total_seconds()


def test_a_sprint_is_read_again_only_when_something_was_recorded_of_it(environment: Environment) -> None:
    reader, looked = Reader(environment), list[str]()

    def look(sprint: str) -> SprintView:
        looked.append(sprint)
        return reader.sprint(sprint)

    over, open_one = make_record(1, 3), make_record(2, 2)
    asyncio.run(keep(environment, over, ended(over)))
    asyncio.run(keep(environment, open_one, begun(open_one), report=False))
    throughput = Throughput(reader, look)
    before = [throughput.figures() for _ in range(2)][1]
    assert looked == ["SP-001", "SP-002"]
    assert (before[1].is_over, before[1].done) == (False, 1)
    asyncio.run(keep(environment, open_one, [*story_events(open_one, "US-2", 3)][-1:], report=False))
    assert (throughput.figures()[1].done, looked) == (2, ["SP-001", "SP-002", "SP-002"])


def test_the_page_shows_the_newest_first_and_no_text_of_others_as_markup(environment: Environment) -> None:
    reader = Reader(environment)
    for number in (1, 2):
        record = make_record(number, 3).model_copy(update={"backlog": f"/b/{HOSTILE}"})
        findings = [FLAKY.model_copy(update={"message": HOSTILE})]
        last = story_events(record, "US-3", 3, status=StoryStatus.FAILED, findings=findings)
        asyncio.run(keep(environment, record, [*ended(record)[:-3], *last]))
    values = Throughput(reader, reader.sprint).values()
    assert [one["sprint"] for one in values["sprints"]] == ["SP-002", "SP-001"]
    html = render("sprints.html", values)
    assert "<script>alert" not in html
    assert " style=" not in html
    assert html.index('href="/sprints/SP-002"') < html.index('href="/sprints/SP-001"')


def test_without_a_sprint_the_page_says_how_to_begin() -> None:
    assert "There is no sprint yet" in render("sprints.html", {"place": 0, **page(list[SprintFigures](), set())})
