"""What a reader does where the text is not JSON: one small rule each, every change listed.

What says that members were left out: an ellipsis, a comment about the rest, fewer items than announced.
"""

import re
from typing import Any

from orchestrator.answers.json import frames
from orchestrator.answers.json.cursor import Cursor
from orchestrator.answers.json.frames import GOES_ON, Frame, Halt
from orchestrator.answers.json.shape import ANYTHING, Shape
from orchestrator.answers.result import Change, excerpt

_DOTS = re.compile(r"(?://+|\#+|/\*+|<!--)\s*(?:\.{2,}|…)")
_NOUNS = r"(?:\s+(?:of\s+)?(?:the\s+|your\s+|these\s+)?[\w-]+){0,2}?"
_PLACE = (
    r"(?:\s+(?:here|below|follow\w*|goes? here|would go here|unchanged|omitted.*|remain\w* .*|as (?:before|above).*"
    r"|(?:are|is) (?:unchanged|the same|similar|omitted).*|etc|similarly|to be added|for brevity))?"
)
_REST = re.compile(
    rf"\W*(?:(?:and|plus|add|then|the|all|any|with|your|insert|\(?\d+)\s+)*"
    rf"(?:(?:remaining|rest|others?|additional|further|more|similar|subsequent){_NOUNS}{_PLACE}"
    r"|(?:etc|and so (?:on|forth)).{0,40}|continu\w+.{0,60}|same (?:for|as) .{0,60}|repeat.{0,60}"
    r"|.{0,40}(?:omitted|truncated|left out|abbreviated|for brevity).{0,40})\W*",
    re.IGNORECASE,
)
"""What a comment or a string says of items that are not there."""


def gap(cursor: Cursor, at: int) -> Halt:
    """Returns how an ellipsis ends the reading: after members it is a gap, before any it makes the text a template."""
    stack = cursor.stack
    inner = stack[-1]
    # {...} as one more item of a list leaves items out; as the first member of anything it is a placeholder.
    kept = inner if inner.value or len(stack) < 2 else stack[-2]
    listed = kept is inner or not kept.is_object
    outcome = "cut" if kept.value and listed else "template"
    return Halt(outcome, at, "an ellipsis stands where members were left out", gap=True)


def placeholder(cursor: Cursor) -> Halt:
    """How an ellipsis instead of a value ends the reading: as a cut when nothing of the answer comes behind it."""
    text, at = cursor.text, cursor.at
    # A closer ahead shows that the text goes on: then it is the template of an answer and no cut one.
    last = "}" not in text[at : at + 4000] and "]" not in text[at : at + 4000]
    outcome = "cut" if last and any(frame.value for frame in cursor.stack) else "template"
    return Halt(outcome, at, "a placeholder stands where a value was expected", gap=outcome == "cut")


def is_gap_comment(comment: str, frame: Frame, following: str) -> bool:
    """Returns whether a comment among members, which `following` comes after, says that some were left out."""
    if not frame.value:
        return False
    if _DOTS.match(comment):
        return True
    return following in ("]", "}", "") and not frame.is_object and _REST.fullmatch(comment) is not None


def is_gap_item(value: object, frame: Frame) -> bool:
    """Returns whether a member of a list of objects only says that items were left out."""
    listed = frame.shape.lists_objects or any(isinstance(item, dict) for item in frame.value[:1])
    return listed and _says_gap(value, frame.shape.items is None or not frame.shape.items.allows("string"))


def is_gap_word(token: str, frame: Frame) -> bool:
    """Returns whether words without quotes among the members of a list say that others were left out."""
    return not frame.is_object and bool(frame.value) and _says_gap(token, strict=True)


def has_gap(value: object, shape: Shape) -> bool:
    """Whether an ellipsis stands among the items of the contract's lists of objects, or fewer items than announced."""
    return isinstance(value, dict) and (announced(value, shape) is not None or _first_gap(value, shape) is not None)


