"""A swift reading of an object whose slips need no decision: mended in one pass, then read by the standard parser.

It is what a Reader makes of the same text, to the last repair, or it is nothing: a slip with two meanings, or a grammar
that the standard parser does not take, leaves the object to the Reader. A test compares the two on all that it can
think of."""

import re
from json.encoder import encode_basestring

from orchestrator.answers.json import literals, recovery
from orchestrator.answers.json.code import LINE_ESCAPES, unescaped
from orchestrator.answers.json.frames import (
    CLOSING_QUOTE,
    DONE,
    GOES_ON,
    LAST,
    LEXICAL_BLANKS,
    LEXICAL_COMMENT,
    NAME,
    STRING,
    UNSEEN,
    VALID,
    Reading,
    document,
    prefix,
)
from orchestrator.answers.json.recovery import is_code
from orchestrator.answers.result import MAX_DEPTH, Change

MAX_SLIPS = 20_000
"""Slips after which the rest of a text is not looked at: it is rather no answer, and the Reader sees that sooner."""
_QUOTED = "|".join(rf"{q}[^{c}\\]*+(?:\\.[^{c}\\]*+)*+{c}" for q, c in CLOSING_QUOTE.items())
_STRETCH = re.compile(
    VALID  # as much of it as there is, and one slip behind it
    + rf"(?:(?P<trailing_comma>,)(?={LAST})|(?P<comment>{LEXICAL_COMMENT})"
    rf"|(?P<unquoted_key>[\w$@][\w$.-]{{0,199}}+)(?={LEXICAL_BLANKS}:)|(?P<foreign_word>[A-Za-z]{{3,9}}+){DONE}"
    rf"|(?P<quoted_key>['`“‘]{NAME}['`”’])(?={LEXICAL_BLANKS}:)|(?P<string>{_QUOTED}){DONE}"
    rf"|(?P<missing_comma>{STRING}|[}}\]])(?={LEXICAL_BLANKS}[{{\[]|[ \t\r\n]++{STRING}(?!{LEXICAL_BLANKS}:)"
    rf"|[ \t\r]*+\n{LEXICAL_BLANKS}\")"
    rf"|(?P<concatenation>{STRING}(?:{LEXICAL_BLANKS}\+{LEXICAL_BLANKS}{STRING})++){DONE}"
    rf"|(?P<unseen_character>{UNSEEN.pattern}))?",
    re.DOTALL,
)
_BEFORE_COMMA = frozenset("\"'`”’»」＂}]")
"""What a value may end with."""
_PART = re.compile(rf"(\+?){LEXICAL_BLANKS}(?={STRING})\"((?:[^\"\\]++|\\.)*+)\"")
_UNCLEAR = re.compile(r"\\(?:x|u\{)")
"""Escapes that mean something else in code than in other strings."""


def swift_reading(text: str, start: int) -> Reading | None:
    """The object at `start` as a Reader that decides nothing would read it; None where only that can tell."""
    pieces: list[tuple[str, int]] = []
    changes: list[Change] = []
    at, mended = start, None
    while (match := _STRETCH.match(text, at)) is not None and (kind := match.lastgroup) is not None:
        begin = match.start(kind)
        mended = _MEND[kind](match[kind], begin, text, changes)
        if mended is None or len(changes) > MAX_SLIPS:
            mended = None
            break
        pieces += ((text[at:begin], at), (mended, begin))
        at = match.end()
    if not pieces:
        return None
    if match is not None and mended is not None:
        pieces.append((match.group(), at))
    whole = "".join(piece for piece, _ in pieces)
    value, length = document(whole), len(whole.rstrip())
    if value is None:  # nothing, or an object with something behind it
        try:
            value, length = prefix(whole, 0)
        except (ValueError, RecursionError):
            return None
    end = _source(pieces, len(whole) - length)
    deep = whole.count("{", 0, length) + whole.count("[", 0, length) > MAX_DEPTH
    if not value or deep or GOES_ON.match(text, end) or recovery.may_hold_gap(value):
        return None
    made = tuple(change for change in changes if change.offset < end)
    return Reading(start=start, end=end, outcome="whole", value=value, changes=made, keyed=True, fitting=True)


def _source(pieces: list[tuple[str, int]], behind: int) -> int:
    """The offset in the text of the place in the mended one that has `behind` characters behind it."""
    for piece, source in reversed(pieces):
        if behind < len(piece):
            return source + len(piece) - behind
        behind -= len(piece)
    return pieces[0][1]


# What one slip at `at` stands for, listed in `changes`; None where that has to be decided.


def _string(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    raw, closing = found[1:-1], found[-1]
    if "\\" in raw and (closing == "`" or _UNCLEAR.search(raw) or ("\n" in raw and LINE_ESCAPES.search(raw))):
        return None  # in a field of code what parses decides
    if found[0] != '"':
        changes.append(Change("quotes", at, found, "a string in double quotes"))
    return encode_basestring(unescaped(raw, at + 1, closing, changes))


def _quoted_key(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    if CLOSING_QUOTE[found[0]] != found[-1]:
        return None
    changes.append(Change("quotes", at, found, "a string in double quotes"))
    return f'"{found[1:-1]}"'


def _unquoted_key(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    changes.append(Change("unquoted_key", at, found, f'"{found}"'))
    return f'"{found}"'


def _foreign_word(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    word = found.lower()
    if word not in literals.FOREIGN_WORDS or word in literals.NOT_FINITE:
        return None
    meant = literals.spelled(literals.FOREIGN_WORDS[word])
    changes.append(Change("foreign_word", at, found, meant))
    return meant


def _comment(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    if recovery.may_be_gap_comment(found) or is_code(found):
        return None
    changes.append(Change("comment", at, found, ""))
    return ""


def _trailing_comma(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    if text[at - 1] not in _BEFORE_COMMA and not text[at - 1].isalnum():
        return None
    changes.append(Change("trailing_comma", at, found, ""))
    return ""


def _concatenation(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    if not text[max(0, at - 80) : at].rstrip().endswith(":") or "\\ud" in found.lower():
        return None
    parts = []
    for part in _PART.finditer(found):
        parts.append(part[2])
        if part[1]:
            changes.append(Change("concatenation", at + part.start(1), "+", ""))
    return f'"{"".join(parts)}"'


def _unseen(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    changes.append(Change("unseen_character", at, found, ""))
    return ""


def _missing_comma(found: str, at: int, text: str, changes: list[Change]) -> str | None:
    changes.append(Change("missing_comma", at + len(found), "", ","))
    return found + ","


_MEND = {
    "string": _string, "concatenation": _concatenation, "quoted_key": _quoted_key, "unquoted_key": _unquoted_key,
    "foreign_word": _foreign_word, "comment": _comment, "unseen_character": _unseen,
    "trailing_comma": _trailing_comma, "missing_comma": _missing_comma,
}  # fmt: skip
