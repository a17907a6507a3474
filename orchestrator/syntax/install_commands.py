"""One command, its words known: behind what wraps it, by what its first word is."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from orchestrator.syntax.install_builtins import BUILTINS
from orchestrator.syntax.install_calls import SHELLS, is_interpreter, is_python
from orchestrator.syntax.install_names import names_of
from orchestrator.syntax.install_runs import run_interpreter, run_python, run_script, run_shell, use_tool
from orchestrator.syntax.install_sources import set_by_variable
from orchestrator.syntax.install_state import TOO_INTRICATE, Fed, State
from orchestrator.syntax.install_use import tool_of
from orchestrator.syntax.install_wrappers import HARMLESS, SPEAKING, WRAPPERS
from orchestrator.syntax.shell import Function, Item
from orchestrator.syntax.shell_expand import FETCHED, OUTPUT, TYPED, UNKNOWN, printed_by
from orchestrator.syntax.shell_words import lex

MAX_DEPTH = 12
"""Texts inside texts that are followed."""
ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<index>\[[^\]]*\])?(?P<more>\+)?=(?P<value>.*)", re.DOTALL)
_MAX_HEADS, _MAX_WRAPPERS, _MAX_CALLS = 16, 40, 3
_ADDS = frozenset({"install", "add", "i", "dlx"})
_NO_INSTALLERS = frozenset({"make", "cmake", "git", "docker", "kubectl", "helm", "compose", "ninja"})


class CommandReader(ABC):
    """Reads single commands; what is a text of its own goes to `line`."""

    state: State
    depth = 0

    @abstractmethod
    def line(self, text: str, *, fed: Fed | None = None, words: Sequence[str] | None = None) -> None:
        """Read a text as a shell would."""

    @abstractmethod
    def body(self, items: Sequence[Item], fed: Fed | None, words: Sequence[str] | None) -> None:
        """Read commands that are parsed already, such as a function's."""

    def assign(self, word: str, *, list_of_words: bool = False) -> None:
        """Set a variable by a word such as `NAME=value`."""
        match = ASSIGNMENT.fullmatch(word)
        if match is not None:
            apart = list_of_words or match["index"] is not None
            more = match["more"] is not None or match["index"] is not None
            self.state.variables.put(match["name"], match["value"], more=more, apart=apart)
            self.state.tell([set_by_variable(match["name"], match["value"])])

    def command(self, words: Sequence[str], fed: Fed | None = None, *, piped: bool = False) -> None:
        """Read one command: behind wrappers, by what its first word is."""
        rest, piped = self._unwrapped(list(words), piped=piped)
        if not rest or not self.state.spend(len(rest)):
            return
        head = rest[0]
        name = head.rsplit("/", 1)[-1].lower()
        self.depth += 1
        if self.depth > 2 * MAX_DEPTH:
            self.state.names[TOO_INTRICATE] = None
        elif head in self.state.functions:
            self._call(self.state.functions[head], rest, fed)
        elif head in self.state.aliases:
            self._alias(rest, fed)
        elif UNKNOWN.search(head) or re.search(r"[*?\[{]", head) or re.search(r"\s", head):
            self._unreadable(rest, fed, piped=piped)
        else:
            self._known(name, rest, fed, piped=piped)
        self.depth -= 1

    def _known(self, name: str, rest: list[str], fed: Fed | None, *, piped: bool) -> None:
        if name in SHELLS:
            run_shell(self, name, rest[1:], fed, piped=piped)
            if name in {"su", "runuser"}:
                self._unknown(rest, fed)
        elif is_python(name):
            run_python(self, rest[1:], fed)
        elif name in BUILTINS:
            BUILTINS[name](self, rest, fed)
        elif is_interpreter(name):
            run_interpreter(self, name, rest[1:], fed)
        elif tool_of(name):
            use_tool(self, tool_of(name), rest[1:], piped=piped)
        elif name in HARMLESS:
            self.state.data += [" ".join(rest)] if name != "[[" else []
        else:
            if "/" in rest[0]:
                run_script(self, rest[0], rest, fed, called=True)
            self._unknown(rest, fed)

    def _unwrapped(self, rest: list[str], *, piped: bool) -> tuple[list[str], bool]:
        """The command behind settings of variables and wrappers; whether `xargs` is among them."""
        for _ in range(_MAX_WRAPPERS):
            if not self.state.spend(len(rest)):
                return [], piped
            name = rest[0].rsplit("/", 1)[-1] if rest else ""
            if rest and (not rest[0] or ASSIGNMENT.fullmatch(rest[0])):
                self.assign(rest.pop(0))
            elif name in WRAPPERS and rest[0] not in self.state.functions:
                rest, piped = self._behind(name, rest, piped=piped)
            else:
                break
        return rest, piped

    def _behind(self, name: str, words: list[str], *, piped: bool) -> tuple[list[str], bool]:
        wrapper, at, mark = WRAPPERS[name], 1, "{}"
        if name == "command" and words[1:2] and re.fullmatch(r"-\w*[vV]\w*", words[1]):
            self.state.data.append(" ".join(words))
            return [], piped
        while at < len(words) and words[at].startswith("-") and words[at] not in {"-", "--"}:
            option = words[at]
            if name == "env" and re.match(r"-\w*S|--split-string", option):
                held = re.sub(r"^(-\w*?S|--split-string=?)", "", option)
                self.line(" ".join([held, *words[at + 1 :]]))
                return [], piped
            if name == "xargs" and option[:2] in {"-I", "-J", "-i"}:
                mark = option[2:] or (words[at + 1] if option != "-i" and at + 1 < len(words) else "{}")
            self.as_line(option)
            at += 2 if option in wrapper.valued else 1
        at += words[at : at + 1] == ["--"]
        at += wrapper.before
        at += words[at : at + 1] == ["--"]
        rest = words[at:]
        if name == "xargs":
            rest = [word.replace(mark, printed_by(FETCHED)) for word in rest]
        if name in {"flock", "watch", "script"} and len(rest) <= 2 and any(re.search(r"\s", word) for word in rest):
            self.line(rest[-1])
        return rest, piped or name == "xargs"

    def as_line(self, word: str) -> None:
        """Read a word that may hold a command of its own: one with blanks, also behind `--option=`."""
        if re.search(r"\s", word) and self.state.guesses:
            for text in dict.fromkeys((word, re.sub(r"^-{0,2}([\w-]+=)+|^-\w", "", word))):
                self.line(text.lstrip("!@"))

    def _call(self, function: Function, words: Sequence[str], fed: Fed | None) -> None:
        self.state.called[function.name, *words[1:]] += 1
        often = self.state.called[function.name, *words[1:]] > _MAX_CALLS
        if often or self.depth > MAX_DEPTH or not self.state.spend(200):
            return
        self.body(function.body, fed, words)

    def _alias(self, words: Sequence[str], fed: Fed | None) -> None:
        text = self.state.aliases[words[0]]
        if not self.state.spend(100):
            return
        behind = [
            field for token in lex(text).tokens if not token.sign for field in self.state.variables.fields(token.pieces)
        ]
        self.line(text)
        if behind[:1] != [words[0]]:
            self.command([*behind, *words[1:]], fed)

    def _unreadable(self, rest: list[str], fed: Fed | None, *, piped: bool) -> None:
        """A command whose name holds what nobody knows: by what is left of it, by its variable's name, by its verb."""
        head = rest[0]
        whole = OUTPUT.fullmatch(head)
        bare = UNKNOWN.sub("", head)
        variable = UNKNOWN.fullmatch(head)
        likely = (variable[0][1:-1] if variable and not whole else bare).rsplit("/", 1)[-1].lower().removesuffix("_bin")
        if whole and whole["name"] in {FETCHED, TYPED}:
            self.state.refuse()
        elif likely in _NO_INSTALLERS:
            return
        elif tool_of(likely) or likely in SHELLS or likely == "shell" or is_python(likely) or is_interpreter(likely):
            self.command(["sh" if likely == "shell" else likely, *rest[1:]], fed, piped=piped)
        elif "{" in bare and "," in bare:
            self.state.refuse()
        else:
            self.as_line(head)
            verb = next((place for place, word in enumerate(rest[1:], 1) if not word.startswith("-")), 0)
            if rest[verb] in _ADDS and verb and self.state.guesses:
                names = [name for word in rest[verb + 1 :] if word[:1] != "-" for name in names_of("pip", word)]
                self.state.tell(names if any("$" not in name for name in names) else ())
            self._unknown(rest, fed)

    def _unknown(self, rest: Sequence[str], fed: Fed | None) -> None:
        """A command nobody knows: what looks like another command among its words is read as one."""
        if not self.state.guesses:
            return
        speaks = rest[0].rsplit("/", 1)[-1].lower() in SPEAKING
        if speaks:
            self.state.data += [word for word in rest[1:] if re.search(r"\s", word)]
        left = _MAX_HEADS
        for place, word in enumerate(rest[1:], 1):
            name = word.rsplit("/", 1)[-1].lower()
            if re.search(r"\s", word):
                self.as_line("" if speaks else word)
            elif (
                tool_of(name) or name in SHELLS or is_python(name) or is_interpreter(name) or name in {"xargs", "eval"}
            ):
                left -= 1
                if left < 0:
                    self.state.refuse(TOO_INTRICATE)
                    break
                self.command(rest[place:], fed)
        if not speaks and re.fullmatch(r"-m", "".join(rest[1:2])):
            run_python(self, rest[1:], fed)
