"""The strict parser: the standard library's, which says when a key came twice."""

import json
from typing import Any


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
