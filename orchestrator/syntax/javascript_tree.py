"""The tolerant syntax tree of a JavaScript or TypeScript text, and what every reader of it needs."""

import re
from functools import lru_cache

from orchestrator.syntax.grammar import Node, below, node_text, parse

__all__ = [
    "JAVASCRIPT", "SUFFIXES", "TYPESCRIPT", "below", "grammar_of", "is_typescript", "literal", "name_text", "node_text",
    "root", "short_text", "string_value", "unescaped",
]  # fmt: skip
TYPESCRIPT = (".ts", ".mts", ".cts", ".tsx")
JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx")
SUFFIXES = (*JAVASCRIPT, *TYPESCRIPT)
"""Files this tree is for."""


def is_typescript(path: str) -> bool:
    """Whether the name says so."""
    return path.lower().endswith(TYPESCRIPT)


def grammar_of(path: str) -> str:
    """The grammar for a file of this name: TypeScript with or without JSX, else JavaScript."""
    if not is_typescript(path):
        return "javascript"
    return "tsx" if path.lower().endswith(".tsx") else "typescript"


def root(text: str, path: str = "") -> Node:
    """The root of the tree; a broken text gives error nodes, never an exception.

    The name in `path` tells TypeScript, with or without JSX, from JavaScript.
    """
    return parse(grammar_of(path), text)


@lru_cache(maxsize=2)
def everything(tree: Node) -> tuple[Node, ...]:
    """The node and all below it, walked once for all who look at a tree in a row."""
    return tuple(below(tree))


def short_text(node: Node | None, most: int = 200) -> str:
    """`node_text` of what is no longer than `most` bytes, "" for anything longer: asking is cheap at every node."""
    return node_text(node) if node is not None and node.end_byte - node.start_byte <= most else ""


def literal(node: Node | None) -> str:
    """The content of a string, or of a template string without substitutions; "" for anything else."""
    if node is None or node.type not in {"string", "template_string"}:
        return ""
    if any(child.type == "template_substitution" for child in node.children):
        return ""
    return node_text(node)[1:-1]


_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{0*([0-9A-Fa-f]{1,6})\}|([0-7]{1,3})|(\r\n|[\s\S]))")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\n": "", "\r\n": "", "\r": ""}


def string_value(node: Node | None) -> str:
    """`literal`, its escapes read as a JavaScript engine reads them."""
    return unescaped(literal(node))


def name_text(node: Node | None) -> str:
    """The name an identifier stands for, `requ\\u0069re` being `require`."""
    return unescaped(node_text(node))


def unescaped(text: str) -> str:
    """The text between two quotes with its escapes read."""
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code or match[4]:
        number = int(code, 16) if code else int(match[4], 8)
        return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else "\ufffd"
    return _NAMED.get(match[5], match[5])
