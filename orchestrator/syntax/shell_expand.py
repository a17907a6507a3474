"""Words of a shell text → the fields a shell makes of them, with the variables known so far."""

import re
from collections.abc import Callable, Sequence

from orchestrator.syntax.shell_braces import alternatives
from orchestrator.syntax.shell_words import ARRAY, COMMAND, TEXT, VARIABLE, Piece, lex

_VARIABLE_MARK, _OUTPUT_MARK, _MARK_END, _NEXT = "\ue000", "\ue001", "\ue002", "\ue003"
UNKNOWN = re.compile(f"[{_VARIABLE_MARK}{_OUTPUT_MARK}][^{_MARK_END}]*{_MARK_END}")
"""What stands in a field for a value nobody can know: a variable's, or what a command prints."""
OUTPUT = re.compile(f"{_OUTPUT_MARK}(?P<name>[^{_MARK_END}]*){_MARK_END}")
FETCHED = "fetched"
"""The name in the mark of what is fetched, decoded or typed: it may be anything."""
TYPED = "typed"
"""The name in the mark of a line that was read from elsewhere."""
_FETCHES = re.compile(
    r"(?<![\w.-])(fetched|curl|wget|aria2c|nc|ncat|base(16|32|64)|xxd|uudecode|openssl|gpg|gunzip|[bx]?zcat|rev|tr)(?![\w.-])"
)
_PRIVATE = re.compile(f"[\0{_VARIABLE_MARK}{_OUTPUT_MARK}{_MARK_END}{_NEXT}]")
_ALL = re.compile(r"(@|[A-Za-z_]\w*\[@\])")
_CONSTANTS = {"?": "0", "$": "1", "!": "1", "-": ""}
_PARAMETER = re.compile(r"(?P<far>!)?(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])(?P<index>\[[^\]]*\])?(?P<rest>.*)", re.DOTALL)
_DEFAULT = re.compile(r"(?P<sign>:?[-=+?])(?P<word>.*)", re.DOTALL)
_MAX_DEPTH, _MAX_VALUE, _MAX_FIELDS = 8, 20_000, 20_000
_PRINTER = re.compile(r"\s*(?:[\w./-]*/)?(?P<name>[\w.-]+)")


def readable(text: str) -> str:
    """`text` without the characters that mark unknown values here."""
    return _PRIVATE.sub("", text)


def shown(field: str) -> str:
    """A field as its writer would know it again: `$name` and `$(…)` for what is unknown."""
    return UNKNOWN.sub(lambda match: "$(…)" if match[0][0] == _OUTPUT_MARK else f"${match[0][1:-1]}", field)


def printed_by(command: str) -> str:
    """The mark of what `command` prints when nobody knows it: with its name, or `FETCHED`."""
    match = _PRINTER.match(command)
    name = FETCHED if _FETCHES.search(command) else match["name"] if match else ""
    return f"{_OUTPUT_MARK}{name}{_MARK_END}"


def file_of(command: str) -> str:
    """The mark of a file that holds what a command prints."""
    return f"{_OUTPUT_MARK}@{printed_by(command)[1:]}"


def unknown_variable(name: str) -> str:
    """The mark of a variable's unknown value."""
    return f"{_VARIABLE_MARK}{name}{_MARK_END}"


