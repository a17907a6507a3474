"""A review → the Markdown it is read from: `parse_review(render_review(review))` gives the review again."""

from collections.abc import Iterator

from orchestrator.core.delivery import (
    CHOICES,
    FIX,
    GOOD_PATTERNS,
    ISSUE,
    ISSUES,
    RATIONALE,
    READY,
    SUMMARY,
    VERDICT,
    WHY,
    Review,
    ReviewIssue,
    Verdict,
)
from orchestrator.core.finding import Severity

SEVERITIES = {
    Severity.CRITICAL: "Critical (Blocking)",
    Severity.MAJOR: "Major (Should Fix)",
    Severity.MINOR: "Minor (Nice to Have)",
}
"""Headings under Issues, the gravest first."""
NO_ISSUE = "None"


def render_review(review: Review) -> str:
    """The review in the format's words. Its texts stand as they are: they must hold no headings of the format."""
    parts = [f"## {SUMMARY}", review.summary, f"## {ISSUES}"]
    for severity, heading in SEVERITIES.items():
        parts += [f"### {heading}", _issues(review, severity)]
    parts += [f"## {GOOD_PATTERNS}", "\n".join(f"- {text}" for text in review.good_patterns) or NO_ISSUE]
    parts += [f"## {VERDICT}", _verdict(review)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _issues(review: Review, severity: Severity) -> str:
    told = ["\n".join(_issue(issue)) for issue in review.issues if issue.severity is severity]
    return "\n\n".join(told) or NO_ISSUE


def _issue(issue: ReviewIssue) -> Iterator[str]:
    line = f":{issue.line}" if issue.line is not None else ""
    place = f"[{issue.file}{line}] " if issue.file else ""
    yield f"{issue.number}. {place}{issue.title}"
    indent = " " * len(f"{issue.number}. ")
    for label, text in ((ISSUE, issue.issue), (WHY, issue.why), (FIX, issue.fix)):
        if text:
            first, *more = text.split("\n")
            yield f"{indent}- {label}: {first}"
            yield from (f"{indent}  {line}".rstrip() for line in more)


def _verdict(review: Review) -> str:
    numbers = f" {', '.join(map(str, review.fixes))}" if review.fixes else ""
    choice = CHOICES.get(review.verdict)
    lines = [f"{READY}: {choice}{numbers}"] if choice is not None and review.verdict is not Verdict.NONE else []
    lines += [f"{RATIONALE}: {review.rationale}"] if review.rationale else []
    return "\n".join(lines)
