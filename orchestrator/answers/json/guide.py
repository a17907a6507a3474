"""Where a string with unescaped quotes ends: only where what follows is what the contract allows there."""

import re
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from orchestrator.answers.json import frames
from orchestrator.answers.json.frames import Frame
from orchestrator.answers.json.shape import ANYTHING, RESUMED, may_resume
from orchestrator.answers.result import Change

# A key with or without quotes, also typographic ones, and its colon.
_KEY = re.compile(r"""(["'“«「]?)([^"'“”«»「」\\\n:,{}\[\]]{1,120})(["'”»」]?)\s*+[:：]""")
# The next member's key inside a string: its end quote was lost.
_SWALLOWED = re.compile(r"""(?:,\s*+["']|["'][\s}\]]*+,\s*+)([\w.$-]{1,100}+)["']?\s*+:""")
_GARBAGE = re.compile(r"""["'}\]`~\s]{0,12}""")
"""Closers repeated after the answer, too few to be a part of it."""
# Blanks, zero-width characters and comments between tokens.
_BETWEEN = re.compile(r"(?:[ \t\r\n\u00a0\u200b-\u200d\u2060\ufeff]++(?://[^\n]{0,400}(?=\n)|/\*[^*]{0,400}\*/)?)*+")
# The next object of a list inside a string.
_NEXT_ITEM = re.compile(r"""["'][\s}\]]{0,40},\s*+\{\s*+["']?([\w.$-]{1,100}+)["']?\s*+:""")
_REST_OF_LINE = re.compile(r"[^\n{\[]{0,600}+")
_WORD = re.compile(r"\w")
_CLOSED = re.compile(r"""["']\s{0,20}+[}\]]""")
_FRESH = re.compile(r"""\{\s*+["']?([\w.$-]{1,100}+)["']?\s*+:""")
_PIECES = re.compile(r"""["'][\w.$ -]{1,60}["']\s*+:|["']\s*+[\]}]\s*+,\s*+["'\[{]""")
"""What only JSON around a string holds, as far as anyone without a contract can tell."""
_LOST_BEFORE = re.compile(r"(,\s*|\s*\n\s*)$")
_LOST_KEY = re.compile(r"([\w.$-]{1,100}+)[\"'”]\s*+:")
_RUNS_ON = re.compile(r"(?<=\{\})[\w\"']|(?<=\[\])[\w\"']")
"""Text right behind an empty container: it was not written as one."""
_CURLY = re.compile("[”“„＂]")
MAX_CURLY = 64
"""Typographic quotes of one string that are tried as its end."""
UNDECIDED = -2
"""Replaces an offset when the end of a string cannot be determined."""


class End(NamedTuple):
    """Where a string ends and where the text goes on; the same when its closing delimiter is missing."""

    at: int
    after: int


def ended_inside(text: str, end: int) -> bool:
    """Whether the closer before `end` closed nothing: it stood inside a string that goes on, or in running text."""
    return _goes_on(text, end) or _RUNS_ON.match(text, end) is not None


def _goes_on(text: str, end: int) -> bool:
    """Returns whether behind a closer the rest of the line has words, and then a quote and a closer."""
    match = _REST_OF_LINE.match(text, end)
    word = _WORD.search(text, end, match.end()) if match else None
    return word is not None and match is not None and _CLOSED.search(text, word.end(), match.end()) is not None


