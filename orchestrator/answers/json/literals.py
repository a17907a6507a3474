"""Values without quotes: numbers as other languages write them, words, calls round a literal, bare strings.

Strings in foreign delimiters that models use for long text: triple quotes, fenced code blocks.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from orchestrator.answers.json import code, frames, recovery
from orchestrator.answers.json.cursor import Cursor
from orchestrator.answers.json.frames import Halt, child_shape
from orchestrator.answers.json.shape import ANYTHING, Shape
from orchestrator.answers.result import Change, excerpt

MAX_DIGITS = 4000
"""Digits a number may have (Python itself refuses to convert much more)."""
FOREIGN_WORDS: dict[str, Any] = {
    "true": True, "false": False, "null": None, "none": None, "nil": None, "undefined": None,
    "nan": None, "infinity": None, "-infinity": None, "+infinity": None, "-nan": None, "inf": None, "-inf": None,
}  # fmt: skip
"""Words of other languages, in small letters; JSON has no non-finite numbers, so these become null and are listed."""
NOT_FINITE = frozenset(("nan", "infinity", "inf"))
_SWITCHES = {"yes": True, "on": True, "no": False, "off": False}
"""Words that mean a truth value only where the contract wants one."""
# A value without quotes; a colon belongs to it only inside a word, as in a URL.
_BARE = re.compile(r"""(?:[^"'“”‘’`«»「」{}\[\](),，;\n\r:<>\\]|:(?=[^\s"'])|<[\w. -]{1,60}>){1,300}+""")
_COMMENT = re.compile(r"(?:\s(?://|\#)|\s?/\*).*", re.DOTALL)
# Numbers as Python and JavaScript write them.
_LOOSE = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)"
)
_CALL = re.compile(r"(?:new\s+)?[A-Za-z_$][\w$.]{0,60}\(\s*")
_PREFIX = re.compile(r"(?:[rRbBuUfF]{1,2}|String\.raw)(?=[\"'`])")
_SIMPLE = re.compile(r"[^\W_][\w .@+/$%&*!?^~=|#:-]{0,120}")
_NEXT_BARE = re.compile(r"\s*+,\s*+[^\W\d][\w$.-]{0,100}+\s*+:")
_NUMBER_END = frozenset(" \t\r\n,]}")


def scalar(cursor: Cursor) -> Any:
    """Returns the number, word or bare string that begins here."""
    text, start = cursor.text, cursor.at
    number = frames.NUMBER.match(text, start)
    if number is not None and text[number.end() : number.end() + 1] in _NUMBER_END and number.end() < len(text):
        cursor.at = number.end()
        return _number(number.group(), start)
    if frames.ELLIPSIS.match(text, start):
        raise recovery.gap(cursor, start)
    prefix = _PREFIX.match(text, start)
    if prefix is not None:
        cursor.changes.append(Change("string_prefix", start, prefix.group(), ""))
        cursor.at = prefix.end()
        return cursor.string()
    call = _CALL.match(text, start)
    return _called(cursor, call) if call is not None else _bare(cursor)


def _number(found: str, start: int) -> Any:
    """Returns the number a JSON number stands for; what is over-long is no value."""
    if len(found) > MAX_DIGITS:
        raise Halt("broken", start, f"`{excerpt(found)}` is too long for a number")
    if found.lstrip("-").isdigit():
        return int(found)
    value = float(found)
    if value in (float("inf"), float("-inf")):
        raise Halt("broken", start, f"`{excerpt(found)}` is too large for a number")
    return value


def _bare(cursor: Cursor) -> Any:
    text, start = cursor.text, cursor.at
    match = _BARE.match(text, start)
    token = match.group() if match else ""
    token = (_COMMENT.sub("", token) if "/" in token or "#" in token else token).rstrip()
    end = start + len(token)
    if frames.blanks_end(text, end) >= len(text) and token not in frames.WORDS:
        raise Halt("cut", len(text), "the text ends inside a value")
    if not token:
        raise Halt("broken", start, f"a value was expected, not `{excerpt(text[start : start + 20])}`")
    if recovery.is_gap_word(token, cursor.stack[-1]):
        raise recovery.gap(cursor, start)
    shape = _shape_here(cursor)
    cursor.at = end
    if token.lower() in FOREIGN_WORDS:
        return _word(cursor, token, start)
    if _LOOSE.fullmatch(token) and (found := _loose_number(cursor, token, start, shape)) is not None:
        return found
    if token.lower() in _SWITCHES and "boolean" in shape.kinds and "string" not in shape.kinds:
        cursor.changes.append(Change("foreign_word", start, token, str(_SWITCHES[token.lower()]).lower()))
        return _SWITCHES[token.lower()]
    return _bare_string(cursor, token, start, shape)


