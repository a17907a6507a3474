"""Stories, and what a backlog is once it is read."""

from enum import IntEnum

from orchestrator.domain.base import Value
from orchestrator.domain.findings import Finding


class Priority(IntEnum):
    """Lower runs first among stories that are ready at once."""

    CRITICAL = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3


class Story(Value):
    """One backlog row, typed. Texts are as written; `dependencies` holds ids of other rows only."""

    id: str
    title: str
    user_story: str = ""
    functional_requirements: str = ""
    non_functional_requirements: str = ""
    integrations: str = ""
    dependencies: tuple[str, ...] = ()
    """Ids of rows this story waits for, in the order written, without duplicates."""
    dependency_note: str = ""
    """The dependency cell as written."""
    constraints: str = ""
    acceptance_criteria: tuple[str, ...] = ()
    """One entry per criterion, without its number."""
    priority: Priority = Priority.MEDIUM
    vision_ref: str = ""
    wireframe_ref: str = ""
    notes: str = ""
    sprint_id: str = ""
    execution_status: str = ""
    """The cell as written; `completed` counts as done."""
    foundation: bool = False
    closes: tuple[str, ...] = ()
    """Ids that are closed with this story, without duplicates; an id that is no row's is a finding of the checks."""
    file: str = ""
    """Name of the story's own file, where the backlog is a folder."""
    line: int = 0
    """1-based line of the row in the backlog file; 0 when it has none."""

    @property
    def completed(self) -> bool:
        """Whether the backlog itself says this story is done already."""
        return self.execution_status.strip().lower() == "completed"


class BacklogContent(Value):
    """A whole backlog as read: the stories in file order and every problem found on the way."""

    source: str
    """The path as the user gave it."""
    stories: tuple[Story, ...]
    problems: tuple[Finding, ...] = ()

    def story(self, story_id: str) -> Story | None:
        """The row with this id, or None."""
        return next((story for story in self.stories if story.id == story_id), None)


class CellUpdate(Value):
    """New cell values of one row, by original column name (`Execution_Status`, `Sprint_ID`, …)."""

    story_id: str
    cells: dict[str, str]
