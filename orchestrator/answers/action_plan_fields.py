"""What the bullets of an action say: a key, and a value that is a path, a switch, a time or words."""

import math
import re
from typing import NamedTuple
from urllib.parse import unquote

from orchestrator.answers.action_plan_document import Block, Piece, pieces_of
from orchestrator.answers.action_plan_words import field_name, looks_like_path
from orchestrator.domain.action_plan import is_url


class Field(NamedTuple):
    """One `**Key:** value`."""

    name: str | None
    """One of FIELDS, None for a key that is none of ours."""
    key: str
    """As it was written."""
    raw: str
    """The value's inline Markdown."""
    line: int
    bold: bool


MAX_KEY = 40
_WRAPS = ("**", "__", "*", "_", "`")


def field_of(text: str, line: int) -> Field | None:
    """The field that a line of inline Markdown is, None when it has no key."""
    text = text.strip()
    wrap = next((mark for mark in _WRAPS if text.startswith(mark)), "")
    key, colon, value = text[len(wrap) :].partition(":")
    if wrap and wrap in key:  # **File Path**: value
        key, _, between = key.partition(wrap)
        if between.strip():
            return None
    elif wrap and value.startswith(wrap):  # **File Path:** value
        value = value[len(wrap) :]
    elif wrap:
        return None
    key = key.strip(" *_`")
    if not colon or not key or len(key) > MAX_KEY or "\n" in key:
        return None
    return Field(field_name(key), key, value.strip(), line, wrap in {"**", "__"})


def lines_of(block: Block) -> list[tuple[str, int]]:
    """The lines of a paragraph with their numbers."""
    return [(line, number) for number, line in enumerate(block.text.split("\n"), start=block.line)]


class Path(NamedTuple):
    """A path as it was meant; `problem` says why it cannot be known."""

    path: str = ""
    linked: bool = True
    """Whether it stood in a link or in backticks."""
    problem: str = ""


def path_of(raw: str) -> Path:
    """The path or address in a field: a link, a code span, or plain text. One leading `/` is the root."""
    pieces = pieces_of(raw.replace("\n", " "))
    marked = [piece for piece in pieces if piece.kind != "text"]
    around = "".join(piece.text for piece in pieces if piece.kind == "text").strip(" *_")
    if len(marked) > 1:
        return Path(problem="names more than one path")
    if marked and around and not around.startswith(("(", "–", "—", "-", "←", "#")):
        return Path(problem="holds more than a path")
    if marked:
        return _marked(marked[0])
    return _plain(around if pieces else "")


def _marked(piece: Piece) -> Path:
    shown = _rooted(piece.text)
    if piece.kind == "code":
        return Path(shown) if shown else Path(problem="is empty")
    target = _rooted(piece.target)
    if shown.startswith("**") and shown.endswith("**"):
        shown = _rooted(shown.strip("*"))
    bare = target.partition("#")[0]
    if not shown or not target:
        return Path(shown or target) if shown or target else Path(problem="is empty")
    if shown in {target, bare, unquote(target)}:
        return Path(shown)
    if is_url(target) and not looks_like_path(shown):
        return Path(target)
    if bare.endswith(f"/{shown}") and not is_url(bare):
        return Path(bare)
    return Path(problem=f"names two paths: `{shown[:80]}`, and `{target[:80]}` in its link")


def _plain(text: str) -> Path:
    text = text.strip("\"'`* ")
    if text.startswith("[") and text.endswith(")") and "](" in text:  # a link that blanks have broken
        shown, _, target = text[1:-1].partition("](")
        if _rooted(shown) == _rooted(target):
            return Path(_rooted(shown), linked=False)
        return Path(problem="is a link that cannot be read")
    if text.startswith("[") and text.endswith("]") and looks_like_path(inner := text[1:-1]) and "]" not in inner:
        text = inner
    path = _rooted(text)
    if not path:
        return Path(problem="is empty")
    if text.count("[") != text.count("]") or text.count("(") != text.count(")") or re.search(r'[`*?<>|"]', path):
        return Path(problem="is no path that could be read")
    if re.search(r"[,;]\s|\s(?:and|or|&)\s", path):
        return Path(problem="names more than one path")
    if " " in path and not (re.search(r"\.[A-Za-z0-9_]{1,16}$", path) and path.count(" ") <= 4):
        return Path(problem="holds more than a path")
    return Path(path, linked=False)


def _rooted(path: str) -> str:
    """The path from the root: without `./`, or the one `/` that stands for the root."""
    path = path.strip()
    while path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path[1:] if path.startswith("/") else path


class Known(NamedTuple):
    """A value that is known, or None with `exact` False when it is not."""

    value: bool | float | None
    exact: bool


def switch_of(raw: str) -> Known:
    """true and false; yes, no, on and off are known too."""
    said = _said(raw).casefold()
    if said in {"true", "false"}:
        return Known(said == "true", True)
    known = {"yes": True, "y": True, "on": True, "no": False, "n": False, "off": False}.get(said)
    return Known(known, False)


_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)?", re.IGNORECASE)


def seconds_of(raw: str) -> Known:
    """A positive number of seconds, also with `s`, `min` or `h` behind it."""
    match = _TIME.fullmatch(_said(raw))
    if match is None:
        return Known(None, False)
    unit = (match[2] or "s")[0].lower()
    value = float(match[1]) * {"s": 1, "m": 60, "h": 3600}[unit]
    return Known(value if value > 0 and math.isfinite(value) else None, match[2] is None)


_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:=|\s*:\s|\s*=\s)(.*)", re.DOTALL)


def variable_of(raw: str) -> tuple[str, str] | None:
    """`NAME=value`, alone or in a code span; None when it is none."""
    pieces = pieces_of(raw.strip())
    text = pieces[0].text if len(pieces) == 1 and pieces[0].kind == "code" else raw.strip()
    match = _VARIABLE.fullmatch(text)
    if match is None:
        return None
    value = match[2] if pieces and pieces[0].kind == "code" else match[2].strip("`* ")
    return match[1], value.replace("\0", "")


def variables_of(raw: str) -> list[tuple[str, str] | None]:
    """Variables on the field's own line: one, or several in code spans."""
    pieces = pieces_of(raw)
    spans = [piece.text for piece in pieces if piece.kind == "code"]
    if spans and all(piece.kind == "code" or not piece.text.strip(" ,;") for piece in pieces):
        matches = [_VARIABLE.fullmatch(span) for span in spans]
        return [(match[1], match[2].replace("\0", "")) if match else None for match in matches]
    return [variable_of(raw)] if raw.strip() else []


def _said(raw: str) -> str:
    return "".join(piece.text for piece in pieces_of(raw)).strip(" *_.`\"'")