class Guide:
    """Decides string ends for one reading. `banned` are ends that led nowhere in an earlier reading."""

    def __init__(self, text: str, banned: frozenset[int] = frozenset()) -> None:
        self.text, self.banned = text, banned
        self.ends: list[int] = []

    def string_end(self, stack: list[Frame], start: int, closing: str, changes: list[Change]) -> End:
        """Returns the end of the string that starts at `start`; at -1: the text ends first; at UNDECIDED: refuse.

        Delimiters inside the string are listed in `changes`.
        """
        inner: list[int] = []
        end = frames.string_end(self.text, start + 1, closing)
        curly = self._curly(stack, start + 1, end) if closing == '"' else -1
        if curly >= 0:
            changes.append(Change("quotes", curly, self.text[curly], closing))
            self.ends.append(curly)
            return End(curly, curly + 1)
        while end >= 0 and (end in self.banned or not self._ends(stack, start, end, bool(inner))):
            lost = self._lost(stack, start, end) if not inner and end not in self.banned else None
            if lost is not None:
                self.ends.append(end)
                return self._lost_end(lost, closing, changes)
            # No end for the contract: the delimiter belongs to the text and should have been escaped.
            inner.append(end)
            end = frames.string_end(self.text, end + 1, closing)
        if end >= 0:
            self.ends.append(end)
        if not inner:
            return End(end, end + 1)
        if end >= 0 and self._swallows(stack, start + 1, end):
            return End(UNDECIDED, start)
        changes.extend(Change("unescaped_quote", at, closing, f"\\{closing}") for at in inner)
        return End(end, end + 1)

    def _curly(self, stack: list[Frame], start: int, end: int) -> int:
        """Returns where a typographic quote closes a string before its first straight one at `end`, else -1."""
        stop = len(self.text) if end < 0 else end
        for found in islice(_CURLY.finditer(self.text, start, stop), MAX_CURLY):
            at = found.start()
            opened = self.text.count("“", start, at) > self.text.count("”", start, at)
            if not opened and at not in self.banned and self.may_end(stack, at + 1):
                return at
        return -1

    def _lost_end(self, at: int, closing: str, changes: list[Change]) -> End:
        """The end of a string whose closing delimiter is missing at `at`, or was taken for an escaped one there."""
        if self.text.startswith("\\" + closing, at - 2):
            return End(at - 1, at)
        changes.append(Change("missing_quote", at, "", closing))
        return End(at, at)

    def _lost(self, stack: list[Frame], start: int, quote: int) -> int | None:
        """Returns the end of the string from `start` if its delimiter is missing and `quote` opens the next key.

        Only when the contract awaits that key here, or (without one) when the key begins a line.
        """
        frame = stack[-1]
        before = _LOST_BEFORE.search(self.text, max(start + 1, quote - 80), quote)
        match = _LOST_KEY.match(self.text, quote + 1)
        if before is None or match is None or not frame.is_object or self._resumed(start, quote):
            return None
        own_line = "\n" in before.group() and not frame.shape.props and match[1] not in (*frame.value, frame.key)
        return before.start() if frame.wants(match[1]) or own_line else None

    def _ends(self, stack: list[Frame], start: int, end: int, later: bool) -> bool:
        """Returns whether the string that starts at `start` ends at `end`.

        At its first delimiter even a key that comes twice may follow, or a colon that shows it to be a key.
        """
        if self.may_end(stack, end + 1):
            return True
        frame, place = stack[-1], self.skip(end + 1)
        if not later and not frame.is_object and self.text.startswith(":", place):
            name = self.text[start + 1 : end]
            awaited = len(stack) > 1 and stack[-2].wants(name)
            return awaited or (frame.shape.items is not None and name in frame.shape.items.props)
        if later or not frame.is_object or not self.text.startswith(",", place):
            return False
        match = _KEY.match(self.text, self.skip(place + 1))
        return match is not None and match[2].strip() in frame.shape.props

    def may_end(self, stack: list[Frame], at: int) -> bool:
        """Returns whether the text from `at` on (right after a delimiter) can follow a string at the top of `stack`."""
        place = self.skip(at)
        character = self.text[place : place + 1]
        if character in frames.COMMAS and character:
            return self.may_follow_comma(stack, place + 1, "string")
        if character in ("}", "]", ")") and character:
            return self._closers(stack, place)
        # Without a comma a next key must stand on its own line, or its quote right behind ours.
        apart = "\n" in self.text[at:place] or (place == at and character in ('"', "'"))
        return apart and stack[-1].is_object and self._next_key(stack[-1], place)

    def skip(self, at: int) -> int:
        """Returns the offset of the first character at or after `at` that is neither blank nor comment."""
        match = _BETWEEN.match(self.text, at)
        return match.end() if match else at

    def may_follow_comma(self, stack: list[Frame], at: int, kind: str = "any") -> bool:
        """Returns whether a member (or, after a trailing comma, the closers) follows the comma before `at`."""
        frame = stack[-1]
        place = self.skip(at)
        if frames.ELLIPSIS.match(self.text, place):
            return True
        if self.text.startswith(frame.closer, place):
            return self._closers(stack, place)
        if frame.is_object:
            return self._next_key(frame, place)
        return self._next_item(frame, place, kind)

    def _next_item(self, frame: Frame, place: int, kind: str) -> bool:
        """Returns whether an item that this list may hold begins at `place`."""
        items = frame.shape.items
        character = self.text[place : place + 1]
        if character == "{":
            return items is None or items.allows("object")
        if character in frames.CLOSING_QUOTE and character:
            return items is None or items.allows("string")
        return kind != "string" and character == "["

    def _next_key(self, frame: Frame, place: int) -> bool:
        """Returns whether a key that this object may still get stands at `place`."""
        match = _KEY.match(self.text, place)
        if match is None or bool(match[1]) != bool(match[3]):
            return False
        name = match[2].strip()
        # A key that is there already stands inside the string, as in a sample of JSON.
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
        """Returns whether exactly the closers of what is open stand at `place`, up to a next member or the end."""
        for level in range(len(stack) - 1, -1, -1):
            if not self.text.startswith(stack[level].closer, place):
                return False
            after = place + 1
            place = self.skip(after)
            if level == 0:
                return self._is_over(stack[0], place)
            character = self.text[place : place + 1]
            if character == ",":
                return self.may_follow_comma(stack[:level], place + 1, "container")
            if character not in ("}", "]", ")"):
                return "\n" in self.text[after:place] and self._new_line_member(stack[level - 1], place)
        return False

    def _is_over(self, root: Frame, place: int) -> bool:
        """Returns whether the answer can end before `place`: nothing it must have is missing, and no code goes on."""
        needed = root.shape.required if root.is_object else ()
        have = {*root.value, root.key} if root.is_object else set()
        complete = all(any(name in have for name in names) for names in needed)
        goes_on = self.text[place : place + 1] in tuple("\"',;:)+") or _goes_on(self.text, place)
        return complete and (not goes_on or _GARBAGE.fullmatch(self.text, place) is not None)

    def _new_line_member(self, frame: Frame, place: int) -> bool:
        """Returns whether a member on a new line follows, whose comma is missing."""
        return self._next_key(frame, place) if frame.is_object else self.text.startswith("{", place)

    @cached_property
    def _may_resume(self) -> bool:
        return may_resume(self.text)

    def _resumed(self, start: int, end: int) -> bool:
        return self._may_resume and RESUMED.search(self.text, start, end) is not None

    def _swallows(self, stack: list[Frame], start: int, end: int) -> bool:
        """Returns whether the string contains an apparent member that an open object still lacks: ambiguous."""
        text = self.text
        if self._resumed(start, end):
            return True
        listed = not stack[-1].is_object and "\n" in text[start:end]
        if stack[0].shape is ANYTHING and (listed or _PIECES.search(text, start, end)):
            return True
        if any(frame.wants(match[1]) for match in _SWALLOWED.finditer(text, start, end) for frame in stack):
            return True
        items = [frame.shape.items.props for frame in stack if not frame.is_object and frame.shape.items]
        begun = (match[1] for match in _NEXT_ITEM.finditer(text, start, end)) if items else ()
        if any(name in props for name in begun for props in items):
            return True
        fresh = _FRESH.finditer(text, start, end) if stack[0].is_object else ()
        return any(match[1] in stack[0].shape.required_names for match in fresh)
