"""Reads one object or list leniently, without recursion, and lists every change that was needed.

Keys and their colons, as models write them: with quotes, without, with one of the two missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from orchestrator.answers.json import code, frames, literals, recovery
from orchestrator.answers.json.code import unescaped
from orchestrator.answers.json.frames import (
    CLOSERS,
    Duplicate,
    Frame,
    Halt,
    Reading,
    answering,
    child_shape,
    salvaged,
    shown,
)
from orchestrator.answers.json.guide import Guide
from orchestrator.answers.json.shape import ANYTHING, Shape
from orchestrator.answers.result import MAX_DEPTH, Change, excerpt

_KINDS = {
    "{": ("object",), "[": ("array",), '"': ("string",), "'": ("string",),
    "t": ("boolean",), "f": ("boolean",), "T": ("boolean",), "F": ("boolean",), "n": ("null",), "N": ("null",),
}  # fmt: skip
"""First character of a value → the JSON types it may begin."""
_OPEN_KEY = re.compile(r"([\w.$-]{1,100}+)\s*+:\s*+")


def key_name(reader: Reader, character: str) -> str:
    """The key that begins here; what was read of it is behind `reader.at`."""
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
    """Go past the colon behind a key, or past what stands for one."""
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


class Reader:
    """A state machine over tokens: every step is one of value, key, after; open containers lie on `stack`.

    Without `banned` a string ends at its first unescaped delimiter; with it, where the contract allows an end and
    not at the offsets it holds. With `reclose` a key that only an outer object awaits closes what lies between.
    """

    def __init__(
        self, text: str, start: int, contract: Shape, banned: frozenset[int] | None = None, reclose: bool = False
    ) -> None:
        self.text, self.start, self.at, self.contract = text, start, start, contract
        self.guide, self.guided, self.reclose = Guide(text, banned or frozenset()), banned is not None, reclose
        self.stack: list[Frame] = []
        self.changes: list[Change] = []
        self.duplicates: list[Duplicate] = []
        self.keyed = self.loose = False
        self.bare_keys = 0
        """Keys that had no quotes."""
        self.reclosable = False
        """Whether a key came that only an outer object awaits: another reading would close what lies between."""
        self.unclosed: set[str] = set()
        """Long delimiters that nothing closes any more."""
        self.value: Any = None
        self.step: Callable[[], None] | None = None

    def read(self) -> Reading:
        """Read from `start`, which must hold `{` or `[`, or go on. Never raises; time is linear in what is read."""
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

    def may_end(self, at: int) -> bool:
        """Whether the text from `at` on can follow a string in the innermost container."""
        return self.guide.may_end(self.stack, at)

    def may_end_member(self, at: int) -> bool:
        """Whether a member or the closers can follow a comma that ends before `at`."""
        return self.guide.may_follow_comma(self.stack, at)

    # -- containers

    def open(self, shape: Shape) -> None:
        """Enter the container whose opener stands here."""
        if len(self.stack) >= MAX_DEPTH:
            raise Halt("broken", self.at, f"containers nest deeper than {MAX_DEPTH} levels")
        opener = self.text[self.at]
        if opener == "(":
            self.changes.append(Change("tuple", self.at, "(", "["))
        self._enter(opener == "{", shape, self.at, CLOSERS[opener])
        self.at += 1

    def open_missing(self, start: int) -> None:
        """Enter an object of the list on top although its opener is missing before `start`."""
        self.changes.append(Change("missing_opener", start, "", "{"))
        self._enter(True, child_shape(self.stack, self.contract), start, "}")

    def reopen(self, at: int, value: Any) -> None:
        """Go on with the latest member, a container that was closed at `at` by one closer too many."""
        is_object = isinstance(value, dict)
        self.changes.append(Change("extra_closer", at, "}" if is_object else "]", ""))
        self._enter(is_object, child_shape(self.stack, self.contract), at, "}" if is_object else "]")
        self.stack[-1].value = value

    def _enter(self, is_object: bool, shape: Shape, start: int, closer: str) -> None:
        value: Any = {} if is_object else []
        self.stack.append(Frame(is_object=is_object, value=value, shape=shape, start=start, closer=closer))
        self.step = self.key if is_object else self.item

    def close(self) -> None:
        """Leave the innermost container."""
        done = self.stack.pop()
        if done.closer == ")" and len(done.value) == 1 and done.comma_at < 0 and self.stack:
            done.value = done.value[0]  # brackets round a single value are no list
        if not self.stack:
            self.value, self.step = done.value, None
            return
        self.stack[-1].put(done.value)
        self.stack[-1].last_string_at = -1
        self.step = self.after

    def close_with(self, character: str) -> None:
        """Leave the container(s) that `character`, which stands here, closes; one missing closer is mended."""
        frame = self.stack[-1]
        if frame.comma_at >= 0 and frame.closer != ")":
            self.changes.append(Change("trailing_comma", frame.comma_at, ",", ""))
        if frame.closer != character:
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

    def skip_closer(self, character: str) -> None:
        """Pass over a closer that is one too many."""
        self.changes.append(Change("extra_closer", self.at, character, ""))
        self.at += 1
        self.step = self.after

    def close_missing(self, at: int) -> None:
        """Leave the innermost container although its closer is missing before `at`."""
        self.changes.append(Change("missing_closer", at, "", self.stack[-1].closer))
        self.stack[-1].comma_at = -1
        self.close()

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
        value = self.text_value() if character in frames.CLOSING_QUOTE or character == "~" else literals.scalar(self)
        if not frame.is_object and isinstance(value, str) and recovery.is_gap_item(value, frame):
            raise recovery.gap(self, start)
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

    def begin_value(self, name: str, start: int) -> None:
        """Note the key and go on to its value."""
        frame = self.stack[-1]
        if name in frame.value:
            self.duplicates.append(Duplicate(name, start))
        frame.comma_at = -1
        frame.key, frame.pending = name, True
        line = self.text.rfind("\n", max(0, start - 80), start)
        if line >= 0 and self.text[line + 1 : start].isspace():
            frame.indent = self.text[line + 1 : start]
        self.step = self.keyed_value

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
        """Skip blanks and comments; the character that follows. Ends the reading when the text does."""
        text = self.text
        while (character := text[self.at : self.at + 1]) not in frames.PLAIN_STARTS:
            self.at = frames.blanks_end(text, self.at)
            character = text[self.at : self.at + 1]
            if not character:
                raise Halt("cut", self.at, f"the text ends where {expected} was expected")
            if character in frames.PLAIN_STARTS or not recovery.skip_foreign(self):
                break
        return character

    def text_value(self) -> str:
        """The string that begins here, in whatever delimiters."""
        found = literals.long_text(self)
        return self.string() if found is None else found

    def string(self) -> str:
        """The string in quotes that begins here."""
        opening, start = self.text[self.at], self.at
        closing = frames.CLOSING_QUOTE.get(opening)
        if closing is None:
            raise Halt("broken", start, "a value was expected")
        end = after = -1
        if self.guided:
            end, after = self.guide.string_end(self.stack, start, closing, self.changes)
            if end < -1:
                raise Halt("broken", start, "it cannot be decided where this string ends")
        else:
            end = frames.string_end(self.text, start + 1, closing)
            after = end + 1
        if end < 0:
            raise Halt("cut", len(self.text), "a string is not closed")
        value = self.literal(start, end, opening, closing)
        self.at = after
        return value

    def literal(self, start: int, end: int, opening: str, closing: str) -> str:
        """The string between the delimiters at `start` and `end`."""
        self.at = end + 1
        raw = self.text[start + 1 : end]
        if opening != '"':
            self.changes.append(Change("quotes", start, f"{opening}{raw}{closing}", "a string in double quotes"))
        frame = self.stack[-1]
        is_code = frame.pending and frame.key in code.PATH_OF
        if is_code and "\\" in raw and (opening == "`" or ("\n" in raw and code.LINE_ESCAPES.search(raw))):
            path = code.path_of(frame.key, frame.value, self.text, end)
            return code.settled(raw, start + 1, closing, path, False, self.changes)
        return unescaped(raw, start + 1, closing, self.changes, code=is_code)
