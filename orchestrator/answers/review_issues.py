"""The issues under one heading of a review: numbered, listed, under headings, as rows of a table, or as plain words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.answers.result import excerpt
from orchestrator.answers.review_words import Section, cells_of, heading_of, label_of, place_of, says_nothing, tag_of
from orchestrator.core.delivery import ReviewIssue
from orchestrator.core.finding import Severity

_NUMBERED = re.compile(r"[*_(#\[]{0,3}(?:issue\s+)?#?([0-9]{1,4})(?:[.):\]]|\*\*|(?=\s*[—–-]\s))[*_]{0,2}\s*", re.I)
_BAR = re.compile(r"^[`~]{3,}.*$", re.MULTILINE)
NO_LEVEL = 7
"""Of a heading that is none in Markdown: any real one ends its section."""
TITLE_CHARS = 120
"""Of a title that is taken from an issue without one."""


class Line(NamedTuple):
    """One line of a review, or a whole block of code or quotation."""

    kind: str
    """heading, text, code, quote."""
    text: str
    level: int = 0
    """Of a heading."""
    depth: int = 0
    """How many lists it stands in."""
    item: bool = False
    """Whether a list item begins with it."""
    number: int | None = None
    """As it was written before an item."""
    added: bool = False
    """Whether the item's mark is a plus, which a diff's added line may be."""
    margin: bool = True
    """Whether it begins at the left margin."""


@dataclass(kw_only=True, eq=False)
class Part:
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

    @property
    def holds_issues(self) -> bool:
        """Whether something stands here that does not say that there is no issue."""
        return self.section is Section.ISSUES and not all(says_nothing(line.text) for line in self.lines)


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
    """Whether a bullet without a number began it."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    last: str = "issue"
    """The field that a line without a label belongs to."""

    def put(self, name: str, text: str) -> None:
        """Takes one labelled line."""
        if name == "severity":
            self.severity = max(self.severity, tag_of(f"{text}:")[0] or self.severity, key=lambda one: one.rank)
        elif name == "place":
            self.file, self.line, _ = place_of(text) or (text.strip("`* "), None, "")
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
            issue=texts.get("issue", ""),
            why=texts.get("why", ""),
            fix=texts.get("fix", ""),
        )


def issues_of(part: Part) -> list[Draft]:
    """Returns the issues of one part: numbered, listed, under headings, as rows of a table, or as plain words."""
    found: list[Draft] = []
    for at, line in enumerate(part.lines):
        current = found[-1] if found else None
        label = label_of(line.text)
        if line.kind == "text" and (cells := cells_of(line.text)):
            ruled = at + 1 < len(part.lines) and set(part.lines[at + 1].text) <= set("|-: ")
            found += [] if ruled else _row(cells, part)
        elif line.kind in {"code", "quote"}:
            if current is not None:
                current.fields.setdefault(current.last, []).append(line.text)
            elif not all(says_nothing(text) for text in _BAR.sub("", line.text).split("\n")):
                found.append(Draft(severity=part.severity or Severity.MAJOR, fields={"issue": [line.text]}))
        elif label is not None:
            if current is None or (label[0] == "issue" and current.fields.get("issue")):
                severity, listed = part.severity or Severity.MAJOR, line.number is None
                current = Draft(severity=severity, number=line.number, depth=line.depth, listed=listed)
                found.append(current)
            current.put(*label)
        elif current is not None and not _begins(line, part, current):
            current.fields.setdefault(current.last, []).append(f"- {line.text}" if line.item else line.text)
        elif not says_nothing(line.text):
            begun = _begun(line, part)
            if begun.file or not says_nothing(begun.title):
                found.append(begun)
    return found


def _row(cells: Sequence[str], part: Part) -> list[Draft]:
    """Returns the issue in a row of a table, if there is one: its place, its gravest severity, its words."""
    told = [cell for cell in cells if not says_nothing(cell) and not cell.isdigit()]
    named = [found.severity if (found := heading_of(cell)) is not None else None for cell in told]
    words = [cell for cell, severity in zip(told, named, strict=True) if severity is None]
    places = [place for cell in words if (place := place_of(cell)) is not None]
    file, line, _ = places[0] if places else ("", None, "")
    if not words:
        return []
    graver = [one for one in (part.severity, *named) if one is not None] or [Severity.MAJOR]
    severity = max(graver, key=lambda one: one.rank)
    title = " — ".join(rest for cell in words if (rest := (place_of(cell) or ("", None, cell))[2].strip()))
    return [Draft(severity=severity, title=title, file=file, line=line, listed=True)]


def _begins(line: Line, part: Part, current: Draft) -> bool:
    """Returns whether a line without a label is a further issue; else it belongs to the one that is open."""
    if line.kind == "heading":
        return True
    tag, text = tag_of(line.text)
    placed = tag is Severity.CRITICAL or place_of(text) is not None
    if line.item:
        same = line.depth <= max(part.depth + 1, current.depth if current.listed else 0)
        return same and (line.number is not None or current.listed or placed)
    bracketed = line.text.lstrip("*_").startswith("[") and placed
    return line.depth == 0 and (_NUMBERED.match(line.text) is not None or bracketed)


def _begun(line: Line, part: Part) -> Draft:
    """Returns the issue that a line begins."""
    number, text = line.number, line.text
    match = _NUMBERED.match(text) if number is None else None
    if match is not None:
        number, text = int(match[1]), text[match.end() :]
    tag, text = tag_of(text)
    file, at, rest = place_of(text) or ("", None, text)
    later, rest = tag_of(rest) if rest != text else (None, rest)
    title = rest.strip(" \t:—–-,;|*") if rest.count("**") != 2 else rest.strip()
    # A tag at the issue weighs where no heading does, and where it is graver.
    graver = [one for one in (part.severity, tag, later) if one is not None] or [Severity.MAJOR]
    severity = max(graver, key=lambda one: one.rank)
    listed = line.item and number is None
    return Draft(severity=severity, number=number, title=title, file=file, line=at, depth=line.depth, listed=listed)
