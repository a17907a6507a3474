"""Where an issue is: `[FILE:LINE]` with or without its brackets, and the severity that may stand beside it."""

import re
from typing import NamedTuple

from orchestrator.answers.review_words import heading_of
from orchestrator.domain.findings import Severity
from orchestrator.domain.review import PLACE

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
