"""A sprint: its frozen record, the life of its stories, their recorded outcomes, and the report folded from them."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field, computed_field

from orchestrator.core.delivery import ReviewIssue, Verdict
from orchestrator.core.finding import Finding, Severity
from orchestrator.core.value import Value


class StoryStatus(StrEnum):
    """The life of a story in a sprint."""

    PENDING = "pending"
    EXECUTING = "executing"
    DONE = "done"
    NEEDS_ATTENTION = "needs_attention"
    FAILED = "failed"
    BLOCKED = "blocked"
    CONFLICTED = "conflicted"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether this is an outcome: only `reset` leaves it."""
        return self not in {StoryStatus.PENDING, StoryStatus.EXECUTING}

    @property
    def cell(self) -> str:
        """The word the original CSV uses for it in `Execution_Status`."""
        return {StoryStatus.DONE: "completed", StoryStatus.NEEDS_ATTENTION: "completed_with_failures"}.get(
            self, self.value
        )


class TaskStatus(StrEnum):
    """How far a task of a story has come."""

    PENDING = "pending"
    DONE = "done"
    UNAPPROVED = "unapproved"
    """Its delivery was committed, but its reviews ended without approval, or before everything was read."""
    FAILED = "failed"
    """No delivery was accepted, or its command failed: nothing of it was committed."""


class Gone(Value):
    """One sprint or analysis that went, or would go."""

    name: str
    kind: str
    """sprint or analysis."""
    ended: datetime | None
    """None where an earlier look began to delete it."""
    freed_bytes: int
    """About so many: its files."""


class Pruned(Value):
    """What one look came to."""

    dry_run: bool
    gone: tuple[Gone, ...]
    skipped: tuple[str, ...] = ()
    """Skipped because a process works on it."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def freed_bytes(self) -> int:
        """About so many in all."""
        return sum(one.freed_bytes for one in self.gone)


class Replan(Value):
    """A person's wish that a story is planned again."""

    comment: str
    """What the architect reads."""
    overridden_conflict: str = ""
    """The four texts of the conflict that is overridden; empty when the story did not end in one."""


class BroughtPlan(Value):
    """A person's plan as it was handed in."""

    path: str
    """The file, as it was named."""
    text: str


class SprintRecord(Value):
    """What a sprint was started with; only `generations` and `replans` change later, by `reset` and `replan`, and
    `plans` of stories that have not started."""

    sprint: str
    backlog: str
    """Absolute path of the backlog."""
    repo: str
    """Absolute path of the user's repository."""
    base: str
    """Commit the sprint started from; empty for a repository without commits."""
    story_ids: tuple[str, ...]
    """The frozen selection, in backlog order."""
    titles: dict[str, str] = Field(default_factory=dict)
    """Story → its title when the sprint began; a story that had none, and one of an older record, is absent."""
    criteria: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Story → its acceptance criteria when the sprint began, for stories that have not started; without any: absent."""
    needs: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Story → the stories of the selection it waits for, the foundation rule included."""
    closes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Story → rows that are marked completed with it and not run themselves."""
    done_ids: tuple[str, ...] = ()
    """Stories the backlog called completed when the sprint started."""
    requested: tuple[str, ...] = ()
    """What `--stories` named, if anything."""
    warnings: tuple[Finding, ...] = ()
    generations: dict[str, int] = Field(default_factory=dict)
    """Story → how often it was restarted; absent means 1."""
    replans: dict[str, Replan] = Field(default_factory=dict)
    """Story → what a person said when the present generation was restarted."""
    plans: dict[str, BroughtPlan] = Field(default_factory=dict)
    """Story → a person's plan for it; frozen when the story starts."""
    cleared: bool = False
    """True after a reset of the whole sprint: the next start selects again and keeps only the generations."""
    started_at: datetime
    executor: str = ""
    """Who works on it: the executor id of a daemon; empty: the command `run`."""
    orders: tuple[str, ...] = ()
    """Ids of the orders that gave stories a new generation while the sprint was at work."""

    def workflow_id(self, story_id: str) -> str:
        """`<sprint>/<story>`, with `@N` behind it after resets."""
        generation = self.generations.get(story_id, 1)
        return f"{self.sprint}/{story_id}" + (f"@{generation}" if generation > 1 else "")

    @property
    def result_branch(self) -> str:
        """The branch with the merged stories, in the mirror."""
        return f"orchestrator/{self.sprint}/result"

    def reset(self, story_ids: tuple[str, ...]) -> "SprintRecord":
        """Returns the record with a new generation for these stories, and nothing that was said of the one before."""
        raised = {story: self.generations.get(story, 1) + 1 for story in story_ids}
        replans = {story: said for story, said in self.replans.items() if story not in story_ids}
        return self.model_copy(update={"generations": {**self.generations, **raised}, "replans": replans})

    def replan(self, story_ids: tuple[str, ...], story_id: str, said: Replan) -> "SprintRecord":
        """`reset`, and what a person said about one of them: that the architect plans it, whoever planned it before."""
        after = self.reset(story_ids)
        plans = {story: plan for story, plan in after.plans.items() if story != story_id}
        return after.model_copy(update={"replans": {**after.replans, story_id: said}, "plans": plans})


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

    @property
    def shown_by(self) -> str:
        """How a passing test was seen to fail without what it tests; "" where none of that is known."""
        return ""


class JudgedCase(CaseOutcome):
    """One test of a criterion, with how it ended on other trees."""

    before: str = ""
    """failed | passed | not judged; empty where it was not run there."""
    hollow: str = ""
    """The same with functions that return nothing."""

    @property
    def shown_by(self) -> str:
        """See CaseOutcome; "" for one that does not pass."""
        if self.result != "passed":
            return ""
        if "failed" in {self.before, self.hollow}:
            without = "the story's change" if self.before == "failed" else "what its functions do"
            return f"fails without {without}"
        if "passed" in {self.before, self.hollow}:
            without = "the story's change" if self.before == "passed" else "what its functions do"
            return f"passes without {without} too"
        return "passes only: no other run judged it"


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
    changed: dict[str, str] | None = None
    """Path → A (new), M or D (removed), of its branch against its base; None where there is no branch."""
    blocked_by: tuple[str, ...] = ()
    stop_sprint: bool = False
    """True when the environment lacks what every story needs: the sprint pauses."""


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
    """All that were paid for, like tokens and cost."""
    earlier_calls: int = 0
    """Those of them before the story was reset or planned again."""
    looks: int = 0
    """Calls whose reply only asked to be shown files."""
    duration_s: float
    branch: str | None
    commit: str | None
    changed: dict[str, str] | None = None
    """See StoryOutcome."""
    criteria: tuple[CriterionOutcome, ...] = ()
    """The story's acceptance criteria, in order."""
    healings: tuple[Healing, ...] = ()
    rewritten: tuple[TestRewritten, ...] = ()
    """Tests that were changed, both versions whole."""
    stages: tuple[StageTime, ...] = ()
    """Where the time went; every stage is listed."""
    prompts: tuple[PromptUsed, ...] = ()
    """In the order of their first use."""


class SprintReport(Value):
    """report.json. `totals` holds a count per status, `tokens`, `cost_usd`, `calls`, `looks`, `personas` (each a
    PersonaSpending), `budgets` (each a BudgetState), and, once a run has told them, `sandbox` (SandboxFacts) and `base`
    (BaseTrial)."""

    sprint: str
    stories: tuple[StoryReport, ...]
    totals: dict[str, object]
