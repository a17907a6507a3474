"""A reviewer's text → what it says.

A model could be read as approving what it did not: so a Yes counts only as the last `Ready:` line, at the margin or as
an item of the verdict, with no words behind it that leave something open, in no code block, quotation, comment or
thought, in a text that was not cut off, that does not say that it is unfinished or could not see the change, and with
nothing critical anywhere. All else is read for the comments; a review without a verdict is asked for again.
"""

import re
from collections.abc import Iterator, Sequence

from orchestrator.answers.markdown import THOUGHTS, Block, TooManyBlocks, blocks_of, source_of
from orchestrator.answers.result import excerpt
from orchestrator.answers.review_claims import admits_gap, goes_back, says_critical, without_turn_ends
from orchestrator.answers.review_issues import NO_LEVEL, Draft, Line, Part, issues_of
from orchestrator.answers.review_words import (
    Heading,
    Section,
    heading_of,
    is_grave,
    is_template,
    leaves_open,
    named_in,
    ready_of,
    says_nothing,
    verdict_of,
)
from orchestrator.core.delivery import PLACE, RATIONALE, READY, Review, ReviewIssue, Verdict
from orchestrator.core.finding import Finding, Severity, Where, major, minor

_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_WRAPS = frozenset({"", "markdown", "md"})
_ANNOUNCED = re.compile(r"\W*(?:sure|certainly|okay|ok|below|here|hier)\b[^\n]{0,150}\breview\b[^\n]{0,80}", re.I)
_THOUGHT_ENDS = re.compile(rf"(?:.*[^`\s])?\s*</{THOUGHTS}>", re.IGNORECASE)
_TAG = re.compile(rf"</?{THOUGHTS}>", re.IGNORECASE)
_DIFF = re.compile(r"^(?:diff --git |@@ -\d|(?:--- a|\+\+\+ b)/|(?:---|\+\+\+) /dev/null)", re.MULTILINE)
_COMMENT = re.compile(r"(?<!`)<!--.*?-->")
_COMMENTED_ITEM = re.compile(r"<!--\s*((?:\d+[.)]|[-*]|\[)\s*\S.*?)\s*-->")
"""An issue that was put into a comment: under Critical it is one all the same."""
_ITEM = re.compile(r"\s*(?:[-*+]\s+)*(?:([0-9]{1,9})[.)]|[-*+])\s")
_ISSUE = re.compile(
    r"[*_`\[(]*(?:[\w@./-]+\.\w{1,10}:\d|(?:critical|major|blocking|blocker|must fix)\b)", re.IGNORECASE
)
"""A line of a review without headings that seems to name what is wrong."""
PREVIEW = 300
"""Characters of a text without a verdict that its finding shows."""
_LINE_FIX = f"End with one line of its own: `{READY}: Yes`, `{READY}: No`, or `{READY}: With fixes` and the numbers."


def parse_review(text: str, *, cut_off: bool = False) -> tuple[Review, tuple[Finding, ...]]:
    """Returns the review in a text, and what is to be said about it. Never raises; linear in the text.

    `cut_off`: the model had no room left. What came of it is kept, and nothing of it approves.
    """
    reader = _Reader()
    try:
        reader.read(text)
    except TooManyBlocks:
        return Review(complete=not cut_off), (_no_verdict(text, _Reader()),)
    verdict, numbers = reader.verdict()
    drafts = reader.drafts()
    written = {draft.number for draft in drafts if draft.number is not None}
    own = len(written) == len(drafts)
    issues = tuple(
        draft.built(draft.number if own and draft.number is not None else at)
        for at, draft in enumerate(drafts, start=1)
    )
    fixes, unknown = named_in(numbers, [issue.number for issue in issues])
    if (
        verdict is Verdict.YES
        and (claim := reader.critical())
        and all(one.severity is not Severity.CRITICAL for one in issues)
    ):
        issues += (_claimed(claim, max((one.number for one in issues), default=0) + 1),)
    review = Review(
        summary=reader.text(Section.SUMMARY),
        issues=issues,
        good_patterns=tuple(reader.patterns()),
        verdict=verdict,
        fixes=fixes,
        rationale=reader.text(Section.VERDICT).removeprefix(f"{RATIONALE}:").strip(),
        complete=not cut_off,
    )
    return review, tuple(_findings(review, text, reader, unknown))


def _claimed(claim: str, number: int) -> ReviewIssue:
    """Returns the issue that is called critical outside of the issues."""
    return Draft(severity=Severity.CRITICAL, fields={"issue": [claim]}).built(number)


