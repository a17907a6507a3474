"""What the stages of one running story share."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orchestrator.domain.findings import Finding
from orchestrator.domain.gitfacts import Branch, CommitNote
from orchestrator.domain.installed import InstalledPackages
from orchestrator.domain.review import Reviewed
from orchestrator.domain.stages import StoryBrief
from orchestrator.domain.status import TaskStatus
from orchestrator.domain.surface import Surface
from orchestrator.domain.testing import TestReport, TestSuite
from orchestrator.ports import Architect, Developer, Reviewer, Step, SuiteRunner, Tester, Workspace
from orchestrator.settings import Policies
from orchestrator.sprint.older_tests import OlderTests

SCANS_AT_ONCE = 2
"""What one scan reads, and what its result takes on its way into the record, is as large as the project."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The ports and frozen inputs every stage of a story works with."""

    brief: StoryBrief
    policies: Policies
    step: Step
    architect: Architect
    developer: Developer
    tester: Tester
    reviewers: tuple[Reviewer, ...] = ()
    """Each reads every task's change, and all must approve; none: nobody reads them."""
    workspace: Workspace
    runner: SuiteRunner
    older: OlderTests
    scans: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SCANS_AT_ONCE))
    """Held while a project is read, by all stories of a run: each reads hundreds of files, and parses them in turns."""

    @property
    def story_id(self) -> str:
        """The story at work."""
        return self.brief.story.id

    @property
    def environment_key(self) -> str:
        """Names the story's dependency environment."""
        return environment_of(self.step.workflow_id)

    def note(self, subject: str, step_id: str, task: str = "") -> CommitNote:
        """Message and trailers of a commit of this story."""
        return CommitNote(subject=subject, sprint=self.brief.sprint, story=self.story_id, task=task, step=step_id)


def environment_of(workflow_id: str) -> str:
    """Name of a workflow's environment: ids hold no two dots in a row, so no two workflows share one."""
    return workflow_id.replace("/", "..").replace("@", "..")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How the attempts of a story's suite ended."""

    suite: TestSuite
    report: TestReport
    """The last run of the suite."""
    broken: TestReport | None = None
    """The whole suite's run, where it is older tests that stay red."""
    attempts: int
    before: dict[str, str] = field(default_factory=dict)
    """How each test of the suite ended on the tree without the story's change, by name; see fail_before.Ended."""
    hollow: dict[str, str] = field(default_factory=dict)
    """How each ended with functions that return nothing; empty where it was not run like that."""

    @property
    def red(self) -> TestReport | None:
        """The run that keeps the story from being merged."""
        return self.broken or (None if self.report.green else self.report)


@dataclass
class TaskReviews:
    """What was said of one task's change so far, over the whole story."""

    since: str
    """The commit before the task's first delivery."""
    paths: set[str] = field(default_factory=set)
    """What its deliveries wrote or took away."""
    rounds: list[tuple[Reviewed, ...]] = field(default_factory=list)
    """One per review: what each reviewer said."""
    read: str = ""
    """The change as it was read last."""
    unread: bool = False
    """Whether the change that stands is another one."""


@dataclass
class Progress:
    """What has come about so far; rebuilt in the same order when the story's workflow is replayed."""

    branch: Branch
    surface: Surface
    findings: list[Finding] = field(default_factory=list)
    tasks: dict[str, TaskStatus] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    """Files that tasks took away, and that are not there again."""
    locks: dict[str, str] = field(default_factory=dict)
    """Texts of lock files that were made to follow their manifests."""
    ignored: set[str] = field(default_factory=set)
    """Files of the plan that git ignores."""
    reviews: dict[str, TaskReviews] = field(default_factory=dict)
    """By task, of those that a delivery was asked for."""
    trial: Trial | None = None
    installed: InstalledPackages = field(default_factory=InstalledPackages)
    """The story's environment, as it was looked at last; empty where names alone said enough."""
    amendments: int = 0
    """Requests to extend the story's contract."""
    refused: dict[str, str] = field(default_factory=dict)
    """File or package that was asked for in vain → why it is not granted."""
    suite_strengthened: bool = False
    """Whether tests that fail without the story's change were asked for, which happens once."""
    suite_replaced: bool = False
    """Whether the suite was asked for once more, which happens once."""

    def note_committed(self, written: Iterable[str], removed: Iterable[str]) -> None:
        """Keep in mind which files are gone."""
        self.removed = (self.removed | set(removed)) - set(written)

    def note_findings(self, found: Sequence[Finding]) -> None:
        """Add findings that are not there yet."""
        self.findings.extend(finding for finding in found if finding not in self.findings)


class StoryStopped(Exception):
    """Ends a story early with an outcome; never leaves sprint/story.py."""

    def __init__(self, status: str, findings: Sequence[Finding]) -> None:
        super().__init__(status)
        self.status = status
        self.findings = tuple(findings)
