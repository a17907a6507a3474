"""The words of a review: headings, labels, what says that there is nothing. As written, and as models vary them.

The line `Ready: …`: what it says, read strictly. Whatever is not clearly a Yes is none.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from orchestrator.core.delivery import (
    CHOICES,
    FIX,
    GOOD_PATTERNS,
    ISSUE,
    ISSUES,
    RATIONALE,
    READY,
    SUMMARY,
    VERDICT,
    WHY,
    Verdict,
)
from orchestrator.core.finding import Severity

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


_GLAD = "✅✔☑🟢👍🎉🚀💯\ufe0f"
"""Signs that may stand beside a Yes and mean the same."""
_LINE = re.compile(
    rf"(?P<signs>[{_GLAD}•→➡⚠❌🔴🟡🚫⛔ ]*)(?:{VERDICT}\s*[:：—–-]?\s*)?{READY}\s*[:：]\s*(?P<said>.*)",
    re.IGNORECASE | re.DOTALL,
)
_YES = re.compile(
    rf"[{_GLAD}\s]*{CHOICES[Verdict.YES]}[{_GLAD}\s]*[.!]?[{_GLAD}\s]*"
    r"(?:[(—–-]?\s*mergeable(?: as[ -]is)?\)?[.!]?)?[\s)]*"
    rf"(?:[|;—–-]?\s*{RATIONALE}\s*:.*)?",
    re.IGNORECASE | re.DOTALL,
)
_NONE_LEFT = re.compile(
    r"\b(?:no|zero|without|nothing)\b"
    r"(?: (?:any|a|further|more|other|open|blocking|critical|major|known|real|remaining|left|to))*"
    r" (?:issues?|problems?|concerns?|findings?|blockers?|comments?|objections?|doubts?|risks?|changes?|fix(?:es)?"
    r"|add)\b"
    r"(?: (?:found|left|needed|required|remain(?:ing)?|outstanding|open))*",
    re.IGNORECASE,
)
"""Words behind a Yes that say once more that nothing is open."""
_TAKES_BACK = re.compile(
    r"\b(?:but|however|except|besides|although|though|while|unless|until|once|after|before|if|when|whenever|as soon"
    r"|provid\w+|assum\w+|pending|condition\w*|almost|nearly|mostly|part\w*|only|should|must|need\w*|requir\w*|fix\w*"
    r"|changed|changing|address\w*|resolv\w*|correct(?:ing|ed)|not|no|never|none|cannot|with|first|later|follow\w*"
    r"|to ?do|minor|maybe|perhaps|probably|depend\w*|ready|or)\b"
    r"|n't|[?…❌🔴🟡🚫⛔⚠~|\x00]|\.\.|[\ud800-\udfff]|\\u?[0-9a-f]",
    re.IGNORECASE,
)
"""Words behind a Yes that may leave something open; who means none of it says less."""
_NO = re.compile(
    rf"\W*(?:{CHOICES[Verdict.NO]}|not)\b(?!\s+(?:\w+\s+)?(?:issues?|problems?|blockers?|concerns?|objections?|comments?|doubts?)\b)",
    re.IGNORECASE,
)
_WITH_FIXES = re.compile(r"\W*(?:(?:yes|no)\W+)?with\s+(?:\w+\s+)?fix(?:es)?\b", re.IGNORECASE)
_TEMPLATE = re.compile(
    r"\byes\b\W*(?:\||/|,|\bor\b|\boder\b)\W*no\b|\bno\b\W*(?:\||/|\bor\b|\boder\b)\W*(?:yes|with)\b", re.I
)
_NUMBERS = re.compile(
    r"[\s:(\[#]*(?:issues?|fix(?:es)?|numbers?|nos?\.?|items?)?\s*"
    r"((?:#?[0-9]{1,6}|[-–—,;&+/\s#]|\bto\b|\band\b|\bund\b|\bbis\b|\bthrough\b|\.\.|\bN\b)+)",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"(?P<first>[0-9]+)\s*(?:[-–—]|\.\.|\bto\b|\bbis\b|\bthrough\b)\s*#?(?:(?P<last>[0-9]+)|N\b)|(?P<one>[0-9]+)", re.I
)
_NAMED_UNKNOWN = 5
_MOST_BEHIND = 200
"""Characters behind a Yes that are read as words of agreement."""


def said_ready(text: str) -> str | None:
    """What stands behind `Ready:` in a line that begins so, after the signs before it; None for any other line."""
    match = _LINE.fullmatch(plain(text))
    return f"{match['signs'].strip('•→➡ ')}{match['said']}" if match is not None else None


class Said(NamedTuple):
    """What a Ready line says."""

    verdict: Verdict
    numbers: str = ""
    """Where With fixes names issues."""


def verdict_of(said: str) -> Said:
    """The verdict behind `Ready:`. The template with all its choices, and a Yes that is taken back, are none."""
    words = said.strip()
    if (words[:1], words[-1:]) in {("[", "]"), ('"', '"'), ("(", ")")}:
        words = words[1:-1].strip()
    if is_template(words):
        return Said(Verdict.NONE)
    fixes = _WITH_FIXES.match(words)
    if fixes is not None:
        return Said(Verdict.WITH_FIXES, words[fixes.end() :])
    if _YES.fullmatch(words) or (words[:3].casefold() == "yes" and not leaves_open(words)):
        return Said(Verdict.YES)
    return Said(Verdict.NO if _NO.match(words) else Verdict.NONE)


def leaves_open(words: str) -> str:
    """What stands behind a Yes and may take it back; "" when nothing does."""
    behind = words[3:].strip()
    if not behind or (behind[0] not in ".,;:!(—–-" and words[3:4] != " "):
        return behind
    return behind if len(behind) > _MOST_BEHIND or _TAKES_BACK.search(_NONE_LEFT.sub("", behind)) else ""


def is_template(words: str) -> bool:
    """Whether all choices stand there instead of one."""
    return ("|" in words and RATIONALE.casefold() not in words.casefold()) or bool(_TEMPLATE.search(words))


class Named(NamedTuple):
    """The issues that With fixes names."""

    known: tuple[int, ...]
    unknown: tuple[int, ...]
    """The first few of those that no issue has."""


def named_in(text: str, numbers: Iterable[int]) -> Named:
    """Which of the issues' numbers `1-3, 5` names."""
    there = sorted(set(numbers))
    match = _NUMBERS.match(text)
    known: set[int] = set()
    unknown: list[int] = []
    for found in _RANGE.finditer(match[1]) if match is not None else ():
        first = int(found["first"] or found["one"])
        last = first if found["one"] else int(found["last"]) if found["last"] else max([first, *there])
        first, last = min(first, last), max(first, last)
        known.update(number for number in there if first <= number <= last)
        few = range(first, min(last, first + len(there) + _NAMED_UNKNOWN) + 1)
        unknown.extend(number for number in few if number not in there)
    return Named(tuple(sorted(known)), tuple(dict.fromkeys(unknown))[:_NAMED_UNKNOWN])