class Variables:
    """Variables, with every value a text gives them, and the words a function or script was called with.

    `turn` chooses among the values of a variable: 0 is the first one; `most` says how many turns there are.
    """

    def __init__(self, output: Callable[[str], str | None]) -> None:
        self.words: Sequence[str] | None = None
        self.turn, self.most = 0, 1
        self._values: dict[str, list[str]] = {}
        self._output = output
        self._arrays = 0

    def put(self, name: str, value: str, *, more: bool = False, apart: bool = False, room: int = 8) -> None:
        """Note a value; the same one twice counts once, and one too long to follow is unknown.

        `more`: it comes behind the last one; `apart`: as a word of its own; `room`: how many values are followed.
        """
        held = self.last(name) if more else ""
        value = f"{held}{_NEXT if apart and held else ''}{value}"
        value = value if len(value) <= _MAX_VALUE else printed_by("")
        values = self._values.setdefault(name, [])
        if value in values:
            values.remove(value)
        values.append(value)
        if len(values) > room:  # the first ones are no longer known, but not forgotten
            values[: len(values) - room] = [unknown_variable(name)]

    def last(self, name: str) -> str:
        """The last value, "" for none."""
        return self._values.get(name, [""])[-1]

    def known(self, name: str) -> str | None:
        """The value of this turn; None for a variable that the text never sets."""
        if name in {"@", "*", "#"} or name.isdigit():
            return self._word(name)
        held = self._values.get(name)
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if held is None:
            return " " if name == "IFS" else None
        self.most = max(self.most, len(held))
        return held[min(self.turn, len(held) - 1)]

    def _word(self, name: str) -> str | None:
        if self.words is None:
            return None
        if name in {"@", "*"}:
            return " ".join(self.words[1:])
        place = int(name) if name.isdigit() and len(name) < 6 else len(self.words)
        return self.words[place] if place < len(self.words) else ""

    def fields(self, pieces: Sequence[Piece]) -> list[str]:
        """What a shell makes of a word: none, one or several fields."""
        found: list[str] = []
        for chosen in alternatives(pieces):
            found += self._split(chosen)
            if len(found) > _MAX_FIELDS:
                break
        return found

    def text(self, pieces: Sequence[Piece], depth: int = 0) -> str:
        """A word as one text."""
        return self.assigned(pieces, depth).replace(_NEXT, " ")

    def assigned(self, pieces: Sequence[Piece], depth: int = 0) -> str:
        """A word as the text of an assignment: an array's words stay apart in it."""
        return "".join(self.value(piece, depth) for piece in pieces)

    def _split(self, pieces: Sequence[Piece]) -> list[str]:
        """The fields of a word without braces: what is not quoted falls apart at blanks."""
        found: list[str] = []
        word: list[str] | None = None
        for piece in pieces:
            parts = self._parts(piece)
            if not parts and word == [""]:  # `"$@"` of no words is no word
                word = None
            for place, part in enumerate(parts):
                if place and word is not None:
                    found.append("".join(word))
                    word = None
                if part or piece.quoted:
                    word = [] if word is None else word
                    word.append(part)
        return found if word is None else [*found, "".join(word)]

    def _parts(self, piece: Piece) -> Sequence[str]:
        value = self.value(piece)
        if piece.quoted and piece.kind == VARIABLE and _ALL.fullmatch(piece.text):
            known = self.words is not None and piece.text == "@"
            return self.words[1:] if known and self.words else value.split(_NEXT)
        value = value.replace(_NEXT, " ")
        if piece.quoted or piece.kind == TEXT:
            return [value]
        blanks = self.last("IFS") if "IFS" in self._values else ""
        return re.split(f"[{re.escape(blanks)}]+" if blanks else r"\s+", value)

    def value(self, piece: Piece, depth: int = 0) -> str:
        """What one piece stands for."""
        if piece.kind == TEXT:
            return piece.text
        if piece.kind == VARIABLE:
            return self._parameter(piece.text, depth)
        if piece.kind == ARRAY:
            return self._array(piece.text)
        printed = self._output(piece.text) if piece.kind == COMMAND else None
        if printed is not None:
            return printed.rstrip("\n")
        return printed_by(piece.text) if piece.kind == COMMAND else file_of(piece.text)

    def _array(self, text: str) -> str:
        """The words in an array's brackets, apart."""
        self._arrays += 1
        words = [token for token in lex(text).tokens if not token.sign] if self._arrays < _MAX_DEPTH else []
        said = _NEXT.join(field for token in words for field in self.fields(token.pieces))
        self._arrays -= 1
        return said

    def _parameter(self, text: str, depth: int) -> str:
        match = _PARAMETER.fullmatch(text)
        if match is None or match["far"]:
            return printed_by("")
        known = self.known(match["name"])
        if match["index"] and known is not None and match["index"][1:-1].isdigit():
            place = int(match["index"][1:-1][:4])
            known = (known.split(_NEXT)[place:] or [""])[0]
        default = _DEFAULT.fullmatch(match["rest"])
        if match["rest"] and default is None:  # what is cut out of a value or changed in it is not followed
            return printed_by("" if known is None else FETCHED)
        sign = default["sign"][-1] if default else "?"
        absent = known is None or (known == "" and default is not None and default["sign"][0] == ":")
        if default and (sign in "-=" if absent else False):
            value = self._default(default["word"], depth)
            if sign == "=":
                self.put(match["name"], value)
            return value
        if default and sign == "+":
            return "" if known == "" else self._default(default["word"], depth)
        return unknown_variable(match["name"]) if known is None else known

    def _default(self, text: str, depth: int) -> str:
        if depth > _MAX_DEPTH:
            return printed_by("")
        return " ".join(self.text(token.pieces, depth + 1) for token in lex(text).tokens if not token.sign)
