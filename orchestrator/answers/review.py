"""A reviewer's text → what it says.

A model could be read as approving what it did not. So a Yes counts only as a line `Ready: Yes` of its own, at the left
margin, under the heading Verdict, behind every other `Ready:`, outside of code, quotations and thoughts, in a text that
was not cut off and of which no part is hidden, and with no critical issue anywhere. All else is read for the
comments; a review without a verdict is asked for again.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from orchestrator.answers.markdown import THOUGHTS, Block, TooManyBlocks, blocks_of, source_of
from orchestrator.answers.result import excerpt
from orchestrator.core.delivery import (
    CHOICES,
    FIX,
    GOOD_PATTERNS,
    ISSUE,
    ISSUES,
    PLACE,
    RATIONALE,
    READY,
    SUMMARY,
    VERDICT,
    WHY,
    Review,
    ReviewIssue,
    Verdict,
)
from orchestrator.core.finding import Finding, Severity, Where, major, minor

_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_MARKS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
"""Emphasis and code marks, but no underscore inside a name."""
# The bar is possessive and the text behind the block holds no bar or heading: both keep the match linear, and a review
# behind the block is never taken for a remark.
_WRAPPED = re.compile(
    r"(?P<before>\s*(?:\W*(?:sure|certainly|okay|ok|below|here|hier)\b[^\n]{0,150}\breview\b[^\n]{0,80}\n\s*)?"
    r"(?P<bar>`{3,}+|~{3,}+)(?:markdown|md)?[ \t]*\n)(?P<review>.*\n)(?P=bar)[ \t]*(?:\n(?P<behind>[^`~#]*))?",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(rf"</?{THOUGHTS}>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(rf"(?:.*[^`\s])?\s*</{THOUGHTS}>", re.IGNORECASE)
# A diff without bars looks like text and bullets, a comment like nothing, and a table's cells are not read.
_OPAQUE = re.compile(r"^(?:diff --git |@@ -\d|(?:--- a|\+\+\+ b)/|(?:---|\+\+\+) /dev/null|\|.*\|)|<!--", re.MULTILINE)
NO_LEVEL = 7
"""Of a heading that is none in Markdown: any real one ends its section."""
TITLE_CHARS = 120
"""Of a title that is taken from an issue without one."""
PREVIEW = 300
"""Characters of a text without a verdict that its finding shows."""
_FORM = f"{READY}: {' | '.join(CHOICES.values())}"
_LINE_FIX = (
    f"End with `## {VERDICT}` and below it one line of its own: `{READY}: Yes`, `{READY}: No`, or "
    f"`{READY}: With fixes` and the numbers."
)


class Section(StrEnum):
    """Parts of a review."""

    OTHER = "other"
    SUMMARY = "summary"
    ISSUES = "issues"
    GOOD_PATTERNS = "good_patterns"
    VERDICT = "verdict"


_SECTIONS = {
    Section.SUMMARY: rf"{SUMMARY}|summary",
    Section.ISSUES: rf"(?:review )?{ISSUES}(?: found)?|findings",
    Section.GOOD_PATTERNS: rf"{GOOD_PATTERNS}|strengths",
    Section.VERDICT: rf"(?:final |overall |review )?{VERDICT}",
}
_SEVERITIES = {
    Severity.CRITICAL: r"critical|kritisch|blocking|blockers?|must fix",
    Severity.MAJOR: r"major|should fix",
    Severity.MINOR: r"minor|nice to have|nits?",
}
# Numbers, colours, a closing colon and a remark in brackets may stand around a heading's words.
_HEADING = re.compile(
    r"[\W\d_]*(?:"
    + "|".join(f"(?P<{name}>{words})" for name, words in _SECTIONS.items())
    + r"|(?:issues?\W{1,3})?(?:"
    + "|".join(f"(?P<{name}>{words})" for name, words in _SEVERITIES.items())
    + r")(?: (?:issues?|findings?|problems?|comments?|bugs?|items?))?(?:\W{1,3}(?:blocking|should fix|nice to have))?)"
    r"\s*(?:[(\[][^()\[\]]{0,40}[)\]])?[\W_]*",
    re.IGNORECASE,
)
# Also German, and within the first words.
_GRAVE = re.compile(r"\W*(?:\w+\W+){0,3}?(?:[ck]riti[ck]|blocker)", re.IGNORECASE)


def _heading_of(text: str) -> tuple[Section, Severity | None] | None:
    """Returns what a whole line says as a heading of the format."""
    match = _HEADING.fullmatch(_plain(text))
    if match is None or match.lastgroup is None:
        return None
    if match.lastgroup in _SECTIONS:
        return Section(match.lastgroup), None
    return Section.ISSUES, Severity(match.lastgroup)


def _plain(text: str) -> str:
    """Returns a line without emphasis and code marks, blanks made one."""
    return " ".join(_MARKS.sub("", text).split())


_LABELS = {
    "issue": rf"{ISSUE}|problem|description",
    "why": rf"{WHY}(?: (?:it|this) matters)?|impact|reason|risk",
    "fix": rf"(?:how to |suggested |proposed |recommended )?{FIX}|suggestion|recommendation",
    "place": r"file|location|where",
    "severity": r"severity",
}
_LABEL = re.compile(
    r"[*_]{0,3}(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _LABELS.items()) + r")[*_]{0,3}"
    r"\s*[:：][*_]{0,3}(?:\s+|$)",
    re.IGNORECASE,
)
_LINE = r"(?:\s*[:#]\s*L?|,?\s+lines?\s+)(?P<line>[0-9]{1,7})[^\])`\s]*"
_PATH = (
    r"(?:[\w@$+./\\~\-\[\]()]{0,300}\.[A-Za-z][\w-]{0,11}|[\w@.+-]{1,200}(?:/[\w@$.+\-]{1,200}){1,40}"
    r"|Makefile|Dockerfile)"
)
# `[file:line]`, also as a Markdown link.
_BRACKET = re.compile(r"\W{0,4}\[(?P<inside>(?:[^\[\]\n]|\[[^\[\]\n]*\]){1,400})\](?:\([^)\n]*\))?")
_INSIDE = re.compile(rf"[`*]*(?P<file>.{{1,400}}?){_LINE}.{{0,40}}", re.IGNORECASE)
# `file:line` without brackets.
_BARE = re.compile(rf"[\W_]{{0,4}}?(?P<file>{_PATH})(?:{_LINE})?(?=[\s:,;)\]*`—–-]|$)[)\]*`]*", re.IGNORECASE)
_SEVERITY_TAG = re.compile(
    r"[\W\d_]{0,6}(?P<said>critical|blocking|blocker|major|minor|nit)(?:pick)?(?: issues?)?"
    r"(?:\s?\((?:blocking|blocker|must fix|should fix|nice to have)\))?(?:[\])]+|\*\*|:|\s[—–-])\W{0,3}(?:\s+|$)",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:[-*+]\s+)*(?:([0-9]{1,9})[.)]|[-*+])\s")
# `1.`, `#2)`, `**3**`.
_NUMBERED = re.compile(r"[*_(#\[]{0,3}(?:issue\s+)?#?([0-9]{1,4})(?:[.):\]]|\*\*|(?=\s*[—–-]\s))[*_]{0,2}\s*", re.I)
_BAR = re.compile(r"^[`~]{3,}.*$", re.MULTILINE)


class Line(NamedTuple):
    """One line of a review, or a whole block of code or quotation."""

    kind: str
    """heading, text, block."""
    text: str
    level: int = NO_LEVEL
    """Of a heading."""
    depth: int = 0
    """How many lists it stands in."""
    item: bool = False
    """Whether a list item begins with it."""
    number: int | None = None
    """As it was written before an item."""
    margin: bool = True
    """Whether it begins at the left margin."""


@dataclass(kw_only=True, eq=False)
class _Part:
    """A heading with the lines under it."""

    section: Section
    severity: Severity | None = None
    """Of the issues under it; None where the heading names none."""
    level: int = NO_LEVEL
    depth: int = 0
    """How many lists the heading stands in."""
    named: bool = True
    """Whether it has a heading of the format."""
    lines: list[Line] = field(default_factory=list)


@dataclass(kw_only=True)
class _Draft:
    """An issue while its lines are read."""

    severity: Severity
    number: int | None = None
    title: str = ""
    file: str = ""
    line: int | None = None
    depth: int = 0
    listed: bool = False
    """Whether a bullet without a number began it."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    last: str = "issue"
    """The field that a line without a label belongs to."""

    def put(self, name: str, text: str) -> None:
        """Takes one labelled line."""
        if name == "severity":
            self.severity = max(self.severity, _tag_of(f"{text}:")[0] or self.severity, key=lambda one: one.rank)
        elif name == "place":
            self.file, self.line, _ = _place_of(text) or (text.strip("`* "), None, "")
        else:
            self.last = name
            self.fields.setdefault(name, []).extend([text] if text else [])

    def built(self, number: int) -> ReviewIssue:
        """Returns the issue, with a title in any case."""
        texts = {name: "\n".join(lines).strip() for name, lines in self.fields.items()}
        title = self.title or next((bare for text in texts.values() if (bare := _BAR.sub("", text).strip())), "")
        short = " ".join(title.split("\n")[0].split())
        return ReviewIssue(
            number=number,
            severity=self.severity,
            file=self.file,
            line=self.line,
            title=(short if self.title else excerpt(short, TITLE_CHARS)) or self.file,
            **{name: texts.get(name, "") for name in ("issue", "why", "fix")},
        )


