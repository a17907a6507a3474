"""Shell text → words, operators, redirections: quotes of every kind, expansions and here-documents, nothing run."""

import re
from typing import NamedTuple

from orchestrator.syntax.shell_nesting import ansi_text, backtick_end, closing, unescaped

TEXT, VARIABLE, COMMAND, FROM, INTO, ARRAY = "text", "variable", "command", "from", "into", "array"
_BLANK = re.compile(r"[^\S\n]+|\\\r?\n")
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|[;&|()\n]")
_REDIRECTION = re.compile(r"(\d+|\{\w+\})?(?P<sign><<<|<<-|<<|<>|<&|>>|>\||>&|&>>|&>|<(?!\()|>(?!\())")
_PLAIN = re.compile(r"""[^\s\\'"`$;&|()<>]+""")
_QUOTED_PLAIN = re.compile(r'[^"\\$`]+')
_HELD_PLAIN = re.compile(r"[^\\$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ARRAY = re.compile(r"[A-Za-z_]\w*(\[[^\]]*\])?\+?=")


class Piece(NamedTuple):
    """A part of a word: text, a variable (what stands in its braces), a command run for its output, an array.

    `from` and `into` are commands behind a file of their own: `<(…)` and `>(…)`.
    """

    kind: str
    text: str
    quoted: bool = False


class Token(NamedTuple):
    """A word (`sign` ""), an operator, or a redirection with the word it goes to; `body` is a here-document's."""

    sign: str
    pieces: tuple[Piece, ...] = ()
    raw: str = ""
    start: int = 0
    end: int = 0
    body: str | None = None
    held: tuple[Piece, ...] = ()


class Lexed(NamedTuple):
    """A whole text: its tokens, its comments, and whether a quote in it is never closed."""

    tokens: tuple[Token, ...]
    comments: tuple[str, ...]
    open_quote: bool


def lex(text: str) -> Lexed:
    """The tokens of `text` in order. Never raises; what is never closed reaches to the end."""
    reader = _Lexer(text)
    reader.read()
    return Lexed(tuple(reader.tokens), tuple(reader.comments), reader.open_quote)


