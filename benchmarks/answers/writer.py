"""Writes a value as JSON text, or as somebody writes it who gets one thing wrong."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Path = tuple[str | int, ...]
"""Where a value stands in the answer: keys and indexes from the outside in."""


def quoted(text: str) -> str:
    """A JSON string that leaves other alphabets alone."""
    return json.dumps(text, ensure_ascii=False)


def literal(value: Any) -> str:
    """A number, true, false or null."""
    return json.dumps(value)


@dataclass
class Style:
    """How things are spelled; a fault changes one of these, everything else stays JSON."""

    indent: int = 2
    """Blanks per level; 0 writes everything in one line."""
    colon: str = ": "
    key: Callable[[str], str] = quoted
    text: Callable[[str], str] = quoted
    literal: Callable[[Any], str] = literal
    texts: dict[Path, Callable[[str], str]] = field(default_factory=dict)
    """Strings with a spelling of their own."""
    commas: dict[Path, str] = field(default_factory=dict)
    """What follows a member instead of a comma (or of nothing, behind the last one)."""
    closers: dict[Path, str] = field(default_factory=dict)
    """What ends a container instead of its own bracket."""
    heads: dict[Path, str] = field(default_factory=dict)
    """What stands on the line before a member."""
    tails: dict[Path, str] = field(default_factory=dict)
    """What follows a member's comma."""


class Written(NamedTuple):
    """A text, and where each value of it ends."""

    text: str
    ends: dict[Path, int]


class _Writer:
    def __init__(self, style: Style) -> None:
        self._style = style
        self._parts: list[str] = []
        self._length = 0
        self.ends: dict[Path, int] = {}

    def put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def value(self, value: Any, path: Path) -> None:
        if isinstance(value, dict):
            self._container("{}", list(value.items()), path)
        elif isinstance(value, list):
            self._container("[]", list(enumerate(value)), path)
        elif isinstance(value, str):
            self.put(self._style.texts.get(path, self._style.text)(value))
        else:
            self.put(self._style.literal(value))
        self.ends[path] = self._length

    def _container(self, brackets: str, members: list[tuple[Any, Any]], path: Path) -> None:
        style = self._style
        self.put(brackets[0])
        for number, (name, value) in enumerate(members):
            own = (*path, name)
            last = number == len(members) - 1
            self._line(len(path) + 1)
            if own in style.heads:
                self.put(style.heads[own])
                self._line(len(path) + 1)
            if isinstance(name, str):
                self.put(style.key(name) + style.colon)
            self.value(value, own)
            self.put(style.commas.get(own, "" if last else ","))
            self.put(style.tails.get(own, ""))
            if not style.indent and not last:
                self.put(" ")
        if members:
            self._line(len(path))
        self.put(style.closers.get(path, brackets[1]))

    def _line(self, depth: int) -> None:
        if self._style.indent:
            self.put("\n" + " " * (self._style.indent * depth))

    def written(self) -> Written:
        return Written("".join(self._parts), self.ends)


def write(value: Any, style: Style) -> Written:
    """The text of `value` in this style."""
    writer = _Writer(style)
    writer.value(value, ())
    return writer.written()
