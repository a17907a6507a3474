"""The architecture record: what the finished stories of a sprint have settled, and for whom it counts."""

from collections.abc import Iterable

from orchestrator.domain.base import Value
from orchestrator.domain.surface import Endpoint, Table

STACK = "tech stack"
"""Stands before what a locked convention says about the tech stack, with a colon."""


class Todo(Value):
    """Something a story left open."""

    id: str
    """`TODO-<story>-NN`, NN by the order in the story's plan."""
    text: str


class Contribution(Value):
    """What one merged story adds to the record; recorded once, with the event `record_updated`."""

    story: str
    conventions: tuple[str, ...] = ()
    """Locked for the stories that follow; the foundation story's alone."""
    tables: tuple[Table, ...] = ()
    """Made or changed by the story, as they stand on its branch."""
    endpoints: tuple[Endpoint, ...] = ()
    tables_gone: tuple[Table, ...] = ()
    """As they stood before."""
    endpoints_gone: tuple[Endpoint, ...] = ()
    design: tuple[str, ...] = ()
    """The plan's own words on schema and interface, where the sources show neither."""
    todos: tuple[Todo, ...] = ()
    todos_done: tuple[str, ...] = ()
    """Ids; those the record does not hold open change nothing."""


class Settled(Value):
    """A line of the record and the story it comes from."""

    story: str
    text: str


class ArchitectureRecord(Value):
    """The sum of contributions, in the order in which their stories were merged."""

    conventions: tuple[Settled, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    """(story that made or last changed it, table)."""
    endpoints: tuple[tuple[str, Endpoint], ...] = ()
    design: tuple[Settled, ...] = ()
    todos: tuple[Todo, ...] = ()
    """The open ones."""

    @property
    def tech_stack(self) -> tuple[str, ...]:
        """What the locked conventions say about the tech stack, line by line."""
        label = f"{STACK}: "
        return tuple(line.text.removeprefix(label) for line in self.conventions if line.text.startswith(label))

    @classmethod
    def of(cls, contributions: Iterable[Contribution]) -> "ArchitectureRecord":
        """Add up; a later story's word on the same table or endpoint replaces the earlier one."""
        conventions: dict[str, Settled] = {}
        tables: dict[tuple[str, ...], tuple[str, Table]] = {}
        endpoints: dict[tuple[str, ...], tuple[str, Endpoint]] = {}
        design: list[Settled] = []
        todos: dict[str, Todo] = {}
        for part in contributions:
            for text in part.conventions:
                conventions.setdefault(text, Settled(story=part.story, text=text))
            for table in part.tables_gone:
                tables.pop(_table_key(table), None)
            for endpoint in part.endpoints_gone:
                endpoints.pop(_endpoint_key(endpoint), None)
            tables.update({_table_key(table): (part.story, table) for table in part.tables})
            endpoints.update({_endpoint_key(endpoint): (part.story, endpoint) for endpoint in part.endpoints})
            design += (Settled(story=part.story, text=text) for text in part.design)
            for done in part.todos_done:
                todos.pop(done, None)
            todos.update({todo.id: todo for todo in part.todos})
        return cls(
            conventions=tuple(conventions.values()),
            tables=tuple(tables.values()),
            endpoints=tuple(endpoints.values()),
            design=tuple(design),
            todos=tuple(todos.values()),
        )


def _table_key(table: Table) -> tuple[str, ...]:
    return table.name.lower(), table.file


def _endpoint_key(endpoint: Endpoint) -> tuple[str, ...]:
    return endpoint.method, endpoint.path, endpoint.file