def _findings(review: Review, text: str, reader: "_Reader", unknown: Sequence[int]) -> Iterator[Finding]:
    if review.verdict is Verdict.NONE:
        yield _no_verdict(text, reader)
    if not review.complete:
        fix = "Answer again, whole and shorter: the gravest issues first."
        yield major("review.cut_off", "the review was cut off", fix=fix)
    if review.verdict is Verdict.YES and review.severity is Severity.CRITICAL:
        message = f"`{READY}: Yes` stands beside a critical issue, so it does not count"
        yield minor("review.contradiction", message, fix="Call critical only what must not be merged.")
    if review.verdict is Verdict.WITH_FIXES and (unknown or not review.fixes):
        told = f"{', '.join(map(str, unknown))}, which no issue has" if unknown else "no number that an issue has"
        yield minor("review.fix_numbers", f"`With fixes` names {told}", fix="Name the numbers of the issues.")


def _no_verdict(text: str, reader: "_Reader") -> Finding:
    if reader.open_fence:
        line = reader.open_fence
        told = f"the code block or comment opened in line {line} is never closed, and hides what stands behind it"
        return major("review.no_verdict", told, where=Where(line=line), fix=f"Close it. {_LINE_FIX}")
    if reader.gap:
        told = (
            f"`{READY}: Yes` does not count in a review that says that it is not whole: {excerpt(reader.gap, PREVIEW)}"
        )
        return major("review.no_verdict", told, fix=f"Review all of the change that is shown. {_LINE_FIX}")
    said = reader.said.strip()
    if said[:3].casefold() == "yes" and (words := leaves_open(said) or reader.taken_back()):
        told = f"`{READY}: Yes` is taken back by the words behind it, so nothing is approved: {excerpt(words, PREVIEW)}"
        return major("review.no_verdict", told, fix=f"Leave the words out. {_LINE_FIX}")
    shown = excerpt(" ".join(text[: 4 * PREVIEW].split()), PREVIEW)
    told = f"the review has no verdict, so nothing is approved: {shown}" if shown else "the review is empty"
    return major("review.no_verdict", told, fix=_LINE_FIX)


