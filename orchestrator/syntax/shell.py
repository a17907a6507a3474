"""A shell command line → the simple commands in it, as lists of words."""

import re
from collections.abc import Iterator

_ENDS = frozenset(";&|\n()")
_MAX_NESTING = 8


def simple_commands(text: str) -> list[list[str]]:
    """The words of every simple command in `text`, in order; what substitutions run comes behind the line itself.

    Knows quotes, backslashes, comments, `;`, `&&`, `|`, line breaks, groups and redirections (left out, with their
    file). A substitution stands as `$(…)` in its word. Where a quote is never closed, quotes count as blanks: no shell
    would run such a line, and what it would install is still told.
    """
    return list(_commands(text, 0))


def _commands(text: str, depth: int) -> Iterator[list[str]]:
    scan = _Scan(text)
    if scan.open_quote:
        scan = _Scan(re.sub(r"[\"']", " ", text))
    yield from (words for words in scan.commands if words)
    if depth < _MAX_NESTING:
        for inner in scan.substitutions:
            yield from _commands(inner, depth + 1)


class _Scan:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self.commands: list[list[str]] = [[]]
        self.substitutions: list[str] = []
        self.open_quote = False
        self._text, self._at = text, 0
        self._word: str | None = None
        self._drop_next = False
        while self._at < len(text):
            self._step(text[self._at])
        self._end_word()

    def _step(self, char: str) -> None:
        if char == "\\":
            following = self._text[self._at + 1 : self._at + 2]
            self._add("" if following == "\n" else following, starts=following not in {"\n", ""})
            self._at += 2
        elif char in "'\"":
            self._quoted(char)
        elif char == "`" or self._text.startswith("$(", self._at):
            self._substitution()
        elif char == "#" and self._word is None:
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end
        elif char in "<>":
            self._redirection()
        elif char in _ENDS:
            self._end_word()
            self.commands.append([])
            self._drop_next = False
            self._at += 1
        elif char.isspace():
            self._end_word()
            self._at += 1
        else:
            self._add(char)
            self._at += 1

    def _add(self, piece: str, *, starts: bool = True) -> None:
        if starts or self._word is not None:
            self._word = (self._word or "") + piece

    def _end_word(self) -> None:
        if self._word is not None and not self._drop_next:
            self.commands[-1].append(self._word)
        if self._word is not None:
            self._drop_next = False
        self._word = None

    def _quoted(self, quote: str) -> None:
        self._add("")
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == quote:
                self._at += 1
                return
            if quote == '"' and (char == "`" or self._text.startswith("$(", self._at)):
                self._substitution()
                continue
            if quote == '"' and char == "\\" and self._text[self._at + 1 : self._at + 2] in {'"', "\\", "$", "`", "\n"}:
                self._at += 1
                char = self._text[self._at].replace("\n", "")
            self._add(char)
            self._at += 1
        self.open_quote = True

    def _substitution(self) -> None:
        """`$(…)` up to its bracket, or `` `…` ``; brackets in quotes inside it may end it early, which finds more."""
        start = self._at + (1 if self._text[self._at] == "`" else 2)
        end = self._text.find("`", start) if self._text[self._at] == "`" else self._closing(start)
        end = len(self._text) if end < 0 else end
        self.substitutions.append(self._text[start:end])
        self._add("$(…)")
        self._at = end + 1

    def _closing(self, start: int) -> int:
        depth = 1
        for match in re.compile(r"[()]").finditer(self._text, start):
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                return match.start()
        return -1

    def _redirection(self) -> None:
        if self._word is not None and self._word.isdigit():
            self._word = None
        self._end_word()
        match = re.compile(r"<<<|<<-?|<\(|>\(|<>|[<>]&-?|>>|>\||[<>]").match(self._text, self._at)
        sign = match[0] if match else self._text[self._at]
        self._at += len(sign)
        if sign.endswith("("):
            self.commands.append([])
        else:
            self._drop_next = True
