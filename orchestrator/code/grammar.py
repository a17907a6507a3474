"""The tree-sitter grammars, loaded when the first text of their language comes, and what is wrong where one fails.

The cause comes first: the bracket, string, comment or tag that nothing closes, else what the tree could not read.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrator.core.value import Value

__all__ = ["GRAMMARS", "Node", "below", "language", "node_text", "parse"]
if TYPE_CHECKING:
    from tree_sitter import Language, Node
else:
    Node = Any  # the name for annotations, so that nothing is loaded for their sake

GRAMMARS = {
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "python": ("tree_sitter_python", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "rust": ("tree_sitter_rust", "language"),
}
"""Name → module of the wheel and the function in it that hands out the grammar."""


@cache
def language(name: str) -> "Language":
    """Returns the grammar called `name` in GRAMMARS; it never changes, so threads may share it."""
    from tree_sitter import Language

    module, function = GRAMMARS[name]
    return Language(getattr(import_module(module), function)())


def parse(name: str, text: str) -> Node:
    """Returns the root of the tree; a broken text gives error nodes, never an exception.

    The tree of a text that is `too_deep` has an error and nothing else: building it would take minutes.

    Each call has a parser of its own: a parser keeps the state of what it reads and may not be shared by threads.
    """
    from tree_sitter import Parser

    readable = text if too_deep(text) is None else "("
    return Parser(language(name)).parse(readable.encode("utf-8", "replace")).root_node


def below(node: Node) -> Iterator[Node]:
    """The node and all below it in order of the text, without recursion: deep nesting costs memory, never the stack."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(reversed(here.children))


def node_text(node: Node | None) -> str:
    """Returns the text the node stands for, "" for None."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


MOST = 3
"""Problems told per file: what stands behind the first ones is often made by them."""


class Problem(Value):
    """One place that does not parse."""

    line: int | None = None
    """1-based."""
    column: int | None = None
    """1-based, in characters."""
    message: str
    """What is wrong, without the place and the language."""
    fix: str = ""
    """What to do about it; empty for the usual: write the whole file again."""


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both 1-based, of the character at `offset`."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def problem_at(text: str, offset: int, message: str, fix: str = "") -> Problem:
    """Returns the problem with the character at `offset`."""
    line, column = place(text, offset)
    return Problem(line=line, column=column, message=message, fix=fix)


def never_closed(text: str, offset: int, what: str, fix: str) -> Problem:
    """Returns the problem that `what`, which opens at `offset`, has no end."""
    return problem_at(text, offset, f"{what} opened in line {place(text, offset)[0]} is never closed", fix)


TOO_DEEP = Problem(message="it is nested too deeply", fix="Write it with less nesting.")

MAX_OPEN = 1_000
"""Brackets open at once: Python's own parser takes 200. Grammars take seconds for 160 kB of `(`, minutes for `A<`."""
_BRACKET = re.compile(r"[(\[{]|[)\]}]")
# Behind each other on one line, or it is a row of comparisons: brackets of types hold names alone.
_TYPES = re.compile(r"<(?:[\w.$, \t]{0,60}+<)++")


def too_deep(text: str) -> Problem | None:
    """Returns the place where more than MAX_OPEN brackets are open, in strings and comments too; None where none is."""
    if text.count("(") + text.count("[") + text.count("{") > MAX_OPEN:
        depth = 0
        for found in _BRACKET.finditer(text):
            depth = depth + 1 if found[0] in "([{" else max(0, depth - 1)
            if depth > MAX_OPEN:
                return _deep_at(text, found.start())
    if text.count("<") > MAX_OPEN:
        types = (found.start() for found in _TYPES.finditer(text) if found[0].count("<") > MAX_OPEN)
        return next((_deep_at(text, at) for at in types), None)
    return None


def _deep_at(text: str, offset: int) -> Problem:
    return problem_at(text, offset, f"more than {MAX_OPEN} brackets are open at once", TOO_DEEP.fix)


def shown(text: str) -> str:
    """Returns a piece of a text on one line, short enough for a message, without what would break its quotes."""
    return " ".join(text.split())[:60].replace("`", "'")


