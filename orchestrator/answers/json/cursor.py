"""Where a reading stands: its place in the text, the containers that are open, what was changed so far."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from orchestrator.answers.json import code, frames
from orchestrator.answers.json.code import unescaped
from orchestrator.answers.json.frames import CLOSERS, Duplicate, Frame, Halt, child_shape
from orchestrator.answers.json.guide import Guide
from orchestrator.answers.json.shape import Shape
from orchestrator.answers.result import MAX_DEPTH, Change


class Cursor(ABC):
    """What the rules of `literals` and `recovery` work on; the reader adds the steps.

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

    @abstractmethod
    def item(self) -> None:
        """Step: a list member, or the end of the list."""

    @abstractmethod
    def key(self) -> None:
        """Step: an object's key with its colon, or the end of the object."""

    @abstractmethod
    def keyed_value(self) -> None:
        """Step: the value of a key."""

    @abstractmethod
    def after(self) -> None:
        """Step: what follows a member: a comma, a closer, or something to mend."""

    @abstractmethod
    def peek(self, expected: str = "more") -> str:
        """Skips blanks and comments; the character that follows. Ends the reading when the text does."""

    def may_end(self, at: int) -> bool:
        """Returns whether the text from `at` on can follow a string in the innermost container."""
        return self.guide.may_end(self.stack, at)

    def open(self, shape: Shape) -> None:
        """Enters the container whose opener stands here."""
        if len(self.stack) >= MAX_DEPTH:
            raise Halt("broken", self.at, f"containers nest deeper than {MAX_DEPTH} levels")
        opener = self.text[self.at]
        if opener == "(":
            self.changes.append(Change("tuple", self.at, "(", "["))
        self._enter(opener == "{", shape, self.at, CLOSERS[opener])
        self.at += 1

    def open_missing(self, start: int) -> None:
        """Enters an object of the list on top although its opener is missing before `start`."""
        self.changes.append(Change("missing_opener", start, "", "{"))
        self._enter(True, child_shape(self.stack, self.contract), start, "}")

    def reopen(self, at: int, value: Any) -> None:
        """Goes on with the latest member, a container that was closed at `at` by one closer too many."""
        is_object = isinstance(value, dict)
        self.changes.append(Change("extra_closer", at, "}" if is_object else "]", ""))
        self._enter(is_object, child_shape(self.stack, self.contract), at, "}" if is_object else "]")
        self.stack[-1].value = value

    def _enter(self, is_object: bool, shape: Shape, start: int, closer: str) -> None:
        value: Any = {} if is_object else []
        self.stack.append(Frame(is_object=is_object, value=value, shape=shape, start=start, closer=closer))
        self.step = self.key if is_object else self.item

    def close(self) -> None:
        """Leaves the innermost container."""
        done = self.stack.pop()
        # `("a")` is a value in brackets, `("a",)` a tuple of one.
        if done.closer == ")" and len(done.value) == 1 and done.comma_at < 0 and self.stack:
            done.value = done.value[0]  # brackets round a single value are no list
        if not self.stack:
            self.value, self.step = done.value, None
            return
        self.stack[-1].put(done.value)
        self.stack[-1].last_string_at = -1
        self.step = self.after

    def skip_closer(self, character: str) -> None:
        """Passes over a closer that is one too many."""
        self.changes.append(Change("extra_closer", self.at, character, ""))
        self.at += 1
        self.step = self.after

    def close_missing(self, at: int) -> None:
        """Leaves the innermost container although its closer is missing before `at`."""
        self.changes.append(Change("missing_closer", at, "", self.stack[-1].closer))
        self.stack[-1].comma_at = -1
        self.close()

    def begin_value(self, name: str, start: int) -> None:
        """Notes the key and goes on to its value."""
        frame = self.stack[-1]
        if name in frame.value:
            self.duplicates.append(Duplicate(name, start))
        frame.comma_at = -1
        frame.key, frame.pending = name, True
        # How deep this object's keys are indented tells later where a string with quotes ends.
        line = self.text.rfind("\n", max(0, start - 80), start)
        if line >= 0 and self.text[line + 1 : start].isspace():
            frame.indent = self.text[line + 1 : start]
        self.step = self.keyed_value

    # -- strings

    def string(self) -> str:
        """Returns the string in quotes that begins here."""
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
        """Returns the string between the delimiters at `start` and `end`."""
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