def before_gap(value: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """Returns the value with the list that has a gap ended before it: what stands behind a gap has no known place."""
    found = _first_gap(value, shape)
    return value if found is None else {**value, found[0]: value[found[0]][: found[1]]}


def announced(value: dict[str, Any], shape: Shape) -> tuple[str, int] | None:
    """Returns the contract's list of objects that holds fewer items than a count beside it says, with that count."""
    for counter, name in shape.counters:
        count, items = value.get(counter), value.get(name)
        if isinstance(items, list) and type(count) is int and len(items) < count:
            return name, count
    return None


def _first_gap(value: dict[str, Any], shape: Shape) -> tuple[str, int] | None:
    """Name of a list of objects and the index of its first item that only says that others were left out."""
    for name, items in value.items():
        below = shape.props.get(name) if isinstance(items, list) and items else None
        if below is None or not below.lists_objects:
            continue
        strict = below.items is not None and not below.items.allows("string")
        for index, item in enumerate(items):
            if _says_gap(item, strict):
                return name, index
    return None


def _says_gap(item: object, strict: bool) -> bool:
    """Returns whether a list item is no item: an ellipsis, or (where strings have no place) words about the rest."""
    if isinstance(item, str):
        return item[:20].lstrip().startswith(("...", "…")) or (
            strict and len(item) < 120 and _REST.fullmatch(item) is not None
        )
    if isinstance(item, list | dict) and len(item) == 1:
        only = next(iter(item))
        return isinstance(only, str) and frames.ELLIPSIS.fullmatch(only.strip()) is not None
    return False


NEXT_KEY = re.compile(r"""\s*+["'“«「]([^"'”»」\\\n]{1,200})["'”»」]\s*+[:：]""")
_PROSE = re.compile(r"```|~~~|<|[A-Za-z*_#>-]")
_UP_TO_BRACKET = re.compile(r"[^{}\[\]]*+")
_ESCAPED = re.compile(r"""\\[n"]""")
"""What only the inside of a string holds: a line comment with it is code that an unescaped quote laid bare."""
_STRAY = re.compile(r"""["'`>;]{1,3}(?=\s*+(?:[,}\])]|\Z))""")
"""Left over right behind a closer, as in `}">`."""
_CLOSERS = re.compile(r"(?:[}\])]\s{0,200}+){1,210}+")


def skip_foreign(cursor: Cursor) -> bool:
    """Skips one comment or run of unseen characters; False when neither stands here."""
    text, at = cursor.text, cursor.at
    character = text[at]
    if character in "/#<":
        return _skip_comment(cursor, at)
    if character == "\\":
        match, kind = frames.ESCAPED_BLANK.match(text, at), "escaped_blank"
    elif character > "~" or character in "\x0b\x0c":
        match, kind = frames.UNSEEN.match(text, at), "unseen_character"
    else:
        return False
    if match is None:
        return False
    cursor.changes.append(Change(kind, at, match.group(), ""))
    cursor.at = match.end()
    return True


def _skip_comment(cursor: Cursor, at: int) -> bool:
    text = cursor.text
    match = frames.COMMENT.match(text, at)
    if match is None or is_code(match.group()):
        return False
    if is_gap_comment(match.group(), cursor.stack[-1], frames.character_after_blanks(text, match.end())):
        raise gap(cursor, at)
    cursor.changes.append(Change("comment", at, match.group(), ""))
    cursor.at = match.end()
    return True


def is_code(comment: str) -> bool:
    """Returns whether what looks like a comment up to the end of its line is the inside of a string."""
    return not comment.startswith("/*") and _ESCAPED.search(comment) is not None


# -- containers


def key_in_list(cursor: Cursor) -> bool:
    """Mends a colon after a string in a list: the list was not closed before that key, or an item was not opened.

    False when it can be neither.
    """
    frame = cursor.stack[-1]
    if frame.is_object or frame.last_string_at < 0:
        return False
    name, start = frame.value[-1], frame.last_string_at
    outer = cursor.stack[-2] if len(cursor.stack) > 1 else None
    if _opens_item(frame, outer, name):
        frame.value.pop()
        if _goes_on_with_item(frame, name):
            cursor.reopen(cursor.text.rfind("}", 0, start), frame.value.pop())
        else:
            cursor.open_missing(start)
    elif outer is not None and outer.is_object and name not in outer.value and _may_hold(outer, name):
        frame.value.pop()
        cursor.close_missing(start)
    else:
        return False
    cursor.at += 1
    cursor.begin_value(name, start)
    return True


def _may_hold(frame: Frame, name: str) -> bool:
    return not frame.shape.props or name in frame.shape.props or frame.shape.extra is not None


def _opens_item(frame: Frame, outer: Frame | None, name: str) -> bool:
    """Returns whether `name` is the first key of an item whose opener is missing."""
    items = frame.shape.items
    if items is not None and items.props:
        return name in items.props and not (outer is not None and outer.wants(name))
    others = frame.value[:-1]
    return not frame.shape.kinds and bool(others) and all(isinstance(item, dict) for item in others)


def _goes_on_with_item(frame: Frame, name: str) -> bool:
    """Returns whether `name` belongs to the list's last item, which was closed too early: it lacks that key."""
    last = frame.value[-1] if frame.value else None
    if not isinstance(last, dict):
        return False
    required = frame.shape.items.required if frame.shape.items is not None else ()
    spellings = next((names for names in required if name in names), (name,))
    return not any(spelling in last for spelling in spellings)


def extra_comma(cursor: Cursor) -> None:
    """Drops a comma that separates nothing."""
    cursor.changes.append(Change("extra_comma", cursor.at, ",", ""))
    cursor.at += 1


def close_before_item(cursor: Cursor) -> None:
    """The next list item begins although this one was not closed."""
    comma = cursor.stack[-1].comma_at
    cursor.close_missing(comma if comma >= 0 else cursor.at)
    cursor.stack[-1].comma_at = comma
    cursor.step = cursor.item


def unclosed_before(cursor: Cursor, name: str) -> int:
    """How many containers were not closed before a key that the innermost does not know and one around it awaits."""
    stack = cursor.stack
    frame = stack[-1]
    if cursor.contract is ANYTHING or name in frame.shape.props or len(stack) < 2 or not frame.value:
        return 0
    if frame.shape is cursor.contract or not frame.shape.props:
        return 0
    level = len(stack) - 2
    while level > 0 and not stack[level].is_object:
        level -= 1
    # One list of objects is two containers; more than that is no slip but another text.
    count = len(stack) - 1 - level
    return count if count <= 2 and stack[level].wants(name) else 0


def goes_on(cursor: Cursor, at: int) -> bool:
    """Returns whether members follow the closer of the outermost object: then that closer was one too many.

    Raises Halt when members follow that the contract does not await: part of the answer would be lost.
    """
    match = GOES_ON.match(cursor.text, at)
    if match is None:
        return False
    if cursor.stack[0].wants(match.group(1)):
        return True
    raise Halt("broken", at, "members follow the end of the object")


def extra_closer(cursor: Cursor, character: str) -> bool:
    """Returns whether a closer that fits nothing here is one too many: what is open goes on right behind it."""
    text, frame = cursor.text, cursor.stack[-1]
    if frame.is_object:
        key = GOES_ON.match(text, cursor.at + 1)
        return key is not None and frame.wants(key[1]) and not any(outer.wants(key[1]) for outer in cursor.stack[:-1])
    place = cursor.guide.skip(cursor.at + 1)
    following = text[place : place + 1]
    if not frame.value or character != "}":
        return False
    return following == "]" or (following == "," and text.startswith("{", cursor.guide.skip(place + 1)))


def reopens_list(cursor: Cursor) -> bool:
    """Whether an item stands where a key should, behind a list of such: the closer before it was one too many."""
    frame = cursor.stack[-1]
    items = frame.value.get(frame.key)
    if not isinstance(items, list) or not items or not isinstance(items[-1], dict):
        return False
    del frame.value[frame.key]
    frame.pending = True
    cursor.reopen(cursor.text.rfind("]", 0, cursor.at), items)
    return True


def wrong_closer(cursor: Cursor, character: str) -> bool:
    """Returns whether a closer that does not match stands for the right one, rather than behind a missing one.

    Told by what follows: a member or closer of the container around, or (at the end) as many closers as are open.
    """
    text, stack = cursor.text, cursor.stack
    if len(stack) < 2:
        return _closers_left(text, cursor.at) > 0
    replaced = _goes_on_in(text, cursor.at + 1, stack[-2])
    outer = stack[-3] if len(stack) > 2 else None
    missing = stack[-2].closer == character and _goes_on_in(text, cursor.at + 1, outer)
    if replaced and missing:
        return _closers_left(text, cursor.at) >= len(stack)
    return replaced


def _closers_left(text: str, at: int) -> int:
    match = _CLOSERS.match(text, at)
    return len(re.sub(r"\s+", "", match.group())) if match else 0


def _goes_on_in(text: str, at: int, frame: Frame | None) -> bool:
    """Returns whether what stands behind a closer can stand in `frame` (None: behind the whole answer)."""
    place = frames.blanks_end(text, at)
    character = text[place : place + 1]
    if frame is None:
        return character not in (",", "}", "]")
    if character != ",":
        return character == frame.closer
    key = NEXT_KEY.match(text, place + 1) is not None
    return key if frame.is_object else not key


# -- between members


def stray(cursor: Cursor, before: int) -> bool:
    """Skip quotes and the like left over right behind a closer or a number; False when nothing of that kind is here."""
    text, at = cursor.text, cursor.at
    match = _STRAY.match(text, at)
    if match is None or at != before or cursor.stack[-1].last_string_at >= 0:
        return False
    cursor.changes.append(Change("stray_characters", at, match.group(), ""))
    cursor.at = match.end()
    return True


def foreign_comma(cursor: Cursor, character: str) -> bool:
    """Takes a semicolon or another script's comma for one where a member follows; False when it is none."""
    text, at = cursor.text, cursor.at
    if character not in frames.COMMAS and character != ";":
        return False
    if character == ";" and not cursor.guide.may_follow_comma(cursor.stack, at + 1):
        return False
    cursor.changes.append(Change("foreign_comma", at, character, ","))
    return text[at] == character


def concatenated(cursor: Cursor, before: int, character: str) -> bool:
    """Returns whether a further part of a string follows: behind a plus, in brackets, or on a line of its own."""
    frame, text, at = cursor.stack[-1], cursor.text, cursor.at
    if frame.last_string_at < 0:
        return False
    if character == "+":
        return True
    if character not in frames.CLOSING_QUOTE or (frame.closer != ")" and not frame.is_object):
        return False
    end = frames.string_end(text, at + 1, frames.CLOSING_QUOTE[character])
    following = frames.character_after_blanks(text, end + 1) if end >= 0 else ":"
    apart = frame.closer == ")" or "\n" in text[before:at]
    return apart and (following in (",", frame.closer) or following in frames.CLOSING_QUOTE)


def concatenate(cursor: Cursor, before: int) -> None:
    """`"a" + "b"`, or strings one after another: they become one; cut off inside, none of it is kept."""
    frame = cursor.stack[-1]
    name = frame.key if frame.is_object else -1
    parts, end = [frame.value.pop(name)], before
    while cursor.at < len(cursor.text) and concatenated(cursor, end, cursor.peek()):
        plus = cursor.at
        cursor.at += cursor.text[plus] == "+"
        if cursor.peek("a string") not in frames.CLOSING_QUOTE:
            raise Halt("broken", cursor.at, "a string was expected after `+`")
        parts.append(cursor.string())
        end = cursor.at
        cursor.changes.append(Change("concatenation", plus, cursor.text[plus], ""))
    while (
        cursor.changes and cursor.changes[-1].offset >= end
    ):  # what was skipped to see that no part follows is read again
        cursor.changes.pop()
    cursor.at = end
    frame.put("".join(parts))


def missing_comma(cursor: Cursor, before: int, character: str) -> None:
    """Goes on without a comma where only a next member can follow; else sees whether the text ended before."""
    frame, text, at = cursor.stack[-1], cursor.text, cursor.at
    if at > before and frames.ELLIPSIS.match(text, at):
        raise gap(cursor, at)
    quoted = character in frames.CLOSING_QUOTE
    if frame.is_object:
        is_next = at > before and _key_follows(cursor, before, quoted)
    else:
        is_next = character in "{[" or (quoted and at > before) or "\n" in text[before:at]
    if not is_next:
        raise _ended(cursor, before)
    cursor.changes.append(Change("missing_comma", before, "", ","))
    cursor.step = cursor.key if frame.is_object else cursor.item


def _key_follows(cursor: Cursor, before: int, quoted: bool) -> bool:
    """Returns whether a key this object may hold stands here; one the contract does not name must begin a line."""
    text, at, props = cursor.text, cursor.at, cursor.stack[-1].shape.props
    match = (NEXT_KEY if quoted else frames.BARE_KEY).match(text, at)
    if match is None or (not quoted and frames.character_after_blanks(text, match.end()) != ":"):
        return False
    name = match.group(1) if quoted else match.group()
    return not props or name in props or "\n" in text[before:at]


def _ended(cursor: Cursor, before: int) -> Halt:
    """Prose after a whole member, with nothing that closes what is open: the closers are missing at the end."""
    text, at = cursor.text, cursor.at
    between = text[before:at]
    # Prose behind an answer stands behind a blank line or a mark; a word right behind a value is part of a string.
    apart = "\n\n" in between or text.startswith(("```", "~~~", "</", "<|"), at)
    match = _UP_TO_BRACKET.match(text, at)
    following = text[match.end() : match.end() + 1] if match else ""
    if apart and _PROSE.match(text, at) and following not in ("}", "]"):
        return Halt("cut", at, "the closers are missing at the end")
    return Halt("broken", at, f"a comma or a closer was expected, not `{excerpt(text[at : at + 20])}`")
