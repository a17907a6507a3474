"""The strict parsers: one for a whole document, one for what begins somewhere; both see keys that come twice."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic_core import from_json


class Document(NamedTuple):
    """A value that stands alone in a text as valid JSON."""

    value: Any
    doubled: bool
    """A key may have come twice in one object; the last one won."""


def document(text: str) -> Document | None:
    """The value of a text that is one JSON document and nothing else; None for any other text.

    That no key came twice is told from the number of quotes: each string of the value had two, and each quote inside
    one was written as itself. It is never missed; an escape for a quote (\\u0022) can only make it seem so.
    """
    try:
        value = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):  # TypeError: a text with lone surrogates, which are no UTF-8
        return None
    return Document(value, _quotes(value) != text.count('"') or "u0022" in text)


def _quotes(value: Any) -> int:
    """How many quotes a value is written with."""
    strings: list[str] = []
    containers = [value] if isinstance(value, dict | list) else []
    for container in containers:
        members: Iterable[Any] = container
        if type(container) is dict:
            strings += container
            members = container.values()
        for member in members:
            kind = type(member)
            if kind is str:
                strings.append(member)
            elif kind is dict or kind is list:
                containers.append(member)
    return 2 * len(strings) + "".join(strings).count('"')


class StrictParser:
    """Reads valid JSON only. Not finite numbers are no JSON."""

    def __init__(self) -> None:
        self.doubled = False
        """Whether a key came twice in one object of the latest reading; the last one won."""
        self._decoder = json.JSONDecoder(object_pairs_hook=self._paired, parse_constant=_no_constant)

    def prefix(self, text: str, start: int) -> tuple[Any, int]:
        """The value at `start` and the offset after it. Raises ValueError or RecursionError."""
        self.doubled = False
        value, end = self._decoder.raw_decode(text, start)
        return value, end

    def _paired(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self.doubled = True
        return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