class _Reader:
    """One pass over the lines of a text."""

    def __init__(self) -> None:
        self.said = ""
        """What stands behind the last `Ready:`."""
        self.open_fence = 0
        """Line of a code block or comment that is never closed."""
        self.gap = ""
        """Where the review says that it is unfinished or could not see the change, beside a Yes."""
        self._ready: Part | None = None
        """Where that line stands."""
        self._behind = 0
        """How many lines of that part stand before it."""
        self._comment = False
        """Whether a comment is open."""
        self._hides = False
        """Whether a part of the text is not seen, which may be the one that counts."""
        self._parts = [Part(section=Section.OTHER, named=False)]
        self._older: list[Draft] = []
        """Critical issues of a draft before the review."""

    def read(self, text: str) -> None:
        """Reads a text. Raises TooManyBlocks, and nothing else."""
        source = source_of(_UNSEEN.sub("", text.encode("utf-8", "backslashreplace").decode("utf-8")))
        clean = _unwrapped(without_turn_ends(source.text))
        raw = clean.split("\n")
        last = clean.count("\n", 0, max(0, clean.rfind("-->"))) + 1
        for block in blocks_of(clean):
            if block.kind in {"fence", "code", "quote"}:
                if not block.closed and block.text.strip():
                    self.open_fence = block.line + source.first_line - 1
                self._hides |= bool(self.open_fence) or (_holds_review(block.text) and not _is_form(block.text))
                self._parts[-1].lines.append(_whole(block, raw))
            elif block.kind != "rule":
                for at, said in enumerate(block.text.split("\n"), start=block.line):
                    seen = self._without_comment(said.strip(), at + source.first_line - 1, closed=at < last)
                    if seen or not said.strip():
                        self._take(_line(block, at, seen, raw[at - 1] if at <= len(raw) else ""))
            if block.kind not in {"fence", "code"}:
                # A diff without bars looks like text and bullets.
                self._hides |= _DIFF.search("\n".join(raw[block.line - 1 : block.end])) is not None

    def _without_comment(self, said: str, at: int, *, closed: bool) -> str:
        """Returns a line without what stands in a comment, which nobody sees; `closed`: one that begins here ends."""
        if self._comment:
            _, end, said = said.partition("-->")
            self._comment = not end
        elif ready_of(said) is None:
            item = _COMMENTED_ITEM.match(said) if self._parts[-1].severity is Severity.CRITICAL else None
            said = item[1] if item is not None else _COMMENT.sub("", said)
        if not said.startswith("<!--"):
            return said.strip()
        if closed:
            self._comment = True
            return ""
        self.open_fence, self._hides = at, True
        return said

    def _take(self, line: Line) -> None:
        part, said = self._parts[-1], ready_of(line.text)
        heading = heading_of(line.text)
        if said is not None and _may_be_verdict(line, part):
            if part.section is not Section.VERDICT:
                part = self._begin(Part(section=Section.VERDICT, named=False))
            self.said, self._ready, self._behind = said, part, len(part.lines)
        elif _THOUGHT_ENDS.fullmatch(line.text) and not any(one.named for one in self._parts):
            self._restart()
        elif _TAG.fullmatch(line.text):
            self._hides = True
        elif heading is not None and self._is_heading(line, heading):
            self._head(line, heading)
        elif line.kind == "heading" and _leaves(line, part):
            grave = part.section is Section.ISSUES and is_grave(line.text)
            section, severity = (Section.ISSUES, Severity.CRITICAL) if grave else (Section.OTHER, None)
            self._begin(Part(section=section, severity=severity, level=line.level, named=grave))
        else:
            part.lines.append(line)

    def _restart(self) -> None:
        self.said, self._ready, self._parts = "", None, [Part(section=Section.OTHER, named=False)]

    def _begin(self, part: Part) -> Part:
        self._parts.append(part)
        return part

    def _head(self, line: Line, heading: Heading) -> None:
        if heading.section is Section.SUMMARY and any(one.section is Section.SUMMARY for one in self._parts):
            # What stands before a second summary was a draft: its verdict does not count, what is critical in it does.
            self._older = [draft for draft in self.drafts() if draft.severity is Severity.CRITICAL]
            self._restart()
        level = line.level or NO_LEVEL
        self._begin(Part(section=heading.section, severity=heading.severity, level=level, depth=line.depth))
        if heading.rest:
            self._take(line._replace(kind="text", text=heading.rest, level=0, item=False))

    def _is_heading(self, line: Line, heading: Heading) -> bool:
        """Returns whether a line is a heading of the format and no words that only look like one."""
        part, marked = self._parts[-1], line.text.startswith(("**", "__"))
        if heading.severity is None:
            if line.item:  # a review that is a list, sections and all
                return line.depth == 1 and marked and all(one.level == NO_LEVEL for one in self._parts)
            return line.depth == 0 and line.margin and (line.kind == "heading" or not heading.rest or marked)
        if line.kind == "heading":
            return True
        in_issues = part.section is Section.ISSUES or not part.named
        if heading.rest:
            under_one = part.severity is not None and part.level < NO_LEVEL
            return line.depth == 0 and not line.item and in_issues and not under_one
        return (line.depth == 0 or (line.item and line.depth <= part.depth + 1)) and (in_issues or marked)

    def verdict(self) -> tuple[Verdict, str]:
        """Returns the last Ready line's verdict, and its numbers; a Yes where none belongs is no verdict."""
        verdict, numbers = verdict_of(self.said) if self._ready is not None else (Verdict.NONE, "")
        if verdict is Verdict.YES:
            self.gap = next((line.text for line in self._words() if admits_gap(line.text)), "")
            if self.gap or self.taken_back() or not self._may_approve():
                return Verdict.NONE, ""
        return verdict, numbers

    def taken_back(self) -> str:
        """Returns the line behind the Ready line that takes a Yes back, "" without one."""
        behind = self._ready.lines[self._behind :] if self._ready is not None else []
        return next((line.text for line in behind if goes_back(line.text)), "")

    def critical(self) -> str:
        """Returns the first line, whatever its section, that calls something critical, "" without one."""
        lines = [line.text for line in self._words()]
        following = [*lines[1:], ""][: len(lines)]
        return next((line for line, then in zip(lines, following, strict=True) if says_critical(line, then)), "")

    def _words(self) -> Iterator[Line]:
        """Yields all lines that are the reviewer's own words."""
        yield from (line for part in self._parts for line in part.lines if line.kind not in {"code", "quote"})

    def _may_approve(self) -> bool:
        """Returns whether the Yes stands under Verdict or, without such a heading, behind all else and no issue."""
        ready = self._ready
        if self._hides or ready is None or ready.named:
            return not self._hides
        named = [part for part in self._parts if part.named]
        if any(part.section is Section.VERDICT or part.holds_issues for part in named):
            return False
        if named:
            return self._parts.index(ready) > self._parts.index(named[-1])
        return not any(_ISSUE.match(line.text) for part in self._parts for line in part.lines)

    def drafts(self) -> list[Draft]:
        """Returns the issues in the order of the text."""
        return [
            *self._older,
            *(one for part in self._parts if part.section is Section.ISSUES for one in issues_of(part)),
        ]

    def text(self, section: Section) -> str:
        """Returns the text of a section."""
        lines = (line.text for part in self._parts if part.section is section for line in part.lines)
        return "\n".join(lines).strip().replace(f"**{RATIONALE}:**", f"{RATIONALE}:")

    def patterns(self) -> Iterator[str]:
        """Yields what is said to be good, line by line."""
        parts = (part for part in self._parts if part.section is Section.GOOD_PATTERNS)
        yield from (line.text for part in parts for line in part.lines if not says_nothing(line.text))


