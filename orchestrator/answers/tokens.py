"""The smallest pieces of sloppy JSON: blanks and comments, quotes, keys, numbers, words."""

import re
from typing import Any

CLOSING_QUOTE = {
    '"': '"', "'": "'", "`": "`", "“": "”", "„": "”", "”": "”", "‘": "’", "«": "»", "「": "」", "＂": "＂",
}  # fmt: skip
"""Opening delimiter of a string → the one that closes it."""
MAX_KEY = 200
"""Characters a key may have when the text around it is not valid JSON."""

BLANKS = re.compile(r"[ \t\r\n]*+")
UNSEEN = re.compile(r"[\u0085\u00a0\u00ad\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\x0b\x0c]++")
"""Characters that look like nothing and that JSON does not allow between its tokens."""
ESCAPED_BLANK = re.compile(r"(?:\\r\\n|\\[nrt])++(?=[\s\"'{}\[\],:\\]|\Z)")
"""Line ends and tabs written as escapes where only blanks may stand."""
COMMENT = re.compile(r"(?://|\#)[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|<!--(?:[^-]|-(?!->))*+(?:-->)?")
PLAIN_STARTS = frozenset("\"'{}[],:-0123456789tfnTFN")
"""Characters that are no blank and begin no comment: what most tokens begin with."""
COLONS = {":": ":", "：": ":", "=": "=", "\u2236": ":"}
"""What may stand for a colon → its ASCII form."""
COMMAS = frozenset(",，、")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?")
BARE_KEY = re.compile(r"[\w$@][\w$.-]{0,199}+")
ELLIPSIS = re.compile(r"\.{2,}|…")
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}

PLAIN_ITEMS = re.compile(
    r'(?:[ \t\r\n]*+(?:-?(?:0|[1-9]\d{0,14}+)(?:\.\d{1,15}+)?|"[^"\\\x00-\x1f]*+"|true|false|null)[ \t\r\n]*+,)++'
)
"""List items that are valid JSON, hold no container and no escape, each with its comma."""

PLAIN_MEMBER = re.compile(
    r'[ \t\r\n]*+"([^"\\\x00-\x1f]{1,100}+)"[ \t]*+:[ \t]*+'
    r'(?:"([^"\\\x00-\x1f]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f]*+)*+)"|(-?(?:0|[1-9]\d{0,14}+)|true|false|null))'
    r'[ \t\r\n]*+,(?=[ \t\r\n]*+")'
)
"""A member that is valid JSON and holds no container, with its comma, before a further quoted key."""

_ENDS = {q: re.compile(rf"[^{q}\\]*+(?:\\.[^{q}\\]*+)*+", re.DOTALL) for q in set(CLOSING_QUOTE.values())}
_KEYS = {q: re.compile(rf"(?:[^{q}\\\n]|\\.){{0,{MAX_KEY}}}+{q}") for q in set(CLOSING_QUOTE.values())}


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


def character_after_blanks(text: str, at: int) -> str:
    """The first character at or after `at` that is no JSON white space, empty at the end."""
    place = blanks_end(text, at)
    return text[place : place + 1]


def blanks_end(text: str, at: int) -> int:
    """Offset of the first character at or after `at` that is no JSON white space."""
    match = BLANKS.match(text, at)
    return match.end() if match else at
