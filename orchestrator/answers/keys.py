"""Keys and their colons, as models write them: with quotes, without, with one of the two missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from orchestrator.answers import tokens
from orchestrator.answers.frames import Halt
from orchestrator.answers.model import Change, excerpt
from orchestrator.answers.shape import ANYTHING

if TYPE_CHECKING:
    from orchestrator.answers.reader import Reader

_KINDS = {
    "{": ("object",), "[": ("array",), '"': ("string",), "'": ("string",),
    "t": ("boolean",), "f": ("boolean",), "T": ("boolean",), "F": ("boolean",), "n": ("null",), "N": ("null",),
}  # fmt: skip
"""First character of a value → the JSON types it may begin."""
_OPEN_KEY = re.compile(r"([\w.$-]{1,100}+)\s*+:\s*+")


def key_name(reader: Reader, character: str) -> str:
    """The key that begins here; what was read of it is behind `reader.at`."""
    text, start = reader.text, reader.at
    closing = tokens.CLOSING_QUOTE.get(character)
    if closing is None:
        return _bare_key(reader, start, character)
    end = tokens.key_end(text, start + 1, closing)
    open_key = _OPEN_KEY.match(text, start + 1)
    if open_key is not None and end != open_key.end(1):
        return _unclosed_key(reader, open_key, start, end, closing)
    if end < 0:
        raise _unclosed(text, start)
    return reader.literal(start, end, character, closing)


def _unclosed(text: str, start: int) -> Halt:
    if tokens.key_is_cut(text, start):
        return Halt("cut", len(text), "a key is not closed")
    return Halt("broken", start, "a key is not closed")


def _bare_key(reader: Reader, start: int, character: str) -> str:
    match = tokens.BARE_KEY.match(reader.text, start)
    if match is None:
        raise Halt("broken", start, f"a key was expected, not `{excerpt(character)}`")
    reader.at = match.end()
    if reader.at >= len(reader.text):
        raise Halt("cut", len(reader.text), "a key is not closed")
    name = match.group()
    if reader.text[reader.at] in tokens.CLOSING_QUOTE:
        reader.at += 1
        reader.changes.append(Change("missing_quote", start, "", reader.text[reader.at - 1]))
    else:
        reader.bare_keys += 1
        reader.changes.append(Change("unquoted_key", start, name, f'"{name}"'))
    return name


def _unclosed_key(reader: Reader, key: re.Match[str], start: int, end: int, closing: str) -> str:
    """A key whose closing quote is missing before its colon: the contract knows it, or a value follows at once."""
    value = reader.text[key.end() : key.end() + 1]
    known = reader.stack[-1].wants(key[1])
    if not known and (end >= 0 and end != key.end()):
        return reader.literal(start, end, reader.text[start], closing)
    if not known and (reader.contract is not ANYTHING or not value):
        raise _unclosed(reader.text, start)
    reader.at = key.end(1)
    reader.changes.append(Change("missing_quote", reader.at, "", closing))
    return key[1]


def colon(reader: Reader, name: str, start: int) -> None:
    """Go past the colon behind a key, or past what stands for one."""
    character = reader.peek("a colon")
    at = reader.at
    if character == ":":
        reader.at += 1
    elif character in tokens.COLONS:
        reader.at += 2 if reader.text.startswith("=>", at) else 1
        reader.changes.append(Change("foreign_colon", at, character, ":"))
    elif character in "\"'" and tokens.character_after_blanks(reader.text, at + 1) == ":":
        reader.changes.append(Change("extra_quote", at, character, ""))
        reader.at = reader.text.index(":", at) + 1
    elif _value_follows(reader, character, name):
        reader.changes.append(Change("missing_colon", at, "", ":"))
    else:
        raise Halt("broken", at, "a colon was expected after a key")
    if (following := reader.peek("a value")) in (":", "=") and reader.text[start] in tokens.CLOSING_QUOTE:
        reader.changes.append(Change("extra_colon", reader.at, following, ""))
        reader.at += 1


def _value_follows(reader: Reader, character: str, name: str) -> bool:
    """Whether a value stands right behind a key: of a kind that the contract wants there, or without one, any."""
    frame = reader.stack[-1]
    if reader.contract is ANYTHING:
        begins = character in "\"'“{[-tfnTFN" or character.isdigit()
        return begins and tokens.BARE_KEY.fullmatch(name) is not None
    kinds = ("number", "integer") if character.isdigit() or character == "-" else _KINDS.get(character, ())
    return frame.wants(name) and any(frame.shape.child(name).allows(kind) for kind in kinds)
