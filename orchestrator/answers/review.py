"""A reviewer's text → what it says. Read by the tokens of a CommonMark parser, never by words of praise.

A model could be read as approving what it did not: so a Yes counts only as the last `Ready:` line, on a line of its
own, at the margin or as an item of the verdict, with no other words beside it, in no code block, quotation, quoted
diff, comment or thought, in a text that was not cut off, and with no critical issue anywhere.

Where an issue is: `[FILE:LINE]` with or without its brackets, and the severity that may stand beside it.

The lines under the severities → issues: in full form, on one line, as headings, in tables, or as plain words.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from orchestrator.answers.action_plan_document import TooManyBlocks
from orchestrator.answers.result import excerpt
from orchestrator.answers.review_sections import Document, Line, Part, documents_of, lines_of
from orchestrator.answers.review_words import (
    Said,
    Section,
    heading_of,
    inline_fields,
    label_of,
    leaves_open,
    named_in,
    plain,
    says_nothing,
    verdict_of,
)
from orchestrator.core.delivery import MAX_ISSUES, PLACE, RATIONALE, READY, Review, ReviewIssue, Verdict
from orchestrator.core.finding import Finding, Severity, Where, major, minor

_LINE = r"(?:\s*[:#]\s*L?|,?\s+(?:lines?|Zeilen?)\s+)(?P<line>[0-9]{1,7})(?:\s*(?:[-–—:,]|to)\s*(?:L?[0-9]{1,7}|\*))*"
_INSIDE = re.compile(rf"(?P<file>[^\n]{{1,400}}?){_LINE}.{{0,40}}", re.IGNORECASE)
_PATH = (
    r"(?:[\w@$+./\\~\-\[\]()]{0,300}\.[A-Za-z][\w-]{0,11}|[\w@.+-]{1,200}(?:/[\w@$.+\-\[\]()]{1,200}){1,40}"
    r"|Makefile|Dockerfile)"
)
_BARE = re.compile(rf"(?P<file>{_PATH})(?:{_LINE})?(?=[\s:,;)\]*—–-]|$)", re.IGNORECASE)
_ANYWHERE = re.compile(r"(?P<file>[\w@$./\\~-]{1,200}\.[A-Za-z]\w{0,11}):(?P<line>[0-9]{1,7})")
_TAG = re.compile(
    r"[\W_]{0,6}(?P<said>critical|blocking|blocker|major|minor|nit)(?:pick)?(?: issues?)?"
    r"(?:\s?\((?:blocking|blocker|must fix|should fix|nice to have)\))?(?:[\])]+|\*\*|:|\s[—–-])\W{0,3}(?:\s+|$)",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"^[^\w\s\[(`*_./@~<>\"'$\\{|+-]+\s*")
"""What decorates the beginning of a line."""
_BRACKETS = {"[": "]", "(": ")"}
_TRIM = " \t:—–-,;|"
_LONGEST = 2000
"""Characters of a line that are looked at."""


class Head(NamedTuple):
    """The first line of an issue."""

    title: str
    file: str = ""
    line: int | None = None
    tag: Severity | None = None
    placed: bool = False
    """Whether it begins with a place, or with the format's own `[FILE:LINE]`."""


def head_of(text: str) -> Head:
    """Place, severity and title of an issue's first line."""
    tag, text = _tag(_SIGNS.sub("", text.strip()))
    placed, file, line, rest = _place(_unbold(text))
    later, rest = _tag(rest) if placed else (None, rest)
    title = _unbold(rest.lstrip(_TRIM)).strip()
    title = title.removesuffix("**").rstrip() if title.count("**") % 2 else title
    return Head(title, file, line, tag or later, placed)


def place_in(text: str) -> tuple[str, int | None] | None:
    """The first place that a text names."""
    placed, file, line, _ = _place(text.strip())
    if placed and file:
        return file, line
    found = _ANYWHERE.search(text[:_LONGEST])
    return (found["file"], int(found["line"])) if found is not None else None


def _tag(text: str) -> tuple[Severity | None, str]:
    match = _TAG.match(text)
    if match is None:
        return None, text
    heading = heading_of(match["said"])
    return (heading.severity if heading else None), text[match.end() :]


def _unbold(text: str) -> str:
    """Without bold marks that stand around the whole or around its beginning."""
    for mark in ("**", "__"):
        if text.startswith(mark) and text.count(mark) % 2 == 0:
            first, _, rest = text[2:].partition(mark)
            text = f"{first}{rest}" if _begins_with_place(first) or not rest.strip() else text
    return text


