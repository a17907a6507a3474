"""Renders findings, reviews, diffs, reports of plans and the architecture record as feedback for a persona."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from orchestrator.core.action_plan import ActionResult, ExecutionReport
from orchestrator.core.contract import ArchitectureRecord
from orchestrator.core.delivery import CHOICES, FIX, ISSUE, WHY, PastReview, Reviewed, ReviewIssue, Verdict
from orchestrator.core.finding import Finding
from orchestrator.prompts.budget import (
    BUDGET_TOKENS,
    ContextBlock,
    as_data,
    cap,
    cap_middle,
    fence,
    fit,
    fit_told,
)

MAX_FINDINGS = 40
"""Findings told in one feedback; the gravest come first into it, of the others their number is given."""
MAX_TEXT = 1500
"""Characters of one message or one fix."""
MAX_PREVIOUS = 120_000
"""Characters of the previous answer; beyond that its middle is left out and that is said."""

_WHOLE = "The answer as a whole"


def render_feedback(
    findings: Sequence[Finding],
    previous: str | None,
    earlier: Sequence[Finding] = (),
    *,
    other_form: bool = False,
) -> str:
    """What was wrong with the last answer, per task or file, and that answer verbatim; "" without findings.

    `earlier` was said of answers before it. With `other_form` the next answer is asked for in another form.
    """
    said = ("## Corrections Required", "answer", "could not be accepted")
    return _render(findings, previous, *said, earlier=earlier, other_form=other_form)


def render_revision(findings: Sequence[Finding], previous: str | None, earlier: Sequence[Finding] = ()) -> str:
    """Returns the same of an architect's plan."""
    return _render(findings, previous, "## Plan Revision Required", "plan", "has to be revised", earlier=earlier)


def render_refused(findings: Sequence[Finding]) -> str:
    """Why the last delivery for a task was not taken, for a request that comes later; "" without findings."""
    told = [finding for finding in findings if not is_of_form(finding)][:MAX_FINDINGS]
    if not told:
        return ""
    return "\n\n".join(["## Why your last delivery for this task was not taken, or not all of it", *_groups(told)])


def is_of_form(finding: Finding) -> bool:
    """Returns whether the finding is about how an answer was written, not about what it says."""
    return finding.code.startswith(("plan.", "answer."))


def unsettled(said: Sequence[Finding], now: Sequence[Finding]) -> list[Finding]:
    """Returns what was said of earlier answers, without what is said again `now` and what only their form lacked."""
    again = {finding.message for finding in now}
    kept = {one.message: one for one in said if one.message not in again and not is_of_form(one)}
    return list(kept.values())


def render_reasons(findings: Sequence[Finding]) -> str:
    """One line per finding: what was said, without what should be done about it."""
    return "\n".join(f"- {' '.join(cap(finding.message, MAX_TEXT).split())}" for finding in findings[:MAX_FINDINGS])


_OTHER_FORM = "It was written in another form than the one above: take over what it says, not how it is written."


def _render(
    findings: Sequence[Finding],
    previous: str | None,
    heading: str,
    what: str,
    why: str,
    *,
    earlier: Sequence[Finding],
    other_form: bool = False,
) -> str:
    if not findings:
        return ""
    told = sorted(findings, key=lambda finding: -finding.severity.rank)[:MAX_FINDINGS]
    parts = [heading, f"Your last {what} was checked and {why}.", *_groups(told)]
    if len(findings) > len(told):
        parts.append(f"[{len(findings) - len(told)} more findings, none of them graver, are left out.]")
    if before := unsettled(earlier, findings)[:MAX_FINDINGS]:
        bullets = "\n".join(_bullet(finding) for finding in before)
        parts.append(f"### Said of your earlier {what}s; it still holds\n\n{bullets}")
    shown = previous is not None and previous.strip()
    only = " Correct every point and change nothing else." if shown else ""
    parts.append(f"Send the whole {what} again, in the shape asked for.{only}")
    if previous is not None and shown:
        parts += [f"### Your last {what}, verbatim", *([_OTHER_FORM] if other_form else [])]
        parts.append(fence(cap_middle(previous, MAX_PREVIOUS)))
    return "\n\n".join(parts)


