"""JSON → tree of texts with lines."""

import json
import re
from bisect import bisect_right
from typing import NoReturn

from orchestrator.adapters.backlog_tree import Fields, Items, Node, Scalar, unusable
from orchestrator.errors import BacklogError

MAX_DEPTH = 8
_SPACE = re.compile(r"[ \t\r\n]*")
_WORD = re.compile(r"[^\s,\]}]+")


def parse_json(text: str, source: str) -> Node:
    """The tree of a JSON text; numbers stay as written. Raises BacklogError naming source and line."""
    if not text.strip():
        return Scalar(1, "")
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _broken(source, f"{error.msg} at column {error.colno}", error.lineno) from error
    except RecursionError as error:
        raise _broken(source, "it is nested too deeply", 1) from error
    except _NoNumber as error:
        raise _broken(source, f"{error} is no JSON value", _line_of_word(text, str(error))) from error
    return _Tree(text, source).value(0, 0)[0]


class _NoNumber(ValueError):
    """NaN or Infinity, which Python's reader would take."""


def _no_constant(word: str) -> NoReturn:
    raise _NoNumber(word)


def _line_of_word(text: str, word: str) -> int:
    found = re.search(rf"[:,\[\s]{re.escape(word)}\b", text)
    return text.count("\n", 0, found.start() if found else 0) + 1


def _broken(source: str, problem: str, line: int) -> BacklogError:
    message = f"{source}, line {line}: not valid JSON ({problem})"
    return unusable("backlog.syntax", message, source, fix="see the text just before that place", line=line)


class _Tree:
    """Walks a text that is known to be JSON."""

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._strings = json.JSONDecoder()
        self._breaks = [match.start() for match in re.finditer("\n", text)]

    def value(self, place: int, depth: int) -> tuple[Node, int]:
        """The value at or behind `place`, and the offset behind it."""
        place = self._skip(place)
        line = bisect_right(self._breaks, place) + 1
        if depth > MAX_DEPTH:
            raise _broken(self._source, "it is nested too deeply", line)
        first = self._text[place]
        if first == '"':
            text, place = self._strings.raw_decode(self._text, place)
            return Scalar(line, str(text)), place
        if first in "[{":
            return self._many(place, line, depth)
        word = _WORD.match(self._text, place)
        assert word is not None  # the text is JSON
        return Scalar(line, "" if word[0] == "null" else word[0]), word.end()

    def _many(self, place: int, line: int, depth: int) -> tuple[Node, int]:
        named = self._text[place] == "{"
        names: list[Scalar] = []
        values: list[Node] = []
        place = self._skip(place + 1)
        while self._text[place] not in "]}":
            if named:
                name, place = self.value(place, depth + 1)
                assert isinstance(name, Scalar)
                names.append(name)
                place = self._skip(place) + 1
            value, place = self.value(place, depth + 1)
            values.append(value)
            place = self._skip(place)
            if self._text[place] == ",":
                place = self._skip(place + 1)
        if named:
            return Fields(line, tuple(zip(names, values, strict=True))), place + 1
        return Items(line, tuple(values)), place + 1

    def _skip(self, place: int) -> int:
        found = _SPACE.match(self._text, place)
        return found.end() if found else place
