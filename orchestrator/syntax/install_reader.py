"""Reads a shell text command by command, as a shell would, and notes what it installs."""

import re
from collections.abc import Sequence

from orchestrator.syntax.install_builtins import literal_output
from orchestrator.syntax.install_calls import SHELLS, is_interpreter, is_python
from orchestrator.syntax.install_commands import ASSIGNMENT, MAX_DEPTH, CommandReader
from orchestrator.syntax.install_state import TOO_INTRICATE, Fed, State
from orchestrator.syntax.install_wrappers import HARMLESS, READERS, WRAPPERS
from orchestrator.syntax.shell import Function, Item, Simple, commands
from orchestrator.syntax.shell_expand import OUTPUT
from orchestrator.syntax.shell_words import ARRAY, COMMAND, FROM, INTO, TEXT, Lexed, Piece, lex

_MAX_PRINTED, _MAX_DERIVED = 4_000, 4
_LOUD = re.compile(r"pip|npm|yarn|install|bunx?|uvx?|npx|conda|poetry|curl|wget", re.IGNORECASE)
_FETCHES = re.compile(r"(sudo\s+)?(curl|wget|aria2c|fetch|base64|openssl)\b")
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>"})


class InstallReader(CommandReader):
    """One reading of one text; `state` holds what it found."""

    def __init__(self, size: int, *, guesses: bool = True) -> None:
        self.state = State(size, self._printed, guesses=guesses)
        self._lexed: dict[str, Lexed] = {}
        self._outer: Fed | None = None

    def read(self, text: str) -> None:
        """Read the whole text, then the functions that nothing in it called."""
        self.line(text)
        called = {name for name, *_ in self.state.called}
        for name, function in list(self.state.functions.items()):
            if name not in called:
                self.body(function.body, None, None)

    def line(self, text: str, *, fed: Fed | None = None, words: Sequence[str] | None = None) -> None:
        """Read a text as a shell would."""
        if self.depth > MAX_DEPTH:
            if self.state.guesses and _LOUD.search(text):
                self.state.names[TOO_INTRICATE] = None
        elif self.state.spend(len(text)):
            lexed, whole = self._tokens(text)
            self.state.data += lexed.comments
            self.body(commands(lexed, whole), fed, words)

    def _tokens(self, text: str) -> tuple[Lexed, str]:
        """Tokens of a text; where a quote is never closed, quotes count as blanks: what stands behind it is told."""
        held = self._lexed.get(text) or lex(text)
        self._lexed[text] = held
        if not held.open_quote:
            return held, text
        plain = re.sub(r"[\"']", " ", text)
        return lex(plain), plain

    def body(self, items: Sequence[Item], fed: Fed | None, words: Sequence[str] | None) -> None:
        """Read commands that are parsed already."""
        variables, outer = self.state.variables, self._outer
        held = (variables.words, variables.turn, variables.most)
        variables.words, self._outer = words if words is not None else variables.words, fed or outer
        self.depth += 1
        for item in items:
            if isinstance(item, Function):
                self.state.functions[item.name] = item
            else:
                variables.turn = 0
                self._simple(item)
        self.depth -= 1
        variables.words, variables.turn, variables.most = held
        self._outer = outer

    def _simple(self, item: Simple) -> None:
        """One command, once for every value of the variables it uses."""
        variables = self.state.variables
        self.state.now = item.text
        for token in (*item.words, *item.redirections):
            self._inner((*token.pieces, *token.held), 0)
        turn, turns = 0, 1
        while turn < turns and self.state.spend(10 + sum(len(token.raw) for token in item.words)):
            variables.turn, variables.most, self.state.now = turn, 1, item.text
            at = self._assignments(item)
            words = [field for token in item.words[at:] for field in variables.fields(token.pieces)]
            fed = self._fed(item)
            self._writes(item, words, fed)
            turns = max(turns, variables.most)
            self._own_data(item, words)
            if words:
                self.command(words, fed)
            elif fed is not None and fed.text is not None and not at and item.redirections:
                self.line(fed.text)
            # The last turn is the last value of all: what it sets is what a shell would have set.
            turn = max(turn + 1, 0 if words or turn + 1 < _MAX_DERIVED else turns - 1)
        variables.turn = 0

    def _inner(self, pieces: Sequence[Piece], depth: int) -> None:
        """The commands that words run for their output."""
        for piece in pieces:
            if piece.kind in {COMMAND, FROM, INTO}:
                self.line(piece.text, fed=Fed(shown=self.state.now) if piece.kind == INTO else None)
            elif piece.kind != TEXT and depth < MAX_DEPTH and re.search(r"[$`<>]", piece.text):
                for token in self._tokens(piece.text)[0].tokens:
                    self._inner((*token.pieces, *token.held), depth + 1)

    def _assignments(self, item: Simple) -> int:
        """Set what the words before a command set; how many they are."""
        for place, token in enumerate(item.words):
            first = token.pieces[0] if token.pieces else Piece(TEXT, "", quoted=True)
            if first.quoted or first.kind != TEXT or not ASSIGNMENT.match(first.text):
                return place
            listed = any(piece.kind == ARRAY for piece in token.pieces)
            self.assign(self.state.variables.assigned(token.pieces), list_of_words=listed)
            self.state.data += [] if listed else [token.raw]
            if place + 1 < len(item.words) and self.state.guesses:
                self.as_line(self.state.variables.text(token.pieces).partition("=")[2])
        return len(item.words)

    def _fed(self, item: Simple) -> Fed | None:
        """What comes to a command's input."""
        variables = self.state.variables
        for token in reversed(item.redirections):
            if token.sign in {"<<", "<<-"}:
                return Fed(variables.text(token.held))
            if token.sign == "<<<":
                return Fed(variables.text(token.pieces))
            if token.sign in {"<", "<>"}:
                path = " ".join(variables.fields(token.pieces))
                held = self.state.file(path)
                if OUTPUT.search(path):
                    return Fed(shown=item.text)
                return Fed(held.text, shown=held.shown) if held else Fed(file=path)
        if isinstance(item.source, Simple):
            return Fed(self._output_of(item.source), shown=item.text)
        return Fed(shown=item.text) if item.source is not None else self._outer

    def _output_of(self, item: Simple) -> str | None:
        """What a command prints when that is plain to see, else None."""
        variables = self.state.variables
        words = [field for token in item.words for field in variables.fields(token.pieces)]
        bodies = [token for token in item.redirections if token.sign in {"<<", "<<-", "<<<", "<"}]
        texts = [variables.text(token.held or token.pieces) for token in bodies if token.sign != "<"]
        files = [self.state.file(" ".join(variables.fields(token.pieces))) for token in bodies if token.sign == "<"]
        texts += [held.text for held in files if held is not None and held.text is not None]
        return literal_output(words, texts, self.state) if item.source is None else None

    def _printed(self, command: str) -> str | None:
        """What a substitution prints when that is plain to see."""
        if len(command) > _MAX_PRINTED or self.depth > MAX_DEPTH:
            return None
        lexed, text = self._tokens(command)
        items = commands(lexed, text)
        self.depth += 1
        known = self._output_of(items[0]) if len(items) == 1 and isinstance(items[0], Simple) else None
        self.depth -= 1
        return known

    def _writes(self, item: Simple, words: Sequence[str], fed: Fed | None) -> None:
        """Files that redirections and `tee` write."""
        written = [token for token in item.redirections if token.sign in _WRITES]
        if written:
            said = self._output_of(item) if words else ""
            fetched = bool(_FETCHES.match(item.text))
            for token in written:
                path = " ".join(self.state.variables.fields(token.pieces))
                self.state.write(path, said, fetched=fetched, more=token.sign.endswith(">>"))
        if words[:1] == ["tee"]:
            for word in words[1:]:
                self.state.write("" if word.startswith("-") else word, fed.text if fed else None)

    def _own_data(self, item: Simple, words: Sequence[str]) -> None:
        """What is no command in a command: here-documents of what only reads them."""
        name = words[0].rsplit("/", 1)[-1] if words else ""
        for token in item.redirections:
            if token.body is not None:
                if name in READERS or name in HARMLESS:
                    self.state.data.append(token.body)
                elif words and self._is_unknown(name):
                    self.line(self.state.variables.text(token.held))

    def _is_unknown(self, name: str) -> bool:
        known = name in SHELLS or is_python(name) or is_interpreter(name) or name in WRAPPERS
        return not known and self.state.guesses
