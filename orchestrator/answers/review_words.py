"""The words of a review: headings, labels, places, the line `Ready: …`; as written, and as models vary them.

Whatever is not clearly a Yes is none.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

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
    Verdict,
)
from orchestrator.core.finding import Severity

_MARKS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_AROUND = re.compile(r"^[^\w\[(<|>\"'+~-]+|[\s:：]+$")
_COUNTER = re.compile(r"^(?:section\s+)?[0-9]{1,2}[.)]\s+", re.IGNORECASE)
_PARENTHESIS = re.compile(r"\s*[(\[][^()\[\]]{0,40}[)\]]")
_GRAVE = re.compile(r"[ck]riti[ck]|blocker", re.IGNORECASE)
GRAVE_WORDS = 4


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
_SEVERITIES = {
    Severity.CRITICAL: r"critical|kritisch|blocking|blockers?|must[ -]fix|show-?stoppers?|p0",
    Severity.MAJOR: r"major|should[ -]fix|p1",
    Severity.MINOR: r"minor|nice to have|nits?|p[23]",
}
_SAID = "|".join(f"(?P<{severity}>{words})" for severity, words in _SEVERITIES.items())
_SEVERITY = re.compile(
    rf"(?:issues?\W{{1,3}})?(?:{_SAID})(?: (?:issues?|findings?|problems?|comments?|bugs?|items?))?"
    r"(?:\W{1,3}(?:blocking|blocker|should fix|must fix|nice to have))?",
    re.IGNORECASE,
)
_SECTION = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _SECTIONS.items()), re.IGNORECASE)


def heading_of(text: str) -> Heading | None:
    """Returns what a whole line says as a heading, whatever its marks, numbers, colours and final colon."""
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


def plain(text: str) -> str:
    """Returns one line without code marks and emphasis, blanks made one."""
    return " ".join(_MARKS.sub("", text).split())


def cells_of(text: str) -> list[str]:
    """Returns the cells of a table's row, [] of any other line."""
    row = text.strip()
    cells = len(row) > 2 and row[0] == row[-1] == "|"
    return [plain(cell) for cell in row[1:-1].split("|")] if cells else []


def is_grave(text: str) -> bool:
    """Returns whether a short unknown heading seems to speak of what is critical."""
    words = plain(text)
    return len(words.split()) <= GRAVE_WORDS and bool(_GRAVE.search(words))


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


def label_of(text: str) -> tuple[str, str] | None:
    """Returns (field, what stands behind its label) of a line that begins with one."""
    match = _LABEL.match(text)
    return (match.lastgroup or "", text[match.end() :].strip()) if match is not None else None


_LINE = r"(?:\s*[:#]\s*L?|,?\s+lines?\s+)(?P<line>[0-9]{1,7})[^\])`\s]*"
_PATH = (
    r"(?:[\w@$+./\\~\-\[\]()]{0,300}\.[A-Za-z][\w-]{0,11}|[\w@.+-]{1,200}(?:/[\w@$.+\-]{1,200}){1,40}"
    r"|Makefile|Dockerfile)"
)
_BRACKET = re.compile(r"\W{0,4}\[(?P<inside>(?:[^\[\]\n]|\[[^\[\]\n]*\]){1,400})\](?:\([^)\n]*\))?")
_INSIDE = re.compile(rf"[`*]*(?P<file>.{{1,400}}?){_LINE}.{{0,40}}", re.IGNORECASE)
_BARE = re.compile(rf"[\W_]{{0,4}}?(?P<file>{_PATH})(?:{_LINE})?(?=[\s:,;)\]*`—–-]|$)[)\]*`]*", re.IGNORECASE)
_TAG = re.compile(
    r"[\W\d_]{0,6}(?P<said>critical|blocking|blocker|must[ -]fix|major|minor|nit|p[0-3])(?:pick)?(?: issues?)?"
    r"(?:\s?\((?:blocking|blocker|must fix|should fix|nice to have)\))?(?:[\])]+|\*\*|:|\s[—–-])\W{0,3}(?:\s+|$)",
    re.IGNORECASE,
)


def place_of(text: str) -> tuple[str, int | None, str] | None:
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


def tag_of(text: str) -> tuple[Severity | None, str]:
    """Returns the severity with which an issue's line begins, and what stands behind it."""
    match = _TAG.match(text)
    heading = heading_of(match["said"]) if match is not None else None
    return (heading.severity, text[match.end() :]) if match and heading else (None, text)


_KINDS = r"(?:critical|major|minor|blocking|known|further|other|real|more|open|kritischen?)"
_NOTHING = re.compile(
    rf"(?:(?:there (?:are|were) )?(?:no|none|keine|zero|0)(?: {_KINDS})*(?: or {_KINDS})*"
    r" (?:issues?|findings?|problems?|comments?|blockers?|bugs?|probleme)\b"
    r"|none|nothing|n/a|nil|0|keine?|nichts|-+|–|—)"
    r"(?: (?:were |was )?(?:found|identified|detected|seen|noted|to report|gefunden))?"
    r"(?: (?:in (?:this|the) (?:diff|change|task|code|patch)|here))?",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"\b(?:except|but|however|besides|apart|aside|other than|although|though|unless|außer|aber)\b|:\d", re.I
)


def says_nothing(text: str) -> bool:
    """Returns whether a line under a heading says that there is no issue; one with a `but` does not."""
    words = plain(text).strip("()[]<> ").lstrip("✅✔️🟢👍•").strip()
    match = _NOTHING.match(words)
    rest = words[match.end() :].strip() if match is not None else words
    if match is None or not any(char.isalnum() for char in rest):
        return not any(char.isalnum() for char in rest)
    return rest[0] in ".!;—–-(" and not _BUT.search(rest) and len(rest) <= 120