def _groups(findings: Sequence[Finding]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for finding in findings:
        groups.setdefault(_subject(finding), []).append(_bullet(finding))
    return [f"### {subject}\n\n" + "\n".join(bullets) for subject, bullets in groups.items()]


def _subject(finding: Finding) -> str:
    named = finding.where.task or finding.where.file
    return cap(" ".join(named.split()), 200) if named and named.strip() else _WHOLE


def _bullet(finding: Finding) -> str:
    place = " ".join(_place(finding))
    issue = _text(finding.message)
    lines = [f"- Issue ({finding.severity}{f', {place}' if place else ''}): {issue}"]
    if finding.fix.strip():
        lines.append(f"  Fix: {_text(finding.fix)}")
    return "\n".join(lines)


def _place(finding: Finding) -> list[str]:
    """Returns where inside its subject the finding speaks."""
    where = finding.where
    parts = [where.file] if where.task and where.file else []
    if where.line is not None:
        parts.append(f"line {where.line}" + (f" column {where.column}" if where.column is not None else ""))
    if where.field:
        parts.append(where.field)
    return [cap(" ".join(part.split()), 200) for part in parts]


def _text(text: str) -> str:
    """One line as it is; several lines, which are what a program printed, fenced and marked as data."""
    kept = cap(text.strip(), MAX_TEXT)
    if "\n" not in kept:
        return kept
    return "\n\n" + "\n".join(f"  {line}" for line in as_data(fence(kept, "text"), "output").split("\n")) + "\n"


MAX_REVIEW_TEXT = 3000
"""Characters of one part of a comment."""
MAX_COMMENTS = 40
"""Comments told at once; the gravest come first, of the others their number is given."""

_MEND = "Mend every point above and change nothing else."
_LOOK_AGAIN = (
    "What to mend was not said. Hold the change against your task and the acceptance criteria of its story, mend what "
    "does not meet them, and send the files again."
)
_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_NEW = re.compile(r'^\+\+\+ (?:"?b/(?P<path>[^\t\n]+?)"?)\t?$', re.MULTILINE)
_OLD = re.compile(r'^--- (?:"?a/(?P<path>[^\t\n]+?)"?)\t?$', re.MULTILINE)
_BINARY = re.compile(r"^Binary files .+ and \"?b/.+ differ$", re.MULTILINE)
_HEADER = re.compile(r'diff --git "?a/.*? "?b/(?P<path>[^\n]*?)"?$', re.MULTILINE)


class ShownDiff(NamedTuple):
    """A diff as a prompt holds it."""

    text: str
    cut: tuple[str, ...]
    """Paths of the files that it does not show whole: too long, or no text."""


def render_diff(diff: str, budget_tokens: int = BUDGET_TOKENS) -> ShownDiff:
    """Every file's part of a unified git diff under its path, in a fence that holds.

    When the room is short, small files are shown whole before large ones are cut, so that one huge file hides no other;
    what is cut or left out is said in its place.
    """
    blocks = [_block(path, text) for path, text in files_of(diff)]
    text, cut = fit_told(blocks, budget_tokens)
    return ShownDiff(text, tuple(one.name for one in blocks if one.name in cut or _BINARY.search(one.text)))


def files_of(diff: str) -> list[tuple[str, str]]:
    """Returns the parts of a diff as (path, text), one per file; text before the first one is a part of its own."""
    edges = [0, *(match.start() for match in _FILE.finditer(diff)), len(diff)]
    parts = [diff[start:end] for start, end in pairwise(edges)]
    return [(_path(part), part) for part in parts if part.strip()]


def _path(part: str) -> str:
    head = part.partition("\n@@")[0]
    match = _NEW.search(head) or _OLD.search(head) or _HEADER.search(head)
    return match["path"] if match is not None else "the change"


def _block(path: str, text: str) -> ContextBlock:
    return ContextBlock(name=path, text=f"### {path}\n\n{fence(text, 'diff')}")


def render_issues(issues: Sequence[ReviewIssue]) -> str:
    """One numbered entry per comment, with its severity, place and parts."""
    return "\n".join(_entry(issue) for issue in issues)


MAX_SAID = 1_000
"""Characters of what the developer says of one delivery."""
_SAY = {**CHOICES, Verdict.NONE: "no verdict"}


def render_earlier(earlier: Sequence[PastReview], name: str, changed: Sequence[str], same: Sequence[str]) -> str:
    """Returns a short record of a task's reviews so far for the reviewer of this name; "" without any.

    `changed` and `same`: files whose part of the change is another one than in the last review, or as it was.
    """
    if not earlier:
        return ""
    parts = [f"### Review {number}\n\n{_past(past, name)}" for number, past in enumerate(earlier, start=1)]
    parts.append(f"Changed since the last review: {', '.join(changed) or 'nothing'}.")
    if same:
        parts.append(f"As they were then: {', '.join(same)}.")
    return "\n\n".join(parts)


def _past(past: PastReview, name: str) -> str:
    lines = []
    for reviewed in past.reviews:
        review = reviewed.review
        fixes = f" {', '.join(map(str, review.fixes))}" if review.verdict is Verdict.WITH_FIXES else ""
        who = "You" if reviewed.by == name else reviewed.by
        lines.append(f"- {who}: {_SAY[review.verdict]}{fixes}. {_short(review.rationale or review.summary)}".rstrip())
        lines += [f"  {_title(issue)}" for issue in review.issues]
    if past.answer.failures:
        lines += [
            "- Then tests failed:",
            *(f"  - {_short(failure)}" for failure in past.answer.failures[:MAX_COMMENTS]),
        ]
    said = cap(past.answer.text.strip(), MAX_SAID)
    return "\n".join(lines) + (f"\n\nThe developer's answer:\n\n{as_data(said, 'answer')}" if said else "")


def _short(text: str) -> str:
    return cap(" ".join(text.split()), 300)


def _title(issue: ReviewIssue) -> str:
    line = f":{issue.line}" if issue.line is not None else ""
    return f"{issue.number}. ({issue.severity}) {issue.file}{line} {_short(issue.title)}"


def render_comments(reviews: Sequence[Reviewed]) -> str:
    """What reviewers ask the developer to change, per file, the gravest first; "" when all of them approve.

    A review that does not approve and has no comments speaks by its rationale.
    """
    against = [review for review in reviews if not review.approved]
    if not against:
        return ""
    issues = sorted((one for review in against for one in review.comments), key=lambda one: -one.severity.rank)
    told = [text for review in against if not review.comments for text in _said(review)]
    groups: dict[str, list[ReviewIssue]] = {}
    for issue in issues[:MAX_COMMENTS]:
        groups.setdefault(issue.file, []).append(issue)
    parts = ["Your change was read by a reviewer and cannot be merged yet.", *told]
    for file, own in groups.items():
        parts.append(f"### {' '.join(file.split()) or 'The change as a whole'}\n\n{render_issues(own)}")
    if len(issues) > MAX_COMMENTS:
        parts.append(f"[{len(issues) - MAX_COMMENTS} more comments, none of them graver, are left out.]")
    judged = any(review.unseen or review.review.verdict is not Verdict.NONE for review in against)
    parts.append(_MEND if issues or (told and judged) else _LOOK_AGAIN)
    return "\n\n".join(parts)


def _said(reviewed: Reviewed) -> list[str]:
    """Returns why a change is not approved, where no comment says it."""
    words = [] if reviewed.review.approved else [reviewed.review.rationale or reviewed.review.summary]
    cut = f"Too long, or no text, and so not read: {', '.join(reviewed.unseen)}. Keep it as small as the task asks."
    words += [cut] if reviewed.unseen else []
    return [cap(text.strip(), MAX_REVIEW_TEXT) for text in words if text.strip()]


def _entry(issue: ReviewIssue) -> str:
    line = f", line {issue.line}" if issue.line is not None else ""
    place = f" `{' '.join(issue.file.split())}`" if issue.file else ""
    lines = [f"{issue.number}. ({issue.severity}{line}){place} {' '.join(issue.title.split())}"]
    for label, text in ((ISSUE, issue.issue), (WHY, issue.why), (FIX, issue.fix)):
        if text.strip():
            lines.append(f"   - {label}: " + "\n     ".join(cap(text.strip(), MAX_REVIEW_TEXT).split("\n")))
    return "\n".join(lines)


MAX_OUTPUT = 4000
"""Characters of one command's output."""


def render_execution_report(report: ExecutionReport) -> str:
    """Per action: done, skipped or failed, with the reason and what a command printed."""
    parts = ["## Execution Report", "The plan was carried out." if report.ok else "The plan was carried out in part."]
    return "\n\n".join([*parts, *(_action(action) for action in report.actions)]) + "\n"


def _action(action: ActionResult) -> str:
    reason = f": {' '.join(action.reason.split())}" if action.reason else ""
    line = f"{action.number}. **{action.state}** `{action.verb}` {' '.join(action.subject.split())}{reason}"
    if not action.output.strip():
        return line
    return f"{line}\n\n{fence(cap_middle(action.output.strip(), MAX_OUTPUT), 'text')}"


def render_record(record: ArchitectureRecord, budget_tokens: int = BUDGET_TOKENS) -> str:
    """Locked conventions first, each with the story it comes from, then open TODOs with their ids; "" for an empty
    record. When the room is short they are served in this order."""
    conventions = [f"{line.text} ({line.story})" for line in record.conventions]
    parts = (
        ("Locked conventions (a story that needs another is a conflict)", conventions, 4),
        ("Open TODOs", [f"{todo.id}: {todo.text}" for todo in record.todos], 3),
    )
    blocks = [
        ContextBlock(name=heading, text="\n".join((f"{heading}:", *(f"- {line}" for line in lines))), weight=weight)
        for heading, lines, weight in parts
        if lines
    ]
    return fit(blocks, budget_tokens)
