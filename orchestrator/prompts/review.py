"""A task's diff for its reviewer, and a reviewer's comments for the developer."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from orchestrator.domain.review import FIX, ISSUE, WHY, Reviewed, ReviewIssue, Verdict
from orchestrator.prompts.budget import BUDGET_TOKENS, CHARS_PER_TOKEN, NOTICE_CHARS, ContextBlock, cap, fence, fit

MAX_TEXT = 3000
"""Characters of one part of a comment."""
MAX_COMMENTS = 40
"""Comments told at once; the gravest come first, the number of the others is told."""

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
    blocks = [_block(text) for text in _per_file(diff)]
    budget = max(budget_tokens, 0) * CHARS_PER_TOKEN
    room = budget if sum(len(block.text) + 2 for block in blocks) <= budget else budget - min(budget // 4, NOTICE_CHARS)
    whole: set[int] = set()
    for place in sorted(range(len(blocks)), key=lambda at: len(blocks[at].text)):
        room -= len(blocks[place].text) + 2
        if room < 0:
            break
        whole.add(place)
    weighed = [block.model_copy(update={"weight": 2}) if at in whole else block for at, block in enumerate(blocks)]
    cut = tuple(block.name for at, block in enumerate(blocks) if at not in whole or _BINARY.search(block.text))
    return ShownDiff(fit(weighed, budget_tokens), cut)


def _per_file(diff: str) -> list[str]:
    """The parts of a diff, one per file; text before the first one is a part of its own."""
    edges = [0, *(match.start() for match in _FILE.finditer(diff)), len(diff)]
    parts = [diff[start:end] for start, end in pairwise(edges)]
    return [part for part in parts if part.strip()]


def _block(text: str) -> ContextBlock:
    head = text.partition("\n@@")[0]
    match = _NEW.search(head) or _OLD.search(head) or _HEADER.search(head)
    name = match["path"] if match is not None else "the change"
    return ContextBlock(name=name, text=f"### {name}\n\n{fence(text, 'diff')}")


def render_issues(issues: Sequence[ReviewIssue]) -> str:
    """One numbered entry per comment, with its severity, place and parts."""
    return "\n".join(_entry(issue) for issue in issues)


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
    """Why a change is not approved, where no comment says it."""
    words = [] if reviewed.review.approved else [reviewed.review.rationale or reviewed.review.summary]
    cut = f"Too long, or no text, and so not read: {', '.join(reviewed.unseen)}. Keep it as small as the task asks."
    words += [cut] if reviewed.unseen else []
    return [cap(text.strip(), MAX_TEXT) for text in words if text.strip()]


def _entry(issue: ReviewIssue) -> str:
    line = f", line {issue.line}" if issue.line is not None else ""
    place = f" `{' '.join(issue.file.split())}`" if issue.file else ""
    lines = [f"{issue.number}. ({issue.severity}{line}){place} {' '.join(issue.title.split())}"]
    for label, text in ((ISSUE, issue.issue), (WHY, issue.why), (FIX, issue.fix)):
        if text.strip():
            lines.append(f"   - {label}: " + "\n     ".join(cap(text.strip(), MAX_TEXT).split("\n")))
    return "\n".join(lines)
