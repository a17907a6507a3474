"""The open containers of a reading, what they may hold next, and what of them survives a cut.

The smallest pieces of sloppy JSON: blanks and comments, quotes, keys, numbers, words.

The strict parsers: one for a whole document, one for what begins somewhere; both see keys that come twice.
"""

import json
import re
from dataclasses import dataclass
from json.scanner import make_scanner
from typing import Any

import jiter

from orchestrator.answers.json.shape import ANYTHING, Shape
from orchestrator.answers.result import Change, excerpt


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

    def put(self, value: Any) -> None:
        """Adds a whole member."""
        if self.is_object:
            self.value[self.key] = value
            self.pending = False
        else:
            self.value.append(value)

    def wants(self, key: str) -> bool:
        """Returns whether the contract names `key` here and it has not come yet."""
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
    # `{"result": {…}}`: below a key that the contract does not know, the answer itself may stand.
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
    """Returns the keys of the outermost object, the one whose value is cut included."""
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


CLOSING_QUOTE = {
    '"': '"', "'": "'", "`": "`", "“": "”", "„": "”", "”": "”", "‘": "’", "«": "»", "「": "」", "＂": "＂",
}  # fmt: skip
"""Opening delimiter of a string → the one that closes it."""
MAX_KEY = 200
"""Characters a key may have when the text around it is not valid JSON."""

BLANKS = re.compile(r"[ \t\r\n]*+")
UNSEEN = re.compile(r"[\u0085\u00a0\u00ad\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\x0b\x0c]++")
"""Characters that look like nothing and that JSON does not allow between its tokens."""
ESCAPED_BLANK = re.compile(r"(?:\\r\\n|\\[nrt])++(?=[\s\"'{}\[\],:\\]|\Z)")
"""Line ends and tabs written as escapes where only blanks may stand."""
# Possessive: hostile text must not make it backtrack.
COMMENT = re.compile(r"(?://|\#)[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|<!--(?:[^-]|-(?!->))*+(?:-->)?")
PLAIN_STARTS = frozenset("\"'{}[],:-0123456789tfnTFN")
"""Characters that are no blank and begin no comment: what most tokens begin with."""
COLONS = {":": ":", "：": ":", "=": "=", "\u2236": ":"}
"""What may stand for a colon → its ASCII form."""
COMMAS = frozenset(",，、")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?")
BARE_KEY = re.compile(r"[\w$@][\w$.-]{0,199}+")
ELLIPSIS = re.compile(r"\.{2,}|…")
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}

_ENDS = {q: re.compile(rf"[^{q}\\]*+(?:\\.[^{q}\\]*+)*+", re.DOTALL) for q in set(CLOSING_QUOTE.values())}
_KEYS = {q: re.compile(rf"(?:[^{q}\\\n]|\\.){{0,{MAX_KEY}}}+{q}") for q in set(CLOSING_QUOTE.values())}


def string_end(text: str, start: int, closing: str) -> int:
    """Returns the offset of the first unescaped `closing` at or after `start`, -1 when the text ends first."""
    match = _ENDS[closing].match(text, start)
    end = match.end() if match else start
    return end if end < len(text) and text[end] == closing else -1


def key_end(text: str, start: int, closing: str) -> int:
    """Like string_end for a key: -1 also when it holds a line end or is over-long."""
    match = _KEYS[closing].match(text, start)
    return match.end() - 1 if match else -1


def key_is_cut(text: str, start: int) -> bool:
    """Returns whether an unclosed key at `start` is one that the end of the text cut off."""
    return len(text) - start <= MAX_KEY and "\n" not in text[start:]


def character_after_blanks(text: str, at: int) -> str:
    """Returns the first character at or after `at` that is no JSON white space, empty at the end."""
    place = blanks_end(text, at)
    return text[place : place + 1]


def blanks_end(text: str, at: int) -> int:
    """Returns the offset of the first character at or after `at` that is no JSON white space."""
    match = BLANKS.match(text, at)
    return match.end() if match else at


def document(text: str) -> Any:
    """The value of a text that is one JSON document, in which no key comes twice in one object; None for other texts.

    None also for the document `null`, and for one that the parser cannot hold (nested 200 levels, lone surrogates).
    """
    try:
        return jiter.from_json(text.encode(), allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError:  # a UnicodeEncodeError is one
        return None


def prefix(text: str, start: int) -> tuple[Any, int]:
    """The value of the valid JSON at `start`, in which no key comes twice in one object, and the offset after it.

    Raises ValueError or RecursionError where there is none; not finite numbers are no JSON.
    """
    try:
        value, end = _SCAN(text, start)
    except StopIteration as stopped:
        raise ValueError("no value stands here") from stopped
    return value, end


def decode_strings(value: Any, shape: Shape, at: int, changes: list[Change]) -> Any:
    """Returns the value with each list or object decoded that stands as a string where the contract wants no string."""
    if isinstance(value, str) and value[:1] in ("[", "{", " ", "\n") and shape.kinds and not shape.allows("string"):
        found = document(value.strip())
        kind = "array" if isinstance(found, list) else "object"
        if isinstance(found, list | dict) and shape.allows(kind):
            changes.append(Change("double_encoded", at, excerpt(value), "JSON"))
            value = found
    if isinstance(value, dict) and shape.props:
        return {key: decode_strings(member, shape.child(key), at, changes) for key, member in value.items()}
    if isinstance(value, list) and shape.items is not None and shape.items.props:
        return [decode_strings(member, shape.items, at, changes) for member in value]
    return value


def _paired(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_SCAN = make_scanner(json.JSONDecoder(object_pairs_hook=_paired, parse_constant=_no_constant))  # type: ignore[arg-type]
