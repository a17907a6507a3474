"""Values without quotes: numbers as other languages write them, words, calls round a literal, bare strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from orchestrator.answers import gaps, tokens
from orchestrator.answers.frames import Halt, child_shape
from orchestrator.answers.model import Change, excerpt
from orchestrator.answers.shape import ANYTHING, Shape

if TYPE_CHECKING:
    from orchestrator.answers.reader import Reader

MAX_DIGITS = 4000
"""Digits a number may have (Python itself refuses to convert much more)."""
MAX_BARE = 300
"""Characters a string without quotes may have."""
FOREIGN_WORDS: dict[str, Any] = {
    "true": True, "false": False, "null": None, "none": None, "nil": None, "undefined": None,
    "nan": None, "infinity": None, "-infinity": None, "+infinity": None, "-nan": None, "inf": None, "-inf": None,
}  # fmt: skip
"""Words of other languages, in small letters; JSON has no non-finite numbers, so these become null and are listed."""
NOT_FINITE = frozenset(("nan", "infinity", "inf"))
_SWITCHES = {"yes": True, "on": True, "no": False, "off": False}
"""Words that mean a truth value only where the contract wants one."""
_BARE = re.compile(r"""(?:[^"'“”‘’`«»「」{}\[\](),，;\n\r:<>\\]|:(?=[^\s"'])|<[\w. -]{1,60}>){1,300}+""")
_COMMENT = re.compile(r"(?:\s(?://|\#)|\s?/\*).*", re.DOTALL)
_LOOSE = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)"
)
_CALL = re.compile(r"(?:new\s+)?[A-Za-z_$][\w$.]{0,60}\(\s*")
_PREFIX = re.compile(r"(?:[rRbBuUfF]{1,2}|String\.raw)(?=[\"'`])")
_SIMPLE = re.compile(r"[^\W_][\w .@+/$%&*!?^~=|#:-]{0,120}")
_NEXT_BARE = re.compile(r"\s*+,\s*+[^\W\d][\w$.-]{0,100}+\s*+:")
_NUMBER_END = frozenset(" \t\r\n,]}")


def scalar(reader: Reader) -> Any:
    """The number, word or bare string that begins here."""
    text, start = reader.text, reader.at
    number = tokens.NUMBER.match(text, start)
    if number is not None and text[number.end() : number.end() + 1] in _NUMBER_END and number.end() < len(text):
        reader.at = number.end()
        return _number(number.group(), start)
    if tokens.ELLIPSIS.match(text, start):
        raise gaps.gap(reader, start)
    prefix = _PREFIX.match(text, start)
    if prefix is not None:
        reader.changes.append(Change("string_prefix", start, prefix.group(), ""))
        reader.at = prefix.end()
        return reader.string()
    call = _CALL.match(text, start)
    return _called(reader, call) if call is not None else _bare(reader)


def _number(found: str, start: int) -> Any:
    """The number a JSON number stands for; what is over-long is no value."""
    if len(found) > MAX_DIGITS:
        raise Halt("broken", start, f"`{excerpt(found)}` is too long for a number")
    if found.lstrip("-").isdigit():
        return int(found)
    value = float(found)
    if value in (float("inf"), float("-inf")):
        raise Halt("broken", start, f"`{excerpt(found)}` is too large for a number")
    return value


def _bare(reader: Reader) -> Any:
    text, start = reader.text, reader.at
    match = _BARE.match(text, start)
    token = match.group() if match else ""
    token = (_COMMENT.sub("", token) if "/" in token or "#" in token else token).rstrip()
    end = start + len(token)
    if tokens.blanks_end(text, end) >= len(text) and token not in tokens.WORDS:
        raise Halt("cut", len(text), "the text ends inside a value")
    if not token:
        raise Halt("broken", start, f"a value was expected, not `{excerpt(text[start : start + 20])}`")
    if gaps.is_gap_word(token, reader.stack[-1]):
        raise gaps.gap(reader, start)
    shape = _shape_here(reader)
    reader.at = end
    if token.lower() in FOREIGN_WORDS:
        return _word(reader, token, start)
    if _LOOSE.fullmatch(token) and (found := _loose_number(reader, token, start, shape)) is not None:
        return found
    if token.lower() in _SWITCHES and "boolean" in shape.kinds and "string" not in shape.kinds:
        reader.changes.append(Change("foreign_word", start, token, str(_SWITCHES[token.lower()]).lower()))
        return _SWITCHES[token.lower()]
    return _bare_string(reader, token, start, shape)