def _shape_here(cursor: Cursor) -> Shape:
    return child_shape(cursor.stack, cursor.contract)


def _word(cursor: Cursor, token: str, start: int) -> Any:
    """Returns a word that stands for a truth value or for nothing, as JSON or another language spells it."""
    meant = FOREIGN_WORDS[token.lower()]
    shape = _shape_here(cursor)
    if meant is None and token.lower().lstrip("+-") in NOT_FINITE and not shape.allows("null"):
        meant = float(token)  # the contract wants a number and no null: what the model wrote is kept
        cursor.changes.append(Change("not_finite", start, token, token))
        return meant
    if token not in frames.WORDS:
        cursor.changes.append(Change("foreign_word", start, token, spelled(meant)))
    return meant


def spelled(meant: bool | None) -> str:
    """Returns a truth value or nothing as JSON writes it."""
    return {True: "true", False: "false", None: "null"}[meant]


def _loose_number(cursor: Cursor, token: str, start: int, shape: Shape) -> Any:
    """Returns a number as JavaScript or Python write it; None when it is rather a text, such as 007."""
    if len(token) > MAX_DIGITS or not (shape.allows("number") or shape.allows("integer")):
        return None
    digits = token.lstrip("+-").replace("_", "")
    sign = -1 if token.startswith("-") else 1
    if digits[:2].lower() in ("0x", "0b", "0o"):
        value: Any = sign * int(digits, 0)
    elif digits.isdigit():
        if digits[0] == "0" and len(digits) > 1 and (not shape.kinds or shape.allows("string")):
            return None
        value = sign * int(digits)
    else:
        value = sign * float(digits)
    if value in (float("inf"), float("-inf")):
        raise Halt("broken", start, f"`{excerpt(token)}` is too large for a number")
    cursor.changes.append(Change("loose_number", start, token, repr(value)))
    return value


def _bare_string(cursor: Cursor, token: str, start: int, shape: Shape) -> str:
    """Reads a string without quotes, where the contract wants a string or nothing else can be meant."""
    text = cursor.text
    follows = frames.character_after_blanks(text, cursor.at)
    wanted = "string" in shape.kinds and token[0] != "<" and any(character.isalnum() for character in token)
    listed = not cursor.stack[-1].is_object and cursor.contract is not ANYTHING
    plausible = wanted or (not shape.kinds and not listed and cursor.keyed and _SIMPLE.fullmatch(token))
    if follows in frames.CLOSING_QUOTE and plausible and cursor.may_end(cursor.at + 1):
        cursor.at = frames.blanks_end(text, cursor.at) + 1
        cursor.changes.append(Change("missing_quote", start, "", follows))
        return token
    ends = follows in ("}", "]", ")") or "\n" in text[cursor.at : frames.blanks_end(text, cursor.at)]
    ends = ends or (cursor.bare_keys > 0 and _NEXT_BARE.match(text, cursor.at) is not None)
    if follows == ":" and len(cursor.stack) > 1 and not cursor.stack[-1].is_object and cursor.stack[-2].wants(token):
        return token  # a key: the list was not closed before it
    if not plausible or not (ends or cursor.may_end(cursor.at)):
        raise Halt("broken", start, f"`{excerpt(token)}` is no JSON value")
    cursor.loose = True
    cursor.changes.append(Change("unquoted_string", start, token, f'"{token}"'))
    return token


def _called(cursor: Cursor, call: re.Match[str]) -> Any:
    """`ObjectId("x")`, `Decimal('1.5')`: the one literal inside."""
    text, start = cursor.text, cursor.at
    cursor.at = call.end()
    if cursor.at >= len(text):
        raise Halt("cut", len(text), "the text ends inside a value")
    if text[cursor.at] in "{[()" or _CALL.match(text, cursor.at):
        raise Halt("broken", start, f"`{excerpt(call.group())}` is no JSON value")
    value = cursor.string() if text[cursor.at] in frames.CLOSING_QUOTE else scalar(cursor)
    if cursor.peek("a closing parenthesis") != ")":
        raise Halt("broken", start, f"`{excerpt(call.group())}` is no JSON value")
    cursor.at += 1
    cursor.changes.append(Change("call", start, call.group(), ""))
    return value


