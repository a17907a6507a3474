"""What an extraction says: the value, how it was found, what was changed, and why there is none."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from itertools import accumulate
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

from pydantic import PlainSerializer, SkipValidation, WithJsonSchema

from orchestrator.core.finding import Finding, Where
from orchestrator.core.value import Value

MAX_DEPTH = 200
"""Containers inside containers an answer may have; deeper text is refused."""
MAX_REPAIRS = 1000
"""Repairs listed one by one; what exceeds them is summed up in a last entry of kind `more`."""
EXCERPT = 60
"""Characters of foreign text shown in a repair or a finding."""

_OFFSET = itemgetter(1)


class Status(StrEnum):
    """How far a value can be trusted."""

    OK = "ok"
    """The value stood in the text as valid JSON, or in the block format as it is written."""
    REPAIRED = "repaired"
    """The value is whole; `repairs` lists what had to be changed to read it."""
    TRUNCATED = "truncated"
    """The text was cut off or had a gap: the value holds only what is whole."""
    REFUSED = "refused"
    """There is no value; `problems` says why."""


class Repair(NamedTuple):
    """One change that was needed to read the text. A tuple, because a sloppy text has hundreds of them."""

    kind: str
    offset: int
    """0-based character offset in the text as it was given."""
    before: str
    """What stood there (shortened); empty for an insertion."""
    after: str
    """What it was read as (shortened); empty for a removal."""


# Written out: pydantic refers to a tuple with names by a definition that it leaves out.
_REPAIRS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {name: {"type": "integer" if name == "offset" else "string"} for name in Repair._fields},
        "required": [*Repair._fields],
    },
    "description": "What was changed to read the text, in the order of its text.",
}


def _spelled(repairs: tuple[Repair, ...]) -> list[dict[str, str | int]]:
    return [repair._asdict() for repair in repairs]


class Extraction(Value):
    """The result of `extract`; never partly filled: `value` is None exactly when `status` is refused."""

    value: Annotated[dict[str, Any] | list[Any] | None, SkipValidation]
    status: Status
    layer: str
    """Name of the layer that found the value, `none` when refused."""
    repairs: Annotated[tuple[Repair, ...], SkipValidation, PlainSerializer(_spelled), WithJsonSchema(_REPAIRS)] = ()
    complete: bool
    """False for a truncated or refused answer."""
    candidates: int = 0
    """How many objects and lists were looked at."""
    problems: tuple[Finding, ...] = ()


Change = Repair
"""A repair while it is being collected: unshortened."""


def excerpt(text: str, limit: int = EXCERPT) -> str:
    """`text` shortened to `limit` characters and made safe to encode (lone surrogates are spelled out)."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return short.encode("utf-8", "backslashreplace").decode("utf-8")


def listed(changes: Sequence[Change]) -> tuple[Repair, ...]:
    """Returns the changes in text order as repairs; more than MAX_REPAIRS end in one entry that counts the rest."""
    ordered = sorted(changes, key=_OFFSET)
    repairs = [
        change._replace(before=excerpt(change.before), after=excerpt(change.after)) for change in ordered[:MAX_REPAIRS]
    ]
    if rest := ordered[MAX_REPAIRS:]:
        repairs.append(Repair(kind="more", offset=rest[0].offset, before="", after=f"{len(rest)} more repairs"))
    return tuple(repairs)


def text_place(text: str, offset: int) -> Where:
    """1-based line and column of `offset` in `text`."""
    at = min(max(offset, 0), len(text))
    return Where(line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at))


def too_deep(value: dict[str, Any] | list[Any]) -> bool:
    """Returns whether containers nest more than MAX_DEPTH levels; level by level, so depth costs no stack."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


class Decoded(NamedTuple):
    """Text with one layer of encoding taken off, and the way back to offsets in the original."""

    text: str
    original: Callable[[int], int]
    change: Change


def pieced(pieces: Sequence[tuple[str, int]], change: Change) -> Decoded:
    """Joins `(decoded piece, offset of its source)` pairs; offsets inside a piece count on from its source."""

    @cache  # most texts are looked at in vain
    def starts() -> list[int]:
        return list(accumulate((len(piece) for piece, _ in pieces), initial=0))

    def original(offset: int) -> int:
        index = min(bisect_right(starts(), offset) - 1, len(pieces) - 1)
        return pieces[index][1] + offset - starts()[index] if pieces else 0

    return Decoded("".join(piece for piece, _ in pieces), original, change)
