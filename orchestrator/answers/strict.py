"""The strict parsers: one for a whole document, one for what begins somewhere; both see keys that come twice."""

import json
from json.scanner import make_scanner
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


def prefix(text: str, start: int) -> tuple[Any, int]:
    """The value of the valid JSON at `start`, in which no key comes twice in one object, and the offset after it.

    Raises ValueError or RecursionError where there is none; not finite numbers are no JSON.
    """
    try:
        value, end = _SCAN(text, start)
    except StopIteration as stopped:
        raise ValueError("no value stands here") from stopped
    return value, end


def _paired(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_SCAN = make_scanner(json.JSONDecoder(object_pairs_hook=_paired, parse_constant=_no_constant))  # type: ignore[arg-type]
