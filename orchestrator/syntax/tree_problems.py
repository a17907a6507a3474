"""What a syntax tree with error nodes says is wrong: the unclosed string, tag or bracket first, else the nodes."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from orchestrator.syntax.brackets import CLOSER_OF, CLOSERS, Token, unbalanced
from orchestrator.syntax.grammar import Node, node_text
from orchestrator.syntax.problem import MOST, Problem, place, shown

_QUOTES = frozenset({'"', "'", "`", '"""', "'''"})
_COMMENT = re.compile(r"(?:^|[\s;])(/\*)", re.MULTILINE)
_MOST_QUOTES = 64
"""Quotes looked at for the one that nothing ends."""
_LONG_LINE = 2000
"""Behind so many bytes a column is told in bytes: nobody counts them."""
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
    begun = [match.start(1) for match in _COMMENT.finditer(text, text.rfind("*/") + 1)]
    if begun:
        line, column = place(text, begun[0])
        message = f"the comment opened in line {line} is never closed"
        yield Problem(line=line, column=column, message=message, fix="Close it with `*/`.")


def _open_string(nodes: Sequence[tuple[Node, Node | None]], lines: Lines) -> Iterator[Problem]:
    """A quote that begins no string is one that nothing ends."""
    loose = ((node, at) for node, at in nodes if node.type in _QUOTES and at is not None and at.is_error)
    for node, parent in islice(loose, _MOST_QUOTES):
        if _is_alone(node, parent):
            line, column = lines.point(node)
            quote = "a backtick" if node.type == "`" else node.type
            message = f"the text that {quote} opens in line {line} is never closed"
            yield Problem(line=line, column=column, message=message, fix="Close it, and write the whole file anew.")
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
