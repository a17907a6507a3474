"""The line `Ready: …`: what it says, read strictly. Whatever is not clearly a Yes is none (spec 4)."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from orchestrator.answers.review_words import plain
from orchestrator.domain.review import CHOICES, RATIONALE, READY, VERDICT, Verdict

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
    """The verdict behind `Ready:`. The template with all its choices, and a Yes with words behind it, are none."""
    words = said.strip()
    if (words[:1], words[-1:]) in {("[", "]"), ('"', '"'), ("(", ")")}:
        words = words[1:-1].strip()
    if is_template(words):
        return Said(Verdict.NONE)
    fixes = _WITH_FIXES.match(words)
    if fixes is not None:
        return Said(Verdict.WITH_FIXES, words[fixes.end() :])
    if _YES.fullmatch(words):
        return Said(Verdict.YES)
    return Said(Verdict.NO if _NO.match(words) else Verdict.NONE)


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
