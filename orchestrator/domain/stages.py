"""What the product's loops hand to the roles and get back from them."""

from orchestrator.domain.base import Value
from orchestrator.domain.breakdown import Breakdown, Task
from orchestrator.domain.contract import Amendment, ArchitectureContract
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding
from orchestrator.domain.gitfacts import Conflict, MergedStory
from orchestrator.domain.review import Reviewed
from orchestrator.domain.sprint import Replan
from orchestrator.domain.story import Story
from orchestrator.domain.surface import Surface
from orchestrator.domain.testing import FailureInstruction, TestReport, TestSuite


class GivenPlan(Value):
    """A plan that a person brought: it takes the architect's place, not that of the checks."""

    path: str
    """The file it came from."""
    text: str
    """The file's text."""
    breakdown: Breakdown
    findings: tuple[Finding, ...] = ()
    """What the checks of the text say; those of the breakdown are made where it is used."""


class StoryBrief(Value):
    """All that is known about a story before anybody is asked; part of its workflow's frozen input."""

    story: Story
    sprint: str
    sprint_stories: tuple[Story, ...] = ()
    """The sprint's other stories: id, title and acceptance criteria."""
    vision: str = ""
    wireframe: str = ""
    record: str = ""
    """The architecture record as text; empty until a story has contributed to one."""
    tech_stack: tuple[str, ...] = ()
    """What the record says about the tech stack, line by line."""
    plan: GivenPlan | None = None
    """The plan a person brought; None: the architect plans."""
    replan: Replan | None = None
    """What a person said when the story was begun anew."""
    findings: tuple[Finding, ...] = ()
    """Minor ones about missing vision or wireframe files."""


class Planned(Value):
    """The architect's answer: `breakdown` is None when no reply within the budget had the structure of one."""

    breakdown: Breakdown | None
    findings: tuple[Finding, ...] = ()
    previous: str = ""
    """The last answer verbatim, for a revision's feedback."""


class AmendmentBrief(Value):
    """What the architect is told when asked to extend a frozen contract."""

    task: Task
    breakdown: Breakdown
    surface: Surface
    contract: ArchitectureContract
    files: tuple[str, ...]
    """Files outside that the developer delivered."""
    packages: tuple[str, ...]
    """Packages outside that the developer used, as they are imported or named."""
    findings: tuple[Finding, ...]
    """Why the delivery was refused."""


class Amended(Value):
    """The architect's answer: `amendment` is None when nothing (valid) was granted."""

    amendment: Amendment | None
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    """Minor: what was left out of the answer, and why."""


class PastAttempt(Value):
    """A red run, and what was asked for after it."""

    report: TestReport
    instructions: tuple[FailureInstruction, ...] = ()
    suite_fault: str = ""
    """Why the suite was written anew after it."""


class TaskBrief(Value):
    """What the developer is told for one delivery."""

    task: Task
    breakdown: Breakdown
    surface: Surface
    allowed_dependencies: tuple[str, ...]
    modified_files: dict[str, str]
    """Full text of those of the task's files that exist."""
    files: tuple[str, ...] = ()
    """Paths of all files there are, finished tasks' included."""
    done_tasks: tuple[str, ...] = ()
    """One line per finished task of the story."""
    instructions: tuple[FailureInstruction, ...] = ()
    """The tester's instructions for this task's files."""
    failure_output: str = ""
    """Output of a failed run, when there are no instructions to give instead."""
    history: tuple[PastAttempt, ...] = ()
    """Earlier attempts that concerned this task."""
    repeated: str = ""
    """The failure that came back although it was to be mended: another way is wanted."""
    reviews: tuple[Reviewed, ...] = ()
    """What the reviewers said last, unless all of them approved."""


class Delivered(Value):
    """The developer's answer: `delivery` is the last one that had the structure of one."""

    delivery: Delivery | None
    accepted: bool
    """True when the last reply satisfied every check and its command."""
    findings: tuple[Finding, ...] = ()
    """Findings of the last reply; minor ones when accepted."""
    by: str = ""
    """The persona that delivered, where that is told."""


class MergeBrief(Value):
    """What the developer is told when its story and what was merged before it do not go together."""

    work: TaskBrief
    """The task that is asked for it: its files are all that may be written, as merged, conflicts marked."""
    merged: tuple[MergedStory, ...] = ()
    """What was merged since the story began."""
    conflicts: tuple[Conflict, ...] = ()
    red: str = ""
    """Why the merged tree was turned down, with the failing tests' output."""
    result_diff: str = ""
    story_diff: str = ""
    """What each side changed, for a red tree."""
    said: tuple[Finding, ...] = ()
    """What a person says about it, and why an earlier answer was refused."""


class OlderTest(Value):
    """An older test file that the plan has rewritten."""

    path: str
    reason: str
    text: str
    """As it is."""


class Faulty(Value):
    """A suite that is to be written once more, and why."""

    suite: TestSuite
    reason: str


class SuiteBrief(Value):
    """What the tester is told when asked for a suite."""

    breakdown: Breakdown
    surface: Surface
    files: dict[str, str]
    """Full text of the files the story delivered."""
    older: tuple[OlderTest, ...] = ()
    """Older test files to be rewritten with it."""
    faulty: Faulty | None = None
    """The suite it takes the place of."""


class Written(Value):
    """The tester's suite, or None when no reply within the budget was one."""

    suite: TestSuite | None
    findings: tuple[Finding, ...] = ()


class FailureBrief(Value):
    """What the tester is told when asked to analyse a failed run."""

    suite: TestSuite
    report: TestReport
    files: dict[str, str]
    task_files: dict[str, tuple[str, ...]]
    """Task id → the files it may change."""
    history: tuple[PastAttempt, ...] = ()
    """All earlier attempts of the story."""
    older: dict[str, str] = {}
    """Texts of older test files that fail now: the story's own suite is green."""
    environment: str = ""
    """What the environment lacks, where the story's files may do without it."""


class Analysed(Value):
    """The tester's instructions; empty when no reply within the budget held any."""

    instructions: tuple[FailureInstruction, ...] = ()
    suite_fault: str = ""
    """Why the suite itself is wrong, if the tester says so."""
    environment: str = ""
    """What the environment lacks, if the tester says so."""
    findings: tuple[Finding, ...] = ()