def _begins_with_place(text: str) -> bool:
    return text.startswith(tuple(_BRACKETS)) or bool(_BARE.match(text.lstrip("`")))


def _place(text: str) -> tuple[bool, str, int | None, str]:
    """(whether there is one, file, line, what stands behind it)."""
    start = text[:_LONGEST]
    if start[:1] in _BRACKETS:
        end = _closing(start)
        found = _named(start[1:end], bracketed=start[0] == "[") if end else None
        return (True, *found, _behind(text, end)) if found is not None else (False, "", None, text)
    if start.startswith("`") and (end := start.find("`", 1)) > 0:
        found = _named(start[1:end], bracketed=False)
        return (True, *found, text[end + 1 :]) if found is not None else (False, "", None, text)
    match = _BARE.match(start)
    if match is None:
        return False, "", None, text
    return True, match["file"], int(match["line"]) if match["line"] else None, text[match.end() :]


def _closing(text: str) -> int:
    """Place of the bracket that closes the first one; 0 when none does."""
    opens, closes = text[0], _BRACKETS[text[0]]
    depth = 0
    for at, char in enumerate(text):
        depth += (char == opens) - (char == closes)
        if depth == 0:
            return at
    return 0


def _behind(text: str, end: int) -> str:
    """What stands behind a bracket, and behind a link's target."""
    rest = text[end + 1 :]
    if text[0] == "[" and rest.startswith("(") and (close := rest.find(")")) > 0:
        return rest[close + 1 :]
    return rest


def _named(inside: str, *, bracketed: bool) -> tuple[str, int | None] | None:
    """The file and line between brackets or code marks; ("", None) for the format's own words."""
    words = inside.strip().strip("`*").strip()
    if words.startswith("[") and _closing(words) == len(words) - 1:
        words = words[1:-1].strip().strip("`")
    if words.upper() == PLACE:
        return "", None
    match = _INSIDE.fullmatch(words)
    if match is not None:
        return match["file"].strip("`* "), int(match["line"])
    bare = _BARE.fullmatch(words)
    if bare is not None or (bracketed and re.fullmatch(r"[\w.@/+-]{1,200}", words) and "/" in words):
        return words, None
    return None


_NUMBERED = re.compile(
    r"[*_(#\[]{0,3}(?:issue\s+)?#?([0-9]{1,4})(?:[.):\]]|\*\*|(?=\s*[—–-]\s))[*_]{0,2}\s*", re.IGNORECASE
)
_SEPARATOR = re.compile(r"\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?")
_PLACEHOLDERS = frozenset({"title", "…", "...", "what is wrong", "what it leads to", "what to change"})
"""What the format says in place of an issue."""
_BAR = re.compile(r"^[`~]{3,}.*$", re.MULTILINE)
TITLE_CHARS = 120
"""Of a title that is taken from an issue without one."""
DEFAULT = Severity.MAJOR
"""Of an issue that stands under no severity and names none."""


@dataclass(kw_only=True)
class Draft:
    """An issue while its lines are read."""

    severity: Severity
    number: int | None = None
    title: str = ""
    file: str = ""
    line: int | None = None
    depth: int = 0
    listed: bool = False
    """Whether it was begun by a bullet without a number."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    last: str = "issue"
    """The field that a line without a label goes on."""

    def put(self, name: str, text: str) -> None:
        """Take one labelled line."""
        if name == "severity":
            self.severity = _graver(self.severity, text)
        elif name in {"place", "line"}:
            self._put_place(name, text)
        else:
            self.last = name
            self.fields.setdefault(name, []).extend([text] if text else [])

    def _put_place(self, name: str, text: str) -> None:
        number = re.search(r"[0-9]{1,7}", text)
        if name == "line" and number is not None and self.line is None:
            self.line = int(number[0])
        elif name == "place" and not self.file:
            self.file, self.line = place_in(text) or (plain(text), self.line)

    def go_on(self, text: str) -> None:
        """A line without a label belongs to the field before it."""
        self.fields.setdefault(self.last, []).append(text)

    def built(self, number: int) -> ReviewIssue:
        """The issue, with a title in any case."""
        texts = {name: "\n".join(lines).strip() for name, lines in self.fields.items()}
        title = self.title or next((bare for text in texts.values() if (bare := _BAR.sub("", text).strip())), "")
        short = " ".join(title.split("\n")[0].split())
        short = short if len(short) <= TITLE_CHARS or self.title else f"{short[:TITLE_CHARS].rstrip()} …"
        known: dict[str, Any] = {name: texts.get(name, "") for name in ("issue", "why", "fix")}
        place = (self.file, self.line) if self.file else place_in(title) or ("", self.line)
        return ReviewIssue(
            number=number, severity=self.severity, file=place[0], line=place[1], title=short or self.file, **known
        )

    @property
    def is_nothing(self) -> bool:
        """Whether it says that there is no issue: `Critical: None`."""
        return not (self.file or self.fields) and says_nothing(self.title)

    @property
    def is_echo(self) -> bool:
        """Whether it is the format's own line, given back."""
        told = [self.title, *("\n".join(lines) for lines in self.fields.values())]
        return not self.file and all(plain(text).casefold() in _PLACEHOLDERS for text in told)