CLOSER_OF = {"(": ")", "[": "]", "{": "}", "${": "}", "#{": "}", "@{": "}", "#[": "]"}
"""Opening token → its closing one."""
CLOSERS = frozenset(CLOSER_OF.values())

_FAR = 64
"""Brackets of one kind that are looked at outwards from a closing one."""


class Token(NamedTuple):
    """One bracket of a text that stands neither in a string nor in a comment."""

    text: str
    line: int
    """1-based."""
    column: int
    """1-based."""


class _Found(NamedTuple):
    unclosed: list[Token]
    strays: list[Token]


def unbalanced(tokens: Sequence[Token], text: str) -> list[Problem]:
    """Returns the brackets among `tokens` that lack their other half, the first one first; [] when all have theirs.

    A bracket that closes one further out tells that those in between were left open; so does one that stands at the
    start of its line as far left as the line of one further out.
    """
    indents = [len(line) - len(line.lstrip()) for line in text.expandtabs(8).split("\n")]
    plain = _matched(tokens, indents, by_indent=False)
    if not plain.unclosed and not plain.strays:
        return []
    found = _matched(tokens, indents, by_indent=True)
    if not found.unclosed and not found.strays:
        found = plain
    problems = [_never_closed(found.unclosed)] if found.unclosed else []
    return problems + [
        Problem(line=token.line, column=token.column, message=f"`{token.text}` closes nothing")
        for token in found.strays[:1]
    ]


def _never_closed(unclosed: Sequence[Token]) -> Problem:
    """Returns the innermost one at the end of a file that was cut; those around it are named."""
    first = unclosed[-1]
    others = [f"`{token.text}` of line {token.line}" for token in unclosed[:-1]][-4:]
    nor = f", nor {'is' if len(others) == 1 else 'are'} {' and '.join(others)}" if others else ""
    message = f"`{first.text}` opened in line {first.line} is never closed{nor}"
    fix = f"Close it with `{CLOSER_OF[first.text]}`, and write the whole file again."
    return Problem(line=first.line, column=first.column, message=message, fix=fix)


def _matched(tokens: Sequence[Token], indents: Sequence[int], *, by_indent: bool) -> _Found:
    open_: list[Token] = []
    found = _Found([], [])
    seen_line = 0
    for token in tokens:
        leads, seen_line = token.line != seen_line, token.line
        if token.text not in CLOSERS:
            open_.append(token)
            continue
        at = _partner(token, open_, indents if by_indent and leads else None)
        if at < 0:
            found.strays.append(token)
        else:
            found.unclosed.extend(open_[at + 1 :])
            del open_[at:]
    # What a bracket further out closed over tells more than what the end of the file left open.
    return found if found.unclosed else _Found(open_, found.strays)


def _partner(token: Token, open_: Sequence[Token], indents: Sequence[int] | None) -> int:
    """Place in `open_` of what `token` closes; -1 when it closes nothing."""
    outwards = range(len(open_) - 1, -1, -1)
    same = list(islice((place for place in outwards if CLOSER_OF[open_[place].text] == token.text), _FAR))
    if not same:
        return -1
    if indents is None or open_[same[0]].line == token.line:
        return same[0]
    mine = indents[token.line - 1]
    if mine >= indents[open_[same[0]].line - 1]:
        return same[0]
    # It stands further left than what it would close: the one as far left as itself is meant, those inside are open.
    return next((place for place in same if indents[open_[place].line - 1] == mine), same[0])


_QUOTES = frozenset({'"', "'", "`", '"""', "'''"})
_COMMENT = re.compile(r"(?:^|[\s;])(/\*)", re.MULTILINE)
_MOST_QUOTES = 64
"""Quotes looked at for the one that nothing ends."""
_LONG_LINE = 2000
"""Behind so many bytes a column is given in bytes: no one counts them."""
_BRACKETS = CLOSERS | frozenset(CLOSER_OF)


