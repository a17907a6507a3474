"""The smallest pieces of sloppy JSON: blanks and comments, quotes, keys, numbers, words, escapes."""

import re
from typing import Any

from orchestrator.answers.model import Change

CLOSING_QUOTE = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "”", "”": "”", "‘": "’"}
"""Opening delimiter of a string → the one that closes it."""
MAX_KEY = 200
"""Characters a key may have when the text around it is not valid JSON."""

BLANKS = re.compile(r"[ \t\r\n]*+")
UNSEEN = re.compile(r"[\u00a0\u200b-\u200d\u2060\ufeff\u2028\u2029\u3000\x0b\x0c]++")
"""Characters that look like nothing and that JSON does not allow between its tokens."""
COMMENT = re.compile(r"(?://|\#)[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?")
WORD = re.compile(r"-?[A-Za-z_$][\w$]*+")
BARE_KEY = re.compile(r"[^\W\d][\w$.-]{0,199}+")
ELLIPSIS = re.compile(r"\.{2,}|…")
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
FOREIGN_WORDS: dict[str, Any] = {
    "True": True,
    "False": False,
    "None": None,
    "undefined": None,
    "NaN": None,
    "nan": None,
    "Infinity": None,
    "-Infinity": None,
    "-NaN": None,
}
"""Words of other languages; JSON has no non-finite numbers, so these become null and are listed as changed."""

PLAIN_ITEMS = re.compile(
    r'(?:[ \t\r\n]*+(?:-?(?:0|[1-9]\d{0,14}+)(?:\.\d{1,15}+)?|"[^"\\\x00-\x1f]*+"|true|false|null)[ \t\r\n]*+,)++'
)
"""List items that are valid JSON, hold no container and no escape, each with its comma."""

_ENDS = {q: re.compile(rf"[^{q}\\]*+(?:\\.[^{q}\\]*+)*+", re.DOTALL) for q in set(CLOSING_QUOTE.values())}
_KEYS = {q: re.compile(rf"(?:[^{q}\\\n]|\\.){{0,{MAX_KEY}}}+{q}") for q in set(CLOSING_QUOTE.values())}
_SPECIAL = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[\x00-\x1f]", re.DOTALL
)
_PART_OF_NUMBER = re.compile(r"-?\d*(?:\.\d*)?(?:[eE][+-]?\d*)?")
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_OVER_ESCAPED = "'`$_"
"""Characters that models escape out of a habit from other languages; the backslash means nothing."""
_CONTROL = {"\n": ("raw_newline", "\\n"), "\r": ("raw_newline", "\\r"), "\t": ("raw_tab", "\\t")}


def string_end(text: str, start: int, closing: str) -> int:
    """Offset of the first unescaped `closing` at or after `start`, -1 when the text ends first."""
    match = _ENDS[closing].match(text, start)
    end = match.end() if match else start
    return end if end < len(text) and text[end] == closing else -1


def key_end(text: str, start: int, closing: str) -> int:
    """Like string_end for a key: -1 also when it holds a line end or is over-long."""
    match = _KEYS[closing].match(text, start)
    return match.end() - 1 if match else -1


def key_is_cut(text: str, start: int) -> bool:
    """Whether an unclosed key at `start` is one that the end of the text cut off."""
    return len(text) - start <= MAX_KEY and "\n" not in text[start:]


def value_is_cut(text: str, start: int, match: re.Match[str] | None) -> bool:
    """Whether the end of the text may have cut the number or word that begins at `start`."""
    if match is not None and match.end() == len(text):
        return match.group() not in WORDS
    return len(text) - start <= MAX_KEY and _PART_OF_NUMBER.fullmatch(text, start) is not None


def character_after_blanks(text: str, at: int) -> str:
    """The first character at or after `at` that is no JSON white space, empty at the end."""
    place = blanks_end(text, at)
    return text[place : place + 1]


def blanks_end(text: str, at: int) -> int:
    """Offset of the first character at or after `at` that is no JSON white space."""
    match = BLANKS.match(text, at)
    return match.end() if match else at


def unescaped(raw: str, offset: int, closing: str, changes: list[Change]) -> str:
    """The text a string literal's inside stands for; what JSON would not allow is read leniently and listed.

    `raw` begins at `offset` of the text. Never fails: an escape JSON does not know keeps its backslash (code and
    regular expressions mean it), save before characters that only look as if they needed one.
    """
    if "\\" not in raw and raw.isprintable():
        return raw

    def replaced(match: re.Match[str]) -> str:
        found = match.group()
        if found[0] != "\\":
            kind, spelled = _CONTROL.get(found, ("raw_control", f"\\u{ord(found):04x}"))
            changes.append(Change(kind, offset + match.start(), found, spelled))
            return found
        letter = found[1]
        if len(found) > 2:
            return _code_point(found)
        if letter in _SIMPLE or letter == closing:
            return _SIMPLE.get(letter, letter)
        meant = letter if letter in _OVER_ESCAPED else found
        changes.append(Change("invalid_escape", offset + match.start(), found, meant))
        return meant

    return _SPECIAL.sub(replaced, raw)


def _code_point(escape: str) -> str:
    if len(escape) == 6:
        return chr(int(escape[2:], 16))
    high, low = int(escape[2:6], 16), int(escape[8:], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
