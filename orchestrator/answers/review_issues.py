"""The lines under the severities → issues: in full form, on one line, as headings, in tables, or as plain words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answers.review_lines import Line
from orchestrator.answers.review_places import head_of, place_in
from orchestrator.answers.review_sections import Part
from orchestrator.answers.review_words import Section, inline_fields, label_of, plain, says_nothing
from orchestrator.domain.findings import Severity
from orchestrator.domain.review import ReviewIssue

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
