"""A case in the making: an answer, how it is written, what stands around it; and the register of faults."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from benchmarks.answers.truth import Answer, Kind
from benchmarks.answers.writer import Path, Style, Written, write


class Wanted(StrEnum):
    """What a good reader hands back."""

    WHOLE = "whole"
    """The whole answer."""
    PART = "part"
    """The whole items that arrived, and the word that more is missing."""
    NOTHING = "nothing"
    """No value."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A text and what is in it."""

    number: int
    kind: Kind
    faults: tuple[str, ...]
    family: str
    text: str
    wanted: Wanted
    full: Answer | None
    """What the model meant to say; None when it gave no answer."""
    kept: int = 0
    """Whole items that arrived, for a part."""
    edges_free: bool = False
    """A line end at either edge of a string says nothing: the text does not tell whether it belongs to the value."""


class Unfit(Exception):
    """This fault cannot befall this answer; another is drawn."""


@dataclass
class Draft:
    """What faults change; `finished` makes the case of it."""

    rng: random.Random
    kind: Kind
    full: Answer
    style: Style
    said: Answer = field(default_factory=dict)
    """What is written; other than `full` only when the model leaves something out."""
    wanted: Wanted = Wanted.WHOLE
    kept: int | None = None
    edges_free: bool = False
    fence: str = ""
    core: Callable[["Draft", Written], str] = lambda draft, written: written.text
    """What becomes of the written answer before anything is put around it."""
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.said = self.full

    def strings(self) -> Iterator[tuple[Path, str]]:
        """Every string that is no key, outer ones first."""
        for path, value in self.values():
            if isinstance(value, str):
                yield path, value

    def code(self) -> list[tuple[Path, str]]:
        """The strings that hold code or long text."""
        return [(path, text) for path, text in self.strings() if path[-1] in self.kind.code]

    def values(self) -> Iterator[tuple[Path, Any]]:
        """Every value with its place."""
        waiting: list[tuple[Path, Any]] = [((), self.said)]
        while waiting:
            path, value = waiting.pop(0)
            yield path, value
            if isinstance(value, dict):
                waiting += [((*path, name), child) for name, child in value.items()]
            elif isinstance(value, list):
                waiting += [((*path, index), child) for index, child in enumerate(value)]

    def respell(self, spell: Callable[[str], str], fits: Callable[[str], bool]) -> None:
        """Spell the code strings that fit in another way; Unfit when there is none."""
        hits = [path for path, text in self.code() if fits(text)]
        if not hits:
            raise Unfit
        self.style.texts.update(dict.fromkeys(hits, spell))

    def finished(self, number: int, faults: tuple[str, ...], family: str) -> Case:
        """The case, with everything written out."""
        body = self.core(self, write(self.said, self.style))
        cut = self.wanted is Wanted.PART and not self.after
        if self.fence:
            body = f"{self.fence}\n{body}" + (
                "" if cut else "\n" + self.fence.rstrip("abcdefghijklmnopqrstuvwxyzJSON5")
            )
        text = "".join((*self.before, body, *self.after))
        return Case(
            number=number,
            kind=self.kind,
            faults=faults,
            family=family,
            text=text,
            wanted=self.wanted,
            full=self.full,
            kept=len(self.full[self.kind.items]) if self.kept is None else self.kept,
            edges_free=self.edges_free,
        )


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that goes wrong (or, in the family `valid`, only looks as if it did)."""

    name: str
    family: str
    touches: frozenset[str]
    """Parts of a draft it changes; two faults join only when they touch different parts."""
    apply: Callable[[Draft], None]


FAULTS: dict[str, Fault] = {}
"""Every fault by name, in the order of the tables."""


def fault(name: str, family: str, touches: str) -> Callable[[Callable[[Draft], None]], Callable[[Draft], None]]:
    """Register a function that does one thing wrong with a draft."""

    def register(apply: Callable[[Draft], None]) -> Callable[[Draft], None]:
        FAULTS[name] = Fault(name=name, family=family, touches=frozenset(touches.split()), apply=apply)
        return apply

    return register
