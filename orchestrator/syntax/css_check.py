"""Is a CSS, SCSS or Less text well-formed? By the token rules of CSS Syntax Level 3, and by what blocks may hold.

The standard lets a browser go on after anything, so "well-formed" is what its tokenizer names an error (an open
string, comment or bracket) and what it throws away: a declaration without a colon, text outside every block.
"""

import re
from typing import NamedTuple

from orchestrator.syntax.brackets import CLOSER_OF, Token, unbalanced
from orchestrator.syntax.problem import MOST, Problem, place, shown

_PIECE = re.compile(
    r"""/\*.*?\*/|/\*"""
    r"""|url\(\s*(?!["'\s])(?:[^()\\\n"']|\\.)*\)"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|["']"""
    r"""|\\.|\#\{|@\{|[(){}\[\];]""",
    re.DOTALL | re.IGNORECASE,
)
_LINE_COMMENT = re.compile(r"//[^\n]*")
_PIECE_OR_LINE = re.compile(f"{_LINE_COMMENT.pattern}|{_PIECE.pattern}", re.DOTALL | re.IGNORECASE)
_DECLARATION = re.compile(r"[*_]?-{0,2}[$\w\\.-]+\s*:", re.ASCII)
_NEXT = re.compile(r"\n\s*(-{0,2}[a-z][\w-]*)\s*:(?!:)")
_SMART = re.compile(r"[:,\s]([\u201c\u201d\u2018\u2019])")
_AROUND = re.compile(r"<!--|-->")
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\$\{|<\?|^\s*\{\w+\}\s*$", re.MULTILINE)
"""Where a program puts in what it makes: what the file will be, nobody can say here."""


def problems(text: str, language: str = "CSS") -> list[Problem]:
    """At most three, the first place first; [] when it is well-formed, or when a template makes it. Never raises.

    SCSS and Less are judged by their tokens alone: strings, comments, brackets.
    """
    reading = _Reading(text.removeprefix("\ufeff"), plain=language == "CSS")
    said = reading.problems
    if not said:
        said = unbalanced(reading.brackets, reading.text)
        loose = reading.loose if language == "CSS" else []
        # What an open block holds reads as declarations too; what stands before it was read rightly.
        first = said[0].line if said else None
        said = [*said, *(one for one in loose if first is None or (one.line or 0) < first)]
    said = sorted(said, key=lambda problem: problem.line or 0)
    return [] if said and _TEMPLATE.search(text) else said[:MOST]


class _Part(NamedTuple):
    """What stands between two of `;`, `{` and `}`, with comments and strings blanked."""

    text: str
    start: int
    end: str
    """What ended it; "" for the end of the text."""
    depth: int


class _Reading:
    """One pass over a text: its brackets, and what is wrong with strings, comments and declarations."""

    def __init__(self, text: str, *, plain: bool) -> None:
        self.text = text
        self.brackets: list[Token] = []
        self.problems: list[Problem] = []
        self.loose: list[Problem] = []
        self._open: list[str] = []
        self._held: list[str] = []
        self._start = 0
        self._line, self._line_start, self._counted = 1, 0, 0
        self._read(_PIECE if plain else _PIECE_OR_LINE)

    def _read(self, pieces: re.Pattern[str]) -> None:
        at = 0
        for match in pieces.finditer(self.text):
            self._held.append(self.text[at : match.start()])
            at = match.end()
            piece = match[0]
            if piece in {"/*", '"', "'"}:
                self._never_ends(piece, match.start())
                return
            if piece in "(){}[];" or piece in CLOSER_OF:
                self._punctuation(piece, match.start())
            else:
                self._held.append(re.sub(r"[^\n]", " " if piece.startswith("/") else "x", piece))
        self._held.append(self.text[at:])
        self._ended("", len(self.text))

    def _never_ends(self, piece: str, at: int) -> None:
        line, column = self._place(at)
        what = "comment" if piece == "/*" else "string"
        message = f"the {what} opened in line {line} is never closed"
        self.problems.append(Problem(line=line, column=column, message=message, fix=f"Close the {what}."))

    def _place(self, at: int) -> tuple[int, int]:
        """Line and column of `at`, which never goes back."""
        self._line += self.text.count("\n", self._counted, at)
        last = self.text.rfind("\n", self._counted, at)
        self._line_start = last + 1 if last >= 0 else self._line_start
        self._counted = at
        return self._line, at - self._line_start + 1

    def _punctuation(self, piece: str, at: int) -> None:
        inside = bool(self._open) and self._open[-1] not in {"{"}
        if piece != ";":
            self.brackets.append(Token(piece, *self._place(at)))
        if piece in CLOSER_OF and not (piece == "{" and not inside):
            self._open.append(piece)
            self._held.append("x")
        elif inside and piece == "}" and "{" in self._open and self._open[-1] in {"(", "["}:
            del self._open[len(self._open) - self._open[::-1].index("{") - 1 :]
            self._began(at)
        elif inside:
            if piece == CLOSER_OF[self._open[-1]]:
                self._open.pop()
            self._held.append("x")
        elif piece in ";{}":
            self._ended(piece, at)
            if piece == "{":
                self._open.append("{")
            elif piece == "}" and self._open:
                self._open.pop()

    def _began(self, at: int) -> None:
        self._held, self._start = [], at + 1

    def _ended(self, end: str, at: int) -> None:
        part = _Part("".join(self._held), self._start, end, len(self._open))
        self._began(at)
        if len(self.loose) < MOST and not part.text.isspace() and part.text:
            self.loose.extend(_judged(part, self.text))


def _judged(part: _Part, text: str) -> list[Problem]:
    said = _AROUND.sub("    ", part.text) if part.depth == 0 else part.text
    begin = part.start + len(said) - len(said.lstrip())
    said = said.strip()
    if not said or said.startswith("@"):
        return []
    if part.end == "{":
        return _before_block(said, begin, text) if part.depth else []
    if part.depth == 0:
        line, column = place(text, begin)
        return [Problem(line=line, column=column, message=f"`{shown(said)}` stands outside every block")]
    if not _DECLARATION.match(said):
        line, column = place(text, begin)
        return [
            Problem(line=line, column=column, message=f"`{shown(said)}` is no declaration: it has no `property: value`")
        ]
    return _value(said, begin, text)


def _before_block(said: str, begin: int, text: str) -> list[Problem]:
    """In a block, before a nested one: a declaration that lacks its semicolon would be part of the selector."""
    head, _, rest = said.partition("\n")
    if rest and re.match(r"-{0,2}[a-z][\w-]*\s*:\s+[^\s,]", head) and not head.rstrip().endswith(","):
        return [_no_semicolon(begin + len(head), text)]
    return []


def _value(said: str, begin: int, text: str) -> list[Problem]:
    if said.startswith("--"):
        return []
    colon = said.index(":")
    if found := _NEXT.search(said, colon):
        return [_no_semicolon(begin + found.start(), text)]
    if found := _SMART.search(said, colon):
        line, column = place(text, begin + found.start(1))
        return [Problem(line=line, column=column, message=f"`{found[1]}` begins no string", fix="Write \" or '.")]
    return []


def _no_semicolon(at: int, text: str) -> Problem:
    at = len(text[:at].rstrip())
    line, column = place(text, at)
    return Problem(line=line, column=column, message="`;` is missing at the end of the line", fix="Add the semicolon.")
