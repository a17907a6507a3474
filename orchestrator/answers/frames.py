"""The open containers of a reading, what they may hold next, and what of them survives a cut."""

import re
from dataclasses import dataclass
from typing import Any

from orchestrator.answers.model import Change
from orchestrator.answers.shape import ANYTHING, Shape


class Halt(Exception):
    """Reading ends here (control flow, never leaves the reader): `outcome` and `gap` as in Reading."""

    def __init__(self, outcome: str, at: int, why: str, gap: bool = False) -> None:
        super().__init__(why)
        self.outcome, self.at, self.why, self.gap = outcome, at, why, gap


CLOSERS = {"{": "}", "[": "]", "(": ")"}
"""Opener of a container → its closer; a tuple is a list in other brackets."""
GOES_ON = re.compile(r"""\s*+,\s*+["'“]([^"'”\\\n]{1,200})["'”]\s*+:""")
"""A comma and a further key."""
WRAPPER_DEPTH = 4
"""Containers that may stand around the answer itself."""


@dataclass(slots=True)
class Frame:
    """One container that is being read."""

    is_object: bool
    value: Any
    """The dict or list read so far; only whole members are in it."""
    shape: Shape
    start: int
    closer: str
    """The character that closes this container."""
    key: str | None = None
    """The latest key."""
    pending: bool = False
    """Whether the value of the latest key has not come yet."""
    indent: str | None = None
    """White space between the line end and the latest key that began a line."""
    comma_at: int = -1
    """Offset of the comma just read, -1 when the latest token was no comma."""
    last_string_at: int = -1
    """Offset of the latest member when it was a string, else -1."""

    def state(self) -> tuple[Any, ...]:
        """All of it, as a new frame takes it."""
        return (self.is_object, self.value, self.shape, self.start, self.closer, self.key, self.pending, self.indent,
                self.comma_at, self.last_string_at)  # fmt: skip

    def put(self, value: Any) -> None:
        """Add a whole member."""
        if self.is_object:
            self.value[self.key] = value
            self.pending = False
        else:
            self.value.append(value)

    def wants(self, key: str) -> bool:
        """Whether the contract names `key` here and it has not come yet."""
        return self.is_object and key in self.shape.props and key not in self.value and key != self.key


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that came twice in one object."""

    key: str
    offset: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader made of the text from `start` on."""

    start: int
    end: int
    """Offset after the last character that was used."""
    outcome: str
    """whole | cut (the text or the list has a gap) | template (a placeholder, no answer) | broken."""
    value: Any = None
    """The whole value, or what of a cut one is whole."""
    why: str = ""
    """For cut and broken: what was expected at `end`."""
    changes: tuple[Change, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    keyed: bool = False
    """Whether a quoted key and its colon were seen: the text was meant as JSON."""
    fitting: bool = False
    """Whether a key that the contract names was seen (always true without a contract)."""
    ends: tuple[int, ...] = ()
    """Where strings were ended by the contract's decision."""
    shown: frozenset[str] = frozenset()
    """Keys of the outermost object that were seen, when it is cut."""
    gap: bool = False
    """Cut by an ellipsis: more of the text belongs to it."""
    loose: bool = False
    """Read with strings that have no quotes: rather prose than an answer when there is something better."""
    reclosable: bool = False
    """A key was seen that only an outer object awaits."""
    deep: bool = False
    """Broken because containers nest too deep."""


def child_shape(stack: list[Frame], contract: Shape) -> Shape:
    """Shape of the member that begins now; inside what can only be a wrapper, the contract itself."""
    frame = stack[-1]
    if not frame.is_object:
        if frame.shape is contract and "array" not in contract.kinds and contract is not ANYTHING:
            return contract
        return frame.shape.items or ANYTHING
    key = frame.key or ""
    may_wrap = frame.shape is contract and contract is not ANYTHING and len(stack) <= WRAPPER_DEPTH
    if may_wrap and key not in contract.props and not any(name in contract.props for name in frame.value):
        return contract
    return frame.shape.child(key)


def answering(stack: list[Frame], contract: Shape) -> int:
    """Index of the open container that is the answer itself, -1 when none shows a key of the contract."""
    if not stack or contract is ANYTHING:
        return 0 if stack else -1
    for index, frame in enumerate(stack):
        if frame.shape is not contract:
            break
        if frame.is_object and any(key in contract.props for key in (*frame.value, frame.key)):
            return index
        if not frame.is_object and "array" in contract.kinds:
            return index
    return -1


def shown(stack: list[Frame]) -> frozenset[str]:
    """The keys of the outermost object, the one whose value is cut included."""
    outermost = stack[0]
    return frozenset({*outermost.value, outermost.key or ""}) if outermost.is_object else frozenset()


def salvaged(stack: list[Frame], contract: Shape) -> Any:
    """Whole outermost fields and whole items of the contract's open list of objects; None when there is no answer."""
    index = answering(stack, contract)
    if index < 0:
        return None
    frame = stack[index]
    kept = frame.value.copy()
    if frame.is_object and frame.pending:
        kept.pop(frame.key, None)
    inner = stack[index + 1] if index + 1 < len(stack) else None
    if frame.is_object and inner is not None and not inner.is_object and inner.value and inner.shape.lists_objects:
        kept[frame.key] = list(inner.value)
    return kept
