"""A person's task plan as it was read: a goal, tasks under their own numbers, packages."""

from orchestrator.domain.base import Value


class PlannedTask(Value):
    """One task of the plan, under the number its author gave it."""

    number: str
    """`1` or `2.1`."""
    title: str = ""
    """What stands behind the number in its heading; may be empty."""
    text: str
    """Its whole section, the heading included, as it was written."""
    files: tuple[str, ...] = ()
    """What it creates or modifies, each once and in the author's order, as paths and not yet judged."""
    command: str | None = None
    depends_on: tuple[str, ...] = ()
    """Numbers of tasks; a text that names none stands as it is."""
    line: int
    """1-based line of the heading."""

    @property
    def name(self) -> str:
        """What the author calls it: `Task 2.1`."""
        return f"Task {self.number}"

    @property
    def told(self) -> str:
        """The section with its heading as a plain line, as whoever works on the task is told it."""
        heading = f"{self.name}: {self.title}" if self.title else self.name
        _, _, body = self.text.partition("\n")
        return f"{heading}\n{body}" if body.strip() else heading


class TaskPlan(Value):
    """A plan that a person brings for one story. Read from its text by rules; nothing in it was made up."""

    path: str = ""
    """The file it came from, as it was named."""
    goal: str = ""
    tasks: tuple[PlannedTask, ...] = ()
    packages: tuple[str, ...] = ()
    """Requirements that the plan adds, as they were written."""
    dev_packages: tuple[str, ...] = ()
    tech_stack: str = ""
    head: str = ""
    """What stands before the first task, as it was written: architecture, conventions, the goal itself."""

    @property
    def key_files(self) -> tuple[str, ...]:
        """Every file that a task names, each once."""
        return tuple(dict.fromkeys(path for task in self.tasks for path in task.files))

    @property
    def task_count(self) -> int:
        """How many tasks it has."""
        return len(self.tasks)
