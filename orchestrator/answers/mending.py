"""What a Reader does where the text is not JSON: one small rule each, every change listed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from orchestrator.answers import tokens
from orchestrator.answers.frames import GOES_ON, Frame, Halt
from orchestrator.answers.model import Change, excerpt
from orchestrator.answers.shape import ANYTHING, is_ellipsis

if TYPE_CHECKING:
    from orchestrator.answers.reader import Reader

MAX_DIGITS = 4000
"""Digits a number may have (Python itself refuses to convert much more)."""
NEXT_KEY = re.compile(r"""\s*+["'“]([^"'”\\\n]{1,200})["'”]\s*+:""")
_PROSE = re.compile(r"```|~~~|<|[A-Za-z*_#>-]")
_UP_TO_BRACKET = re.compile(r"[^{}\[\]]*+")
_ESCAPED = re.compile(r"""\\[n"]""")
"""What only the inside of a string holds: a line comment with it is code that an unescaped quote laid bare."""
_GAP_COMMENT = re.compile(r"(?://|#|/\*)\s*(?:\.{2,}|…)")


def gap(reader: Reader, at: int) -> Halt:
    """How an ellipsis ends the reading: after members it is a gap, before any it makes the text a template."""
    outcome = "cut" if any(frame.value for frame in reader.stack) else "template"
    if outcome == "cut" and not reader.stack[-1].value:
        outcome = "template"
    return Halt(outcome, at, "an ellipsis stands where members were left out", gap=True)


def is_gap_text(value: str, frame: Frame) -> bool:
    """Whether a string among objects only says that items were left out."""
    if not is_ellipsis(value):
        return False
    return frame.shape.lists_objects or any(isinstance(item, dict) for item in frame.value[:1])


def skip_foreign(reader: Reader) -> bool:
    """Skip one comment or run of unseen characters; False when neither stands here."""
    text, at = reader.text, reader.at
    character = text[at]
    if character in "/#":
        match, kind = tokens.COMMENT.match(text, at), "comment"
        if match and character + text[at + 1 : at + 2] != "/*" and _ESCAPED.search(match.group()):
            return False
        if match and _GAP_COMMENT.match(match.group()) and reader.stack[-1].value:
            raise gap(reader, at)
    elif character > "~" or character in "\x0b\x0c":
        match, kind = tokens.UNSEEN.match(text, at), "unseen_character"
    else:
        return False
    if match is None:
        return False
    reader.changes.append(Change(kind, at, match.group(), ""))
    reader.at = match.end()
    return True


def number(reader: Reader, found: str, start: int) -> Any:
    """The number; what runs into letters or is over-long is no value."""
    following = reader.text[reader.at]
    if len(found) > MAX_DIGITS or following.isalnum() or following in "._":
        raise Halt("broken", start, f"`{excerpt(found + following)}` is no JSON number")
    if found.lstrip("-").isdigit():
        return int(found)
    value = float(found)
    if value in (float("inf"), float("-inf")):
        raise Halt("broken", start, f"`{excerpt(found)}` is too large for a number")
    return value


def concatenate(reader: Reader) -> None:
    """`"a" + "b" + …`: the parts become one string; cut off inside, none of it is kept."""
    frame = reader.stack[-1]
    name = frame.key if frame.is_object else -1
    parts, end = [frame.value.pop(name)], reader.at
    while reader.at < len(reader.text) and reader.peek() == "+":
        plus = reader.at
        reader.at += 1
        if reader.peek("a string") not in tokens.CLOSING_QUOTE:
            raise Halt("broken", reader.at, "a string was expected after `+`")
        parts.append(reader.string())
        end = reader.at
        reader.changes.append(Change("concatenation", plus, "+", ""))
    reader.at = end
    frame.put("".join(parts))