def problems(root: Node, text: str) -> list[Problem]:
    """At most MOST problems, the cause first; [] when the tree has no error node."""
    if not root.has_error:
        return []
    lines = Lines(text)
    nodes = list(_with_parents(root))
    said = [*_open_comment(text)] or [*_open_string(nodes, lines), *_open_tag(nodes, lines)]
    said = said or unbalanced([_token(node, lines) for node, _ in nodes if _is_bracket(node)], text)
    return (said or _error_nodes(nodes, lines))[:MOST] or [Problem(line=1, column=1, message="unexpected text")]


def _with_parents(root: Node) -> Iterator[tuple[Node, Node | None]]:
    """Every node with the one it stands in, in order of the text: a node finds its own parent from the root down."""
    waiting: list[tuple[Node, Node | None]] = [(root, None)]
    while waiting:
        node, parent = waiting.pop()
        yield node, parent
        waiting.extend((child, node) for child in reversed(node.children))


class Lines:
    """Where the nodes of a tree stand in its text: trees count bytes, people count characters."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._ascii = text.isascii()

    def point(self, node: Node) -> tuple[int, int]:
        """Line and column of the node's start, 1-based, in characters."""
        row, column = node.start_point.row, node.start_point.column
        line = self._lines[row] if row < len(self._lines) else ""
        if self._ascii or column > _LONG_LINE:
            return row + 1, column + 1
        return row + 1, len(line[:column].encode("utf-8", "replace")[:column].decode("utf-8", "replace")) + 1


def _is_bracket(node: Node) -> bool:
    return node.type in _BRACKETS and not node.is_missing and node.child_count == 0


def _token(node: Node, lines: Lines) -> Token:
    line, column = lines.point(node)
    return Token(node.type, line, column)


def _open_comment(text: str) -> Iterator[Problem]:
    """A comment that swallows the rest; trees make of it whatever they can."""
    starts = [match.start(1) for match in _COMMENT.finditer(text, text.rfind("*/") + 1)]
    if starts:
        yield never_closed(text, starts[0], "the comment", "Close it with `*/`.")


def _open_string(nodes: Sequence[tuple[Node, Node | None]], lines: Lines) -> Iterator[Problem]:
    """Yields a problem for each quote that starts no string, because nothing closes it."""
    loose = ((node, at) for node, at in nodes if node.type in _QUOTES and at is not None and at.is_error)
    for node, parent in islice(loose, _MOST_QUOTES):
        if _is_alone(node, parent):
            line, column = lines.point(node)
            quote = "a backtick" if node.type == "`" else node.type
            message = f"the text that {quote} opens in line {line} is never closed"
            yield Problem(line=line, column=column, message=message, fix="Close it, and write the whole file again.")
            return


def _is_alone(quote: Node, parent: Node) -> bool:
    """Whether no other quote of its kind stands in its line beside it: some trees take whole strings to pieces."""
    row = quote.start_point.row
    alike = [node for node in parent.children if node.type == quote.type and node.start_point.row == row]
    return len(alike) % 2 == 1


def _open_tag(nodes: Sequence[tuple[Node, Node | None]], lines: Lines) -> Iterator[Problem]:
    """JSX: the innermost opening tag that stands in no element."""
    opened = [node for node, parent in nodes if node.type == "jsx_opening_element" and parent and parent.is_error]
    for node in opened[-1:]:
        line, column = lines.point(node)
        name = shown(node_text(node.child_by_field_name("name")))
        message = f"`<{name}>` opened in line {line} is never closed"
        yield Problem(line=line, column=column, message=message, fix=f"Close it with `</{name}>`.")


def _error_nodes(nodes: Sequence[tuple[Node, Node | None]], lines: Lines) -> list[Problem]:
    found: list[Problem] = []
    for node, _ in nodes:
        if not (node.is_missing or node.is_error):
            continue
        line, column = lines.point(node)
        if any(problem.line == line for problem in found):
            continue
        seen = shown(node_text(node))
        said = f"`{node.type}` is missing" if node.is_missing else f"unexpected `{seen}`" if seen else "unexpected text"
        found.append(Problem(line=line, column=column, message=said))
        if len(found) == MOST:
            break
    return found