def drafts_of(parts: Sequence[Part]) -> list[Draft]:
    """The issues of all parts, in the order of the text."""
    found = [draft for part in parts if part.section is Section.ISSUES for draft in _Issues(part).read()]
    return [draft for draft in found if not draft.is_echo]


class _Issues:
    """The issues of one part."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._severity = part.severity or DEFAULT
        self._found: list[Draft] = []

    def read(self) -> list[Draft]:
        """All of them."""
        for line in _rows(self._part.lines):
            self._take(line)
        return self._found

    @property
    def _open(self) -> Draft | None:
        return self._found[-1] if self._found else None

    def _take(self, line: Line) -> None:
        current = self._open
        if line.kind in {"code", "quote"}:
            if current is not None:
                current.go_on(line.text)
            elif not all(says_nothing(text) for text in _BAR.sub("", line.text).split("\n")):
                self._found.append(Draft(severity=self._severity, fields={"issue": [line.text]}))
            return
        label = label_of(line.text)
        if label is not None:
            if current is None or (label[0] == "issue" and current.fields.get("issue")):
                listed = line.number is None
                current = Draft(severity=self._severity, number=line.number, depth=line.depth, listed=listed)
                self._found.append(current)
            current.put(*label)
        elif current is not None and not self._begins(line, current):
            current.go_on(f"- {line.text}" if line.item else line.text)
        elif not says_nothing(line.text) and not (begun := self._begun(line)).is_nothing:
            self._found.append(begun)

    def _begins(self, line: Line, current: Draft) -> bool:
        """Whether a line without a label is a further issue; else it goes on with the one that is open."""
        if line.kind == "heading" or _is_row(line):
            return True
        if line.item:
            same = line.depth <= max(self._part.depth + 1, current.depth if current.listed else 0)
            return same and (line.number is not None or current.listed or head_of(line.text).placed)
        numbered = _NUMBERED.match(line.text)
        bracketed = line.text.lstrip("*_").startswith("[") and head_of(line.text).placed
        return line.depth == 0 and (numbered is not None or bracketed)

    def _begun(self, line: Line) -> Draft:
        number = line.number
        text = line.text
        match = _NUMBERED.match(text)
        if number is None and match is not None:
            number, text = int(match[1]), text[match.end() :]
        head = head_of(text)
        title, fields = inline_fields(head.title)
        draft = Draft(
            severity=self._tagged(head.tag),
            number=number,
            title=title,
            file=head.file,
            line=head.line,
            depth=line.depth,
            listed=line.item and number is None,
        )
        for name, said in fields.items():
            draft.put(name, said)
        return draft

    def _tagged(self, tag: Severity | None) -> Severity:
        """A tag at the issue weighs where no heading does, and where it is graver."""
        if tag is None or (self._part.severity is not None and tag.rank < self._severity.rank):
            return self._severity
        return tag


def _graver(severity: Severity, text: str) -> Severity:
    words = plain(text).casefold()
    named = [one for one in Severity if one is not Severity.NONE and words.startswith(one)]
    return max([severity, *named], key=lambda one: one.rank)


def _is_row(line: Line) -> bool:
    return line.text.startswith("|") and line.text.count("|") > 1


def _rows(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines, of tables only the rows that say something, each as one line."""
    for at, line in enumerate(lines):
        behind = lines[at + 1] if at + 1 < len(lines) else None
        if line.kind != "text" or not _is_row(line):
            yield line
        elif not _SEPARATOR.fullmatch(line.text) and not (behind is not None and _SEPARATOR.fullmatch(behind.text)):
            cells = [cell.strip() for cell in line.text.strip("|").split("|")]
            if not all(says_nothing(cell) for cell in cells):
                first = cells[0].strip("# ")
                number = int(first) if first.isascii() and first.isdecimal() and len(first) < 5 else None
                told = cells[1:] if number is not None else cells
                text = " — ".join(cell for cell in told if cell)
                yield line._replace(text=text, number=number, item=True, depth=1)


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