MAX_DELIMITERS, MAX_TRIED = 1000, 64
"""Closing delimiters that are looked at for one string: in all, and behind one that a comma or closer follows."""
_TRIPLE = {quote * 3: re.compile(quote + "{3,}+") for quote in "\"'"}
_FENCE = re.compile(r"(`{3,}|~{3,})[^\n`\"]{0,60}\r?\n")
_CLOSER = re.compile(r"[ \t\r\n]*+[,}\]]")


def long_text(cursor: Cursor) -> str | None:
    """Returns the string in triple quotes or a fenced block that begins here; None where neither does."""
    return _triple(cursor) if cursor.text[cursor.at : cursor.at + 3] in _TRIPLE else _fenced(cursor)


def opens_tuple(cursor: Cursor) -> bool:
    """Whether the bracket here opens a list of another language, or one round strings: no remark in brackets."""
    place = cursor.guide.skip(cursor.at + 1)
    following = cursor.text[place : place + 1]
    return following in frames.CLOSING_QUOTE or child_shape(cursor.stack, cursor.contract).allows("array")


def _triple(cursor: Cursor) -> str | None:
    """`\"\"\"…\"\"\"` or `'''…'''`: a line end right behind the opening delimiter belongs to the delimiter.

    The text is taken as it stands when it has line ends of its own, with escapes read when it has none; where both
    could be, the reading that parses in the language of the path beside it counts.
    """
    text, start = cursor.text, cursor.at
    mark = text[start : start + 3]
    if text[start + 3 : start + 4] in (",", ":", "}", "]", ""):
        return None
    if mark in cursor.unclosed:
        return None
    end = _end(cursor, _TRIPLE[mark].finditer(text, start + 3))
    if end is None:
        if text[start + 3] in "\r\n" and text.find(mark, start + 3) < 0:
            raise Halt("cut", len(text), "a string in triple quotes is not closed")
        cursor.unclosed.add(mark)
        return None
    cursor.at = end
    cursor.changes.append(Change("triple_quotes", start, mark, '"'))
    first = start + 3
    raw = text[first : end - 3]
    if raw[:1] == "\n":
        first += 1
        raw = _without_blank_end(raw[1:])
    return _settled(cursor, raw, first, mark[0], end, verbatim="\n" in raw)


def _fenced(cursor: Cursor) -> str | None:
    """Returns a fenced code block where a string should stand: its lines, as they are."""
    text, start = cursor.text, cursor.at
    opening = _FENCE.match(text, start)
    if opening is None:
        return None
    closing = re.compile(rf"(?<=\n)[ \t]*{re.escape(opening[1])}[ \t]*(?=\r?\n|[,}}\]]|\Z)")
    end = _end(cursor, closing.finditer(text, opening.end() - 1))
    if end is None:
        raise Halt("cut", len(text), "a fenced block is not closed")
    cursor.at = end
    cursor.changes.append(Change("fenced_value", start, opening.group(), '"'))
    raw = _without_blank_end(text[opening.end() : text.rindex("\n", start, end) + 1])
    return _settled(cursor, raw, opening.end(), "`", end, verbatim=True)


def _end(cursor: Cursor, delimiters: Iterator[re.Match[str]]) -> int | None:
    """Offset after the first delimiter behind which the contract allows the text to go on, else a closer or comma."""
    second, tried = None, 0
    for match in islice(delimiters, MAX_DELIMITERS):
        if cursor.may_end(match.end()):
            return match.end()
        if second is None and _CLOSER.match(cursor.text, match.end()):
            second = match.end()
        tried += second is not None
        if tried > MAX_TRIED:
            break
    return second


def _without_blank_end(raw: str) -> str:
    """Returns the text without an empty last line, which only keeps the closing delimiter apart."""
    return raw[:-1] if raw.endswith("\n\n") else raw


def _settled(cursor: Cursor, raw: str, offset: int, closing: str, end: int, verbatim: bool) -> str:
    frame = cursor.stack[-1]
    path = code.path_of(frame.key, frame.value, cursor.text, end) if frame.is_object else None
    return code.settled(raw, offset, closing, path, verbatim, cursor.changes)
