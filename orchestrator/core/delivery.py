"""What the developer delivers, what the workspace reports about it, and how reviewers judge it.

The words of the review format stand in `system_prompts/shared/review_format.md` and here, once, for reader and writer.
"""

from collections.abc import Mapping
from enum import StrEnum
from posixpath import basename

from orchestrator.core.action_plan import Execute
from orchestrator.core.breakdown import Task
from orchestrator.core.contract import ArchitectureContract, Surface
from orchestrator.core.finding import Finding, Severity, blocking
from orchestrator.core.paths import LOCKS, RepoPath
from orchestrator.core.value import Value


class FileChange(Value):
    """One whole file, as delivered."""

    path: RepoPath
    content: str


class Delivery(Value):
    """The files of one task. Paths are safe by type; whether they are allowed is the contract's question."""

    story_id: str
    task_id: str
    files: tuple[FileChange, ...]
    removed: tuple[RepoPath, ...] = ()
    """Files that are taken away; none of them is among `files`. JSON deliveries cannot say this."""

    commands: tuple[Execute, ...] = ()
    """To be run once the files are written, in this order. JSON deliveries cannot say this."""

    title: str = ""
    rationale: str = ""
    """What changes and why, in the developer's words; empty when nothing was said."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the delivered files in order."""
        return tuple(change.path for change in self.files)


# What package managers read when they resolve: manifests, settings of registries, lock files.
_READ = frozenset({"package.json", "pyproject.toml", "Pipfile", ".npmrc", "pnpm-workspace.yaml", *LOCKS})


class LockFiles(Value):
    """What became of lock files whose manifests changed."""

    files: tuple[FileChange, ...] = ()
    """Those that are others now."""
    told: tuple[str, ...] = ()
    """Sentences about those that could not be made."""


def is_read(path: str) -> bool:
    """Returns whether a tool reads the file to make a lock file."""
    return basename(path) in _READ


def is_lock(path: str) -> bool:
    """Returns whether the file follows manifests."""
    return basename(path) in LOCKS


class DiffEntry(Value):
    """One path of a raw git diff between base and head. Renames are reported as a deletion and an addition."""

    path: str
    status: str
    """A added, D deleted, M modified, T type changed."""
    old_mode: str
    new_mode: str
    """Six octal digits; 120000 is a symbolic link, 160000 a submodule, 000000 absent."""


class Branch(Value):
    """A story's branch with its recorded base."""

    name: str
    base: str
    """Commit the branch started from; recorded once per story."""
    head: str


class MergeResult(Value):
    """How a merge into the sprint's result branch ended."""

    merged: bool
    commit: str = ""
    """The merge commit when `merged`."""
    conflicts: tuple[str, ...] = ()
    """Conflicting paths, when the merge stopped on conflicts."""
    red: str = ""
    """Why the merged tree was turned down by the check, with output; empty otherwise."""
    vanished: tuple[str, ...] = ()
    """Tests that ran before and do not run on the merged tree, when that is why it was turned down."""
    older_unknown: str = ""
    """Why it is not known which tests ran before; empty when it is."""
    flaky: tuple[str, ...] = ()
    """Tests that failed on the merged tree and passed when the same run was repeated."""
    tested: bool = False
    """True when the whole suite was green on this very tree before, and was not run again."""
    seconds: float = 0.0
    """What the runs of the whole suite took."""
    onto: str = ""
    """The commit of the result branch that it was tried with."""


class Conflict(Value):
    """One file that a story and what was merged before it both changed in the same place."""

    path: str
    base: str | None
    """Its text where both began; None when both have added it."""
    result: str
    """Its text with what was merged before."""
    story: str
    """Its text in the story."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Its texts that there are."""
        return tuple(text for text in (self.base, self.result, self.story) if text is not None)


class MergedStory(Value):
    """A story that was merged before another one."""

    story: str
    subjects: tuple[str, ...]
    """First lines of its commits, oldest first, that of its merge included."""


class KeptRefs(Value):
    """What a store outside of this machine has of a sprint."""

    refs: Mapping[str, str] = {}
    """Name → object of each ref of the sprint; empty for a sprint that the store does not know."""
    bases: tuple[str, ...] = ()
    """Commits whose whole history is kept for the sprints of the repository."""
    repository: str = ""
    """The one that the sprint was first kept for; "" for a sprint that the store does not know."""


class ObjectPack(Value):
    """Git objects in git's pack format. It needs those of the packs before it: a difference is a small one."""

    number: int = 0
    """Given by the store; later packs of a sprint have higher ones."""
    base: str = ""
    """The commit whose history it holds, for all sprints of a repository; "" for a pack of one sprint."""
    shallow: str = ""
    """Commits whose parents the repository lacks, one on a line, as git's file of this name has them."""
    size: int = 0


