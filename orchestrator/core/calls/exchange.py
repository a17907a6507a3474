"""What goes to a model and comes back: prompts, replies, scripted entries, the briefs of personas."""

import hashlib
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from orchestrator.core.breakdown import Breakdown, Task, TestToChange
from orchestrator.core.contract import Amendment, ArchitectureContract, Surface
from orchestrator.core.delivery import Conflict, Delivery, MergedStory, Reviewed
from orchestrator.core.finding import Finding
from orchestrator.core.sprint import BroughtPlan, Replan
from orchestrator.core.story import Story
from orchestrator.core.suite import FailureInstruction, TestReport, TestSuite
from orchestrator.core.value import AnswerValue, Value


class Purpose(StrEnum):
    """Why a persona is asked."""

    BREAKDOWN = "breakdown"
    BREAKDOWN_MISSING = "breakdown_missing"
    DELIVERY = "delivery"
    CONTINUATION = "continuation"
    REVIEW = "review"
    SUITE = "suite"
    ANALYSIS = "analysis"
    REPAIR = "repair"
    AMENDMENT = "amendment"
    MERGE = "merge"
    STAGE = "stage"


OPTIONAL_PURPOSES = frozenset({Purpose.REPAIR, Purpose.BREAKDOWN_MISSING, Purpose.CONTINUATION})
"""Purposes whose missing script entry is an unusable reply instead of a permanent error."""


EASY_PURPOSES = frozenset({Purpose.REPAIR})
"""What the cheap model is asked for: small requests that share no cached beginning with those of other purposes."""


class TurnKey(Value):
    """What a call is counted and looked up by; together with the turn it names one paid call."""

    persona: str
    story: str
    task: str | None = None
    purpose: Purpose

    @property
    def what(self) -> str:
        """Returns what is asked for, for people."""
        return f"{self.purpose} {self.task}" if self.task else str(self.purpose)

    def __str__(self) -> str:
        return f"persona={self.persona} story={self.story} task={self.task} purpose={self.purpose}"


class Segment(Value):
    """A stretch of prompt text that changes at one pace; a provider may put a cache breakpoint behind it."""

    name: str
    """role | rules | contract | project | sprint | story | task | feedback …"""
    text: str


class Prompt(Value):
    """One request to a persona: the first segment is the system text, the others follow stable-first."""

    key: TurnKey
    turn: int = 0
    """1-based once the engine has filled it in; 0 before."""
    segments: tuple[Segment, ...]
    name: str = ""
    """Name of the prompt's file; "" for one that comes from no file."""
    version: str = ""
    """Hash of the prompt's text as it was in the files, before anything was filled in."""
    schema_name: str | None = None
    """Stem of the answer's schema in contracts/: what it is held against, in whatever form it comes."""
    answer_form: Literal["any", "json", "json_or_look"] = "any"
    """json: nothing but JSON of the schema answers the prompt, or JSON that asks for files, so that a service may be
    held to it."""
    stronger: bool = False
    """Whether the persona's stronger model is to answer, where one is configured."""
    temperature: float | None = None
    """None: the service's own."""

    @property
    def text(self) -> str:
        """The whole prompt as one text."""
        return "\n\n".join(segment.text for segment in self.segments)

    @cached_property
    def hash(self) -> str:
        """sha256 of the whole text, the first 16 hexadecimal digits."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Usage(Value):
    """Tokens of one call. `input` includes cached tokens."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    """Of `output`, those of thoughts before the answer."""


class StopReason(StrEnum):
    """Why the model stopped, in our words."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    REFUSAL = "refusal"
    INTERRUPTED = "interrupted"
    """The stream broke, or went on without end: what had come is there, and its tokens are estimated."""
    UNKNOWN = "unknown"


class FailedCall(Value):
    """One call that ended in an error; a transient one is followed by another under the transport policy."""

    turn: int
    kind: str
    message: str
    code: str = ""
    """Code of the finding it becomes when it is final."""
    permanent: bool = False
    """Whether the same request can never succeed."""
    row: str | None = None
    """See TransientProviderError: only the first call of a row is an attempt, and is kept."""
    provider_name: str = ""
    original_message: str = ""
    """What the provider said, capped."""


