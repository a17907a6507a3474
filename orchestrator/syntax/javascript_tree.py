"""The tolerant syntax tree of a JavaScript text, and what every reader of it needs."""

from collections.abc import Iterator
from functools import cache

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser


@cache
def _language() -> Language:
    return Language(tree_sitter_javascript.language())


def root(text: str) -> Node:
    """The root of the tree; a broken text gives error nodes, never an exception."""
    return Parser(_language()).parse(text.encode("utf-8", "replace")).root_node


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


def literal(node: Node | None) -> str:
    """The content of a string, or of a template string without substitutions; "" for anything else."""
    if node is None or node.type not in {"string", "template_string"}:
        return ""
    if any(child.type == "template_substitution" for child in node.children):
        return ""
    return node_text(node)[1:-1]
