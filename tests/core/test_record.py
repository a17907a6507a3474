"""The architecture record adds up what stories contribute."""

from orchestrator.core.contract import ArchitectureRecord, Contribution, Endpoint, Settled, Table, Todo


def table(name: str, *columns: str) -> Table:
    return Table(name=name, columns=columns, file="schema.sql")


def endpoint(path: str, target: str = "") -> Endpoint:
    return Endpoint(method="GET", path=path, file="app.py", target=target)


FIRST = Contribution(
    story="A",
    conventions=("names are English", "names are English"),
    tables=(table("users", "id INT"), table("old", "a INT")),
    endpoints=(endpoint("/users", "list_users"),),
    design=("interface: a command line",),
    todos=(Todo(id="TODO-A-01", text="paging"), Todo(id="TODO-A-02", text="sorting")),
)
SECOND = Contribution(
    story="B",
    tables=(table("Users", "id INT", "name TEXT"),),
    tables_gone=(table("users", "id INT"), table("old", "a INT")),
    endpoints=(endpoint("/users", "all_users"), endpoint("/")),
    endpoints_gone=(endpoint("/users", "list_users"),),
    todos=(Todo(id="TODO-B-01", text="caching"),),
    todos_done=("TODO-A-01", "TODO-Z-09"),
)


def test_later_stories_replace_settle_and_add() -> None:
    record = ArchitectureRecord.of([FIRST, SECOND])
    assert record.conventions == (Settled(story="A", text="names are English"),)
    assert [(story, known.name, len(known.columns)) for story, known in record.tables] == [("B", "Users", 2)]
    assert [(story, known.target) for story, known in record.endpoints] == [("B", "all_users"), ("B", "")]
    assert [todo.id for todo in record.todos] == ["TODO-A-02", "TODO-B-01"]
    assert record.design == (Settled(story="A", text="interface: a command line"),)


def test_without_a_story_its_part_is_as_if_it_had_not_been() -> None:
    assert [todo.id for todo in ArchitectureRecord.of([FIRST]).todos] == ["TODO-A-01", "TODO-A-02"]
    assert ArchitectureRecord.of([]) == ArchitectureRecord()
