"""The line `Ready: …`: what it says, read strictly. Whatever is not clearly a Yes is none."""

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
