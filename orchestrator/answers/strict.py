"""The strict parsers: one for a whole document, one for what begins somewhere; both see keys that come twice."""

import json
from typing import Any

import jiter


def document(text: str) -> Any:
    """The value of a text that is one JSON document, in which no key comes twice in one object; None for other texts.

    None also for the document `null`, and for one that the parser cannot hold (nested 200 levels, lone surrogates).
    """
    try:
        return jiter.from_json(text.encode(), allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError:  # a UnicodeEncodeError is one
        return None


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