class Reply(Value):
    """A provider's answer, raw and whole."""

    key: TurnKey
    turn: int
    text: str
    stop_reason: StopReason = StopReason.END_TURN
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    """None when the price is unknown."""
    model: str = ""
    provider: str = ""
    duration_ms: int = 0
    reasoning: str = ""
    """What the model thought before it answered, as far as its service shows it. Kept in the journal alone."""
    unconstrained: str = ""
    """Why the service was not held to the answer's schema although it was to be, where that is to be told."""
    paid: bool = True
    """False for the stand-in of an optional script entry that does not exist."""
    failed_calls: tuple[FailedCall, ...] = ()
    """Calls of the same turn key that failed before this one succeeded, in order."""
    in_place_of: str = ""
    """Why another model than the usual one answered; "" where it did."""
    left_out: tuple[str, ...] = ()
    """Settings that requests go without since the reply before, because the service takes none of them."""

    @property
    def without(self) -> str:
        """Returns what is said of settings that were left out; "" where there are none."""
        lacking = f"{self.model or self.provider} takes no {', '.join(self.left_out)}"
        return f"; {lacking}: requests go without from now on" if self.left_out else ""


TRANSIENT_KINDS = frozenset({"rate_limit", "overloaded", "timeout", "connection"})

ErrorKind = Literal["rate_limit", "overloaded", "timeout", "connection", "auth", "model", "bad_request"]


def _known_stop(word: Any) -> Any:
    return word if isinstance(word, str) and word in set(StopReason) else StopReason.UNKNOWN


class ScriptEntry(AnswerValue):
    """A scripted reply or error, looked up by (persona, story, task, purpose, turn)."""

    persona: str
    story: str
    task: str | None = None
    purpose: Purpose
    turn: int = Field(default=1, ge=1)
    text: str = ""
    stop_reason: Annotated[StopReason, BeforeValidator(_known_stop)] = StopReason.END_TURN
    """A word we do not know becomes `unknown`."""
    input_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    latency_ms: int = Field(default=0, ge=0)
    """Really waited before the reply is handed over."""
    error: ErrorKind | None = None
    retry_after_s: float | None = Field(default=None, ge=0)
    model: str = "scripted"
    cost_usd: float | None = 0.0
    paid: bool = True
    """False for a recorded stand-in of an optional entry that did not exist."""
    prompt: str = ""
    """Of a recorded call: the name of the prompt's file, the hash of its text there, and that of the whole prompt."""
    prompt_version: str = ""
    prompt_hash: str = ""

    @property
    def lookup(self) -> tuple[str, str, str | None, Purpose, int]:
        """The key this entry answers."""
        return (self.persona, self.story, self.task, self.purpose, self.turn)


class StoryBrief(Value):
    """Everything known about a story before the first request; part of its workflow's frozen input."""

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
    plan: BroughtPlan | None = None
    """A person's plan that is built as it stands; None: the architect plans."""
    followed: BroughtPlan | None = None
    """A person's text that the architect follows."""
    replan: Replan | None = None
    """What a person said when the story was restarted."""
    findings: tuple[Finding, ...] = ()
    """Minor ones about missing vision or wireframe files."""


class Planned(Value):
    """The architect's answer: `breakdown` is None when no reply within the budget had the structure of one."""

    breakdown: Breakdown | None
    findings: tuple[Finding, ...] = ()
    previous: str = ""
    """The last answer verbatim, for a revision's feedback."""


class AmendmentBrief(Value):
    """What the architect reads when asked to extend a frozen contract."""

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
    tests: tuple[TestToChange, ...] = ()
    """Failing older tests that the tester wants to change, in place of files and packages."""
    done_tasks: tuple[str, ...] = ()
    """The story's finished tasks."""


