"""State shared by the stages of a running story, its part of the architecture record, and test runs in words."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import StoryBrief
from orchestrator.core.command import Loop, decided
from orchestrator.core.contract import STACK, Contribution, InstalledPackages, Surface, Todo
from orchestrator.core.delivery import Answer, Branch, CommitNote, Reviewed
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, major
from orchestrator.core.ports import Architect, Developer, Reviewer, Step, SuiteRunner, Tester, Workspace
from orchestrator.core.sprint import CaseOutcome, TaskStatus, TestsOutcome
from orchestrator.core.suite import NO_RUNNER, PROBLEMS, RunProblem, TestReport, TestSuite
from orchestrator.core.value import counted, cut_at_word, listed
from orchestrator.prompts.context import render_done_task
from orchestrator.settings import Policies
from orchestrator.story.older_tests import OlderTests

T = TypeVar("T")

SCANS_AT_ONCE = 2
"""Limits memory: a scan's input, and its result on the way into the record, are as large as the project."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The ports and frozen inputs of all stages of a story."""

    brief: StoryBrief
    policies: Policies
    step: Step
    architect: Architect
    developer: Developer
    tester: Tester
    reviewers: tuple[Reviewer, ...] = ()
    """All of them review every task's change and must approve; empty: no review."""
    workspace: Workspace
    runner: SuiteRunner
    older: OlderTests
    scans: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SCANS_AT_ONCE))
    """Held while a project is read; shared by all stories of a run, because each reads and parses hundreds of files."""

    @property
    def story_id(self) -> str:
        """Id of the running story."""
        return self.brief.story.id

    @property
    def environment_key(self) -> str:
        """Name of the story's dependency environment."""
        return environment_of(self.step.workflow_id)

    async def do(self, name: str, returns: type[T], work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Runs `work(*args)` as a durable step of this name and returns its result."""
        return await self.step.step(name, lambda _step_id: work(*args), returns)

    async def read(self, paths: Sequence[str], name: str = "read") -> dict[str, str]:
        """Returns texts of files on the story's branch, as a durable step."""
        return await self.do(name, dict[str, str], self.workspace.read, self.story_id, paths)

    async def decide(
        self,
        name: str,
        message: str,
        loop: Loop,
        verdict: StrEnum,
        *,
        findings: Iterable[Finding] = (),
        attempt: int,
        left: int,
        level: Level = Level.INFO,
        task: str | None = None,
        **data: Any,
    ) -> None:
        """Records a decision of one of the loops; `left` of its budget remain."""
        said = decided(loop, verdict, findings=findings, attempt=attempt, budget_left=left)
        await self.step.emit(name, message, level=level, task=task, **data, **said)

    def note(self, subject: str, step_id: str, task: str = "", body: str = "") -> CommitNote:
        """Returns message and trailers for a commit of this story."""
        return CommitNote(
            subject=subject, body=body, sprint=self.brief.sprint, story=self.story_id, task=task, step=step_id
        )


def environment_of(workflow_id: str) -> str:
    """Returns the name of a workflow's environment; unique, because ids never have two dots in a row."""
    return workflow_id.replace("/", "..").replace("@", "..")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Result of the attempts of a story's suite."""

    suite: TestSuite
    report: TestReport
    """The last run of the suite."""
    broken: TestReport | None = None
    """Run of the whole suite, when tests stay red in it."""
    attempts: int
    plan: Breakdown
    """With the older tests that the tester was allowed to change."""
    before: dict[str, str] = field(default_factory=dict)
    """Result of each test on the tree without the story's change, by name; see fail_before.Ended."""
    hollow: dict[str, str] = field(default_factory=dict)
    """Result of each with functions that return nothing; empty without such a run."""

    @property
    def of_older(self) -> bool:
        """Whether tests that the story found there prevent its merge: its own are green, and not the whole suite."""
        return self.broken is not None and any(case.file not in self.suite.files for case in self.broken.failing)

    @property
    def red(self) -> TestReport | None:
        """The run that prevents the story's merge, or None."""
        return self.broken or (None if self.report.green else self.report)


class ReviewRound(NamedTuple):
    """One review of a task's change."""

    answer: Answer
    """What came with the delivery that was reviewed."""
    reviews: tuple[Reviewed, ...]
    """Every reviewer's result."""


@dataclass
class TaskReviews:
    """Reviews of one task's change so far, over the whole story."""

    since: str
    """The commit before the task's first delivery."""
    paths: set[str] = field(default_factory=set)
    """Files that its deliveries wrote or removed."""
    rounds: list[ReviewRound] = field(default_factory=list)
    answer: Answer = field(default_factory=Answer)
    """What came with the last delivery."""
    read: str = ""
    """The change in the last review."""
    unread: bool = False
    """True when the change differs from the last reviewed one."""


@dataclass
class Progress:
    """The story's state so far; rebuilt in the same order when its workflow is replayed."""

    branch: Branch
    surface: Surface
    findings: list[Finding] = field(default_factory=list)
    tasks: dict[str, TaskStatus] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    """Task → what its last commit defines, for later prompts; in the order of the commits."""
    written: set[str] = field(default_factory=set)
    """Files that tasks wrote and none removed."""
    removed: set[str] = field(default_factory=set)
    """Files that tasks removed and that were not written again."""
    locks: dict[str, str] = field(default_factory=dict)
    """Texts of lock files that were regenerated from their manifests."""
    ignored: set[str] = field(default_factory=set)
    """Files of the plan that git ignores."""
    subjects: list[str] = field(default_factory=list)
    """First lines of its commits so far."""
    reviews: dict[str, TaskReviews] = field(default_factory=dict)
    """Reviews by task, for tasks with a requested delivery."""
    trial: Trial | None = None
    installed: InstalledPackages = field(default_factory=InstalledPackages)
    """Packages of the story's environment when last read; empty when their names were sufficient."""
    amendments: int = 0
    """Requests to extend the story's contract."""
    refused: dict[str, str] = field(default_factory=dict)
    """Refused file or package → the reason."""
    suite_strengthened: bool = False
    """True once tests that fail without the story's change were requested, which happens once."""
    suite_replaced: bool = False
    """True once the suite was requested again, which happens once."""
    head: str = field(init=False)
    """The last commit of its branch."""

    def __post_init__(self) -> None:
        self.head = self.branch.head

    def note_committed(self, written: Iterable[str], removed: Iterable[str]) -> None:
        """Updates the set of removed files."""
        self.removed = (self.removed | set(removed)) - set(written)
        self.written = (self.written | set(written)) - set(removed)

    def note_findings(self, found: Sequence[Finding]) -> None:
        """Adds new findings."""
        self.findings[:] = dict.fromkeys((*self.findings, *found))


def done_tasks(progress: Progress, plan: Breakdown, *, without: str = "") -> tuple[str, ...]:
    """Returns what each task that was worked on has made, in the order of its commits; the rest without a commit."""
    described = {task.task_id: task for task in plan.tasks}
    order = [*progress.made, *(task for task in progress.tasks if task not in progress.made)]
    return tuple(
        render_done_task(described[task], progress.tasks[task], progress.made.get(task, ""))
        for task in order
        if task != without and progress.tasks[task] is not TaskStatus.PENDING
    )


class StoryStopped(Exception):
    """Ends a story early with an outcome; never leaves sprint/story.py."""

    def __init__(self, status: str, findings: Sequence[Finding]) -> None:
        super().__init__(status)
        self.status = status
        self.findings = tuple(findings)


EVENT = "record_updated"
MAX_LINES, MAX_LINE = 40, 300
"""Limits of one free field of a plan, so that a model's text cannot fill every later prompt."""


async def tell_record(stage: Stage, plan: Breakdown, commit: str | None) -> None:
    """Records the contribution of a story that was just merged as `commit`, once."""
    part = contribution(plan, foundation=stage.brief.story.foundation)
    await stage.step.emit(
        EVENT, f"architecture record: {_summary(part)}", commit=commit, contribution=part.model_dump(mode="json")
    )


def contribution(plan: Breakdown, *, foundation: bool) -> Contribution:
    """Returns what a story with this plan adds to the record."""
    texts = [text for entry in plan.todos.add if (text := _short(entry))][:MAX_LINES]
    conventions = [*_labelled(STACK, plan.tech_stack), *lines_of(plan.conventions)] if foundation else []
    return Contribution(
        story=plan.story_id,
        conventions=tuple(dict.fromkeys(conventions)),
        todos=tuple(Todo(id=f"TODO-{plan.story_id}-{n:02d}", text=text) for n, text in enumerate(texts, start=1)),
        todos_done=tuple(dict.fromkeys(done for entry in plan.todos.remove if (done := _todo_id(entry)))),
    )


def recorded_stack(settled: Sequence[str], plan: Breakdown) -> tuple[str, ...]:
    """Returns the tech stack: the record's, which is locked (`settled`), then the story's own plan's."""
    return tuple("\n".join(lines) for lines in (settled, lines_of(plan.tech_stack)) if lines)


def lines_of(value: Any) -> list[str]:
    """Returns a free field as short lines: a text's lines, a list's items, or a mapping's pairs."""
    if isinstance(value, str):
        parts: Sequence[str] = value.splitlines()
    elif isinstance(value, dict):
        parts = [f"{key}: {_text(item)}" for key, item in value.items()]
    else:
        parts = [_text(item) for item in (value if isinstance(value, list) else [value]) if item is not None]
    return [text for part in parts if (text := _short(part))][:MAX_LINES]


def _labelled(label: str, value: Any) -> Iterator[str]:
    return (f"{label}: {line}" for line in lines_of(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str) -> str:
    return " ".join(text.split()).removeprefix("- ")[:MAX_LINE]


def _todo_id(entry: str) -> str:
    """Returns the id at the beginning of an entry such as `TODO-US-001-01: done with this story`."""
    return (entry.split() or [""])[0].rstrip(":;,.")


def _summary(part: Contribution) -> str:
    counts = ((len(part.conventions), "locked convention"), (len(part.todos), "open TODO"))
    told = [f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count]
    done = f"; settles {', '.join(part.todos_done)}" if part.todos_done else ""
    return f"{part.story} adds {', '.join(told) or 'nothing'}{done}"


OUTPUT_CAP = 6000
"""Characters kept of the end of a failed run's output."""
FAILING_CAP = 50
"""Limit on the failed tests that an event lists: there may be a hundred thousand."""
NAMED = 20
"""Tests that a finding names."""
FEW = 3
"""Tests that a line names."""


def failure_text(report: TestReport) -> str:
    """Returns the failing tests' messages, each once and whole as far as there is room, else the end of the output."""
    failures = report.failures
    told, left = list[str](), len(failures)
    for cases in failures:
        more = f" and {len(cases) - NAMED} more" if len(cases) > NAMED else ""
        text = f"{', '.join(case.id for case in cases[:NAMED])}{more}: {cases[0].message}"
        if told and sum(map(len, told)) + len(text) > OUTPUT_CAP:
            told.append(f"and {counted(left, 'other failure')}")
            break
        told.append(text[:OUTPUT_CAP])
        left -= 1
    return "\n".join(told) or f"{report.problem}: {report.output[-OUTPUT_CAP:]}"


# As pytest and unittest, tracebacks, and Node say what was raised; `E   ` stands before it in pytest's words.
_RAISED = re.compile(
    r"^(?:E\s+)?((?:[\w.]+\.)?(?:[A-Z]\w*)?(?:Error|Exception|Failure|Exit|Interrupt|NotFound|Timeout)"
    r"(?: \[\w+\])?: .+)$|^E\s+(assert .+)$",  # pytest leaves the name of a bare assertion out
    re.MULTILINE,
)
# What a module that is missing leads to says less than that it is missing.
_MISSING = re.compile(r"ModuleNotFoundError|Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND")
_CAUSE_CHARS = 160


def cause_of(report: TestReport) -> str:
    """Returns what was raised most often by the tests that failed, or by the run; "" when nothing says so.

    Of errors that follow one from the other a missing module counts, else the last one.
    """
    raised = raised_in(report)
    if not raised:
        return ""
    ((cause, times),) = raised.most_common(1)
    return cut_at_word(cause, _CAUSE_CHARS) + (f" ({times} tests)" if times > 1 else "")


def raised_in(report: TestReport) -> Counter[str]:
    """Returns what each failed test raised, or the run where none failed, with how often."""
    failing = [case.message for case in report.failing]
    told = ([one[1] or one[2] for one in _RAISED.finditer(text)] for text in failing or [report.output])
    found = [errors for errors in told if errors]
    raised = (next((one for one in errors if _MISSING.search(one)), errors[-1]) for errors in found)
    return Counter(" ".join(one.split()) for one in raised)


def summary(report: TestReport) -> str:
    """Returns a line for people."""
    if report.problem is RunProblem.MISSING_NAMES:
        return f"expected tests did not run: {listed(report.missing_names, FEW)}"
    if report.problem is not None:
        return f"the run shows nothing: {PROBLEMS[report.problem]}"
    flaky = f", {len(report.flaky)} of them flaky" if report.flaky else ""
    return f"{report.passed} passed{flaky}, {report.failed} failed"


def red_finding(report: TestReport, attempts: int, *, of_older: bool = False) -> Finding:
    """Returns why a story whose suite stays red, or that breaks older tests (`of_older`), needs a person."""
    after, cause = f"after {counted(attempts, 'attempt')}", cause_of(report)
    because = f"; {cause}" if cause else ""
    if of_older:
        return major(
            "test.regression",
            f"{after}, tests that the story found there fail: {listed(sorted(report.failing_ids), NAMED)}{because}",
            fix="look whether the story means to change what they assert: its plan then lists their files under "
            "tests_to_change (`replan` with a comment); else mend the branch by hand, or `reset` the story",
        )
    code = f"test.{report.problem}" if report.problem else "test.failed"
    return major(
        code,
        f"{after}: {summary(report)}{because}",
        fix="install what is missing, then `reset` the story and give the same command again"
        if report.problem in NO_RUNNER
        else "the output of the failing tests says why (`show`); `reset` the story to try again",
    )


# `adds %i and %i`, `adds $a`: titles of a table's rows as jest and vitest write them.
_CELL = re.compile(r"%[sdifjoOcp#$]|\$\{?[\w.]+\}?")


_TABLES = 100
"""Tables whose rows are looked for: each is held against every name of a report."""


def _is_row(name: str, parts: Sequence[str]) -> bool:
    """Returns whether a test is a row of the table whose title has these parts between its cells.

    Part by part, as a pattern with many cells takes forever on a long name.
    """
    first, *middle, last = parts
    if not name.startswith(first):
        return False
    end = len(first)
    for part in middle:
        at = name.find(part, end + 1)
        if at < 0:
            return False
        end = at + len(part)
    return len(name) - len(last) > end and name.endswith(last)


def tests_outcome(suite: TestSuite, report: TestReport) -> TestsOutcome:
    """Returns the suite's cases with their results; a case that is absent from the report is `missing`."""
    criteria: dict[str, list[str]] = {}
    for case in suite.test_cases:
        criteria.setdefault(case.name, []).append(case.criterion)
    tables = [(parts, told) for name, told in criteria.items() if len(parts := _CELL.split(name)) > 1][:_TABLES]
    begins = tuple(parts[0] for parts, _ in tables)
    for name in {case.name for case in report.cases if case.name.startswith(begins)} - criteria.keys():
        criteria[name] = next((told for parts, told in tables if _is_row(name, parts)), [""])
    ended = [(case.name, str(case.result)) for case in report.cases]
    seen = {name for name, _ in ended}
    ended += [(name, "missing") for name in suite.expected_names if name not in seen]
    # A test that shows several criteria stands under each.
    cases = [
        CaseOutcome(name=name, criterion=criterion, result=result)
        for name, result in ended
        for criterion in criteria.get(name, [""])
    ]
    return TestsOutcome(run=len(report.cases), passed=report.passed, failed=report.failed, cases=tuple(cases))
