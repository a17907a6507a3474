"""Reads one object or list leniently, without recursion, and lists every change that was needed.

Keys and their colons, as models write them: with quotes, without, with one of the two missing.
"""

from __future__ import annotations

import re

from orchestrator.answers.json import frames, literals, recovery
from orchestrator.answers.json.cursor import Cursor
from orchestrator.answers.json.frames import Halt, Reading, answering, child_shape, salvaged, shown
from orchestrator.answers.json.shape import ANYTHING
from orchestrator.answers.result import MAX_DEPTH, Change, excerpt

_KINDS = {
    "{": ("object",), "[": ("array",), '"': ("string",), "'": ("string",),
    "t": ("boolean",), "f": ("boolean",), "T": ("boolean",), "F": ("boolean",), "n": ("null",), "N": ("null",),
}  # fmt: skip
"""First character of a value → the JSON types it may begin."""
_OPEN_KEY = re.compile(r"([\w.$-]{1,100}+)\s*+:\s*+")


def key_name(reader: Reader, character: str) -> str:
    """Returns the key that begins here; what was read of it is behind `reader.at`."""
    text, start = reader.text, reader.at
    closing = frames.CLOSING_QUOTE.get(character)
    if closing is None:
        return _bare_key(reader, start, character)
    end = frames.key_end(text, start + 1, closing)
    open_key = _OPEN_KEY.match(text, start + 1)
    if open_key is not None and end != open_key.end(1):
        return _unclosed_key(reader, open_key, start, end, closing)
    if end < 0:
        raise _unclosed(text, start)
    return reader.literal(start, end, character, closing)


def _unclosed(text: str, start: int) -> Halt:
    if frames.key_is_cut(text, start):
        return Halt("cut", len(text), "a key is not closed")
    return Halt("broken", start, "a key is not closed")


def _bare_key(reader: Reader, start: int, character: str) -> str:
    match = frames.BARE_KEY.match(reader.text, start)
    if match is None:
        raise Halt("broken", start, f"a key was expected, not `{excerpt(character)}`")
    reader.at = match.end()
    if reader.at >= len(reader.text):
        raise Halt("cut", len(reader.text), "a key is not closed")
    name = match.group()
    if reader.text[reader.at] in frames.CLOSING_QUOTE:
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
    """Goes past the colon behind a key, or past what stands for one."""
    character = reader.peek("a colon")
    at = reader.at
    if character == ":":
        reader.at += 1
    elif character in frames.COLONS:
        reader.at += 2 if reader.text.startswith("=>", at) else 1
        reader.changes.append(Change("foreign_colon", at, character, ":"))
    elif character in "\"'" and frames.character_after_blanks(reader.text, at + 1) == ":":
        reader.changes.append(Change("extra_quote", at, character, ""))
        reader.at = reader.text.index(":", at) + 1
    elif _value_follows(reader, character, name):
        reader.changes.append(Change("missing_colon", at, "", ":"))
    else:
        raise Halt("broken", at, "a colon was expected after a key")
    if (following := reader.peek("a value")) in (":", "=") and reader.text[start] in frames.CLOSING_QUOTE:
        reader.changes.append(Change("extra_colon", reader.at, following, ""))
        reader.at += 1


def _value_follows(reader: Reader, character: str, name: str) -> bool:
    """Whether a value stands right behind a key: of a kind that the contract wants there, or without one, any."""
    frame = reader.stack[-1]
    if reader.contract is ANYTHING:
        begins = character in "\"'“{[-tfnTFN" or character.isdigit()
        return begins and frames.BARE_KEY.fullmatch(name) is not None
    kinds = ("number", "integer") if character.isdigit() or character == "-" else _KINDS.get(character, ())
    return frame.wants(name) and any(frame.shape.child(name).allows(kind) for kind in kinds)