class Sides(Value):
    """A story's branch and a commit of the result branch, merged as far as git can."""

    onto: str
    head: str
    """The two commits: the result's and the story's."""
    tree: str
    """The merged tree, to be read with `files_at` and `read_at`; conflicts are between git's markers in it, labelled
    with the two commits."""
    conflicts: tuple[Conflict, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Paths in conflict that are no two texts of one file: binary, links, taken away or moved on one side."""
    merged: tuple[MergedStory, ...] = ()
    """What the result has and the story has not."""
    result_diff: str = ""
    story_diff: str = ""
    """What each side changed since both began, as a patch that may be cut; empty when there are conflicts."""


class CommitNote(Value):
    """Subject, body and trailers of one of our commits."""

    subject: str
    body: str = ""
    sprint: str
    story: str
    task: str = ""
    step: str
    """Id of the durable step that makes it: a repeated step finds its own commit by this."""

    @property
    def message(self) -> str:
        """The whole commit message."""
        lines = [f"Orchestrator-Sprint: {self.sprint}", f"Orchestrator-Story: {self.story}"]
        if self.task:
            lines.append(f"Orchestrator-Task: {self.task}")
        lines.append(f"Orchestrator-Step: {self.step}")
        return "\n\n".join(filter(None, (self.subject, self.body, "\n".join(lines)))) + "\n"


SUMMARY, ISSUES, GOOD_PATTERNS, VERDICT = "Review Summary", "Issues", "Good Patterns", "Verdict"
ISSUE, WHY, FIX = "Issue", "Why", "Fix"
"""Labels below an issue's title."""
READY, RATIONALE, PLACE = "Ready", "Rationale", "FILE:LINE"
REPLIES = 2
"""Of one review: without a verdict its reviewer is asked once more, and no oftener."""


class Verdict(StrEnum):
    """What a reviewer says of a change as a whole."""

    YES = "yes"
    NO = "no"
    WITH_FIXES = "with_fixes"
    NONE = "none"
    """Nothing that counts as one."""


CHOICES: Mapping[Verdict, str] = {Verdict.YES: "Yes", Verdict.NO: "No", Verdict.WITH_FIXES: "With fixes"}
"""A verdict's words behind `Ready:`; those of With fixes are followed by the numbers of issues."""


class ReviewIssue(Value):
    """One comment."""

    number: int
    """As the reviewer wrote it, if each issue has one of its own; else its place among them, from 1."""
    severity: Severity
    file: str = ""
    """As it was written; "" when no file is named."""
    line: int | None = None
    """1-based, the first one of a range."""
    title: str
    issue: str = ""
    why: str = ""
    fix: str = ""


class Review(Value):
    """What a reviewer said. Only what stands in the right place counts: no text approves by its words."""

    summary: str = ""
    issues: tuple[ReviewIssue, ...] = ()
    """In the order of the text."""
    good_patterns: tuple[str, ...] = ()
    verdict: Verdict = Verdict.NONE
    fixes: tuple[int, ...] = ()
    """Numbers of the issues that With fixes names."""
    rationale: str = ""
    complete: bool = True
    """False when the text was cut off."""

    @property
    def severity(self) -> Severity:
        """The gravest issue's."""
        return max((issue.severity for issue in self.issues), key=lambda one: one.rank, default=Severity.NONE)

    @property
    def approved(self) -> bool:
        """A whole review whose verdict is Yes, with no critical issue beside it."""
        return self.complete and self.verdict is Verdict.YES and self.severity is not Severity.CRITICAL

    @property
    def comments(self) -> tuple[ReviewIssue, ...]:
        """What the developer is to mend: none when approved, of With fixes those it names and every critical one."""
        if self.approved:
            return ()
        if self.verdict is Verdict.WITH_FIXES:
            named = tuple(one for one in self.issues if one.number in self.fixes or one.severity is Severity.CRITICAL)
            return named or self.issues
        return self.issues


class Reviewed(Value):
    """One reviewer's answer."""

    by: str
    """The reviewer's configured name."""
    review: Review
    unseen: tuple[str, ...] = ()
    """Files of the change that were too long to be shown whole, so that it cannot be approved."""
    findings: tuple[Finding, ...] = ()
    """About the review itself; a major one keeps it from approving."""

    @property
    def comments(self) -> tuple[ReviewIssue, ...]:
        """What the developer is to mend."""
        return self.review.comments

    @property
    def approved(self) -> bool:
        """Whether this reviewer lets the change pass."""
        return self.review.approved and not self.unseen and not blocking(self.findings)


class Answer(Value):
    """Why a task was delivered once more, and what the developer says of it."""

    failures: tuple[str, ...] = ()
    """What tests showed, where it was they that asked for it."""
    text: str = ""
    """Title and rationale of the delivery; "" when nothing was said."""


class PastReview(Value):
    """One review of a task by all its reviewers, and the delivery that followed."""

    reviews: tuple[Reviewed, ...]
    answer: Answer


class ReviewBrief(Value):
    """What a reviewer reads of one task's change."""

    task: Task
    contract: ArchitectureContract
    surface: Surface
    """The project before the story."""
    diff: str
    """Unified git diff of the task against its base commit."""
    done_tasks: tuple[str, ...] = ()
    """What the story's other tasks made so far, as `story.context.done_tasks` tells it."""
    earlier: tuple[PastReview, ...] = ()
    """The reviews of this task before, in their order."""
    previous: tuple[ReviewIssue, ...] = ()
    """Comments that the last review left open."""
    advice: tuple[Finding, ...] = ()
    """What checks noticed in the diff and do not judge."""