class _Lexer:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self.tokens: list[Token] = []
        self.comments: list[str] = []
        self.open_quote = False
        self._text, self._at = text, 0
        self._pending: list[int] = []

    def read(self) -> None:
        while self._at < len(self._text):
            if match := _BLANK.match(self._text, self._at):
                self._at = match.end()
            elif match := _COMMENT.match(self._text, self._at):
                self.comments.append(match[0])
                self._at = match.end()
            elif match := _REDIRECTION.match(self._text, self._at):
                self._redirection(match)
            elif match := _OPERATOR.match(self._text, self._at):
                self._operator(match)
            else:
                start, pieces = self._at, self._word()
                raw = self._text[start : self._at]
                self.tokens.append(Token("", pieces, raw, start, self._at))
        self._bodies()

    def _operator(self, match: re.Match[str]) -> None:
        self.tokens.append(Token(match[0], raw=match[0], start=match.start(), end=match.end()))
        self._at = match.end()
        if match[0] == "\n" and self._pending:
            self._bodies()

    def _redirection(self, match: re.Match[str]) -> None:
        self._at = match.end()
        while blank := _BLANK.match(self._text, self._at):
            self._at = blank.end()
        start = self._at
        pieces = self._word() if start < len(self._text) and self._text[start] not in ";&|\n()<>" else ()
        token = Token(match["sign"], pieces, self._text[start : self._at], match.start(), self._at)
        if token.sign in {"<<", "<<-"}:
            self._pending.append(len(self.tokens))
        self.tokens.append(token)

    def _bodies(self) -> None:
        """The here-documents that begin at this line, each up to its delimiter; without one, up to the end."""
        for place in self._pending:
            token = self.tokens[place]
            word = "".join(piece.text for piece in token.pieces)
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line, self._at = self._text[self._at : end], end + 1
                if (line.lstrip("\t") if token.sign == "<<-" else line).rstrip("\r") == word:
                    break
                lines.append(line.lstrip("\t") if token.sign == "<<-" else line)
            body = "\n".join(lines)
            literal = any(piece.quoted for piece in token.pieces)
            held = (Piece(TEXT, body, quoted=True),) if literal else _Held(body).pieces()
            self.tokens[place] = token._replace(body=body, held=held)
        self._pending.clear()

    def _word(self) -> tuple[Piece, ...]:
        """The pieces of a word that begins here; always moves on."""
        pieces: list[Piece] = []
        start = self._at
        while self._at < len(self._text):
            char = self._text[self._at]
            if match := _PLAIN.match(self._text, self._at):
                pieces.append(Piece(TEXT, match[0]))
                self._at = match.end()
            elif char == "(" and _ARRAY.fullmatch(self._text[start : self._at]):
                self._enclosed(pieces, ARRAY, self._at + 1)
            elif char in "<>" and self._text.startswith("(", self._at + 1):
                self._enclosed(pieces, FROM if char == "<" else INTO, self._at + 2)
            elif char.isspace() or char in ";&|()<>":
                break
            else:
                self._special(pieces, char)
        if self._at == start:
            self._at += 1
        return tuple(pieces)

    def _special(self, pieces: list[Piece], char: str) -> None:
        """A backslash, a quote or an expansion outside double quotes."""
        following = self._text[self._at + 1 : self._at + 2]
        if char == "\\":
            pieces.append(Piece(TEXT, "" if following == "\n" else following, quoted=following != "\n"))
            self._at += 2
        elif char == "'" or (char == "$" and following == "'"):
            self._single(pieces, ansi=char == "$")
        elif char == '"' or (char == "$" and following == '"'):
            self._double(pieces, self._at + (2 if char == "$" else 1))
        else:
            self._expansion(pieces, quoted=False)

    def _single(self, pieces: list[Piece], *, ansi: bool) -> None:
        start = self._at + (2 if ansi else 1)
        text, end = ansi_text(self._text, start) if ansi else ("", self._text.find("'", start))
        if end < 0:
            self.open_quote, end = True, len(self._text)
        pieces.append(Piece(TEXT, text if ansi else self._text[start:end], quoted=True))
        self._at = end + 1

    def _double(self, pieces: list[Piece], start: int) -> None:
        self._at = start
        pieces.append(Piece(TEXT, "", quoted=True))
        while self._at < len(self._text):
            if self._text[self._at] == '"':
                self._at += 1
                return
            self._inside(pieces, _QUOTED_PLAIN)
        self.open_quote = True

    def _inside(self, pieces: list[Piece], plain: re.Pattern[str]) -> None:
        """One step inside double quotes or a here-document."""
        if match := plain.match(self._text, self._at):
            pieces.append(Piece(TEXT, match[0], quoted=True))
            self._at = match.end()
        elif self._text[self._at] == "\\":
            following = self._text[self._at + 1 : self._at + 2]
            kept = "" if following == "\n" else following if following in {'"', "\\", "$", "`"} else f"\\{following}"
            pieces.append(Piece(TEXT, kept, quoted=True))
            self._at += 2
        else:
            self._expansion(pieces, quoted=True)

    def _expansion(self, pieces: list[Piece], *, quoted: bool) -> None:
        """What begins with `$` or a backtick."""
        at, text = self._at, self._text
        if text[at] == "`":
            end = backtick_end(text, at + 1)
            pieces.append(Piece(COMMAND, unescaped(text[at + 1 : end]), quoted))
            self._at = end + 1
        elif text.startswith("$(", at):
            self._enclosed(pieces, COMMAND, at + 2, quoted=quoted)
        elif text.startswith("${{", at):  # a pipeline's own expression: never known here
            end = text.find("}}", at)
            self._at = len(text) if end < 0 else end + 2
            pieces.append(Piece(VARIABLE, "expression", quoted))
        elif text.startswith("${", at):
            self._enclosed(pieces, VARIABLE, at + 2, quoted=quoted)
        else:
            match = _NAME.match(text, at + 1)
            pieces.append(Piece(VARIABLE, match[0], quoted) if match else Piece(TEXT, text[at], quoted))
            self._at = match.end() if match else at + 1

    def _enclosed(self, pieces: list[Piece], kind: str, start: int, *, quoted: bool = False) -> None:
        end = closing(self._text, start, "}" if kind == VARIABLE else ")")
        end = len(self._text) if end < 0 else end
        pieces.append(Piece(kind, self._text[start:end], quoted))
        self._at = end + 1


class _Held(_Lexer):
    """The body of a here-document whose delimiter is not quoted."""

    def pieces(self) -> tuple[Piece, ...]:
        found: list[Piece] = []
        while self._at < len(self._text):
            self._inside(found, _HELD_PLAIN)
        return tuple(found)