def parse_review(text: str, *, cut_off: bool = False) -> tuple[Review, tuple[Finding, ...]]:
    """Returns the review in a text, and findings about it. Never raises; linear in the text.

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
    own = len(written) == len(drafts)  # else numbers are missing or twice there: the place in the text counts
    issues = tuple(
        draft.built(draft.number if own and draft.number is not None else at)
        for at, draft in enumerate(drafts, start=1)
    )
    fixes, unknown = _named_in(numbers, [issue.number for issue in issues])
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
        told = f"the code block opened in line {line} is never closed, and hides what stands behind it"
        return major("review.no_verdict", told, where=Where(line=line), fix=f"Close it. {_LINE_FIX}")
    shown = excerpt(reader.said.strip() or " ".join(text[: 4 * PREVIEW].split()), PREVIEW)
    told = f"the review has no verdict, so nothing is approved: {shown}" if shown else "the review is empty"
    return major("review.no_verdict", told, fix=_LINE_FIX)


class _Reader:
    """One pass over the lines of a text."""

    def __init__(self) -> None:
        self.said = ""
        """What stands behind the last `Ready:`."""
        self.open_fence = 0
        """Line of a code block that is never closed."""
        self._ready: _Part | None = None
        """Where that line stands."""
        self._hides = False
        """Whether a part of the text is not seen, which may be the one that counts."""
        self._parts = [_Part(section=Section.OTHER, named=False)]
        self._older: list[_Draft] = []
        """Critical issues of a draft before the review."""

    def read(self, text: str) -> None:
        """Reads a text. Raises TooManyBlocks, and nothing else."""
        source = source_of(_UNSEEN.sub("", text.encode("utf-8", "backslashreplace").decode("utf-8")))
        clean = _unwrapped(source.text)
        raw = clean.split("\n")
        for block in blocks_of(clean):
            if block.kind in {"fence", "code", "quote"}:
                if not block.closed and block.text.strip():
                    self.open_fence = block.line + source.first_line - 1
                # The form itself, given back, says nothing and hides nothing.
                is_form = block.text.count(f"{READY}:") == block.text.count(_FORM) > 0
                self._hides |= bool(self.open_fence) or (_holds_review(block.text) and not is_form)
                self._parts[-1].lines.append(_whole(block, raw))
            elif block.kind != "rule":
                for at, said in enumerate(block.text.split("\n"), start=block.line):
                    self._take(_line(block, at, said.strip(), raw[at - 1] if at <= len(raw) else ""))
            if block.kind not in {"fence", "code"}:
                self._hides |= _OPAQUE.search("\n".join(raw[block.line - 1 : block.end])) is not None

    def _take(self, line: Line) -> None:
        part, ready = self._parts[-1], _READY_LINE.fullmatch(_plain(line.text))
        if ready is not None and _may_be_verdict(line, part):
            self.said, self._ready = ready["signs"] + ready["said"], part
        elif _THOUGHT_ENDS.fullmatch(line.text) and not any(one.named for one in self._parts):
            self._restart()
        elif _TAG.fullmatch(line.text):
            self._hides = True
        elif not self._heads(line, part):
            part.lines.append(line)

    def _heads(self, line: Line, part: _Part) -> bool:
        """Begins the part that a heading names; returns False for a line that is none."""
        heading, rest = _heading_of(line.text), ""
        if heading is None and ":" in line.text:  # `**Critical:** None`
            head, _, rest = line.text.partition(":")
            heading = _heading_of(head)
        if heading is None or not _is_heading(line, heading[1], rest.strip("*_ "), part):
            return line.kind == "heading" and self._leave(line, part)
        section, severity = heading
        if section is Section.SUMMARY and any(one.section is Section.SUMMARY for one in self._parts):
            # What stands before a second summary was a draft: its verdict does not count, what is critical in it does.
            self._older = [draft for draft in self.drafts() if draft.severity is Severity.CRITICAL]
            self._restart()
        self._begin(_Part(section=section, severity=severity, level=line.level, depth=line.depth))
        if rest.strip("*_ "):
            self._take(line._replace(kind="text", text=rest.strip("*_ "), level=NO_LEVEL, item=False))
        return True

    def _leave(self, line: Line, part: _Part) -> bool:
        """Ends a part at an unknown heading, unless it is deeper or begins an issue; returns whether it did."""
        numbered = line.text.lstrip("*_`#[( ")[:1].isdigit() or line.text.lstrip("*_ ").startswith(("[", "`"))
        if line.level > part.level or (part.section is Section.ISSUES and numbered):
            return False
        # `### Critical findings of the second round`: what it names is not known, and counts as critical.
        grave = part.section is Section.ISSUES and len(line.text.split()) <= 4 and _GRAVE.match(line.text) is not None
        section, severity = (Section.ISSUES, Severity.CRITICAL) if grave else (Section.OTHER, None)
        self._begin(_Part(section=section, severity=severity, level=line.level, named=grave))
        return True

    def _restart(self) -> None:
        self.said, self._ready, self._parts = "", None, [_Part(section=Section.OTHER, named=False)]

    def _begin(self, part: _Part) -> _Part:
        self._parts.append(part)
        return part

    def verdict(self) -> tuple[Verdict, str]:
        """Returns the verdict of the last Ready line, and its numbers; a Yes where none belongs is no verdict."""
        if self._ready is None:
            return Verdict.NONE, ""
        verdict, numbers = _verdict_of(self.said)
        is_hollow = self._hides or self._ready.section is not Section.VERDICT
        return (Verdict.NONE, "") if verdict is Verdict.YES and is_hollow else (verdict, numbers)

    def drafts(self) -> list[_Draft]:
        """Returns the issues in the order of the text."""
        return [*self._older, *(one for part in self._parts if part.section is Section.ISSUES for one in _issues(part))]

    def text(self, section: Section) -> str:
        """Returns the text of a section."""
        lines = (line.text for part in self._parts if part.section is section for line in part.lines)
        return "\n".join(lines).strip().replace(f"**{RATIONALE}:**", f"{RATIONALE}:")

    def patterns(self) -> Iterator[str]:
        """Yields what is said to be good, line by line."""
        parts = (part for part in self._parts if part.section is Section.GOOD_PATTERNS)
        yield from (line.text for part in parts for line in part.lines if not _says_nothing(line.text))


def _unwrapped(text: str) -> str:
    """Returns the text without the bars of a code block around the whole review; its lines keep their numbers."""
    match = _WRAPPED.fullmatch(text)
    if match is None or READY.casefold() in (match["behind"] or "").casefold() or not _holds_review(match["review"]):
        return text
    return "\n" * match["before"].count("\n") + match["review"]


def _holds_review(text: str) -> bool:
    """Returns whether a code block has the headings of a review."""
    sections = {head[0] for line in text.split("\n") if line.startswith("#") and (head := _heading_of(line))}
    return Section.SUMMARY in sections or {Section.ISSUES, Section.VERDICT} <= sections


def _whole(block: Block, raw: Sequence[str]) -> Line:
    if block.kind == "quote":
        return Line("block", "\n".join(raw[block.line - 1 : block.end]), depth=block.depth)
    bar, text = block.mark or "```", block.text.rstrip("\n")
    return Line("block", f"{bar}{block.info}\n{text}\n{bar}", depth=block.depth)


def _line(block: Block, at: int, text: str, raw: str) -> Line:
    first, margin = at == block.line, raw[:1].strip() != ""
    match = _ITEM.match(raw) if first and block.depth else None
    item = first and block.depth > 0 and (block.kind == "item" or match is not None)
    return Line(
        "heading" if block.kind == "heading" else "text",
        text,
        level=block.level or NO_LEVEL,
        # What stands at the margin belongs to a list by the letter of Markdown only.
        depth=0 if margin and not item else block.depth,
        item=item,
        number=int(match[1]) if item and match and match[1] else None,
        # A plus may be the mark of a line that a diff adds.
        margin=margin and block.mark != "+",
    )


def _may_be_verdict(line: Line, part: _Part) -> bool:
    """Returns whether a line that begins with Ready stands where a verdict can: what is deeper is quoted."""
    if not line.item:
        return line.depth == 0 and line.margin
    return line.margin and part.section is not Section.ISSUES


def _is_heading(line: Line, severity: Severity | None, rest: str, part: _Part) -> bool:
    """Returns whether a line is a heading of the format and no words that only look like one."""
    marked = line.text.startswith(("**", "__"))
    if line.kind == "heading":
        return severity is not None or (line.depth == 0 and line.margin)
    if severity is None:
        return line.depth == 0 and not line.item and line.margin and (not rest or marked)
    in_issues = part.section is Section.ISSUES or not part.named
    if rest:  # below `### Critical` a `Minor: …` is an issue, and no less grave
        under_one = part.severity is not None and part.level < NO_LEVEL
        return line.depth == 0 and not line.item and in_issues and not under_one
    return (line.depth == 0 or (line.item and line.depth <= part.depth + 1)) and (in_issues or marked)


def _issues(part: _Part) -> list[_Draft]:
    """Returns the issues of one part: numbered, listed, under headings, or as plain words."""
    found: list[_Draft] = []
    for line in part.lines:
        current = found[-1] if found else None
        label = _LABEL.match(line.text)
        if line.kind == "block":
            if current is not None:
                current.fields.setdefault(current.last, []).append(line.text)
            elif not all(_says_nothing(text) for text in _BAR.sub("", line.text).split("\n")):
                found.append(_Draft(severity=part.severity or Severity.MAJOR, fields={"issue": [line.text]}))
        elif label is not None and label.lastgroup is not None:
            if current is None or (label.lastgroup == "issue" and current.fields.get("issue")):
                severity, listed = part.severity or Severity.MAJOR, line.number is None
                current = _Draft(severity=severity, number=line.number, depth=line.depth, listed=listed)
                found.append(current)
            current.put(label.lastgroup, line.text[label.end() :].strip())
        elif current is not None and not _begins(line, part, current):
            current.fields.setdefault(current.last, []).append(f"- {line.text}" if line.item else line.text)
        elif not _says_nothing(line.text):
            begun = _begun(line, part)
            if begun.file or not _says_nothing(begun.title):
                found.append(begun)
    return found


def _begins(line: Line, part: _Part, current: _Draft) -> bool:
    """Returns whether a line without a label is a further issue; else it belongs to the one that is open."""
    if line.kind == "heading":
        return True
    tag, text = _tag_of(line.text)
    placed = tag is Severity.CRITICAL or _place_of(text) is not None
    if line.item:
        same = line.depth <= max(part.depth + 1, current.depth if current.listed else 0)
        return same and (line.number is not None or current.listed or placed)
    bracketed = line.text.lstrip("*_").startswith("[") and placed
    return line.depth == 0 and (_NUMBERED.match(line.text) is not None or bracketed)


def _begun(line: Line, part: _Part) -> _Draft:
    """Returns the issue that a line begins."""
    number, text = line.number, line.text
    match = _NUMBERED.match(text) if number is None else None
    if match is not None:
        number, text = int(match[1]), text[match.end() :]
    tag, text = _tag_of(text)
    file, at, rest = _place_of(text) or ("", None, text)
    later, rest = _tag_of(rest) if rest != text else (None, rest)
    title = rest.strip(" \t:—–-,;|*") if rest.count("**") != 2 else rest.strip()
    # A tag at the issue weighs where no heading does, and where it is graver.
    graver = [one for one in (part.severity, tag, later) if one is not None] or [Severity.MAJOR]
    severity = max(graver, key=lambda one: one.rank)
    listed = line.item and number is None
    return _Draft(severity=severity, number=number, title=title, file=file, line=at, depth=line.depth, listed=listed)


def _place_of(text: str) -> tuple[str, int | None, str] | None:
    """Returns (file, line, what stands behind) of a text that begins with a place: `[FILE:LINE]`, `a.py:3`."""
    bracket = _BRACKET.match(text)
    if bracket is not None:
        inside = bracket["inside"]
        if inside.strip("`* ").upper() == PLACE:
            return "", None, text[bracket.end() :]
        found = _BARE.fullmatch(inside) or _INSIDE.fullmatch(inside)
    else:
        found = _BARE.match(text)
    if found is None:
        return None
    end = bracket.end() if bracket is not None else found.end()
    return found["file"].strip("`* ("), int(found["line"]) if found["line"] else None, text[end:]


def _tag_of(text: str) -> tuple[Severity | None, str]:
    """Returns the severity with which an issue's line begins, and what stands behind it."""
    match = _SEVERITY_TAG.match(text)
    heading = _heading_of(match["said"]) if match is not None else None
    return (heading[1], text[match.end() :]) if match and heading else (None, text)