def _shape_here(reader: Reader) -> Shape:
    return child_shape(reader.stack, reader.contract)


def _word(reader: Reader, token: str, start: int) -> Any:
    """A word that stands for a truth value or for nothing, as JSON or another language spells it."""
    meant = FOREIGN_WORDS[token.lower()]
    shape = _shape_here(reader)
    if meant is None and token.lower().lstrip("+-") in NOT_FINITE and not shape.allows("null"):
        meant = float(token)  # the contract wants a number and no null: what the model wrote is kept
        reader.changes.append(Change("not_finite", start, token, token))
        return meant
    if token not in tokens.WORDS:
        reader.changes.append(Change("foreign_word", start, token, spelled(meant)))
    return meant


def spelled(meant: bool | None) -> str:
    """A truth value or nothing as JSON writes it."""
    return {True: "true", False: "false", None: "null"}[meant]


def _loose_number(reader: Reader, token: str, start: int, shape: Shape) -> Any:
    """A number as JavaScript or Python write it; None when it is rather a text, such as 007."""
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
    reader.changes.append(Change("loose_number", start, token, repr(value)))
    return value


def _bare_string(reader: Reader, token: str, start: int, shape: Shape) -> str:
    """A string without quotes, where the contract wants a string or nothing else can be meant."""
    text = reader.text
    follows = tokens.character_after_blanks(text, reader.at)
    wanted = "string" in shape.kinds and token[0] != "<" and any(character.isalnum() for character in token)
    listed = not reader.stack[-1].is_object and reader.contract is not ANYTHING
    plausible = wanted or (not shape.kinds and not listed and reader.keyed and _SIMPLE.fullmatch(token))
    if follows in tokens.CLOSING_QUOTE and plausible and reader.may_end(reader.at + 1):
        reader.at = tokens.blanks_end(text, reader.at) + 1
        reader.changes.append(Change("missing_quote", start, "", follows))
        return token
    ends = follows in ("}", "]", ")") or "\n" in text[reader.at : tokens.blanks_end(text, reader.at)]
    ends = ends or (reader.bare_keys > 0 and _NEXT_BARE.match(text, reader.at) is not None)
    if follows == ":" and len(reader.stack) > 1 and not reader.stack[-1].is_object and reader.stack[-2].wants(token):
        return token  # a key: the list was not closed before it
    if not plausible or not (ends or reader.may_end(reader.at)):
        raise Halt("broken", start, f"`{excerpt(token)}` is no JSON value")
    reader.loose = True
    reader.changes.append(Change("unquoted_string", start, token, f'"{token}"'))
    return token


def _called(reader: Reader, call: re.Match[str]) -> Any:
    """`ObjectId("x")`, `Decimal('1.5')`: the one literal inside."""
    text, start = reader.text, reader.at
    reader.at = call.end()
    if reader.at >= len(text):
        raise Halt("cut", len(text), "the text ends inside a value")
    if text[reader.at] in "{[()" or _CALL.match(text, reader.at):
        raise Halt("broken", start, f"`{excerpt(call.group())}` is no JSON value")
    value = reader.string() if text[reader.at] in tokens.CLOSING_QUOTE else scalar(reader)
    if reader.peek("a closing parenthesis") != ")":
        raise Halt("broken", start, f"`{excerpt(call.group())}` is no JSON value")
    reader.at += 1
    reader.changes.append(Change("call", start, call.group(), ""))
    return value
