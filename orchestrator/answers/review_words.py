"""The words of a review: headings, labels, what says that there is nothing. As written, and as models vary them."""

import re
from enum import StrEnum
from typing import NamedTuple

from orchestrator.domain.findings import Severity
from orchestrator.domain.review import FIX, GOOD_PATTERNS, ISSUE, ISSUES, SUMMARY, VERDICT, WHY

_MARKS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_AROUND = re.compile(r"^[^\w\[(<|>\"'+~-]+|[\s:：]+$")
_COUNTER = re.compile(r"^(?:section\s+)?[0-9]{1,2}[.)]\s+", re.IGNORECASE)
_PARENTHESIS = re.compile(r"\s*[(\[][^()\[\]]{0,40}[)\]]")


class Section(StrEnum):
    """Parts of a review."""

    OTHER = "other"
    SUMMARY = "summary"
    ISSUES = "issues"
    GOOD_PATTERNS = "good_patterns"
    VERDICT = "verdict"


class Heading(NamedTuple):
    """A heading of the format, recognised."""

    section: Section
    severity: Severity | None = None
    rest: str = ""
    """What stands behind it in the same line."""


_SECTIONS = {
    Section.SUMMARY: rf"{SUMMARY}|summary",
    Section.ISSUES: rf"(?:review )?{ISSUES}(?: found)?|findings",
    Section.GOOD_PATTERNS: rf"{GOOD_PATTERNS}|strengths",
    Section.VERDICT: rf"(?:final |overall |review )?{VERDICT}",
}
_THINGS = r"(?:issues?|findings?|problems?|comments?|bugs?|items?)"
_SEVERITIES = {
    Severity.CRITICAL: r"critical|kritisch|blocking|blockers?|must fix",
    Severity.MAJOR: r"major|should fix",
    Severity.MINOR: r"minor|nice to have|nits?",
}
_SAID = "|".join(f"(?P<{severity}>{words})" for severity, words in _SEVERITIES.items())
_SEVERITY = re.compile(
    rf"(?:issues?\W{{1,3}})?(?:{_SAID})(?: {_THINGS})?"
    r"(?:\W{1,3}(?:blocking|blocker|should fix|must fix|nice to have))?",
    re.IGNORECASE,
)
_SECTION = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _SECTIONS.items()), re.IGNORECASE)
_GRAVE = re.compile(r"[ck]riti[ck]|blocker", re.IGNORECASE)
GRAVE_WORDS = 4


def plain(text: str) -> str:
    """One line without code marks and emphasis, blanks made one."""
    return " ".join(_MARKS.sub("", text).split())


def heading_of(text: str) -> Heading | None:
    """What a whole line says as a heading, whatever its marks, numbers, colours, parentheses and final colon."""
    words = plain(text)
    found = _named(words)
    if found is not None:
        return found
    head, colon, rest = words.partition(":")
    found = _named(head) if colon else None
    return found._replace(rest=rest.strip()) if found is not None else None


def _named(words: str) -> Heading | None:
    words = _COUNTER.sub("", _AROUND.sub("", words))
    bare = " ".join(_PARENTHESIS.sub("", words).split()).strip(" -–—")
    severity = _SEVERITY.fullmatch(bare)
    if severity is not None:
        return Heading(Section.ISSUES, Severity(severity.lastgroup or ""))
    section = _SECTION.fullmatch(bare)
    return Heading(Section(section.lastgroup or "")) if section is not None else None


def is_grave(text: str) -> bool:
    """Whether a short heading nobody knows seems to speak of what is critical."""
    words = plain(text)
    return len(words.split()) <= GRAVE_WORDS and bool(_GRAVE.search(words))


_LABELS = {
    "issue": rf"{ISSUE}|problem|description",
    "why": rf"{WHY}(?: (?:it|this) matters)?|impact|reason|risk",
    "fix": rf"(?:how to |suggested |proposed |recommended )?{FIX}|suggestion|recommendation",
    "place": r"file|location|where",
    "line": r"lines?",
    "severity": r"severity",
}
_LABEL = re.compile(
    r"[*_]{0,3}(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _LABELS.items()) + r")[*_]{0,3}"
    r"\s*[:：][*_]{0,3}(?:\s+|$)",
    re.IGNORECASE,
)
_INLINE_LABEL = re.compile(
    rf"(?<=[\s;.,|(—–-])[*_]{{0,3}}(?:(?P<issue>{ISSUE})|(?P<why>{WHY})|(?P<fix>{FIX}))[*_]{{0,3}}:[*_]{{0,3}}\s+"
)


def label_of(text: str) -> tuple[str, str] | None:
    """(field, what stands behind its label) of a line that begins with one."""
    match = _LABEL.match(text)
    return (match.lastgroup or "", text[match.end() :].strip()) if match is not None else None


def inline_fields(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the labels inside a line, and the fields behind them."""
    found = list(_INLINE_LABEL.finditer(text))
    if not found:
        return text, {}
    ends = [*(match.start() for match in found[1:]), len(text)]
    fields = {
        match.lastgroup or "": text[match.end() : end].strip().rstrip(";|,").strip()
        for match, end in zip(found, ends, strict=True)
    }
    return text[: found[0].start()].rstrip(" ;,|(—–-"), fields


_KINDS = r"(?:critical|major|minor|blocking|known|further|other|real|more|open|kritischen?|weiteren?)"
_NOTHING = re.compile(
    rf"(?:(?:there (?:are|were) )?(?:no|none|keine|zero|0)(?: {_KINDS})*(?: or {_KINDS})*"
    r" (?:issues?|findings?|problems?|comments?|blockers?|bugs?|probleme|befunde|fehler)\b"
    r"|none|nothing|n/a|nil|0|keine?|nichts|-+|–|—)"
    r"(?: (?:were |was )?(?:found|identified|detected|seen|spotted|noted|observed|to report|gefunden))?"
    r"(?: (?:in (?:this|the) (?:diff|change|task|code|patch)|here|at this time))?",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"\b(?:except|but|however|besides|apart|aside|other than|although|though|unless|außer|aber)\b|:\d", re.I
)


def says_nothing(text: str) -> bool:
    """Whether a line under a heading says that there is no issue; what goes on with a `but` does not."""
    words = plain(text).strip("()[]<> ").lstrip("✅✔️🟢👍•").strip()
    match = _NOTHING.match(words)
    if match is None:
        return not any(char.isalnum() for char in words)
    rest = words[match.end() :].strip()
    if not any(char.isalnum() for char in rest):
        return True
    return rest[0] in ".!;—–-(" and not _BUT.search(rest) and len(rest) <= 120
