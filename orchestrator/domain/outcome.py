"""What became of stories: recorded outcomes and the report folded from them."""

from pydantic import Field

from orchestrator.domain.base import Value
from orchestrator.domain.findings import Finding, Severity
from orchestrator.domain.review import ReviewIssue, Verdict
from orchestrator.domain.status import StoryStatus, TaskStatus


class ReviewOutcome(Value):
    """What one reviewer said of a task's change, in short."""

    iteration: int
    """Which review of the task, from 1; several reviewers share it."""
    by: str
    """The reviewer's configured name."""
    verdict: Verdict
    severity: Severity
    """Of its gravest issue."""
    issues: int
    approved: bool


class TaskOutcome(Value):
    """How far one task came."""

    id: str
    status: TaskStatus
    reviews: tuple[ReviewOutcome, ...] = ()
    """In order; empty where nothing was reviewed."""
    comments: tuple[ReviewIssue, ...] = ()
    """What reviewers left open in the end; none when they approved."""


class CaseOutcome(Value):
    """One test of the story's suite, for the report."""

    name: str
    criterion: str = ""
    result: str
    """passed | failed | error | skipped | missing."""


class JudgedCase(CaseOutcome):
    """One test of a criterion, with how it ended on other trees."""

    before: str = ""
    """failed | passed | not judged; empty where it was not run there."""
    hollow: str = ""
    """The same with functions that return nothing."""


class TestsOutcome(Value):
    """The last deciding run of the story's own suite."""

    __test__ = False

    run: int = 0
    passed: int = 0
    failed: int = 0
    cases: tuple[CaseOutcome, ...] = ()


class CriterionOutcome(Value):
    """One acceptance criterion and the tests that say they show it; none: it is not covered."""

    criterion: str
    tests: tuple[JudgedCase, ...] = ()


class Healing(Value):
    """Something that was not right and how it went on, as the event log tells it."""

    event: str
    message: str
    task: str | None = None


class TestRewritten(Value):
    """A test file that got another text: an older one as the plan wants it, or the story's own with its reason."""

    __test__ = False

    file: str
    reason: str
    before: str
    after: str


class StageTime(Value):
    """Time that a story spent in one stage."""

    stage: str
    duration_s: float


class Tokens(Value):
    """Sums over paid replies. `input` includes `cached`."""

    input: int = 0
    cached: int = 0
    output: int = 0


class PromptUsed(Value):
    """A prompt that was sent, and the version of its text; several versions mean that it was changed in between."""

    name: str
    version: str


class StoryOutcome(Value):
    """How one story ended: the result of its workflow."""

    id: str
    status: StoryStatus
    attempts: int = 0
    """Story attempts: test runs that decided something, at least 1 once tests ran."""
    tasks: tuple[TaskOutcome, ...] = ()
    tests: TestsOutcome = TestsOutcome()
    before: dict[str, str] = Field(default_factory=dict)
    """How each test of the suite ended on the tree without the story's change, by name; see JudgedCase."""
    hollow: dict[str, str] = Field(default_factory=dict)
    """How each ended with functions that return nothing; see JudgedCase."""
    findings: tuple[Finding, ...] = ()
    branch: str | None = None
    commit: str | None = None
    """Head of the story's branch; the merge commit when it was merged."""
    blocked_by: tuple[str, ...] = ()
    stop_sprint: bool = False
    """True when the cause concerns every story (credentials, the environment): the sprint pauses."""


class StoryReport(Value):
    """One story in report.json."""

    id: str
    title: str = ""
    status: StoryStatus
    attempts: int
    tasks: tuple[TaskOutcome, ...]
    tests: TestsOutcome
    findings: tuple[Finding, ...]
    tokens: Tokens
    cost_usd: float | None
    """None when any call's price is unknown."""
    calls: int
    duration_s: float
    branch: str | None
    commit: str | None
    criteria: tuple[CriterionOutcome, ...] = ()
    """The story's acceptance criteria, in order."""
    healings: tuple[Healing, ...] = ()
    rewritten: tuple[TestRewritten, ...] = ()
    """Tests that were changed, both versions whole."""
    stages: tuple[StageTime, ...] = ()
    """Where the time went; every stage is listed."""
    prompts: tuple[PromptUsed, ...] = ()
    """In the order of their first use."""


class FormOutcome(Value):
    """How well answers that bring files were read, for one model and one form."""

    model: str
    """Empty for the scripted team."""
    form: str
    """plan or json."""
    answers: int
    whole: int = 0
    """Read as they stood."""
    mended: int = 0
    cut_off: int = 0
    unreadable: int = 0


class SprintReport(Value):
    """report.json. `totals` holds a count per status, `tokens`, `cost_usd`, `calls`, `forms` (each a FormOutcome), and,
    once a run has told them, `sandbox` (SandboxFacts) and `base` (BaseTrial)."""

    sprint: str
    stories: tuple[StoryReport, ...]
    totals: dict[str, object]
