"""Takes one layer of encoding off a whole text: HTML entities, or JSON written as a JSON string."""

import html
import re
from collections.abc import Callable

from orchestrator.answers import tokens
from orchestrator.answers.model import Change, Decoded, pieced

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_ENTITY_JSON = re.compile(r"[{\[](?:\s|&nbsp;)*+(?:[{\[]\s*+)?&(?:quot|\#0?34|\#[xX]22);")
_STRING_JSON = re.compile(r'[{\[](?:\s|\\[nrt])*+(?:[{\[](?:\s|\\[nrt])*+)?\\"')
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def without_entities(text: str) -> Decoded | None:
    """The text with its HTML entities decoded once, when its JSON is written with them; else None."""
    first = _ENTITY_JSON.search(text)
    if first is None:
        return None
    pieces: list[tuple[str, int]] = []
    at = 0
    for match in _ENTITY.finditer(text):
        pieces += [(text[at : match.start()], at), (html.unescape(match.group()), match.start())]
        at = match.end()
    pieces.append((text[at:], at))
    return pieced(pieces, Change("html_entities", first.start(), "&quot;", '"'))


def without_string(text: str) -> Decoded | None:
    """The text inside the first string literal that holds JSON, decoded once; None without one."""
    first = _STRING_JSON.search(text)
    if first is None:
        return None
    start = first.start()
    end = tokens.string_end(text, start, '"')
    end = len(text) if end < 0 else end
    pieces: list[tuple[str, int]] = []
    at = start
    for match in _ESCAPE.finditer(text, start, end):
        pieces += [(text[at : match.start()], at), (_meaning(match.group()), match.start())]
        at = match.end()
    pieces.append((text[at:end], at))
    return pieced(pieces, Change("double_encoded", start, text[start : start + 20], "JSON"))


def _meaning(escape: str) -> str:
    if len(escape) > 2:
        return chr(int(escape[2:], 16))
    return _LETTERS.get(escape[1], escape[1])


DECODERS: tuple[Callable[[str], Decoded | None], ...] = (without_entities, without_string)
"""In the order they are tried."""