_KINDS = r"(?:critical|major|minor|blocking|known|further|other|real|more|open|kritischen?)"
_NOTHING = re.compile(
    rf"(?:(?:there (?:are|were) )?(?:no|none|keine|zero|0)(?: {_KINDS})*(?: or {_KINDS})*"
    r" (?:issues?|findings?|problems?|comments?|blockers?|bugs?|probleme)\b"
    r"|none|nothing|n/a|nil|0|keine?|nichts|-+|–|—)"
    r"(?: (?:were |was )?(?:found|identified|detected|seen|noted|to report|gefunden))?"
    r"(?: (?:in (?:this|the) (?:diff|change|task|code|patch)|here))?",
    re.IGNORECASE,
)
# A reservation after "no issues", which then says something.
_BUT = re.compile(
    r"\b(?:except|but|however|besides|apart|aside|other than|although|though|unless|außer|aber)\b|:\d", re.I
)


def _says_nothing(text: str) -> bool:
    """Returns whether a line under a heading says that there is no issue; one with a `but` does not."""
    words = _plain(text).strip("()[]<> ").lstrip("✅✔️🟢👍•").strip()
    match = _NOTHING.match(words)
    rest = words[match.end() :].strip() if match is not None else words
    if match is None or not any(char.isalnum() for char in rest):
        return not any(char.isalnum() for char in rest)
    return rest[0] in ".!;—–-(" and not _BUT.search(rest) and len(rest) <= 120


