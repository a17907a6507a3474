"""A shell text → its simple commands in order, each with what a pipe brings to it; functions keep their bodies."""

from collections.abc import Sequence
from typing import NamedTuple, Union

from orchestrator.syntax.shell_words import TEXT, Lexed, Piece, Token

_CLOSES = {
    "{": "}", "(": ")", "if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac",
}  # fmt: skip
_CLOSERS = frozenset(_CLOSES.values())
_SKIPPED = frozenset({"then", "elif", "else", "do", "!"})
_KEPT = frozenset({"for", "select", "case"})
"""Openers that stay in their command: its words say more."""
_PIPES = frozenset({"|", "|&"})
_IN_TESTS = frozenset({"&&", "||", "(", ")"})
_BREAKS = frozenset({";", "&", "&&", "||", ";;"})
"""What no pattern of a `case` holds: a text with it is read as commands."""
_SHOWN = 160
"""Characters of a pipeline that are kept to tell it by: its end, where it goes."""


class Simple(NamedTuple):
    """One command: its words and redirections. `source` is what a pipe brings: a command, or "" for several;
    None without a pipe. `text` is the pipeline up to its end."""

    words: tuple[Token, ...]
    redirections: tuple[Token, ...]
    source: Union["Simple", str, None]
    text: str


class Function(NamedTuple):
    """A function with the commands of its body."""

    name: str
    body: tuple[Union[Simple, "Function"], ...]


Item = Simple | Function


class _Open(NamedTuple):
    """A compound that is not closed yet, and what to go back to behind it."""

    closer: str
    source: Simple | str | None
    function: str
    outer: list[Item]
    start: int


def commands(lexed: Lexed, text: str) -> Sequence[Item]:
    """The commands of a text in order; those of groups, loops and conditions stand among the others. Never raises."""
    return _Reader(lexed.tokens, text).read()


class _Reader:
    """One pass over tokens."""

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self._tokens, self._text = tokens, text
        self._items: list[Item] = []
        self._open: list[_Open] = []
        self._words: list[Token] = []
        self._redirections: list[Token] = []
        self._source: Simple | str | None = None
        self._last: Simple | str | None = None
        self._start = 0
        self._function = ""
        self._pattern: list[Token] | None = None

    def read(self) -> Sequence[Item]:
        at = 0
        while at < len(self._tokens):
            token = self._tokens[at]
            if self._pattern is not None and self._in_pattern(token):
                pass
            elif not token.sign:
                self._word(token)
            elif token.sign[0] in "<>" or token.sign in {"&>", "&>>"}:
                self._redirections.append(token)
            elif token.sign == "(" and self._names_function(at):
                self._function = self._words[-1].raw
                self._words = []
                at += 1
            else:
                self._operator(token)
            at += 1
        self._flush(len(self._text))
        while self._open:
            self._close()
        return self._items

    def _names_function(self, at: int) -> bool:
        closes = at + 1 < len(self._tokens) and self._tokens[at + 1].sign == ")"
        return closes and (len(self._words) == 1 or (len(self._words) == 2 and self._words[0].raw == "function"))

    def _word(self, token: Token) -> None:
        if self._words or self._redirections:
            if len(self._words) == 1 and self._words[0].raw == "function":
                self._function, self._words = token.raw, []
            else:
                self._words.append(token)
            if token.raw == "in" and len(self._words) > 2 and self._words[0].raw == "case":
                self._flush(token.end)
                self._pattern = []
        elif token.raw in _CLOSES:
            self._enter(token)
            if token.raw in _KEPT:
                self._words.append(token)
        elif token.raw in _CLOSERS:
            self._leave(token.raw)
        elif token.raw not in _SKIPPED:
            self._function = ""
            self._words.append(token)
        elif self._source is None:
            self._start = token.end

    def _in_pattern(self, token: Token) -> bool:
        """Whether a token belongs to the pattern of a `case`: no command, but what it expands is run."""
        held = self._pattern or []
        if token.sign in _BREAKS or (token.raw == "esac" and not held):
            self._pattern = None
            return False
        if not token.sign:
            held.append(token)
        self._pattern = None if token.sign == ")" else held
        if self._pattern is None:
            nothing = Token("", (Piece(TEXT, ":"),), ":")
            self._items.append(Simple((nothing, *held), (), None, ""))
            self._start, self._last = token.end, None
        return True

    def _operator(self, token: Token) -> None:
        if self._words and self._words[0].raw == "[[" and self._words[-1].raw != "]]" and token.sign in _IN_TESTS:
            return
        self._flush(token.start)
        if token.sign == "(":
            self._enter(token)
            return
        if token.sign == ")":
            self._leave(")")
        elif token.sign in _PIPES:
            self._source = self._last if self._last is not None else ""
            self._last = None
        elif token.sign != "\n" or self._last is not None:  # a line may end behind a pipe
            self._source = self._open[-1].source if self._open else None
            self._start = token.end
            self._last = None
        if token.sign[:1] == ";" and token.sign != ";" and self._open and self._open[-1].closer == "esac":
            self._pattern = []

    def _flush(self, end: int) -> None:
        if self._words or self._redirections:
            text = self._text[max(self._start, end - _SHOWN) : end].strip()
            command = Simple(tuple(self._words), tuple(self._redirections), self._source, text)
            self._items.append(command)
            self._last = command
            self._words, self._redirections = [], []

    def _enter(self, token: Token) -> None:
        start = self._start if self._source is not None else token.start
        self._open.append(_Open(_CLOSES[token.raw], self._source, self._function, self._items, start))
        if self._function:
            self._items, self._function = [], ""
        self._last = None

    def _leave(self, closer: str) -> None:
        if self._open and self._open[-1].closer == closer:
            self._close()
        self._last = ""

    def _close(self) -> None:
        held = self._open.pop()
        self._source, self._start = held.source, held.start
        if held.function:
            body, self._items = self._items, held.outer
            self._items.append(Function(held.function, tuple(body)))