def key_in_list(reader: Reader) -> bool:
    """A colon after a string in a list: the list was not closed before that key. False when it cannot be so."""
    frame = reader.stack[-1]
    if frame.is_object or frame.last_string_at < 0 or len(reader.stack) < 2 or not reader.stack[-2].is_object:
        return False
    name, start = frame.value[-1], frame.last_string_at
    if name in reader.stack[-2].value:
        return False
    frame.value.pop()
    reader.close_missing(start)
    reader.at += 1
    reader.begin_value(name, start)
    return True


def close_for_key(reader: Reader, name: str, start: int) -> None:
    """A key that this object does not know and an object around it awaits: what lies between was not closed."""
    stack = reader.stack
    frame = stack[-1]
    if reader.contract is ANYTHING or name in frame.shape.props or len(stack) < 2 or not frame.value:
        return
    if frame.shape is reader.contract or not frame.shape.props:
        _close_map_for_key(reader, name, start)
        return
    level = len(stack) - 2
    while level > 0 and not stack[level].is_object:
        level -= 1
    if stack[level].wants(name) and len(stack) - 1 - level <= 2:
        while len(stack) - 1 > level:
            reader.close_missing(start)


def _close_map_for_key(reader: Reader, name: str, start: int) -> None:
    """The same for an object of free keys: only when the value cannot belong to it."""
    frame, outer = reader.stack[-1], reader.stack[-2]
    if frame.shape is reader.contract or frame.shape.extra is None or not outer.wants(name):
        return
    opener = tokens.character_after_blanks(reader.text, reader.at)
    kind = {"[": "array", "{": "object", '"': "string"}.get(opener)
    if kind and not frame.shape.extra.allows(kind):
        reader.close_missing(start)


def goes_on(reader: Reader, at: int) -> bool:
    """Whether members follow the closer of the outermost object: then that closer was one too many.

    Raises Halt when members follow that the contract does not await: part of the answer would be lost.
    """
    match = GOES_ON.match(reader.text, at)
    if match is None:
        return False
    if reader.stack[0].wants(match.group(1)):
        return True
    raise Halt("broken", at, "members follow the end of the object")


def missing_comma(reader: Reader, before: int, character: str) -> None:
    """Go on without a comma where only a next member can follow; else see whether the text ended before."""
    frame, text, at = reader.stack[-1], reader.text, reader.at
    if at > before and tokens.ELLIPSIS.match(text, at):
        raise gap(reader, at)
    quoted = character in tokens.CLOSING_QUOTE
    if frame.is_object:
        is_next = at > before and _key_follows(reader, before, quoted)
    else:
        is_next = character in "{[" or (quoted and at > before)
    if not is_next:
        raise _ended(reader, before)
    reader.changes.append(Change("missing_comma", before, "", ","))
    reader.step = reader.key if frame.is_object else reader.item


def _key_follows(reader: Reader, before: int, quoted: bool) -> bool:
    """Whether a key this object may hold stands here; one the contract does not name must begin a line."""
    text, at, props = reader.text, reader.at, reader.stack[-1].shape.props
    match = (NEXT_KEY if quoted else tokens.BARE_KEY).match(text, at)
    if match is None or (not quoted and tokens.character_after_blanks(text, match.end()) != ":"):
        return False
    name = match.group(1) if quoted else match.group()
    return not props or name in props or "\n" in text[before:at]


def _ended(reader: Reader, before: int) -> Halt:
    """Prose after a whole member, with nothing that closes what is open: the closers are missing at the end."""
    text, at = reader.text, reader.at
    between = text[before:at]
    apart = "\n\n" in between or text.startswith(("```", "~~~", "</", "<|"), at)
    match = _UP_TO_BRACKET.match(text, at)
    following = text[match.end() : match.end() + 1] if match else ""
    if apart and _PROSE.match(text, at) and following not in ("}", "]"):
        return Halt("cut", at, "the closers are missing at the end")
    return Halt("broken", at, f"a comma or a closer was expected, not `{excerpt(text[at : at + 20])}`")
