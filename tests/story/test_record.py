"""What a merged story contributes to the architecture record."""

from typing import Any

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.contract import ArchitectureRecord, Endpoint, Surface, Table, Todo
from orchestrator.prompts.budget import tokens
from orchestrator.prompts.feedback import render_record
from orchestrator.story.context import MAX_LINE, MAX_LINES, contribution, lines_of
from tests.support import breakdown

USERS = Table(name="users", columns=("id INT",), file="schema.sql")
WIDER = Table(name="users", columns=("id INT", "name TEXT"), file="schema.sql")
ROUTE = Endpoint(method="GET", path="/users", file="app.py", target="users")


def plan(**fields: Any) -> Breakdown:
    return Breakdown.model_validate(breakdown("US-1", ["app.py"], **fields))


def surface(*, tables: tuple[Table, ...] = (), endpoints: tuple[Endpoint, ...] = ()) -> Surface:
    return Surface(commit="", files=("app.py",), tables=tables, endpoints=endpoints)


def test_what_the_branch_changed_counts_and_the_plans_words_only_where_sources_show_nothing() -> None:
    told = plan(database_design="a users table", api_design={"GET /users": "all users"})
    part = contribution(told, surface(tables=(USERS,)), surface(tables=(WIDER,)), foundation=False)
    assert (part.tables, part.tables_gone, part.endpoints) == ((WIDER,), (USERS,), ())
    assert part.design == ("interface: GET /users: all users",)
    both = contribution(told, surface(), surface(tables=(USERS,), endpoints=(ROUTE,)), foundation=False)
    assert (both.endpoints, both.design) == ((ROUTE,), ())


def test_todos_get_ids_and_settle_others() -> None:
    told = plan(todos={"add": ["paging", "  ", "sort\nby name"], "remove": ["TODO-US-0-01: done here", "TODO-US-0-02"]})
    part = contribution(told, surface(), surface(), foundation=False)
    assert part.todos == (Todo(id="TODO-US-1-01", text="paging"), Todo(id="TODO-US-1-02", text="sort by name"))
    assert part.todos_done == ("TODO-US-0-01", "TODO-US-0-02")


def test_free_fields_stay_small() -> None:
    assert lines_of(None) == lines_of("") == lines_of([]) == []
    assert lines_of([1, {"a": [True]}, "- x  y"]) == ["1", '{"a": [true]}', "x y"]
    assert len(lines_of("line\n" * 500)) == MAX_LINES
    assert lines_of("x" * 5000) == ["x" * MAX_LINE]


def test_the_architect_reads_what_is_settled_and_by_whom() -> None:
    first = plan(conventions="snake_case", todos={"add": ["paging"]})
    part = contribution(first, surface(), surface(tables=(USERS,), endpoints=(ROUTE,)), foundation=True)
    record = ArchitectureRecord.of([part])
    assert render_record(record) == (
        "Locked conventions (a story that needs another is a conflict):\n- snake_case (US-1)\n\n"
        "Open TODOs:\n- TODO-US-1-01: paging"
    )
    assert render_record(ArchitectureRecord()) == ""
    many = ArchitectureRecord.of(
        [part, *(part.model_copy(update={"story": f"S{n}", "design": (f"{'word ' * 40}{n}",)}) for n in range(300))]
    )
    assert tokens(render_record(many, 500)) <= 500
    assert "snake_case" in render_record(many, 500)
