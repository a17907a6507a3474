"""Strings that hold code: the language of the path beside them says which reading of unclear text is the right one.

What the inside of a string literal stands for: escapes as JSON knows them, and what else models write for them.
"""

import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # the parser's own, in C
from json.encoder import encode_basestring
from posixpath import splitext
from typing import Any

from orchestrator.answers.result import Change
from orchestrator.code.check import CHECKED_SUFFIXES, is_well_formed

_INVALID, _INVALID_IF_BARE = (
    re.compile(
        rf'((?:[^\\"]++|\\(?:["\\/nrt{more}]|u[0-9a-fA-F]{{4}}))*+)'
        r'(\\x[0-9a-fA-F]{2}|\\u\{[0-9a-fA-F]{1,6}\}|\\.|\\\Z|"|\Z)',
        re.DOTALL,
    )
    for more in ("bf", "")
)
"""What is valid, and the escape or quote behind it that is not; the second one takes \\b and \\f for such."""
_CONTROLS = re.compile(r"[\x00-\x1f]")
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_OVER_ESCAPED = "'`$_"
"""Characters that models escape out of a habit from other languages; the backslash means nothing.

Where other backslashes of the string are kept, these are: `\\$` of a regular expression, `\\_` of TeX.
"""
_UNDER_ESCAPED = re.compile(r"(?:[^\\]++|\\[\"\\/bfnrtu'`$_\s])*+\\.")
"""A backslash that should have been two: code and regular expressions mean it."""
_KIND = {chr(code): "raw_control" for code in range(32)} | {"\n": "raw_newline", "\r": "raw_newline", "\t": "raw_tab"}
"""Character that must be escaped → the kind of change that its escape is."""
_SPELLED = {chr(code): f"\\u{code:04x}" for code in range(32)} | {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LINE_END = re.compile(r"(\\*)\n")
_ESCAPED_LINE_END = re.compile(r"(?<!\\)(?:\\\\)*\\n\Z")
_MAX_CODE_POINT = 0x10FFFF  # the last one of Unicode


def unescaped(raw: str, offset: int, closing: str, changes: list[Change], *, code: bool = False) -> str:
    """Returns the text a string literal's inside stands for; what JSON would not allow is read leniently and listed.

    `raw` begins at `offset` of the text. Never fails: an escape JSON does not know keeps its backslash (code and
    regular expressions mean it), save before characters that only look as if they needed one. The hexadecimal escapes
    of JavaScript and Python count too, but for `code` in double quotes, where they are the code's own.
    """
    if raw.isprintable() and "\\" not in raw:
        return raw
    made: list[Change] = []
    value = raw
    if "\\" in raw:
        written = _mended(raw, offset, closing, closing != '"' or not code, made)
        value = scanstring(f'{written}"', 0, False)[0]
    controls = [found.start() for found in _CONTROLS.finditer(raw)]
    if controls and made:
        escaped = {change.offset - offset + 1 for change in made}
        controls = [at for at in controls if at not in escaped]
    changes += made
    changes += [Change(_KIND[raw[at]], offset + at, raw[at], _SPELLED[raw[at]]) for at in controls]
    return value


def _mended(raw: str, offset: int, closing: str, foreign: bool, changes: list[Change]) -> str:
    """Returns the inside of a string as JSON spells it, but for control characters that are not escaped."""
    bare = _UNDER_ESCAPED.match(raw) is not None
    line_end = _line_end(raw) if closing == '"' else None

    def replaced(match: re.Match[str]) -> str:
        valid, found = match.groups()
        if found in ("", '"'):
            return f"{valid}\\{found}" if found else str(valid)
        if found == "\\\n" and line_end is not None:
            # Behind an escaped line end the raw one continues the same line, as in a string of JavaScript.
            meant, kind = "" if _ESCAPED_LINE_END.search(valid) else line_end, "escaped_line_end"
        else:
            meant, kind = _meaning(found, closing, bare, foreign)
        if kind:
            changes.append(Change(kind, offset + match.start(2), found, meant))
        return f"{valid}{encode_basestring(meant)[1:-1]}"

    return (_INVALID_IF_BARE if bare else _INVALID).sub(replaced, raw)


def _line_end(raw: str) -> str | None:
    """Returns what a backslash before a raw line end stands for in this string; None where it may be the code's own.

    A shell or Python continues a line behind a blank and leaves other lines alone. Where no line ends without a
    backslash, and one of them right behind a word, all of them are how the model writes a line end.
    """
    behind_word = False
    for end in _LINE_END.finditer(raw):
        if len(end[1]) % 2 == 0:
            return None
        behind_word = behind_word or not raw[max(0, end.start() - 1) : end.start()].isspace()
    return "\n" if behind_word else None


def _meaning(escape: str, closing: str, bare: bool, foreign: bool) -> tuple[str, str]:
    """Returns what an escape stands for, and the kind of change that this is; "" where JSON says so itself."""
    letter = escape[1:2]
    other = _foreign(escape, closing) if foreign else None
    if other is not None:
        return other, "foreign_escape"
    # Among other bare backslashes a backspace or form feed is never what code means: \b is a word's edge there.
    if len(escape) == 2 and not (bare and letter in "bf") and (letter in _SIMPLE or letter == closing):
        return _SIMPLE.get(letter, letter), ""
    return letter if letter and letter in _OVER_ESCAPED and not bare else escape, "invalid_escape"


def _foreign(escape: str, closing: str) -> str | None:
    """Returns an escape that JavaScript and Python know and JSON does not."""
    if escape == "\\\n" and closing != '"':
        return ""
    if len(escape) > 2:
        number = int(escape[2:].strip("{}"), 16)
        return chr(number) if number <= _MAX_CODE_POINT else None
    return None


PATH_OF = {
    "content": ("path", "filename", "file", "file_path", "filepath", "name"),
    "code": ("path", "filename", "file", "file_path", "filepath", "name"),
    "source": ("path", "filename", "file", "file_path", "filepath", "name"),
    "test_content": ("test_file", "test_path", "path", "file"),
}
"""Field that holds code → the fields beside it that may name its file, nearest first."""
MAX_JUDGED = 100_000
"""Characters of code that are parsed to decide between readings; a parser's time is not ours to bound beyond that."""
_LATER = re.compile(
    r"""["']?[\s,}]{0,40}["']?(?:path|filename|file|file_path|filepath|test_file)["']?\s{0,8}:\s{0,8}["']([^"'\n]{1,200})["']"""
)
"""A path that stands behind its content."""


_LOST_BACKSLASH = re.compile(
    "\x08"  # no file holds one: it was the \\b of a regular expression, a path or a formula
    r"|(?<!\n)\f[a-z]"
    # A path: behind a drive or a folder with its backslash, what completes n, t or r to the name of a folder.
    r"|(?:\b[A-Za-z]:|\\[\w.-]+)(?:\t(?:mp|emp|ests?|ools?|arget)\b|\n(?:ew|ode|et|ginx|otes|ames|umpy|pm|vm)\b|\r(?:epos?|oot|eports?|esults?|un|ef)\b)"
    # TeX: what completes n, t or r to a name, and is no word itself.
    r"|(?<=[\s$({=,^])(?<!\n)\t(?:heta|imes|ext(?:bf|it|tt)?|au|ilde|herefore|frac|riangle)\b"
    r"|\n(?:abla|eq|ewcommand|ewline|ewpage|otin|onumber|oindent|ewtheorem)\b|\r(?:ho|ight(?:arrow)?|enewcommand)\b",
)


def lost_backslash(text: str) -> str:
    """Returns what shows that a backslash of the text was read as an escape; "" where nothing does.

    The JSON is valid, so only the content tells: `C:\\new` has become two lines, `\\bfoo` a backspace.
    """
    found = _LOST_BACKSLASH.search(text)
    return text[max(0, found.start() - 20) : found.end() + 10] if found is not None else ""


LINE_ESCAPES = re.compile(r"\\(?<!\\\\)((?:\\\\)*+)([nrt])")
"""An escaped line end or tab: in text with real line ends the escape belongs to the code."""


def parses(path: str | None, text: str) -> bool | None:
    """Returns whether `text` parses in the language of `path`; None when that is unknown."""
    if path is None or len(text) > MAX_JUDGED or splitext(path)[1].lower() not in CHECKED_SUFFIXES:
        return None
    return is_well_formed(path, text)


def path_of(key: str | None, siblings: Any, text: str = "", end: int = 0) -> str | None:
    """Returns the path that goes with the code under `key`: among its siblings, or right behind `end` in the text."""
    names = PATH_OF.get(key or "", ())
    for name in names:
        if isinstance(siblings.get(name), str):
            return str(siblings[name])
    match = _LATER.match(text, end) if names and text else None
    return match.group(1) if match else None


def broken_code(value: Any) -> bool:
    """Returns whether some code in the value, up to MAX_JUDGED characters of each, does not parse in its language."""
    waiting = [value]
    for container in waiting:
        if isinstance(container, dict):
            for key, inner in container.items():
                if isinstance(inner, str) and key in PATH_OF and parses(path_of(key, container), inner) is False:
                    return True
            waiting.extend(inner for inner in container.values() if isinstance(inner, dict | list))
        elif isinstance(container, list):
            waiting.extend(inner for inner in container if isinstance(inner, dict | list))
    return False


def settled(raw: str, offset: int, closing: str, path: str | None, verbatim: bool, changes: list[Change]) -> str:
    """Returns the text of a literal that may have been written with escapes, as it is, or with only its quotes escaped.

    The reading that parses as code of `path` counts; where that does not decide, `verbatim` says which it is: as the
    text stands, or with its escapes read. `raw` begins at `offset`.
    """
    made: list[Change] = []
    decoded = unescaped(raw, offset, closing, made, code=True)
    if decoded == raw:
        changes.extend(made)
        return raw
    meant, other = (raw, decoded) if verbatim else (decoded, raw)
    # Only code that does not parse as it was read is read otherwise: mostly the first reading is right.
    if parses(path, meant) is False:
        spelled = unescaped(LINE_ESCAPES.sub(r"\1\\\\\2", raw), offset, closing, [], code=True)
        readings = (reading for reading in (other, spelled) if reading != meant)
        meant = next((reading for reading in readings if parses(path, reading)), meant)
    if meant == decoded:
        changes.extend(made)
    else:
        changes.append(Change("verbatim", offset, raw, meant))
    return meant
