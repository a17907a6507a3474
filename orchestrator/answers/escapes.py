"""What the inside of a string literal stands for: escapes as JSON knows them, and what else models write for them."""

import re
from functools import cache
from json.decoder import scanstring  # type: ignore[attr-defined]  # the parser's own, in C
from json.encoder import encode_basestring

from orchestrator.answers.model import Change

_FOREIGN = r"\\x[0-9a-fA-F]{2}|\\u\{[0-9a-fA-F]{1,6}\}|\\.|\\\Z"
_SPECIAL = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    rf"|{_FOREIGN}|[\x00-\x1f]",
    re.DOTALL,
)
_INVALID, _INVALID_IF_BARE = (
    re.compile(rf'((?:[^\\"]++|\\(?:["\\/nrt{more}]|u[0-9a-fA-F]{{4}}))*+)({_FOREIGN}|"|\Z)', re.DOTALL)
    for more in ("bf", "")
)
"""What is valid, and the escape or quote behind it that is not; the second one takes \\b and \\f for such."""
_CONTROLS = re.compile(r"[\x00-\x1f]")
_ESCAPED_CONTROL = re.compile(r"\\[\x00-\x1f]")
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_OVER_ESCAPED = "'`$_"
"""Characters that models escape out of a habit from other languages; the backslash means nothing."""
_UNDER_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*+\\[^\"\\/bfnrtu'`$_\s]")
"""A backslash that should have been two: code and regular expressions mean it."""
_CONTROL = {"\n": ("raw_newline", "\\n"), "\r": ("raw_newline", "\\r"), "\t": ("raw_tab", "\\t")}
_MAX_CODE_POINT = 0x10FFFF


def unescaped(raw: str, offset: int, closing: str, changes: list[Change], *, code: bool = False) -> str:
    """The text a string literal's inside stands for; what JSON would not allow is read leniently and listed.

    `raw` begins at `offset` of the text. Never fails: an escape JSON does not know keeps its backslash (code and
    regular expressions mean it), save before characters that only look as if they needed one. The hexadecimal escapes
    of JavaScript and Python count too, but for `code` in double quotes, where they are the code's own.
    """
    if "\\" not in raw and raw.isprintable():
        return raw
    bare = "\\" in raw and _UNDER_ESCAPED.search(raw) is not None
    foreign = closing != '"' or not code
    if closing == '"' and not _ESCAPED_CONTROL.search(raw):
        made: list[Change] = []
        written = raw if (value := _decoded(raw)) is not None else _mended(raw, offset, bare, foreign, made)
        made += [_control(found.group(), offset + found.start()) for found in _CONTROLS.finditer(raw)]
        changes.extend(made)
        return value if value is not None else scanstring(f'{written}"', 0, False)[0]
    simple = _simple(closing, bare)

    def replaced(match: re.Match[str]) -> str:
        found = match.group()
        meant = simple.get(found)
        if meant is not None:
            return meant
        if found[0] != "\\":
            changes.append(_control(found, offset + match.start()))
            return found
        meant, kind = _meaning(found, closing, bare, foreign)
        if kind:
            changes.append(Change(kind, offset + match.start(), found, meant))
        return meant

    return _SPECIAL.sub(replaced, raw)


def _decoded(raw: str) -> str | None:
    """The text of a JSON string's inside, at the speed of the standard parser; None where an escape is not valid."""
    try:
        value, end = scanstring(f'{raw}"', 0, False)
    except ValueError:
        return None
    return value if end > len(raw) else None


def _mended(raw: str, offset: int, bare: bool, foreign: bool, changes: list[Change]) -> str:
    """The inside of a string in double quotes with quotes escaped, and foreign escapes spelled as what they mean."""

    def replaced(match: re.Match[str]) -> str:
        valid, found = match.groups()
        if found in ("", '"'):
            return valid + found.replace('"', '\\"')
        meant, kind = _meaning(found, '"', bare, foreign)
        changes.append(Change(kind, offset + match.start(2), found, meant))
        return valid + encode_basestring(meant)[1:-1]

    return (_INVALID_IF_BARE if bare else _INVALID).sub(replaced, raw)


def _control(found: str, at: int) -> Change:
    kind, spelled = _CONTROL.get(found) or ("raw_control", f"\\u{ord(found):04x}")
    return Change(kind, at, found, spelled)


@cache
def _simple(closing: str, bare: bool) -> dict[str, str]:
    """The escapes of one letter that mean what JSON says, in a string that ends with `closing`."""
    letters = {**_SIMPLE, closing: closing}
    return {f"\\{letter}": meant for letter, meant in letters.items() if not (bare and letter in "bf")}


def _meaning(escape: str, closing: str, bare: bool, foreign: bool) -> tuple[str, str]:
    """What an escape stands for, and the kind of change that this is; "" where JSON says so itself."""
    letter = escape[1:2]
    if letter == "u" and len(escape) > 2 and escape[2] != "{":
        return _code_point(escape), ""
    other = _foreign(escape, closing) if foreign else None
    if other is not None:
        return other, "foreign_escape"
    # Among other bare backslashes a backspace or form feed is never what code means: \b is a word's edge there.
    if len(escape) == 2 and not (bare and letter in "bf") and (letter in _SIMPLE or letter == closing):
        return _SIMPLE.get(letter, letter), ""
    return letter if letter and letter in _OVER_ESCAPED else escape, "invalid_escape"


def _foreign(escape: str, closing: str) -> str | None:
    """An escape that JavaScript and Python know and JSON does not."""
    if escape == "\\\n" and closing != '"':
        return ""
    if len(escape) > 2:
        number = int(escape[2:].strip("{}"), 16)
        return chr(number) if number <= _MAX_CODE_POINT else None
    return None


def _code_point(escape: str) -> str:
    if len(escape) == 6:
        return chr(int(escape[2:], 16))
    high, low = int(escape[2:6], 16), int(escape[8:], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
