"""The words of a shell script: quotes, substitutions, expansions and here-documents, as bash cuts them."""

import re
from typing import NoReturn

from orchestrator.syntax.problem import Problem, place, shown

_PLAIN = re.compile(r"[^\s\\'\"`$;&|<>(){}#?*+@!\[\]=]+")
_REDIRECTION = re.compile(r"\d*(<<<|<<-?|<>|[<>]&-?|&>>?|>>|>\||[<>](?!\())")
_DOLLAR_SINGLE = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_BACKTICKS = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
_ENDS = frozenset(" \t\n;&|<>()")
_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_HERE = re.compile(r"<<(-?)(?!<)[ \t]*(?:\\?([^\s;&|<>()'\"\\]+)|'([^'\n]*)'|\"([^\"\n]*)\")")


class Stopped(Exception):
    """The reading ended: it carries the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Words:
    """A place in a text, and what can be read from there on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._here: list[tuple[str, bool, int]] = []

    def stop(self, message: str, at: int | None = None, fix: str = "") -> NoReturn:
        """End the reading with a problem at `at`, else here."""
        line, column = place(self.text, self.at if at is None else at)
        raise Stopped(Problem(line=line, column=column, message=message, fix=fix))

    def never_closed(self, what: str, at: int, closer: str) -> NoReturn:
        """End the reading: what begins at `at` has no `closer`."""
        line, _ = place(self.text, at)
        self.stop(f"{what} of line {line} is never closed", at, f"Close it with `{closer}`.")

    def here(self, piece: str) -> bool:
        """Whether the text goes on with `piece`."""
        return self.text.startswith(piece, self.at)

    def blanks(self) -> None:
        """Go behind blanks, joined lines and a comment."""
        if match := _BLANK.match(self.text, self.at):
            self.at = match.end()
        if self.here("#"):
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end

    def newline(self) -> None:
        """Go behind a line end and the here-documents that begin there."""
        self.at += 1
        waiting, self._here = self._here, []
        for name, tabs, begun in waiting:
            while True:
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end].rstrip("\r")
                last, self.at = end >= len(self.text), min(end + 1, len(self.text))
                if (line.lstrip("\t") if tabs else line) == name:
                    break
                # bash takes a substitution's bracket for the end too, which is how some are written on purpose
                if last:
                    number, _ = place(self.text, begun)
                    self.stop(f"the here-document of line {number} has no line `{shown(name)}` that ends it", begun)
            if last:
                self.at = len(self.text)

    def redirection(self) -> bool:
        """Go behind `<`, `>` and their like with what they point to; False when none stands here."""
        match = _REDIRECTION.match(self.text, self.at)
        if match is None:
            return False
        if match[1] in {"<<", "<<-"}:
            found = _HERE.match(self.text, match.start(1))
            if found is None:
                self.stop("a here-document has no name")
            name = next(part for part in found.groups()[1:] if part is not None)
            self._here.append((re.sub(r"\\(.)", r"\1", name), found[1] == "-", self.at))
            self.at = found.end()
            return True
        begun = self.at
        self.at = match.end()
        if match[1].endswith("&-"):
            return True
        self.blanks()
        if not self.word():
            self.stop(f"`{match[0]}` points to nothing", begun)
        return True

    def word(self) -> str:
        """Go behind one word and hand it back as written; "" when none begins here."""
        start = self.at
        while self.at < len(self.text):
            if match := _PLAIN.match(self.text, self.at):
                self.at = match.end()
                continue
            char = self.text[self.at]
            if char in _ENDS and not self._within(char):
                break
            self._piece(char)
        return self.text[start : self.at]

    def _within(self, char: str) -> bool:
        """A process substitution, `<(…)`."""
        return char in "<>" and self.text.startswith("(", self.at + 1)

    def _piece(self, char: str) -> None:
        if char == "\\":
            self.at += 2
        elif char == "'":
            self._single(self.at)
        elif char == '"':
            self.double()
        elif char == "`":
            self._backticks()
        elif char == "$":
            self.expansion()
        elif char in "<>":
            self.at += 1
            self.substitution(self.at - 1)
        elif char in "?*+@!" and self.text.startswith("(", self.at + 1):
            self.at += 1
            self.pattern()
        elif char == "=" and self.text.startswith("=(", self.at) and self.at:
            self.at += 1
            self._array()
        else:
            self.at += 1

    def _single(self, begun: int) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self.never_closed("the single quote", begun, "'")
        self.at = end + 1

    def _dollar_single(self) -> None:
        match = _DOLLAR_SINGLE.match(self.text, self.at)
        if match is None:
            self.never_closed("the single quote", self.at, "'")
        self.at = match.end()

    def double(self) -> None:
        """Go behind a text in double quotes."""
        begun = self.at
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\":
                self.at += 2
            elif char == "`":
                self._backticks()
            elif char == "$" and self.text[self.at + 1 : self.at + 2] in {"(", "{"}:
                self.expansion(quoted=True)
            else:
                self.at += 1
        self.never_closed("the double quote", begun, '"')

    def _backticks(self) -> None:
        match = _BACKTICKS.match(self.text, self.at)
        if match is None:
            self.never_closed("the backtick", self.at, "a backtick")
        self.at = match.end()

    def expansion(self, *, quoted: bool = False) -> None:
        """Go behind what begins with a dollar sign."""
        begun = self.at
        if self.here("$'") and not quoted:
            self._dollar_single()
        elif self.here("$(("):
            self.at += 1
            self.arithmetic(begun)
        elif self.here("$("):
            self.at += 1
            self.substitution(begun)
        elif self.here("${"):
            self._parameter(quoted=quoted)
        elif self.here("$["):
            end = self.text.find("]", self.at)
            self.at = end + 1 if end >= 0 else len(self.text)
        else:
            self.at += 2 if self.text[self.at + 1 : self.at + 2] in {"#", "?", "*", "@", "!", "$", "-"} else 1

    def _parameter(self, *, quoted: bool) -> None:
        begun = self.at
        self.at += 2
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "}":
                self.at += 1
                return
            if char == "\\":
                self.at += 2
            elif char == "'" and not quoted:
                self._single(self.at)
            elif char == '"':
                self.double()
            elif char == "`":
                self._backticks()
            elif char == "$" and self.at + 1 < len(self.text):
                self.expansion(quoted=quoted)
            else:
                self.at += 1
        self.never_closed("`${`", begun, "}")

    def arithmetic(self, begun: int) -> None:
        """Go behind `((…))`, from its first bracket on; what is none is a substitution or group in brackets."""
        depth, self_at = 0, self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "(":
                depth += 1
            elif char == ")":
                if depth == 2 and not self.here("))"):
                    break
                depth -= 2 if depth == 2 else 1
                if depth == 0:
                    self.at += 2
                    return
            if char in "\\'\"`$#" and not (char == "#" and depth):
                if char == "$" or char in "'\"`\\":
                    self._piece(char)
                    continue
                break
            self.at += 1
        self.at = self_at
        self.substitution(begun)

    def _array(self) -> None:
        begun = self.at
        self.at += 1
        while True:
            self.blanks()
            if self.here(")"):
                self.at += 1
                return
            if self.here("\n"):
                self.newline()
            elif not self.word():
                if self.at >= len(self.text):
                    self.never_closed("the array", begun, ")")
                self.stop(f"unexpected `{self.text[self.at]}` in the array of line {place(self.text, begun)[0]}")

    def pattern(self) -> None:
        """Go behind `(a|b)`, from its bracket on."""
        begun = self.at
        self.at += 1
        while self.at < len(self.text):
            if self.here(")"):
                self.at += 1
                return
            if self.here("("):
                self.pattern()
            elif not self.word():
                self.at += 1
        self.never_closed("`(`", begun, ")")

    def substitution(self, begun: int) -> None:
        """Go behind `(…)` that holds commands, from its bracket on."""
        raise NotImplementedError
