"""What is known while a shell text is read for what it installs: names found, variables, functions, files it wrote."""

from collections import Counter
from collections.abc import Callable, Sequence
from posixpath import basename, normpath
from typing import NamedTuple, Protocol

from orchestrator.syntax.shell import Function
from orchestrator.syntax.shell_expand import Variables, shown

FROM_INPUT = "names read from standard input"
"""Stands for the packages that `xargs` would hand on."""
TOO_INTRICATE = "commands too intricate to follow"
"""Stands for what a text runs beyond the depth and the amount that are followed."""
_SETTINGS = frozenset({".npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", "pip.ini", "uv.toml", "bunfig.toml", ".pypirc"})
"""Files that say where packages come from."""
_SHOWN = 160


class Fed(NamedTuple):
    """What comes to a command's input: a text, a file of the project, or neither: `shown` tells what is not known."""

    text: str | None = None
    file: str = ""
    shown: str = ""


class Brought(NamedTuple):
    """A file that the text itself writes: what it says, if that is known; whether it was fetched from elsewhere."""

    text: str | None
    shown: str
    fetched: bool = False


class Reading(Protocol):
    """The reader as those who know single commands see it."""

    state: "State"

    def line(self, text: str, *, fed: Fed | None = None, words: Sequence[str] | None = None) -> None:
        """Read a text as a shell would; `words` are its `$0`, `$1` …, None when nobody knows them."""
        ...

    def command(self, words: Sequence[str], fed: Fed | None = None, *, piped: bool = False) -> None:
        """Read one command; `piped`: more words come from its input."""
        ...


class State:
    """Findings of one reading, and what its commands have set so far.

    `guesses`: whether what cannot be known is told, and commands nobody knows are searched for others.
    """

    def __init__(self, size: int, output: Callable[[str], str | None], *, guesses: bool) -> None:
        self.names: dict[str, None] = {}
        self.ordinary: set[str] = set()
        """Names that something else than a system's package manager brings."""
        self.data: list[str] = []
        self.guesses = guesses
        self.variables = Variables(output)
        self.functions: dict[str, Function] = {}
        self.called: Counter[tuple[str, ...]] = Counter()
        self.aliases: dict[str, str] = {}
        self.brought: dict[str, Brought] = {}
        self.cloned = ""
        self.now = ""
        self._left = 6 * size + 500_000

    def tell(self, names: Sequence[str], *, system: bool = False) -> None:
        """Note names of packages; `system`: those of the machine, of whatever language."""
        self.names.update(dict.fromkeys(name for name in names if name))
        if not system:
            self.ordinary.update(names)

    def refuse(self, what: str = "") -> None:
        """Note a command that cannot be known by its own text (this one's, when nothing is given)."""
        text = " ".join(shown(what or self.now).split())[-_SHOWN:]
        if self.guesses:
            self.names[text if " " in text else f"unknown: {text}"] = None

    def spend(self, amount: int) -> bool:
        """Whether so much more may be read; said when it may not."""
        self._left -= amount + 1
        if self._left < 0:
            self.names[TOO_INTRICATE] = None
        return self._left >= 0

    def write(self, path: str, text: str | None, *, fetched: bool = False, more: bool = False) -> None:
        """Note that the text writes a file; `more`: behind what it holds."""
        if basename(path).lower() in _SETTINGS:
            self.refuse(f"write {path}")
        if path and not path.startswith("/dev/") and not path.isdigit():
            held = self.brought.get(normpath(path))
            if more and held is not None:
                text = None if text is None or held.text is None else f"{held.text}{text}"
            self.brought[normpath(path)] = Brought(text, self.now, fetched)

    def file(self, path: str) -> Brought | None:
        """What the text wrote to this path."""
        return self.brought.get(normpath(path)) or self.brought.get(basename(path))