def _unwrapped(text: str) -> str:
    """Returns the text without the bars of a code block that stands around the review."""
    blocks = blocks_of(text)
    wrapper = next((block for block in blocks[:2] if _wraps(block, blocks)), None)
    if wrapper is None:
        return text
    lines = text.split("\n")
    lines[: wrapper.line] = [""] * wrapper.line
    again = blocks_of("\n".join(lines))
    if again and again[-1].kind == "fence" and not again[-1].closed and not again[-1].info:
        lines[again[-1].line - 1] = ""  # the bar that closed the wrapper
    return "\n".join(lines)


def _wraps(block: Block, blocks: Sequence[Block]) -> bool:
    """Returns whether the answer is in this block: at most its announcement stands before, so it is no quotation."""
    if block.kind != "fence" or block.depth or block.info.lower() not in _WRAPS or not _holds_review(block.text):
        return False
    announced = blocks[0].kind == "paragraph" and _ANNOUNCED.fullmatch(blocks[0].text)
    bare = all(one.kind == "paragraph" and READY.casefold() not in one.text.casefold() for one in blocks[2:])
    return block is blocks[0] or bool(announced and bare)


def _holds_review(text: str) -> bool:
    """Returns whether a code block has the headings of a review."""
    heads = [heading_of(line) for line in text.split("\n") if line.startswith("#")]
    sections = {head.section for head in heads if head is not None}
    return Section.SUMMARY in sections or {Section.ISSUES, Section.VERDICT} <= sections


def _is_form(text: str) -> bool:
    """Returns whether a block holds the form that was asked for, given back: it says nothing."""
    ready = [said for line in text.split("\n") if (said := ready_of(line)) is not None]
    return PLACE in text and bool(ready) and all(is_template(said) for said in ready)


def _whole(block: Block, raw: Sequence[str]) -> Line:
    if block.kind == "quote":
        return Line("quote", "\n".join(raw[block.line - 1 : block.end]), depth=block.depth)
    bar, text = block.mark or "```", block.text.rstrip("\n")
    return Line("code", f"{bar}{block.info}\n{text}\n{bar}", depth=block.depth)


def _line(block: Block, at: int, text: str, raw: str) -> Line:
    first, margin = at == block.line, raw[:1].strip() != ""
    match = _ITEM.match(raw) if first and block.depth else None
    item = first and block.depth > 0 and (block.kind == "item" or match is not None)
    return Line(
        "heading" if block.kind == "heading" else "text",
        text,
        level=block.level,
        # What stands at the margin belongs to a list by the letter of Markdown only.
        depth=0 if margin and not item else block.depth,
        item=item,
        number=int(match[1]) if item and match and match[1] else None,
        added=block.mark == "+",
        margin=margin,
    )


def _may_be_verdict(line: Line, part: Part) -> bool:
    """Returns whether a line that begins with Ready stands where a verdict can: what is deeper is quoted."""
    if not line.item:
        return line.depth == 0 and line.margin
    return (
        not line.added and part.section is not Section.ISSUES and (line.depth == 1 or part.section is Section.VERDICT)
    )


def _leaves(line: Line, part: Part) -> bool:
    """Returns whether an unknown heading ends the section: a deeper one belongs to it, a numbered one is an issue."""
    numbered = line.text.lstrip("*_`#[( ")[:1].isdigit() or line.text.lstrip("*_ ").startswith(("[", "`"))
    return line.level <= part.level and not (part.section is Section.ISSUES and numbered)