_GLAD = "✅✔☑🟢👍🎉🚀💯\ufe0f"
"""Signs that may stand beside a Yes and mean the same; any other sign leaves it unclear."""
# Signs of doubt may stand there too: such a line counts as the last one, and is no Yes.
_READY_LINE = re.compile(
    rf"[•→➡ ]*(?P<signs>[{_GLAD}⚠❌🔴🟡🚫⛔ ]*)(?:{VERDICT}\s*[:：—–-]?\s*)?{READY}\s*[:：]\s*(?P<said>.*)", re.I | re.S
)
_YES = re.compile(
    rf"[{_GLAD}\s]*[\"(\[]?{CHOICES[Verdict.YES]}[\")\]]?[{_GLAD}\s]*[.!]?[{_GLAD}\s]*"
    rf"(?:[(—–-]?\s*mergeable(?: as[ -](?:it )?is)?\)?[.!]?)?\s*(?:[|;—–-]?\s*{RATIONALE}\s*:.*)?",
    re.IGNORECASE | re.DOTALL,
)
# `No issues found` is no No.
_NO = re.compile(rf"\W*(?:{CHOICES[Verdict.NO]}\s*(?:[.,;:!()\]\"—–-]|$)|not\b)", re.IGNORECASE)
_WITH_FIXES = re.compile(r"\W*(?:(?:yes|no)\W+)?with\s+(?:\w+\s+)?fix(?:es)?\b", re.IGNORECASE)
# The issue numbers of `With fixes 1, 3 and 5-7`.
_NUMBERS = re.compile(
    r"[\s:(\[#]*(?:(?:issues?|fix(?:es)?|numbers?)\b)?(?:[\s#,;&+–—-]|\d{1,6}|\b(?:to|and|N)\b)*", re.I
)
_RANGE = re.compile(r"([0-9]+)(?:\s*(?:[-–—]|\bto\b)\s*#?(?:([0-9]+)|(N)\b))?", re.IGNORECASE)
_MOST_UNKNOWN = 5  # numbers without an issue that a message lists


def _verdict_of(said: str) -> tuple[Verdict, str]:
    """Returns the verdict behind `Ready:`, and what stands behind With fixes; what is not clearly one is none."""
    fixes = _WITH_FIXES.match(said)
    if fixes is not None:
        return Verdict.WITH_FIXES, said[fixes.end() :]
    if _YES.fullmatch(said):
        return Verdict.YES, ""
    return (Verdict.NO if _NO.match(said) else Verdict.NONE), ""


def _named_in(text: str, numbers: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns which of the issues' numbers `1-3, 5` names, and the first few of those that no issue has."""
    match = _NUMBERS.match(text)
    known: set[int] = set()
    unknown: dict[int, None] = {}
    for found in _RANGE.finditer(match[0] if match is not None else ""):
        first = int(found[1])
        last = max([first, *numbers]) if found[3] else int(found[2] or first)
        first, last = min(first, last), max(first, last)
        known |= {number for number in numbers if first <= number <= last}
        unknown |= dict.fromkeys(number for number in (first, last) if number not in numbers)
    return tuple(sorted(known)), tuple(unknown)[:_MOST_UNKNOWN]
