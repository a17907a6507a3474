"""Is a shell script well-formed? Read as bash reads it: commands, groups, conditions, loops and functions.

A reader of its own, because the grammar that is to be had refuses one in thirty of the scripts that bash runs.
"""

import re
from collections.abc import Collection

from orchestrator.syntax.problem import Problem, place, shown
from orchestrator.syntax.shell_parts import Stopped
from orchestrator.syntax.shell_tests import Tests

_RESERVED_ENDS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_OPERATORS = ("&&", "||", "|&", ";;&", ";;", ";&", "|", "&", ";")
_JOINING = frozenset({"&&", "||", "|&", "|"})
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(\[[^\]\n]*\])?\+?=")
_WORD = re.compile(r"(\{|\}|!|[a-z]+|\[\[)(?=[\s;&|()<>]|\Z)")
_DECLARES = re.compile(r"\s*\(\s*\)")


def problems(text: str) -> list[Problem]:
    """The first place that no shell would get behind; [] when there is none. Never raises.

    Scripts for bash, dash and sh pass, whatever they use of bash; what runs only in zsh may not.
    """
    reader = _Reader(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    try:
        reader.script()
    except Stopped as stopped:
        return [stopped.problem]
    except RecursionError:
        return [Problem(message="it is nested too deeply", fix="Write it with less nesting.")]
    return []


class _Reader(Tests):
    """Commands; each method goes behind what its name says or stops."""

    def script(self) -> None:
        self._commands(())
        if self.at < len(self.text):
            self.stop(f"unexpected `{shown(self.text[self.at : self.at + 12])}`")

    def substitution(self, begun: int) -> None:
        self.at += 1
        self._commands((")",))
        if not self.here(")"):
            self.never_closed(f"`{self.text[begun : begun + 2] if self.text[begun] != '(' else '('}`", begun, ")")
        self.at += 1

    def _commands(self, ends: Collection[str], *, some: bool = False) -> str:
        """Go behind commands up to one of `ends`, a reserved word or `)` or `;;`, and hand it back; "" at the end."""
        joined, begun, count = "", self.at, 0
        while True:
            self.blanks()
            if self.at >= len(self.text):
                break
            if self.here("\n"):
                self.newline()
                continue
            end = self._end(ends)
            if end:
                break
            if operator := next((one for one in _OPERATORS if self.here(one)), ""):
                self.stop(f"unexpected `{operator}`")
            compound = self._command()
            count += 1
            joined = self._operator(ends, compound=compound)
            begun = self.at
        if joined in _JOINING:
            self.stop(f"nothing stands behind `{joined}`", begun - len(joined))
        if some and not count and self.at < len(self.text):
            self.stop("commands are missing here")
        return self._end(ends) if self.at < len(self.text) else ""

    def _operator(self, ends: Collection[str], *, compound: bool) -> str:
        """Go behind what stands between two commands; a compound one needs nothing before the end of another."""
        self.blanks()
        operator = next((one for one in _OPERATORS if self.here(one)), "")
        if operator in {";;", ";;&", ";&"}:
            if ";;" not in ends:
                self.stop(f"unexpected `{operator}`")
            return ""
        self.at += len(operator)
        more = not operator and self.at < len(self.text) and self.text[self.at] not in "\n)"
        if more and not (compound and self._next_word() in _RESERVED_ENDS):
            self.stop(f"unexpected `{shown(self.text[self.at : self.at + 12])}`")
        return operator

    def _end(self, ends: Collection[str]) -> str:
        if self.here(")"):
            if ")" in ends:
                return ")"
            self.stop("`)` closes nothing")
        if self.here(";;") or self.here(";&"):
            return ";;" if ";;" in ends else ""
        word = self._next_word()
        if word in ends:
            return word
        if word in _RESERVED_ENDS:
            waited = sorted(set(ends) - {")", ";;"})
            said = f": `{'` or `'.join(waited)}` was expected" if waited else ""
            self.stop(f"unexpected `{word}`{said}")
        return ""

    def _next_word(self) -> str:
        match = _WORD.match(self.text, self.at)
        return match[1] if match else ""

    def _command(self) -> bool:
        """Go behind one command; whether it was a compound one."""
        word = self._next_word()
        begun = self.at
        if word in {"!", "time", "coproc"}:
            self.at += len(word)
            self.blanks()
            if self.at < len(self.text) and self.text[self.at] not in "\n;&|)":
                return self._command()
            return False
        if word in {"if", "while", "until", "for", "select", "case", "{", "function", "[["}:
            self.at += len(word)
            self._compound(word, begun)
        elif self.here("(("):
            self.arithmetic(begun)
        elif self.here("("):
            self.substitution(begun)
        else:
            self._simple()
            return False
        self._redirections()
        return True

    def _compound(self, word: str, begun: int) -> None:
        if word == "if":
            self._if(begun)
        elif word in {"while", "until"}:
            self._until(("do",), word, begun)
            self._until(("done",), "do", begun)
        elif word in {"for", "select"}:
            self._for(word, begun)
        elif word == "case":
            self._case(begun)
        elif word == "{":
            self._until(("}",), "{", begun)
        elif word == "[[":
            self.test(begun)
        else:
            self._function(begun)

    def _until(self, ends: tuple[str, ...], word: str, begun: int) -> str:
        """Go behind commands and the one of `ends` behind them."""
        found = self._commands(ends, some=True)
        if not found:
            line = place(self.text, begun)[0]
            fix = f"End it with `{ends[-1]}`."
            self.stop(f"`{word}` of line {line} has no `{ends[-1]}`: the file ends before it", begun, fix)
        self.at += len(found)
        return found

    def _if(self, begun: int) -> None:
        self._until(("then",), "if", begun)
        while True:
            found = self._until(("elif", "else", "fi"), "if", begun)
            if found == "fi":
                return
            if found == "else":
                self._until(("fi",), "if", begun)
                return
            self._until(("then",), "elif", begun)

    def _for(self, word: str, begun: int) -> None:
        self.blanks()
        if self.here("(("):
            self.arithmetic(begun)
        elif not re.match(r"[A-Za-z_][\w-]*\Z", self.word()):
            self.stop(f"`{word}` has no name of a variable", begun)
        self._lines()
        if self._next_word() == "in":
            self.at += 2
            self.blanks()
            while self.word():
                self.blanks()
        self.blanks()
        if self.here(";"):
            self.at += 1
        self._lines()
        opening = self._next_word()
        if opening not in {"do", "{"}:
            self.stop(f"`{word}` of line {place(self.text, begun)[0]} has no `do`")
        self.at += len(opening)
        self._until(("done",) if opening == "do" else ("}",), word, begun)

    def _lines(self) -> None:
        self.blanks()
        while self.here("\n"):
            self.newline()
            self.blanks()

    def _case(self, begun: int) -> None:
        self.blanks()
        if not self.word():
            self.stop("`case` has no word", begun)
        self._lines()
        if self._next_word() != "in":
            self.stop(f"`case` of line {place(self.text, begun)[0]} has no `in`")
        self.at += 2
        while True:
            self._lines()
            if self._next_word() == "esac":
                self.at += 4
                return
            if self.at >= len(self.text):
                line = place(self.text, begun)[0]
                self.stop(f"`case` of line {line} has no `esac`: the file ends before it", begun, "End it with `esac`.")
            self._case_pattern(begun)
            if self._commands((";;", "esac")) == ";;":
                self.at += 3 if self.here(";;&") else 2

    def _case_pattern(self, begun: int) -> None:
        if self.here("("):
            self.at += 1
        while True:
            self.blanks()
            if not self.word():
                self.stop(f"a pattern of the `case` of line {place(self.text, begun)[0]} is missing")
            self.blanks()
            if self.here(")"):
                self.at += 1
                return
            if not self.here("|"):
                self.stop(f"`)` is missing behind a pattern of the `case` of line {place(self.text, begun)[0]}")
            self.at += 1

    def _function(self, begun: int) -> None:
        self.blanks()
        if not self.word():
            self.stop("`function` has no name", begun)
        if match := _DECLARES.match(self.text, self.at):
            self.at = match.end()
        self._body(begun)

    def _body(self, begun: int) -> None:
        self._lines()
        if self._next_word() not in {"{", "if", "while", "until", "for", "case", "[["} and not self.here("("):
            self.stop("the function has no body", begun)
        self._command()

    def _redirections(self) -> None:
        self.blanks()
        while self.redirection():
            self.blanks()

    def _simple(self) -> None:
        begun, first = self.at, True
        while True:
            self.blanks()
            if self.redirection():
                continue
            start = self.at
            word = self.word()
            if not word:
                break
            if (first and self.here("(")) or (first and _DECLARES.match(self.text, self.at)):
                match = _DECLARES.match(self.text, self.at)
                if match is None:
                    self.stop("unexpected `(`")
                self.at = match.end()
                self._body(begun)
                self._redirections()
                return
            first = first and _ASSIGNED.match(self.text, start) is not None
        if self.here("("):
            self.stop("unexpected `(`")
