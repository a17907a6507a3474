"""Where a string with unescaped quotes ends: only where what follows is what the contract allows there."""

import re

from orchestrator.answers import tokens
from orchestrator.answers.frames import Frame
from orchestrator.answers.model import Change

_KEY = re.compile(r"""(["'“]?)([^"'“”\\\n:,{}\[\]]{1,120})(["'”]?)\s*+:""")
_SWALLOWED = re.compile(r"""(?:,\s*+["']|["'][\s}\]]*+,\s*+)([\w.$-]{1,100}+)["']?\s*+:""")
_GARBAGE = re.compile(r"""["'}\]`~\s]{0,12}""")
"""Closers repeated after the answer, too few to be a part of it."""
_BETWEEN = re.compile(r"(?:[ \t\r\n\u00a0\u200b-\u200d\u2060\ufeff]++(?://[^\n]{0,400}(?=\n)|/\*[^*]{0,400}\*/)?)*+")
_NEXT_ITEM = re.compile(r"""["']\s*+,\s*+\{\s*+["']?([\w.$-]{1,100}+)["']?\s*+:""")
_FRESH = re.compile(r"""\{\s*+["']?([\w.$-]{1,100}+)["']?\s*+:""")
UNDECIDED = -2
"""Instead of an offset: nobody can know where this string ends."""


class Guide:
    """Decides string ends for one reading. `banned` are ends that led nowhere in an earlier reading."""

    def __init__(self, text: str, banned: frozenset[int] = frozenset()) -> None:
        self.text, self.banned = text, banned
        self.ends: list[int] = []

    def string_end(self, stack: list[Frame], start: int, closing: str, changes: list[Change]) -> int:
        """Offset of the delimiter that ends the string begun at `start`; -1: the text ends first; UNDECIDED: refuse.

        Delimiters inside the string are listed in `changes`.
        """
        inner: list[int] = []
        end = tokens.string_end(self.text, start + 1, closing)
        while end >= 0 and (end in self.banned or not self._ends(stack, start, end, bool(inner))):
            inner.append(end)
            end = tokens.string_end(self.text, end + 1, closing)
        if end >= 0:
            self.ends.append(end)
        if not inner:
            return end
        if end >= 0 and self._swallows(stack, start + 1, end):
            return UNDECIDED
        changes.extend(Change("unescaped_quote", at, closing, f"\\{closing}") for at in inner)
        return end

    def _ends(self, stack: list[Frame], start: int, end: int, later: bool) -> bool:
        """Whether the string begun at `start` ends at `end`.

        At its first delimiter even a key that comes twice may follow, or a colon that shows it to be a key.
        """
        if self.may_end(stack, end + 1):
            return True
        place = self._skip(end + 1)
        if not later and not stack[-1].is_object and len(stack) > 1 and self.text.startswith(":", place):
            return stack[-2].wants(self.text[start + 1 : end])
        if later or not stack[-1].is_object or not self.text.startswith(",", place):
            return False
        match = _KEY.match(self.text, self._skip(place + 1))
        return match is not None and match[2].strip() in stack[-1].shape.props

    def may_end(self, stack: list[Frame], at: int) -> bool:
        """Whether the text from `at` on (right after a delimiter) can follow a string at the top of `stack`."""
        place = self._skip(at)
        character = self.text[place : place + 1]
        if character == ",":
            return self._member(stack, place + 1, "string")
        if character in ("}", "]"):
            return self._closers(stack, place)
        return "\n" in self.text[at:place] and stack[-1].is_object and self._next_key(stack[-1], place)

    def _skip(self, at: int) -> int:
        match = _BETWEEN.match(self.text, at)
        return match.end() if match else at

    def _member(self, stack: list[Frame], at: int, kind: str) -> bool:
        """Whether a member (or, after a trailing comma, the closers) follows the comma before `at`."""
        frame = stack[-1]
        place = self._skip(at)
        if tokens.ELLIPSIS.match(self.text, place):
            return True
        if self.text.startswith(frame.closer, place):
            return self._closers(stack, place)
        if frame.is_object:
            return self._next_key(frame, place)
        items = frame.shape.items
        character = self.text[place : place + 1]
        if character == "{":
            return items is None or items.allows("object")
        if character in tokens.CLOSING_QUOTE:
            return items is None or items.allows("string")
        return kind != "string" and character == "["

    def _next_key(self, frame: Frame, place: int) -> bool:
        """Whether a key that this object may still get stands at `place`."""
        match = _KEY.match(self.text, place)
        if match is None or bool(match[1]) != bool(match[3]):
            return False
        name = match[2].strip()
        if name in frame.value or name == frame.key:
            return False
        if name in frame.shape.props:
            return True
        # In a free map or a wrapper the contract says nothing of the keys: any quoted one may follow.
        free = not any(known in frame.shape.props for known in (*frame.value, frame.key))
        if free and match[1]:
            return True
        line = self.text.rfind("\n", max(0, place - 200), place)
        return line >= 0 and (free or bool(match[1])) and self.text[line + 1 : place] == frame.indent

    def _closers(self, stack: list[Frame], place: int) -> bool:
        """Whether exactly the closers of what is open stand at `place`, up to a next member or the end."""
        for level in range(len(stack) - 1, -1, -1):
            if not self.text.startswith(stack[level].closer, place):
                return False
            after = place + 1
            place = self._skip(after)
            if level == 0:
                return self._is_over(stack[0], place)
            character = self.text[place : place + 1]
            if character == ",":
                return self._member(stack[:level], place + 1, "container")
            if character not in ("}", "]"):
                return "\n" in self.text[after:place] and self._new_line_member(stack[level - 1], place)
        return False

    def _is_over(self, root: Frame, place: int) -> bool:
        """Whether the answer can end before `place`: nothing it must have is missing, and no code goes on."""
        needed = root.shape.required if root.is_object else ()
        have = {*root.value, root.key}
        complete = all(any(name in have for name in names) for names in needed)
        goes_on = self.text[place : place + 1] in tuple("\"',;:)+")
        return complete and (not goes_on or _GARBAGE.fullmatch(self.text, place) is not None)

    def _new_line_member(self, frame: Frame, place: int) -> bool:
        """A member on a new line whose comma is missing."""
        return self._next_key(frame, place) if frame.is_object else self.text.startswith("{", place)

    def _swallows(self, stack: list[Frame], start: int, end: int) -> bool:
        """Whether the string holds what looks like a member that an open object still awaits: then nobody knows."""
        for match in _SWALLOWED.finditer(self.text, start, end):
            if any(frame.wants(match[1]) for frame in stack):
                return True
        items = [frame.shape.items.props for frame in stack if not frame.is_object and frame.shape.items]
        begun = (match[1] for match in _NEXT_ITEM.finditer(self.text, start, end)) if items else ()
        if any(name in props for name in begun for props in items):
            return True
        fresh = _FRESH.finditer(self.text, start, end) if stack[0].is_object else ()
        return any(match[1] in stack[0].shape.required_names for match in fresh)
