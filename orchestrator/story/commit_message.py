"""The subject and the body of a commit, in the words of the persona whose work it holds (pure)."""

import re
import textwrap
from collections.abc import Collection, Iterable

WIDTH = 72
"""Characters of a subject and of a body's line, as git's own tools expect them."""
BODY_CHARS = 2_000
"""A reason that is longer is left out from the paragraph on that goes beyond."""
# A shorter beginning says too little, so a longer one is cut between words instead.
_LEAST = 24
# In front of these, what was said so far reads as a whole: of marks more surely than of words.
_MARKS = re.compile(r"[.,;:!?](?=\s)|\s+[-\u2013\u2014(](?=\s|\w)")
_WORDS = re.compile(
    r"\s(?=(?:and|or|so|because|which|that|who|with|without|for|when|where|if|while|as|by|from|using|instead)\s)"
)
_DANGLING = re.compile(
    r"(?:[\s,;:(\u2013\u2014-]|\b(?:a|an|the|and|or|of|to|in|on|at|for|with|by|from|so|that|which|its|is)$)+$",
    re.IGNORECASE,
)
_FORM = re.compile(r"^(?:action plan|plan|delivery|task|story|title|commit)\s*[:\u2013\u2014-]\s*", re.IGNORECASE)
_ID = re.compile(r"^[\[(]?(?:[A-Z][A-Z0-9]*-)+\d[\w.-]*[\])]?(?=$|[\s:\u2013\u2014-])\s*[:\u2013\u2014-]*\s*")
# Titles that say nothing of the change, beside those of one word.
_EMPTY = frozenset({"action plan", "the task", "this task", "code changes", "the changes", "the plan"})
_BLANK = re.compile(r"\s")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")


def subject_of(title: str) -> str:
    """Returns a persona's title as a subject; "" when it says nothing, as an id or the form's own words."""
    line = " ".join(title.split()).strip("#* ")
    before = ""
    while before != line:
        before, line = line, _ID.sub("", _FORM.sub("", line)).strip()
    line = line.rstrip(". ")
    if line.lower() in _EMPTY or len(line.split()) < 2:
        return ""
    first = line.split()[0]
    # A name of the code, such as `parse_row`, keeps its case.
    line = line[0].upper() + line[1:] if first.isalpha() and first.islower() else line
    return fitted(line)


def fitted(text: str, most: int = WIDTH) -> str:
    """Returns the text on one line within `most` characters: whole, else up to the end of a clause or of a word."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    for pattern, least in ((_MARKS, _LEAST), (_WORDS, _LEAST), (_BLANK, 1)):
        ends = [at for one in pattern.finditer(line) if least <= (at := one.start()) <= most and _is_closed(line[:at])]
        if ends:
            return _DANGLING.sub("", line[: ends[-1]]) or line[: ends[-1]]
    return line[:most]


def _is_closed(text: str) -> bool:
    """Returns whether neither a bracket nor a backtick is left open."""
    return text.count("(") == text.count(")") and text.count("`") % 2 == 0


def unlike(subject: str, used: Collection[str], others: Iterable[str] = ()) -> str:
    """Returns a subject that no earlier commit of the story has: this one, one of `others`, or a numbered one."""
    known = {one.casefold() for one in used}
    for one in (subject, *map(fitted, others)):
        if one and one.casefold() not in known:
            return one
    number = 2
    while (again := f"{fitted(subject, WIDTH - len(f' ({number})'))} ({number})").casefold() in known:
        number += 1
    return again


def body_of(*texts: str) -> str:
    """Returns the texts as paragraphs of at most `WIDTH` characters a line; lists and code keep their lines."""
    paragraphs: list[str] = []
    for text in texts:
        paragraphs += _paragraphs(text)
    kept: list[str] = []
    for one in dict.fromkeys(paragraphs):
        if sum(map(len, kept)) + len(one) > BODY_CHARS:
            break
        kept.append(one)
    return "\n\n".join(kept)


def _paragraphs(text: str) -> list[str]:
    done: list[str] = []
    lines: list[str] = []
    code = False

    def end() -> None:
        if lines:
            done.append("\n".join(lines) if code else "\n".join(_wrapped(lines)))
            lines.clear()

    for line in text.splitlines():
        if _FENCE.match(line):
            end()
            code = not code
        elif code:
            lines.append(f"    {line}".rstrip())
        elif not line.strip():
            end()
        else:
            lines.append(line.lstrip("#").strip() if line.startswith("#") else line)
    end()
    return [one for one in done if one.strip()]


def _wrapped(lines: list[str]) -> Iterable[str]:
    items: list[str] = []
    for line in lines:
        if items and not _ITEM.match(line):
            items[-1] = f"{items[-1]} {line.strip()}"
        else:
            items.append(line.strip())
    for item in items:
        begun = _ITEM.match(item)
        indent = " " * len(begun.group()) if begun else ""
        # A link or a path is not broken.
        yield from textwrap.wrap(item, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
