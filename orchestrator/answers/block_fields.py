"""What stands behind the keys of the block format: ids, paths, commands, descriptions."""

import json
import re
from typing import Any, NamedTuple

_BULLET = re.compile(r"^[ \t]*+(?:[-*+•]|\d{1,3}[.)])[ \t]++")
_ID_TITLE = re.compile(r"(?=[\w.-]*?\d)([\w.-]++)[ \t]*(?:[:–—|]|-(?=\s))[ \t]*(\S.*)", re.DOTALL)
_NOTE = re.compile(r"(\S+)[ \t]+\((?:new|create|created|modify|modified|update|updated)\)", re.IGNORECASE)
_FENCE = re.compile(r"(?:```|~~~)[^\n]*\n(.*?)\n?(?:```|~~~)[ \t]*", re.DOTALL)
_DECORATION = " \t\r\n*_`"
_QUOTES = "\"'“”‘’"
_NOTHING = frozenset({"", "none", "(none)", "n/a", "null", "nothing", "-", "–", "—", "[]"})
_TEMPLATE = re.compile(r"\s*(?:\.{3}|…|<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\})\s*")


class Identity(NamedTuple):
    """Id and title as they stand behind TASK or STORY."""

    id: str
    title: str


def plain(raw: str) -> str:
    """`raw` without Markdown decoration and quotes around it."""
    text = raw.strip(_DECORATION)
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        text = text[1:-1]
    return text


def is_template(raw: str) -> bool:
    """Whether a field only says what ought to stand there, as in `<task id>`."""
    return _TEMPLATE.fullmatch(plain(raw)) is not None


def identity(raw: str) -> Identity:
    """`T-1: Build it` → id and title; words without an id are a title."""
    text = plain(raw)
    if not re.search(r"\s", text):
        return Identity(text, "")
    split = _ID_TITLE.fullmatch(text)
    if split is None:
        return Identity("", text)
    return Identity(split[1].strip("-"), split[2])


def entries(raw: str) -> tuple[list[str], list[str]]:
    """(paths or ids, notes that were left out) of a list with commas, of bullets, or of a JSON list."""
    text = raw.strip()
    if plain(text).lower() in _NOTHING:
        return [], []
    listed = _json_list(text)
    if listed is not None:
        return listed, []
    if text[:1] == "[" and text[-1:] == "]" and "," in text:
        text = text[1:-1]
    found: list[str] = []
    notes: list[str] = []
    for line in text.split("\n"):
        for piece in re.split(r"[,;]", _BULLET.sub("", line)):
            name = plain(piece)
            noted = _NOTE.fullmatch(name)
            if noted:
                notes.append(name)
                name = plain(noted[1])
            if name and name.lower() not in _NOTHING:
                found.append(name)
    return found, notes


def _json_list(text: str) -> list[str] | None:
    if text[:1] != "[":
        return None
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else None


def command(raw: str) -> str | None:
    """The command without fence, backticks or bullet; None when the text says that there is none."""
    text = _BULLET.sub("", raw).strip()
    fenced = _FENCE.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = text.strip("`").strip()
    return None if text.lower() in _NOTHING else text


def prose(raw: str, quoted: bool) -> str:
    """A description as it stands, without the quote markers that stand before its lines when its key has one."""
    text = re.sub(r"(?m)^[ \t]*>[ ]?", "", raw) if quoted else raw
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))
