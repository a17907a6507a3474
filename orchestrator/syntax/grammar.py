"""The tree-sitter grammars: each is loaded when the first text of its language comes, and none on import."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    """The grammar called `name` in GRAMMARS; it never changes, so threads may share it."""
    from tree_sitter import Language

    module, function = GRAMMARS[name]
    return Language(getattr(import_module(module), function)())


def parse(name: str, text: str) -> Node:
    """The root of the tree; a broken text gives error nodes, never an exception.

    Each call has a parser of its own: a parser keeps the state of what it reads and may not be shared by threads.
    """
    from tree_sitter import Parser

    return Parser(language(name)).parse(text.encode("utf-8", "replace")).root_node


def below(node: Node) -> Iterator[Node]:
    """The node and all below it in order of the text, without recursion: deep nesting costs memory, never the stack."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(reversed(here.children))


def node_text(node: Node | None) -> str:
    """The text the node stands for, "" for None."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""
