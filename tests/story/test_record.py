"""What a merged story contributes to the architecture record."""

from typing import Any

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.contract import ArchitectureRecord, Todo
from orchestrator.prompts.budget import tokens
from orchestrator.prompts.feedback import render_record
from orchestrator.story.context import MAX_LINE, MAX_LINES, contribution, lines_of
from tests.support import breakdown


def plan(**fields: Any) -> Breakdown:
    return Breakdown.model_validate(breakdown("US-1", ["app.py"], **fields))


def test_todos_get_ids_and_settle_others() -> None:
    told = plan(todos={"add": ["paging", "  ", "sort\nby name"], "remove": ["TODO-US-0-01: done here", "TODO-US-0-02"]})
    part = contribution(told, foundation=False)
    assert part.todos == (Todo(id="TODO-US-1-01", text="paging"), Todo(id="TODO-US-1-02", text="sort by name"))
    assert part.todos_done == ("TODO-US-0-01", "TODO-US-0-02")


def test_free_fields_stay_small() -> None:
    assert lines_of(None) == lines_of("") == lines_of([]) == []
    assert lines_of([1, {"a": [True]}, "- x  y"]) == ["1", '{"a": [true]}', "x y"]
    assert len(lines_of("line\n" * 500)) == MAX_LINES
    assert lines_of("x" * 5000) == ["x" * MAX_LINE]


def test_the_architect_reads_what_is_settled_and_by_whom() -> None:
    first = plan(conventions="snake_case", todos={"add": ["paging"]})
    part = contribution(first, foundation=True)
    record = ArchitectureRecord.of([part])
    assert render_record(record) == (
        "Locked conventions (a story that needs another is a conflict):\n- snake_case (US-1)\n\n"
        "Open TODOs:\n- TODO-US-1-01: paging"
    )
    assert render_record(ArchitectureRecord()) == ""
    added = tuple(Todo(id=f"TODO-S{n}-01", text=f"{'word ' * 40}{n}") for n in range(300))
    many = ArchitectureRecord.of([part, part.model_copy(update={"todos": added})])
    assert tokens(render_record(many, 500)) <= 500
    assert "snake_case" in render_record(many, 500)