_GLAD = "✅✔☑🟢👍🎉🚀💯\ufe0f"
"""Signs that may stand beside a Yes and mean the same."""
_READY = re.compile(
    rf"(?P<signs>[{_GLAD}•→➡⚠❌🔴🟡🚫⛔ ]*)(?:{VERDICT}\s*[:：—–-]?\s*)?{READY}\s*[:：]\s*(?P<said>.*)",
    re.IGNORECASE | re.DOTALL,
)
_YES = re.compile(
    rf"[{_GLAD}\s]*{CHOICES[Verdict.YES]}[{_GLAD}\s]*[.!]?[{_GLAD}\s]*"
    rf"(?:[(—–-]?\s*mergeable(?: as[ -]is)?\)?[.!]?)?[\s)]*(?:[|;—–-]?\s*{RATIONALE}\s*:.*)?",
    re.IGNORECASE | re.DOTALL,
)
_NONE_LEFT = re.compile(
    r"\b(?:no|zero|without|nothing)\b"
    r"(?: (?:any|a|further|more|other|open|blocking|critical|major|known|real|remaining|left|to))*"
    r" (?:issues?|problems?|concerns?|findings?|blockers?|comments?|objections?|doubts?|risks?|changes?|fix(?:es)?"
    r"|add)\b(?: (?:found|left|needed|required|remain(?:ing)?|outstanding|open))*"
    r"|\bnothing (?:else|more|further|left|open)\b(?: to (?:do|change|add|fix|say|report|address|correct|note)\b)?"
    r"|\bwith (?:(?:full|great|high|complete) )?(?:confidence|pleasure)\b"
    r"|\bready (?:to|for) (?:be )?(?:merged?|ship(?:ped)?|production)\b",
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
"""Words behind a Yes that may leave something open."""
_NO = re.compile(
    rf"\W*(?:{CHOICES[Verdict.NO]}|not)\b(?!\s+(?:\w+\s+)?(?:issues?|problems?|blockers?|concerns?|objections?|comments?|doubts?)\b)",
    re.IGNORECASE,
)
_WITH_FIXES = re.compile(r"\W*(?:(?:yes|no)\W+)?with\s+(?:\w+\s+)?fix(?:es)?\b", re.IGNORECASE)
_TEMPLATE = re.compile(r"\byes\b\W*(?:\||/|,|\bor\b)\W*no\b|\bno\b\W*(?:\||/|\bor\b)\W*(?:yes|with)\b", re.IGNORECASE)
_NUMBERS = re.compile(
    r"[\s:(\[#]*(?:(?:issues?|fix(?:es)?|numbers?)\b)?(?:[\s#,;&+–—-]|\d{1,6}|\b(?:to|and|N)\b)*", re.I
)
_RANGE = re.compile(r"([0-9]+)\s*(?:[-–—]|\bto\b)\s*#?(?:([0-9]+)|N\b)|([0-9]+)", re.IGNORECASE)
_MOST_UNKNOWN = 5
_MOST_BEHIND = 200
"""Characters behind a Yes that are read as words of agreement."""


def ready_of(text: str) -> str | None:
    """Returns what stands behind `Ready:` in a line that begins so, after its signs; None for any other line."""
    match = _READY.fullmatch(plain(text))
    return f"{match['signs'].strip('•→➡ ')}{match['said']}" if match is not None else None


def verdict_of(said: str) -> tuple[Verdict, str]:
    """Returns the verdict behind `Ready:`, and what stands behind With fixes.

    The template with all its choices, and a Yes that is taken back, are none.
    """
    words = said.strip()
    if (words[:1], words[-1:]) in {("[", "]"), ('"', '"'), ("(", ")")}:
        words = words[1:-1].strip()
    if is_template(words):
        return Verdict.NONE, ""
    fixes = _WITH_FIXES.match(words)
    if fixes is not None:
        return Verdict.WITH_FIXES, words[fixes.end() :]
    if _YES.fullmatch(words) or (words[:3].casefold() == "yes" and not leaves_open(words)):
        return Verdict.YES, ""
    return (Verdict.NO if _NO.match(words) else Verdict.NONE), ""


def is_template(words: str) -> bool:
    """Returns whether all choices stand there instead of one."""
    return ("|" in words and RATIONALE.casefold() not in words.casefold()) or _TEMPLATE.search(words) is not None


def leaves_open(words: str) -> str:
    """Returns what stands behind a Yes and may take it back; "" when nothing does."""
    behind = words[3:].strip()
    if not behind or (behind[0] not in ".,;:!(—–-" and words[3:4] != " "):
        return behind
    return behind if len(behind) > _MOST_BEHIND or _TAKES_BACK.search(_NONE_LEFT.sub("", behind)) else ""


def named_in(text: str, numbers: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns which of the issues' numbers `1-3, 5` names, and the first few of those that no issue has."""
    match = _NUMBERS.match(text)
    known: set[int] = set()
    unknown: dict[int, None] = {}
    for found in _RANGE.finditer(match[0] if match is not None else ""):
        first = int(found[1] or found[3])
        last = first if found[3] else int(found[2]) if found[2] else max([first, *numbers])
        first, last = min(first, last), max(first, last)
        known |= {number for number in numbers if first <= number <= last}
        few = range(first, min(last, first + len(numbers) + _MOST_UNKNOWN) + 1)
        unknown |= dict.fromkeys(number for number in few if number not in numbers)
    return tuple(sorted(known)), tuple(unknown)[:_MOST_UNKNOWN]
