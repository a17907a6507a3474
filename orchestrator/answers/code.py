"""Strings that hold code: the language of the path beside them says which reading of unclear text is the right one."""

import re
from posixpath import splitext
from typing import Any

from orchestrator.answers.escapes import unescaped
from orchestrator.answers.model import Change
from orchestrator.syntax.check import CHECKED_SUFFIXES, is_well_formed

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


LINE_ESCAPES = re.compile(r"\\(?<!\\\\)((?:\\\\)*+)([nrt])")
"""An escaped line end or tab: in text with real line ends the escape belongs to the code."""


def parses(path: str | None, text: str) -> bool | None:
    """Whether `text` parses in the language of `path`; None when nobody can say."""
    if path is None or len(text) > MAX_JUDGED or splitext(path)[1].lower() not in CHECKED_SUFFIXES:
        return None
    return is_well_formed(path, text)


def path_of(key: str | None, siblings: Any, text: str = "", end: int = 0) -> str | None:
    """The path that goes with the code under `key`: among its siblings, or right behind `end` in the text."""
    names = PATH_OF.get(key or "", ())
    for name in names:
        if isinstance(siblings.get(name), str):
            return str(siblings[name])
    match = _LATER.match(text, end) if names and text else None
    return match.group(1) if match else None


def broken_code(value: Any) -> bool:
    """Whether some code in the value, up to MAX_JUDGED characters of each, does not parse in its language."""
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
    """The text of a literal that may have been written with escapes, as it is, or with only its quotes escaped.

    The reading that parses as code of `path` counts; where that does not decide, `verbatim` says which it is: as the
    text stands, or with its escapes read. `raw` begins at `offset`.
    """
    made: list[Change] = []
    decoded = unescaped(raw, offset, closing, made, code=True)
    if decoded == raw:
        changes.extend(made)
        return raw
    meant, other = (raw, decoded) if verbatim else (decoded, raw)
    if parses(path, meant) is False:
        spelled = unescaped(LINE_ESCAPES.sub(r"\1\\\\\2", raw), offset, closing, [], code=True)
        readings = (reading for reading in (other, spelled) if reading != meant)
        meant = next((reading for reading in readings if parses(path, reading)), meant)
    if meant == decoded:
        changes.extend(made)
    else:
        changes.append(Change("verbatim", offset, raw, meant))
    return meant
