"""A reviewer's text → what it says. Read by the tokens of a CommonMark parser, never by words of praise.

A model could be read as approving what it did not: so a Yes counts only as the last `Ready:` line, on a line of its
own, at the margin or as an item of the verdict, with no other words beside it, in no code block, quotation, quoted
diff, comment or thought, in a text that was not cut off, and with no critical issue anywhere.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from orchestrator.answers.action_plan_document import TooManyBlocks
from orchestrator.answers.model import excerpt
from orchestrator.answers.review_issues import Draft, drafts_of
from orchestrator.answers.review_lines import lines_of
from orchestrator.answers.review_sections import Document, Part, documents_of
from orchestrator.answers.review_verdict import Said, leaves_open, named_in, verdict_of
from orchestrator.answers.review_words import Section, says_nothing
from orchestrator.domain.findings import Finding, Severity, Where, major, minor
from orchestrator.domain.review import MAX_ISSUES, RATIONALE, READY, Review, ReviewIssue, Verdict

PREVIEW = 300
"""Characters of a text without a verdict that its finding shows."""
_LINE_FIX = f"End with one line of its own: `{READY}: Yes`, `{READY}: No`, or `{READY}: With fixes` and the numbers."


def parse_review(text: str, *, cut_off: bool = False) -> tuple[Review, tuple[Finding, ...]]:
    """The review in a text, and what is to be said about it. Never raises; linear in the text.

    `cut_off`: the model had no room left. What came of it is kept, and nothing of it approves.
    """
    try:
        documents = documents_of(lines_of(text))
    except TooManyBlocks:
        return Review(complete=not cut_off), (_no_verdict(text, Document()),)
    last = documents[-1]
    said = _verdict(last)
    drafts = _drafts(documents, said)
    issues, numbered = _numbered(drafts)
    fixes, unknown = _fixes(said, drafts, issues)
    review = Review(
        summary=_text(last, Section.SUMMARY),
        issues=issues,
        good_patterns=_patterns(last),
        verdict=said.verdict,
        fixes=fixes,
        rationale=_rationale(last),
        complete=not cut_off,
    )
    return review, tuple(_findings(review, text, last, numbered, unknown))


def _verdict(document: Document) -> Said:
    """What the last Ready line says; a Yes in a place where none belongs is no verdict."""
    ready = document.trusted
    if ready is None:
        return Said(Verdict.NONE)
    said = verdict_of(ready.said)
    return Said(Verdict.NONE) if said.verdict is Verdict.YES and not document.may_approve(ready) else said


def _drafts(documents: Sequence[Document], said: Said) -> list[Draft]:
    """The issues of the final review; of drafts before it the critical ones, and all when it does not say anything."""
    final = drafts_of(documents[-1].parts)
    earlier = list(chain.from_iterable(drafts_of(document.parts) for document in documents[:-1]))
    if final or said.verdict is not Verdict.NONE:
        known = {(draft.file, draft.title) for draft in final}
        earlier = [
            draft for draft in earlier if draft.severity is Severity.CRITICAL and (draft.file, draft.title) not in known
        ]
    return [*earlier, *final]


def _numbered(drafts: Sequence[Draft]) -> tuple[tuple[ReviewIssue, ...], bool]:
    """The issues by their own numbers where each has one; else numbered through."""
    written = [draft.number for draft in drafts if draft.number is not None]
    right = len(set(written)) == len(drafts)
    numbers = written if right else range(1, len(drafts) + 1)
    return tuple(draft.built(number) for draft, number in zip(drafts, numbers, strict=True)), right


def _fixes(
    said: Said, drafts: Sequence[Draft], issues: Sequence[ReviewIssue]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The issues named, and numbers that none has. Where numbers are at fault, what was written and the place count."""
    if said.verdict is not Verdict.WITH_FIXES:
        return (), ()
    named = named_in(said.numbers, (issue.number for issue in issues))
    written = named_in(said.numbers, (draft.number for draft in drafts if draft.number is not None))
    by_number = {issue.number for issue, draft in zip(issues, drafts, strict=True) if draft.number in written.known}
    unknown = tuple(number for number in named.unknown if number not in written.known)
    return tuple(sorted({*named.known, *by_number})), unknown


