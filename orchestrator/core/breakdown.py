"""The architect's plan of a story, a person's task plan, and what the checks say about a plan as a whole."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import Field

from orchestrator.core.finding import Finding, Severity, blocking
from orchestrator.core.value import AnswerValue, Value

# Two digits, a third one only behind 99; no leading zero makes two spellings of one number.
_TASK_ID = re.compile(r"^T-(?P<story>[A-Za-z0-9._-]+)-(?P<number>[0-9]{2}|[1-9][0-9]{2,3})\Z")
_TWO_DIGITS = 99  # ids have two digits up to here


def task_name(story_id: str, number: int) -> str:
    """`T-{story_id}-NN`."""
    return f"T-{story_id}-{number:02d}"


def task_number(task_id: str, story_id: str, tasks: int = 0) -> int | None:
    """NN of a well-formed task id of the story, else None; more than two digits only where `tasks` exceed them."""
    match = _TASK_ID.match(task_id)
    if match is None or match["story"] != story_id or (len(match["number"]) > 2 and tasks <= _TWO_DIGITS):
        return None
    return int(match["number"])


class ArchitecturalConflict(AnswerValue):
    """Whether the story contradicts the architecture; the four texts are required when it does."""

    detected: bool
    current_architecture: str = ""
    story_requirement: str = ""
    conflict_reason: str = ""
    recommended_action: str = ""

    @property
    def told(self) -> str:
        """The four texts as one sentence for people."""
        return (
            f"current architecture: {self.current_architecture}; the story requires: {self.story_requirement}; "
            f"reason: {self.conflict_reason}; recommended: {self.recommended_action}"
        )


class Task(AnswerValue):
    """One unit of work for the developer."""

    task_id: str
    description: str
    files_to_create: tuple[str, ...]
    """Every file created OR modified. Checked paths (breakdown checks strike what is unsafe)."""
    command_to_run: str | None = None
    dependencies: tuple[str, ...] = ()
    """Task ids of the same story."""
    dependency_reason: str = ""

    @property
    def command(self) -> str | None:
        """The command, or None when it is absent or blank."""
        return (self.command_to_run or "").strip() or None


class PackageDependencies(AnswerValue):
    """Packages the story adds: name → version, as in package.json; `*` when no version was said."""

    dependencies: dict[str, str] = Field(default_factory=dict)
    devDependencies: dict[str, str] = Field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """All names as written, both groups."""
        return frozenset(self.dependencies) | frozenset(self.devDependencies)


class AcceptanceTest(AnswerValue):
    """What one acceptance criterion asks a test to show."""

    criterion: str
    test: str = ""


class TestToChange(AnswerValue):
    """An older test file whose assertions this story changes, with the reason."""

    __test__ = False

    file: str
    reason: str = ""


class Todos(AnswerValue):
    """Changes to the open TODOs of the architecture record."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class Breakdown(AnswerValue):
    """A story's plan: tasks, declared packages, and the notes later stages read. Built by checks.breakdown only."""

    story_id: str
    architectural_conflict: ArchitecturalConflict
    task_count: int
    tasks: tuple[Task, ...]
    dependencies: PackageDependencies = PackageDependencies()
    acceptance_tests: tuple[AcceptanceTest, ...] = ()
    tests_to_change: tuple[TestToChange, ...] = ()
    database_design: Any = None
    api_design: Any = None
    code_patterns: Any = None
    conventions: Any = None
    tech_stack: Any = None
    todos: Todos = Todos()
    technical_notes: Any = None

    def task(self, task_id: str) -> Task | None:
        """Returns the task with this id, or None."""
        return next((task for task in self.tasks if task.task_id == task_id), None)


class PlannedTask(Value):
    """One task of the plan, under the number its author gave it."""

    number: str
    """`1` or `2.1`, without zeros before it."""
    name: str
    """What the author calls it: `Task 2.1`, `T001`."""
    title: str = ""
    text: str
    """Its whole section, the heading included, as it was written."""
    files: tuple[str, ...] = ()
    """What it creates or modifies, each once, as paths and not yet judged; no tests."""
    tests: tuple[str, ...] = ()
    """The test files that it names, which are the tester's."""
    command: str | None = None
    depends_on: tuple[str, ...] = ()
    """Numbers of tasks."""
    line: int
    done: bool = False
    """Whether its box is ticked, and none below it is open."""

    @property
    def told(self) -> str:
        """The section with its heading as a plain line, for developer and tester."""
        heading = f"{self.name}: {self.title}" if self.title else self.name
        _, _, body = self.text.partition("\n")
        return f"{heading}\n{body}" if body.strip() else heading


class TaskPlan(Value):
    """A plan that a person brings for one story; nothing in it was made up."""

    path: str = ""
    goals: tuple[str, ...] = ()
    """What is called so; else what may say its goal: the title, the first paragraph."""
    tasks: tuple[PlannedTask, ...] = ()
    packages: tuple[str, ...] = ()
    """Requirements that the plan adds, as they were written."""
    dev_packages: tuple[str, ...] = ()
    head: str = ""
    """What stands before the first task, as it was written."""
    headed: bool = False
    """Whether its tasks stand under headings `Task N`."""


class TaskPlanReading(NamedTuple):
    """A plan, and what of its text could not be read."""

    plan: TaskPlan
    findings: tuple[Finding, ...] = ()
    """Major where a task would be lost, a question where a path would be."""


class PlanValidationResult(Value):
    """A judged plan. Built by `of`."""

    issues: tuple[Finding, ...] = ()
    """Findings of major severity or worse: what makes it invalid."""
    notes: tuple[Finding, ...] = ()
    """Minor findings; they never change `valid`."""

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "PlanValidationResult":
        """Returns the result that these findings mean."""
        found = tuple(findings)
        return cls(issues=blocking(found), notes=tuple(finding for finding in found if not finding.severity.blocks))

    @property
    def valid(self) -> bool:
        """Whether nothing major was found."""
        return not self.issues

    @property
    def severity(self) -> Severity:
        """none when valid; major with one issue, critical with two or more, or the highest finding's if higher."""
        if self.valid:
            return Severity.NONE
        counted = Severity.MAJOR if len(self.issues) == 1 else Severity.CRITICAL
        return max([counted, *(issue.severity for issue in self.issues)], key=lambda severity: severity.rank)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Issues first, then notes."""
        return (*self.issues, *self.notes)
