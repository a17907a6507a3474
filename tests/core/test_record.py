"""The architecture record adds up what stories contribute."""

from orchestrator.core.contract import ArchitectureRecord, Contribution, Settled, Todo

FIRST = Contribution(
    story="A",
    conventions=("names are English", "names are English"),
    todos=(Todo(id="TODO-A-01", text="paging"), Todo(id="TODO-A-02", text="sorting")),
)
SECOND = Contribution(
    story="B",
    todos=(Todo(id="TODO-B-01", text="caching"),),
    todos_done=("TODO-A-01", "TODO-Z-09"),
)


def test_later_stories_replace_settle_and_add() -> None:
    record = ArchitectureRecord.of([FIRST, SECOND])
    assert record.conventions == (Settled(story="A", text="names are English"),)
    assert [todo.id for todo in record.todos] == ["TODO-A-02", "TODO-B-01"]


def test_without_a_story_its_part_is_as_if_it_had_not_been() -> None:
    assert [todo.id for todo in ArchitectureRecord.of([FIRST]).todos] == ["TODO-A-01", "TODO-A-02"]
    assert ArchitectureRecord.of([]) == ArchitectureRecord()