def _parts(document: Document, section: Section) -> list[Part]:
    return [part for part in document.parts if part.section is section]


def _text(document: Document, section: Section) -> str:
    return "\n".join(line.text for part in _parts(document, section) for line in part.lines).strip()


def _rationale(document: Document) -> str:
    lines = [line.text for part in _parts(document, Section.VERDICT) for line in part.lines]
    told = "\n".join(lines).strip()
    label = told.lstrip("*_")
    if label.casefold().startswith(RATIONALE.casefold()):
        rest = label[len(RATIONALE) :].lstrip("*_")
        told = rest.lstrip(":*_ \n") if rest.startswith(":") else told
    return told.strip()


def _patterns(document: Document) -> tuple[str, ...]:
    found: list[str] = []
    for line in (line for part in _parts(document, Section.GOOD_PATTERNS) for line in part.lines):
        if found and not line.item and line.kind != "heading":
            found[-1] = f"{found[-1]}\n{line.text}"
        elif not says_nothing(line.text):
            found.append(line.text)
    return tuple(found)


def _findings(review: Review, text: str, last: Document, numbered: bool, unknown: Sequence[int]) -> list[Finding]:
    found: list[Finding] = []
    if review.verdict is Verdict.NONE:
        found.append(_no_verdict(text, last))
    if not review.complete:
        fix = "Answer again, whole and shorter: the gravest issues first."
        found.append(major("review.cut_off", "the review was cut off", fix=fix))
    if review.verdict is Verdict.YES and review.severity is Severity.CRITICAL:
        message = f"`{READY}: Yes` stands beside a critical issue, so it does not count"
        found.append(minor("review.contradiction", message, fix="Call critical only what must not be merged."))
    if len(review.issues) > MAX_ISSUES:
        message = f"the review has {len(review.issues)} issues, {MAX_ISSUES} were asked for at most"
        found.append(minor("review.too_many", message, fix="Leave out what matters least."))
    if review.issues and not numbered:
        counts = Counter(issue.severity for issue in review.issues)
        message = f"the issues are not numbered through ({', '.join(f'{counts[one]} {one}' for one in counts)})"
        found.append(minor("review.numbering", message, fix="Number the issues through, from 1 on."))
    if review.verdict is Verdict.WITH_FIXES and (unknown or not review.fixes):
        told = f"{', '.join(map(str, unknown))}, which no issue has" if unknown else "no number that an issue has"
        found.append(minor("review.fix_numbers", f"`With fixes` names {told}", fix="Name the numbers of the issues."))
    return found


def _no_verdict(text: str, last: Document) -> Finding:
    said = last.trusted.said.strip() if last.trusted is not None else ""
    if last.open_fence:
        told = f"the code block opened in line {last.open_fence} is never closed, and hides what stands behind it"
        return major("review.no_verdict", told, where=Where(line=last.open_fence), fix=f"Close it. {_LINE_FIX}")
    if said[:3].casefold() == "yes" and (words := leaves_open(said)):
        told = f"`{READY}: Yes` is taken back by the words behind it, so nothing is approved: {excerpt(words, PREVIEW)}"
        return major("review.no_verdict", told, fix=f"Leave the words out. {_LINE_FIX}")
    preview = " ".join(excerpt(text.strip()[: 4 * PREVIEW], 4 * PREVIEW).split())
    shown = preview if len(preview) <= PREVIEW else f"{preview[:PREVIEW]} …"
    told = f"the review has no verdict, so nothing is approved: {shown}" if shown else "the review is empty"
    return major("review.no_verdict", told, fix=_LINE_FIX)