class Reader(Cursor):
    """A state machine over tokens: every step is one of value, key, after; open containers lie on `stack`."""

    def read(self) -> Reading:
        """Reads from `start`, which must hold `{` or `[`, or go on. Never raises; time is linear in what is read."""
        outcome, why, kept, gap = "whole", "", None, False
        if not self.stack:
            self.open(self.contract)
        try:
            while self.step is not None:
                self.step()
            kept = self.value
        except Halt as halt:
            outcome, why, self.at, gap = halt.outcome, halt.why, halt.at, halt.gap
            kept = salvaged(self.stack, self.contract) if outcome == "cut" else None
        return Reading(
            start=self.start,
            end=self.at,
            outcome=outcome,
            value=kept,
            why=why,
            changes=tuple(self.changes),
            duplicates=tuple(self.duplicates),
            keyed=self.keyed,
            fitting=outcome == "whole" or answering(self.stack, self.contract) >= 0,
            ends=tuple(self.guide.ends) if self.guided else (),
            shown=shown(self.stack) if outcome == "cut" else frozenset(),
            gap=gap,
            loose=self.loose and self.bare_keys > 0,
            reclosable=self.reclosable,
            deep=outcome == "broken" and len(self.stack) >= MAX_DEPTH,
        )

    def close_with(self, character: str) -> None:
        """Leaves the container(s) that `character`, which stands here, closes; one missing closer is mended."""
        frame = self.stack[-1]
        if frame.comma_at >= 0 and frame.closer != ")":
            self.changes.append(Change("trailing_comma", frame.comma_at, ",", ""))
        if frame.closer != character:
            # From the surest sign to the weakest: what follows tells an extra closer from a wrong or a missing one.
            if recovery.extra_closer(self, character):
                return self.skip_closer(character)
            if len(self.stack) == 1 and recovery.goes_on(self, self.at + 1):
                return self.skip_closer(character)
            if recovery.wrong_closer(self, character):
                self.changes.append(Change("wrong_closer", self.at, character, frame.closer))
                self.at += 1
                return self.close()
            if len(self.stack) < 2 or self.stack[-2].closer != character:
                raise Halt("broken", self.at, f"`{character}` does not close what is open")
            self.close_missing(self.at)
        if len(self.stack) == 1 and recovery.goes_on(self, self.at + 1):
            return self.skip_closer(character)
        self.at += 1
        return self.close()

    # -- steps

    def item(self) -> None:
        """A list member, or the end of the list."""
        character = self.peek()
        if character in "]})":
            self.close_with(character)
        elif character == ",":
            recovery.extra_comma(self)
        else:
            self.member(character)

    def member(self, character: str) -> None:
        """A value; the container it belongs to is on top of the stack."""
        frame, start = self.stack[-1], self.at
        if character in "{[" or (character == "(" and self.keyed and literals.opens_tuple(self)):
            frame.comma_at = -1
            self.open(child_shape(self.stack, self.contract))
            return
        if character in frames.CLOSING_QUOTE or character == "~":
            long_text = literals.long_text(self)
            value = self.string() if long_text is None else long_text
        else:
            value = literals.scalar(self)
        if not frame.is_object and isinstance(value, str) and recovery.is_gap_item(value, frame):
            raise recovery.gap(self, start)
        value = frames.decode_strings(value, child_shape(self.stack, self.contract), start, self.changes)
        frame.comma_at = -1
        frame.last_string_at = start if isinstance(value, str) else -1
        frame.put(value)
        self.step = self.after

    def key(self) -> None:
        """An object's key with its colon, or the end of the object."""
        character = self.peek()
        frame = self.stack[-1]
        if character in "}])":
            return self.close_with(character)
        if character == ",":
            return recovery.extra_comma(self)
        if character == "{" and frame.value and len(self.stack) > 1 and not self.stack[-2].is_object:
            return recovery.close_before_item(self)
        if character == "{" and recovery.reopens_list(self):
            return None
        if frames.ELLIPSIS.match(self.text, self.at):
            raise recovery.gap(self, self.at)
        start = self.at
        name = key_name(self, character)
        colon(self, name, start)
        self.keyed = True
        unclosed = recovery.unclosed_before(self, name)
        self.reclosable = self.reclosable or unclosed > 0
        for _ in range(unclosed if self.reclose else 0):
            self.close_missing(start)
        return self.begin_value(name, start)

    def keyed_value(self) -> None:
        """The value of a key."""
        character = self.peek()
        if frames.ELLIPSIS.match(self.text, self.at):
            raise recovery.placeholder(self)
        self.member(character)

    def after(self) -> None:
        """What follows a member: a comma, a closer, or something to mend."""
        before = self.at
        character = self.peek()
        frame = self.stack[-1]
        if character == "," or recovery.foreign_comma(self, character):
            frame.comma_at = self.at
            self.at += 1
            self.step = self.key if frame.is_object else self.item
        elif character in "}])":
            self.close_with(character)
        elif not self.guided and recovery.concatenated(self, before, character):
            recovery.concatenate(self, before)
        elif not (character == ":" and recovery.key_in_list(self)) and not recovery.stray(self, before):
            recovery.missing_comma(self, before, character)

    # -- tokens

    def peek(self, expected: str = "more") -> str:
        """Skips blanks and comments; the character that follows. Ends the reading when the text does."""
        text = self.text
        while (character := text[self.at : self.at + 1]) not in frames.PLAIN_STARTS:
            self.at = frames.blanks_end(text, self.at)
            character = text[self.at : self.at + 1]
            if not character:
                raise Halt("cut", self.at, f"the text ends where {expected} was expected")
            if character in frames.PLAIN_STARTS or not recovery.skip_foreign(self):
                break
        return character
