"""Brace expansion of a shell's word: `pip in{stall,} x` → `pip install in x`."""

import re
from collections.abc import Sequence
from itertools import pairwise

from orchestrator.syntax.shell_words import TEXT, Piece

_MAX_TEXT, _MAX_BRACES, _MAX_WORDS = 2_000, 12, 64
_HELD = 0xF0000
"""First of the private characters that stand for pieces which are no plain text while braces are looked for."""
_RANGE = re.compile(r"(?P<first>-?\d{1,3})\.\.(?P<last>-?\d{1,3})|(?P<from>[a-zA-Z])\.\.(?P<to>[a-zA-Z])")


def alternatives(pieces: Sequence[Piece]) -> list[Sequence[Piece]]:
    """The words that a word's braces make; the word alone when it has none, or more than can be followed."""
    if not any("{" in piece.text and _is_plain(piece) for piece in pieces):
        return [pieces]
    text = "".join(piece.text if _is_plain(piece) else chr(_HELD + place) for place, piece in enumerate(pieces))
    if len(text) > _MAX_TEXT or text.count("{") > _MAX_BRACES or len(pieces) > _MAX_TEXT:
        return [pieces]
    made = _made(text)
    return [_pieces(word, pieces) for word in made] if 0 < len(made) <= _MAX_WORDS else [pieces]


def _is_plain(piece: Piece) -> bool:
    return piece.kind == TEXT and not piece.quoted


def _pieces(word: str, held: Sequence[Piece]) -> list[Piece]:
    last = chr(_HELD + len(held))
    parts = re.split(f"([{chr(_HELD)}-{last}])", word)
    return [
        held[ord(part) - _HELD] if len(part) == 1 and chr(_HELD) <= part < last else Piece(TEXT, part)
        for part in parts
        if part
    ]


def _made(text: str) -> list[str]:
    for start in (place for place, char in enumerate(text) if char == "{"):
        end, parts = _choices(text, start)
        if len(parts) > 1:
            tails = _made(text[end + 1 :])
            heads = [inner for part in parts[: _MAX_WORDS + 1] for inner in _made(part)]
            found = [f"{text[:start]}{head}{tail}" for head in heads for tail in tails]
            return found[: _MAX_WORDS + 1]
    return [text]


def _choices(text: str, start: int) -> tuple[int, list[str]]:
    """Where the brace at `start` closes, and what stands between its commas or in its range."""
    depth, cuts = 0, [start]
    for place in range(start, len(text)):
        char = text[place]
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 1:
            cuts.append(place)
        if depth == 0:
            cuts.append(place)
            inside = [text[one + 1 : other] for one, other in pairwise(cuts)]
            return place, inside if len(inside) > 1 else _range(inside[0])
    return len(text), []


def _range(text: str) -> list[str]:
    match = _RANGE.fullmatch(text)
    if match is None:
        return []
    if match["from"]:
        first, last = sorted((ord(match["from"]), ord(match["to"])))
        return [chr(code) for code in range(first, last + 1)]
    low, high = sorted((int(match["first"]), int(match["last"])))
    return [str(number) for number in range(low, min(high, low + _MAX_WORDS) + 1)]
