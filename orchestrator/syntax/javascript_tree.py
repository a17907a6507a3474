"""The tolerant syntax tree of a JavaScript or TypeScript text, and what every reader of it needs."""

from collections.abc import Iterator
from functools import cache

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

TYPESCRIPT = (".ts", ".mts", ".cts", ".tsx")
JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx")
SUFFIXES = (*JAVASCRIPT, *TYPESCRIPT)
"""Files this tree is for."""


@cache
def _language(kind: str) -> Language:
    if kind == ".tsx":
        return Language(tree_sitter_typescript.language_tsx())
    if kind == ".ts":
        return Language(tree_sitter_typescript.language_typescript())
    return Language(tree_sitter_javascript.language())


def is_typescript(path: str) -> bool:
    """Whether the name says so."""
    return path.lower().endswith(TYPESCRIPT)


def root(text: str, path: str = "") -> Node:
    """The root of the tree; a broken text gives error nodes, never an exception.

    The name in `path` tells TypeScript, with or without JSX, from JavaScript.
    """
    kind = (".tsx" if path.lower().endswith(".tsx") else ".ts") if is_typescript(path) else ".js"
    return Parser(_language(kind)).parse(text.encode("utf-8", "replace")).root_node


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
