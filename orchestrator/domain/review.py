"""A reviewer's judgement of one task's change: the words of its format, and its value once it is read.

The format itself stands in `system_prompts/shared/review_format.md`; its headings and words stand here, once, for the
reader and the writer.
"""

from collections.abc import Mapping
from enum import StrEnum

from orchestrator.domain.base import Value
from orchestrator.domain.breakdown import Task
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.findings import Finding, Severity, blocking

SUMMARY, ISSUES, GOOD_PATTERNS, VERDICT = "Review Summary", "Issues", "Good Patterns", "Verdict"
SEVERITIES: Mapping[Severity, str] = {
    Severity.CRITICAL: "Critical (Blocking)",
    Severity.MAJOR: "Major (Should Fix)",
    Severity.MINOR: "Minor (Nice to Have)",
}
"""Headings under Issues, the gravest first."""
ISSUE, WHY, FIX = "Issue", "Why", "Fix"
"""Labels below an issue's title."""
READY, RATIONALE, NO_ISSUE, PLACE = "Ready", "Rationale", "None", "FILE:LINE"
MAX_ISSUES = 20
"""Issues that are asked for at most; more are kept."""
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


class ReviewBrief(Value):
    """What a reviewer is told of one task's change."""

    task: Task
    contract: ArchitectureContract
    diff: str
    """Unified git diff of the task against its base commit."""
    previous: tuple[ReviewIssue, ...] = ()
    """Comments that the last review left open."""
    advice: tuple[Finding, ...] = ()
    """What checks noticed in the diff and do not judge."""


class Reviewed(Value):
    """One reviewer's answer."""

    by: str
    """The reviewer's configured name."""
    review: Review
    unseen: tuple[str, ...] = ()
    """Files of the change that were too long to be shown whole: nobody approves what nobody saw."""
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
