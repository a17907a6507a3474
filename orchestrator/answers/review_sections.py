"""A review's lines → its sections, and the lines that may be its verdict.

A review's text → its lines, each with what it is in Markdown: thoughts, wrappers and what is quoted told apart.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Block, blocks_of
from orchestrator.answers.review_words import (
    Heading,
    Section,
    heading_of,
    is_grave,
    is_template,
    said_ready,
    says_nothing,
)
from orchestrator.core.action_plan import with_lf
from orchestrator.core.delivery import PLACE
from orchestrator.core.finding import Severity

_TAGS = r"(?:think|thinking|reasoning|thoughts?|scratchpad|reflection|analysis|draft)"
_OPENS = re.compile(rf"\s*<({_TAGS})>", re.IGNORECASE)
_THOUGHT = re.compile(rf"<{_TAGS}>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(rf"(?:.*[^`\s])?\s*</{_TAGS}>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][\w-]{0,30}>")
_ANNOUNCED = re.compile(
    r"\W*(?:sure|certainly|okay|ok|below|here|hier)\b[^\n]{0,150}\breview\b[^\n]{0,80}", re.IGNORECASE
)
_UNDERLINE = re.compile(r"={2,}")
_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_WRAPS = frozenset({"", "markdown", "md"})
_DIFF_BEGINS = re.compile(r"diff --git |@@ -\d|(?:--- a|\+\+\+ b)/|(?:---|\+\+\+) /dev/null")
_DIFF_GOES_ON = re.compile(
    r"[ \t+@\\-]|$|(?:diff --git|index|new file|deleted file|similarity|rename|Binary files|old mode|new mode)\b"
)
_ITEM = re.compile(r"\s*(?:[-*+]\s+)*([0-9]{1,9})[.)]\s")
_STARTS_ITEM = re.compile(r"\s*(?:[-*+]|[0-9]{1,9}[.)])\s")


class Line(NamedTuple):
    """One line of a review, or a whole block of code or quotation."""

    kind: str
    """heading, text, code, quote; draft: what stands before was one; hidden: a part of the text is not seen here."""
    text: str
    line: int
    """1-based."""
    level: int = 0
    """Of a heading; of what an open code block hides, the line of its bar."""
    depth: int = 0
    """How many lists it stands in."""
    item: bool = False
    """Whether a list item begins with it."""
    number: int | None = None
    """As it was written before an item."""
    added: bool = False
    """Whether the item's mark is a plus, which a diff's added line may be."""
    margin: bool = True
    """Whether it begins at the left margin; items may stand anywhere."""


def lines_of(text: str) -> tuple[Line, ...]:
    """The lines that are the review itself. Raises TooManyBlocks; nothing else, whatever the text is."""
    clean = _UNSEEN.sub("", with_lf(text.encode("utf-8", "backslashreplace").decode("utf-8")))
    clean = _without_opening_thoughts(clean)
    source = _unwrapped(clean)
    found = list(_lines(source, blocks_of(source)))
    return tuple(_without_comments(_without_thoughts(found)))


def _without_opening_thoughts(text: str) -> str:
    """Blank lines in place of thoughts before the answer; thoughts without an end are all there is."""
    begun = _OPENS.match(text)
    if begun is None:
        return text
    end = re.compile(rf"(?<!`)</{begun[1]}>(?!`)", re.IGNORECASE).search(text, begun.end())
    return "" if end is None else "\n" * text.count("\n", 0, end.end()) + text[end.end() :].lstrip(" \t")


def _unwrapped(text: str) -> str:
    """The text without the bars of a code block that stands around the review."""
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
    """Whether the answer is in this block: nothing but its announcement stands before, so that it is no quotation."""
    if block.kind != "fence" or block.depth or block.info.lower() not in _WRAPS:
        return False
    sections = {
        found.section for line in block.text.split("\n") if line.startswith("#") and (found := heading_of(line))
    }
    if Section.SUMMARY not in sections and not {Section.ISSUES, Section.VERDICT} <= sections:
        return False
    if block is blocks[0]:
        return True
    announced = block is blocks[1] and blocks[0].kind == "paragraph" and _ANNOUNCED.fullmatch(blocks[0].text)
    return bool(announced) and not any(
        (other.kind == "heading" and heading_of(other.text)) or said_ready(line) is not None
        for other in blocks[2:]
        if other.kind != "fence"
        for line in other.text.split("\n")
    )


def _holds_review(block: Block) -> bool:
    """Whether a code block has the headings of a review; the format given back is none."""
    ready = [said for line in block.text.split("\n") if (said := said_ready(line)) is not None]
    if PLACE in block.text and ready and all(map(is_template, ready)):
        return False
    heads = (heading_of(line) for line in block.text.split("\n") if block.kind == "fence" and line.startswith("#"))
    sections = {found.section for found in heads if found is not None}
    return Section.SUMMARY in sections or {Section.ISSUES, Section.VERDICT} <= sections


def _lines(source: str, blocks: Sequence[Block]) -> Iterator[Line]:
    raw = source.split("\n")
    quoted = _quoted_diffs(raw, blocks)
    for block in blocks:
        if block.kind == "rule":
            continue
        if block.kind in {"fence", "code", "quote"}:
            kind = "quote" if block.kind == "quote" else "code"
            told = block.text.rstrip("\n") if block.kind != "quote" else "\n".join(raw[block.line - 1 : block.end])
            bar = block.mark or "```"
            told = f"{bar}{block.info}\n{told}\n{bar}" if kind == "code" else told
            yield Line(kind, told, block.line, depth=block.depth)
            if (not block.closed and block.text.strip()) or _holds_review(block):
                yield Line("hidden", "", block.end, level=0 if block.closed else block.line)
            continue
        for at, text in enumerate(block.text.split("\n"), start=block.line):
            as_it_is = raw[at - 1] if at <= len(raw) else ""
            if _UNDERLINE.fullmatch(text.strip()):
                continue
            yield Line("quote", as_it_is, at) if at in quoted else _line(block, at, text.strip(), as_it_is)


def _line(block: Block, at: int, text: str, raw: str) -> Line:
    first, margin = at == block.line, raw[:1].strip() != ""
    item = first and block.depth > 0 and (block.kind == "item" or bool(_STARTS_ITEM.match(raw)))
    # What goes on at the margin belongs to a list by the letter of Markdown only.
    depth = 0 if margin and not item else block.depth
    match = _ITEM.match(raw) if item else None
    return Line(
        "heading" if block.kind == "heading" else "text",
        text,
        at,
        level=block.level,
        depth=depth,
        item=item,
        number=int(match[1]) if match else None,
        added=block.mark == "+",
        margin=margin,
    )


def _quoted_diffs(raw: Sequence[str], blocks: Sequence[Block]) -> set[int]:
    """Numbers of the lines of a diff that stands in the text without a code block around it."""
    code = {at for block in blocks if block.kind == "fence" for at in range(block.line, block.end + 1)}
    found: set[int] = set()
    inside = False
    for at, line in enumerate(raw, start=1):
        inside = at not in code and bool(_DIFF_BEGINS.match(line) or (inside and _DIFF_GOES_ON.match(line)))
        if inside:
            found.add(at)
    return found


def _without_thoughts(lines: Sequence[Line]) -> list[Line]:
    """Thoughts whose tags stand on lines of their own; before an end without a beginning, everything is thought.

    If a review seems to stand there, it is kept as a draft: it may be no thought.
    """
    kept: list[Line] = []
    begun: int | None = None
    headed = False
    for line in lines:
        if line.kind in {"code", "quote", "hidden"}:
            kept.append(line)
        elif _THOUGHT.fullmatch(line.text):
            begun = len(kept) if begun is None else begun
        elif _THOUGHT_ENDS.fullmatch(line.text) and (begun is not None or not headed or _TAG.fullmatch(line.text)):
            if begun is None and headed:
                kept.append(Line("draft", "", line.line))
            else:
                del kept[begun or 0 :]
            begun = None
        elif not _TAG.fullmatch(line.text):
            headed = headed or (line.kind == "heading" and heading_of(line.text) is not None)
            kept.append(line)
    return kept if begun is None else [*kept[:begun], Line("hidden", "", lines[-1].line)]


def _without_comments(lines: Sequence[Line]) -> Iterator[Line]:
    """Without HTML comments: nobody reads them. One that does not end hides the rest."""
    inside = False
    for line in lines:
        if line.kind in {"code", "hidden", "draft"}:
            if not inside:
                yield line
            continue
        begins = line.text.startswith("<!--")
        if not (inside or begins):
            yield line
        inside = (inside or begins) and "-->" not in line.text
    if inside:
        yield Line("hidden", "", lines[-1].line)


_ISSUE = re.compile(
    r"[*_`\[(]*(?:[\w@./-]+\.\w{1,10}:\d|(?:critical|major|blocking|blocker|must fix)\b)", re.IGNORECASE
)
"""A line of a review without sections that seems to name what is wrong."""
NO_LEVEL = 7
"""Of a heading that is none in Markdown: any real one ends its section."""


@dataclass(kw_only=True)
class Part:
    """A heading with the lines under it."""

    section: Section
    severity: Severity | None = None
    """Of the issues under it; None where the heading names none."""
    level: int = NO_LEVEL
    depth: int = 0
    """How many lists the heading stands in."""
    named: bool = True
    """Whether it has a heading of the format; the words before the first one have none."""
    clear: bool = True
    """Whether a verdict may stand here: under its heading, or where no issue is open."""
    lines: list[Line] = field(default_factory=list)

    @property
    def holds_issues(self) -> bool:
        """Whether something stands here that does not say that there is no issue."""
        return self.section is Section.ISSUES and not all(says_nothing(line.text) for line in self.lines)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """One Ready line."""

    said: str
    part: Part
    """Where it stands."""
    at: int
    """Place of its part among all."""


@dataclass(kw_only=True)
class Document:
    """One review: a text may hold a draft and its final form."""

    parts: list[Part] = field(default_factory=list)
    ready: list[Ready] = field(default_factory=list)
    hides: bool = False
    """Whether a part of it is not seen: something is never closed, or a review stands in a code block."""

    open_fence: int = 0
    """Line of a code block that is never closed."""

    @property
    def trusted(self) -> Ready | None:
        """The last Ready line."""
        return self.ready[-1] if self.ready else None

    def may_approve(self, ready: Ready) -> bool:
        """Whether a Yes may stand there: under Verdict; without such a heading, behind all else and in no issue.

        Not in a text of which a part is hidden: it may be the one that counts.
        """
        if self.hides or (ready.part.section is Section.VERDICT and ready.part.named):
            return not self.hides
        named_later = any(part.named for part in self.parts[ready.at + 1 :])
        has_heading = any(part.named and part.section is Section.VERDICT for part in self.parts)
        open_issue = not any(part.named for part in self.parts) and any(
            _ISSUE.match(line.text) for part in self.parts for line in part.lines
        )
        return ready.part.clear and not named_later and not has_heading and not open_issue


def documents_of(lines: Sequence[Line]) -> list[Document]:
    """The reviews in a text; a second Review Summary begins a second one."""
    splitter = _Splitter()
    for line in lines:
        splitter.take(line)
    return splitter.documents


class _Splitter:
    """One pass over the lines."""

    def __init__(self) -> None:
        self.documents = [Document()]
        self._begin(Part(section=Section.OTHER, named=False))

    def _begin(self, part: Part) -> None:
        self._part = part
        self.documents[-1].parts.append(part)

    def take(self, line: Line) -> None:
        """Put a line where it belongs."""
        if line.kind == "hidden":
            self.documents[-1].hides = True
            self.documents[-1].open_fence = line.level
        elif line.kind == "draft":
            self.documents.append(Document())
            self._begin(Part(section=Section.OTHER, named=False))
        elif line.kind in {"code", "quote"}:
            self._part.lines.append(line)
        else:
            self._words(line)

    def _words(self, line: Line) -> None:
        said = said_ready(line.text)
        if said is not None and self._is_ready(line):
            self._ready(said)
            return
        heading = heading_of(line.text)
        if heading is not None and self._is_heading(line, heading):
            self._head(line, heading)
        elif line.kind == "heading" and self._leaves(line):
            grave = self._part.section is Section.ISSUES and is_grave(line.text)
            section, severity = (Section.ISSUES, Severity.CRITICAL) if grave else (Section.OTHER, None)
            self._begin(Part(section=section, severity=severity, level=line.level, named=grave))
        else:
            self._part.lines.append(line)

    def _is_ready(self, line: Line) -> bool:
        """Whether a line that begins with Ready stands where a verdict can: what is deeper in an issue is quoted."""
        if line.item:
            if line.added or self._part.section is Section.ISSUES:
                return False
            return line.depth <= 1 or self._part.section is Section.VERDICT
        return line.depth == 0 and line.margin

    def _ready(self, said: str) -> None:
        part = self._part
        if part.section is not Section.VERDICT:
            part = Part(section=Section.VERDICT, named=False, clear=not part.holds_issues)
            self._begin(part)
        document = self.documents[-1]
        document.ready.append(Ready(said=said, part=part, at=len(document.parts) - 1))

    def _is_heading(self, line: Line, heading: Heading) -> bool:
        """Whether a line is a heading of the format and no words that only look like one."""
        if heading.severity is not None:
            return line.kind == "heading" or self._is_severity(line, heading)
        marked = _is_marked(line.text)
        if line.item:  # a review that is a list, sections and all
            return line.depth == 1 and marked and all(part.level == NO_LEVEL for part in self.documents[-1].parts)
        return line.depth == 0 and line.margin and (line.kind == "heading" or not heading.rest or marked)

    def _is_severity(self, line: Line, heading: Heading) -> bool:
        """Whether a line that is no heading in Markdown begins issues of a severity, and is not itself one of them."""
        part = self._part
        in_issues = part.section is Section.ISSUES or not part.named
        if heading.rest:
            under_one = part.severity is not None and part.level < NO_LEVEL
            return line.depth == 0 and not line.item and in_issues and not under_one
        own = line.depth == 0 or (line.item and line.depth <= part.depth + 1)
        return own and (in_issues or _is_marked(line.text))

    def _head(self, line: Line, heading: Heading) -> None:
        if heading.section is Section.SUMMARY and any(
            part.section is Section.SUMMARY for part in self.documents[-1].parts
        ):
            self.documents.append(Document())
        level = line.level or NO_LEVEL
        self._begin(Part(section=heading.section, severity=heading.severity, level=level, depth=line.depth))
        if heading.rest:
            self.take(line._replace(kind="text", text=heading.rest, level=0, item=False, depth=line.depth))

    def _leaves(self, line: Line) -> bool:
        """Whether a heading nobody knows ends the section: one that is deeper belongs to it, a numbered one is an
        issue."""
        deeper = line.level > self._part.level
        numbered = line.text.lstrip("*_`#[( ")[:1].isdigit() or line.text.lstrip("*_ ").startswith(("[", "`"))
        return not (deeper or (self._part.section is Section.ISSUES and numbered))


def _is_marked(text: str) -> bool:
    """Whether a line is bold from its beginning, as headings are that are none in Markdown."""
    return text.startswith(("**", "__"))
