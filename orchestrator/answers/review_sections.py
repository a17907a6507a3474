"""A review's lines → its sections, and the lines that may be its verdict."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.answers.review_lines import Line
from orchestrator.answers.review_verdict import said_ready
from orchestrator.answers.review_words import Heading, Section, heading_of, is_grave, says_nothing
from orchestrator.domain.findings import Severity

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