class Amended(Value):
    """The architect's answer: `amendment` is None when nothing (valid) was granted."""

    amendment: Amendment | None
    tests: tuple[str, ...] = ()
    """Older test files that the tester may change."""
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    """Minor: what was left out of the answer, and why."""


class PastAttempt(Value):
    """A red run, and what was asked for after it."""

    report: TestReport
    instructions: tuple[FailureInstruction, ...] = ()
    suite_fault: str = ""
    """Why the suite was rewritten after it."""


class TaskBrief(Value):
    """What the developer reads for one delivery."""

    task: Task
    breakdown: Breakdown
    surface: Surface
    allowed_dependencies: tuple[str, ...]
    modified_files: dict[str, str]
    """Full text of those of the task's files that exist."""
    parts: dict[str, str] = {}
    """What is shown of those that are long: an outline, and the parts that the task is about."""
    nearby: str = ""
    """What the files around them define."""
    versions: dict[str, str] = {}
    """Allowed package → the version that a manifest or the plan asks for."""
    files: tuple[str, ...] = ()
    """Paths of all files there are, finished tasks' included."""
    done_tasks: tuple[str, ...] = ()
    """What each finished task of the story made; one more is added behind the others."""
    instructions: tuple[FailureInstruction, ...] = ()
    """The tester's instructions for this task's files."""
    failure_output: str = ""
    """Output of a failed run, when there are no instructions to give instead."""
    analysed: str = ""
    """What else the tester says of that run: of the suite, the environment, files of no task."""
    refused: tuple[Finding, ...] = ()
    """Why the task's last delivery was not taken, or not all of it."""
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
    """The persona that delivered, if known."""


class MergeBrief(Value):
    """What the developer reads when its story and what was merged before it do not go together."""

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
    """What the tester reads when asked for a suite."""

    breakdown: Breakdown
    surface: Surface
    """The project before the story."""
    files: dict[str, str]
    """Full text of the files the story delivered."""
    parts: dict[str, str] = {}
    """What is shown of the long ones."""
    older: tuple[OlderTest, ...] = ()
    """Older test files to be rewritten with it."""
    place: str = ""
    """The test file that the tests go into: one that covers the subject, or a new one named as its neighbours; "" where
    nothing can be said."""
    covered: str | None = None
    """Text of that file before the story; None where it is new."""
    near: dict[str, str] = {}
    """Texts of the nearest existing tests and of the helpers that they use."""
    skipped: tuple[str, ...] = ()
    """Older tests, of files that the suite may change, that were skipped at the base commit."""
    faulty: Faulty | None = None
    """The suite it takes the place of."""


class Written(Value):
    """The tester's suite, or None when no reply within the budget was one."""

    suite: TestSuite | None
    findings: tuple[Finding, ...] = ()


class FailureBrief(Value):
    """What the tester reads when asked to analyse a failed run."""

    surface: Surface
    """The project before the story."""
    suite: TestSuite
    report: TestReport
    files: dict[str, str]
    parts: dict[str, str] = {}
    """What is shown of the long ones."""
    task_files: dict[str, tuple[str, ...]]
    """Task id → the files it may change."""
    history: tuple[PastAttempt, ...] = ()
    """All earlier attempts of the story."""
    older: dict[str, str] = {}
    """Texts of older test files that fail now: the story's own suite is green."""
    environment: str = ""
    """What the environment lacks, where the story's files may do without it."""
    tests_to_change: tuple[TestToChange, ...] = ()
    """Older tests that the story changes on purpose, by its plan."""


class Analysed(Value):
    """The tester's instructions; empty when no reply within the budget held any."""

    instructions: tuple[FailureInstruction, ...] = ()
    suite_fault: str = ""
    """Why the suite itself is wrong, if the tester says so."""
    environment: str = ""
    """What the environment lacks, if the tester says so."""
    tests_to_change: tuple[TestToChange, ...] = ()
    """Failing older tests that expect what the story changes on purpose, if the tester says so."""
    findings: tuple[Finding, ...] = ()
